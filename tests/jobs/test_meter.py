"""What a step costs is measured from where it begins, not over the life of its worker."""

import os
import subprocess
import sys

from replicas.jobs import runner

MIB = 1 << 20
HOLD = "x = bytearray({} << 20)"


def test_the_peak_of_an_earlier_step_is_not_that_of_the_next() -> None:
    """In a process of its own: this one's memory is not ours to reckon with."""
    code = (
        "import django; django.setup()\nfrom replicas.jobs import runner\n"
        "first = runner.Meter()\n"
        "held = bytearray(160 << 20); held[::4096] = bytes([1]) * len(held[::4096])\n"
        "much = first.usage().peak_memory; del held\n"
        "print(much, runner.Meter().usage().peak_memory, runner.set_back_peak())"
    )
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "tests.settings"}
    told = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    much, little, able = told.stdout.split()
    assert int(much) >= 160 * MIB
    assert int(little) < (160 * MIB if able == "True" else int(much) + 1)


def test_a_child_counts_where_it_was_the_largest() -> None:
    meter = runner.Meter()
    subprocess.run([sys.executable, "-c", HOLD.format(220)], check=True)
    assert meter.usage().peak_memory >= 220 * MIB
    again = runner.Meter()
    subprocess.run([sys.executable, "-c", HOLD.format(1)], check=True)
    assert again.usage().peak_memory < 220 * MIB
    assert again.usage().cpu_seconds > 0
