"""What a step costs is measured from where it begins, not over the life of its worker."""

import os
import subprocess
import sys

MIB = 1 << 20


def told(code: str) -> list[str]:
    """What a process of its own prints: the memory of this one, and of its children, is not ours to reckon with."""
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "tests.settings"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_the_peak_of_an_earlier_step_is_not_that_of_the_next() -> None:
    code = (
        "import django; django.setup()\nfrom replicas.jobs import runner\n"
        "first = runner.Meter()\n"
        "held = bytearray(160 << 20); held[::4096] = bytes([1]) * len(held[::4096])\n"
        "much = first.usage().peak_memory; del held\n"
        "print(much, runner.Meter().usage().peak_memory, runner.set_back_peak())"
    )
    much, little, able = told(code)
    assert int(much) >= 160 * MIB
    assert int(little) < (160 * MIB if able == "True" else int(much) + 1)


def test_a_child_counts_where_it_was_the_largest() -> None:
    code = (
        "import django; django.setup()\nimport subprocess, sys\nfrom replicas.jobs import runner\n"
        "def step(megabytes):\n"
        "    meter = runner.Meter()\n"
        "    subprocess.run([sys.executable, '-c', f'x = bytes(1) * ({megabytes} << 20)'], check=True)\n"
        "    return meter.usage()\n"
        "large, small = step(400), step(1)\n"
        "print(large.peak_memory, small.peak_memory, small.cpu_seconds > 0)"
    )
    large, small, worked = told(code)
    assert int(large) >= 400 * MIB
    assert int(small) < 400 * MIB
    assert worked == "True"
