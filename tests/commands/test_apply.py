"""`apply`: what it makes, what it prints, what it refuses, and what it leaves alone."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from replicas.actions import services
from replicas.actions.sealing import unseal
from replicas.config import Config
from replicas.core.values import Desired, RolloutMode
from replicas.models import Event, Lease, Rollout, Service, ServiceVersion
from tests.commands import acts
from tests.commands.conftest import TRIVIAL, Run


def service() -> Service:
    return Service.objects.select_related("version").get(name="web")


def versions_on_disk(config: Config) -> list[str]:
    return sorted(path.name for path in (config.home / "versions").iterdir())


def test_creates_a_service(run: Run, yaml: Path, controller: Lease) -> None:
    result = run("apply", yaml, "--message", "first")
    assert (result.code, result.err) == (0, "")
    assert result.out == (
        "web is new: version 1 is made\n"
        "  2 replicas on the provider local\n"
        "  ready when GET / answers with 2xx, asked every 10 s\n"
        "plan:\n"
        "  2 replicas of version 1 are launched at once; nothing older is there.\n"
        "  Once there were 5 failures or more without a replica that was ever ready, launches stop.\n"
        "web created: version 1 is active.\n"
    )
    made = service()
    assert made.version is not None
    assert (made.target, made.desired, made.version.number) == (2, Desired.UP, 1)
    assert (made.version.text, made.version.message) == (TRIVIAL, "first")
    assert [f"  {line}" for line in made.version.plan] == result.out.splitlines()[4:6]
    assert made.version.created_by.endswith(" (command)")
    assert made.version.base == str(yaml.parent)


def test_warns_when_nobody_carries_it_out(run: Run, yaml: Path) -> None:
    result = run("apply", yaml)
    assert result.code == 0
    assert "control plane is not running" in result.err
    assert "`manage.py up`" in result.err


def test_the_same_again_changes_nothing(run: Run, yaml: Path, controller: Lease) -> None:
    run("apply", yaml)
    events = Event.objects.count()
    result = run("apply", yaml)
    assert (result.code, result.out) == (0, "web is unchanged: version 1 is active already\n")
    assert Event.objects.count() == events


def test_an_update_says_what_changes_and_what_becomes_of_the_replicas(run: Run, yaml: Path, controller: Lease) -> None:
    run("apply", yaml)
    acts.ready(service())
    yaml.write_text(TRIVIAL.replace("replicas: 2", "replicas: 3"))
    in_place = run("apply", yaml).out
    assert "web changes: version 1 becomes version 2" in in_place
    assert "service.replicas: 2 → 3" in in_place
    assert "In place: 1 replica is adopted by version 2 and goes on as it is; none is replaced." in in_place
    assert "2 replicas are launched, as 3 are wanted." in in_place
    yaml.write_text(TRIVIAL.replace("exec python3", "exec python3 -u"))
    replaced = run("apply", yaml).out
    assert "version 2 becomes version 3" in replaced
    assert "Rolling: 2 replicas of version 3 are launched; 1 older one (version 1) is drained." in replaced
    assert "The rollout to version 2, which is going on, is superseded." in replaced
    assert [v.number for v in ServiceVersion.objects.order_by("number")] == [1, 2, 3]


def test_a_service_section_alone_keeps_the_process_digest_also_after_restarts(
    run: Run, yaml: Path, controller: Lease
) -> None:
    run("apply", yaml)
    run("restart", "web")
    run("restart", "web")
    yaml.write_text(TRIVIAL.replace("replicas: 2", "replicas: 3"))
    assert "In place: nothing that a replica is made from changes" in run("apply", yaml).out
    digests = list(ServiceVersion.objects.order_by("number").values_list("process_digest", flat=True))
    assert len(set(digests[:3])) == 3
    assert digests[3] == digests[2]


def test_dry_run_writes_nothing(run: Run, yaml: Path, config: Config) -> None:
    (yaml.parent / "app").mkdir()
    (yaml.parent / "app" / "main.py").write_text("print(1)\n")
    yaml.write_text(f"workdir: app\n{TRIVIAL}")
    result = run("apply", yaml, "--dry-run")
    assert result.code == 0
    assert result.out.endswith("Nothing was written (--dry-run).\n")
    assert not Service.objects.exists()
    assert not Event.objects.exists()
    assert versions_on_disk(config) == []


def test_a_number_scaled_by_hand_goes_back_and_is_announced(run: Run, yaml: Path, controller: Lease) -> None:
    run("apply", yaml)
    run("scale", "web", 5)
    result = run("apply", yaml)
    assert result.out == (
        "web stays at version 1\n"
        "  target: 5 (scaled since) → 2\n"
        "plan:\n"
        "  No new version: 2 replicas are launched.\n"
        "web scaled: version 1 is active.\n"
    )
    assert service().target == 2


def test_a_dry_run_tells_the_plan_that_is_then_kept(run: Run, yaml: Path, controller: Lease) -> None:
    run("apply", yaml)
    for _ in range(2):
        acts.ready(service())
    yaml.write_text(TRIVIAL.replace("exec python3", "exec python3 -u"))
    before = Event.objects.count()
    dry = run("apply", yaml, "--dry-run").out
    assert Event.objects.count() == before
    assert "  Rolling: 2 replicas of version 2 are launched; 2 older ones (version 1) are drained.\n" in dry
    assert "  At most 3 are alive at a time (max_surge 25%), and at least 2 stay ready (max_unavailable 0).\n" in dry
    run("apply", yaml)
    version = service().version
    assert version is not None
    assert all(f"  {line}\n" in dry for line in version.plan)
    assert len(version.plan) == dry.split("plan:\n")[1].count("\n  ") + 1


def test_the_mode_can_be_given_beside_the_file(run: Run, yaml: Path, controller: Lease) -> None:
    run("apply", yaml)
    acts.ready(service())
    yaml.write_text(TRIVIAL.replace("exec python3", "exec python3 -u"))
    result = run("apply", yaml, "--mode", "blue_green")
    assert "Blue-green: 2 replicas of version 2 are launched beside what serves, so up to 4 are alive" in result.out
    assert Rollout.objects.latest("id").mode == RolloutMode.BLUE_GREEN
    yaml.write_text(TRIVIAL.replace("exec python3", "exec python3 -B"))
    assert "Rolling: 2 replicas of version 3" in run("apply", yaml).out, "it holds for one apply"
    assert run("apply", yaml, "--mode", "at_once").code == 2


def test_a_service_that_is_down_comes_up_again(run: Run, yaml: Path, controller: Lease) -> None:
    run("apply", yaml)
    run("down", "web")
    result = run("apply", yaml)
    assert result.out.startswith("web is down (version 1) and comes up again\n")
    assert "web revived: version 1 is active." in result.out
    assert service().desired == Desired.UP


def test_name_env_and_secrets_are_given_beside_the_file(
    run: Run, yaml: Path, monkeypatch: pytest.MonkeyPatch, controller: Lease
) -> None:
    monkeypatch.setenv("TOKEN", "from the shell")
    yaml.write_text(f"envs:\n  MODEL:\n  SIZE: small\nsecrets:\n  TOKEN:\n  OTHER: in-the-file-1234\n{TRIVIAL}")
    result = run("apply", yaml, "--name", "web-2", "--env", "MODEL=a=b", "--env", "SIZE=big", "--secret", "TOKEN")
    assert result.code == 0, result.err
    version = ServiceVersion.objects.get(service__name="web-2")
    assert version.spec["envs"] == {"MODEL": "a=b", "SIZE": "big"}
    assert unseal(version.sealed) == {"TOKEN": "from the shell", "OTHER": "in-the-file-1234"}
    stored = json.dumps([version.text, version.spec, *Event.objects.values_list("data", flat=True)])
    assert "from the shell" not in stored
    assert "in-the-file-1234" not in stored
    assert "from the shell" not in result.out + result.err


def test_given_values_are_kept_where_a_later_text_has_none(run: Run, yaml: Path, controller: Lease) -> None:
    yaml.write_text(f"envs:\n  MODEL:\n  SIZE: small\nsecrets:\n  TOKEN:\n{TRIVIAL}")
    run("apply", yaml, "--env", "MODEL=m1", "--env", "SIZE=big", "--secret", "TOKEN=t1")
    assert run("apply", yaml, "--env", "SIZE=big").out.startswith("web is unchanged")
    yaml.write_text(yaml.read_text().replace("replicas: 2", "replicas: 4"))
    assert run("apply", yaml).code == 0
    version = service().version
    assert version is not None
    assert version.spec["envs"] == {"MODEL": "m1", "SIZE": "small"}
    assert unseal(version.sealed) == {"TOKEN": "t1"}


def test_another_secret_makes_another_version_with_other_processes(run: Run, yaml: Path, controller: Lease) -> None:
    yaml.write_text(f"secrets:\n  TOKEN:\n{TRIVIAL}")
    run("apply", yaml, "--secret", "TOKEN=one")
    assert run("apply", yaml, "--secret", "TOKEN=one").out.startswith("web is unchanged")
    result = run("apply", yaml, "--secret", "TOKEN=two")
    assert "secrets.TOKEN: has another value" in result.out
    assert "2 replicas of version 2 are launched" in result.out
    first, second = ServiceVersion.objects.order_by("number")
    assert first.process_digest != second.process_digest
    assert unseal(second.sealed) == {"TOKEN": "two"}


def test_a_changed_workdir_makes_another_version(run: Run, yaml: Path, config: Config, controller: Lease) -> None:
    app = yaml.parent / "app"
    app.mkdir()
    (app / "main.py").write_text("print(1)\n")
    yaml.write_text(f"workdir: app\n{TRIVIAL}")
    run("apply", yaml)
    assert run("apply", yaml).out.startswith("web is unchanged")
    (app / "main.py").write_text("print(2)\n")
    result = run("apply", yaml)
    assert "files: what workdir and file_mounts hold has changed" in result.out
    assert "2 replicas of version 2 are launched" in result.out
    first, second = ServiceVersion.objects.order_by("number")
    assert first.files_digest != second.files_digest
    assert versions_on_disk(config) == sorted([first.uid, second.uid])
    copied = config.home / "versions" / first.uid / "snapshot" / "sky_workdir" / "main.py"
    assert copied.read_text() == "print(1)\n"


def test_errors_stand_at_their_line_in_the_file(run: Run, yaml: Path) -> None:
    yaml.write_text(TRIVIAL.replace("replicas: 2", "replicaz: 2"))
    result = run("apply", yaml)
    assert result.code == 1
    assert result.err == (
        f"Error: {yaml}: line 5, column 3: service.replicaz: is no key of service: did you mean replicas?\n"
    )
    assert not Service.objects.exists()


def test_what_the_provider_cannot_carry_stands_at_its_line(run: Run, yaml: Path) -> None:
    yaml.write_text(f"resources:\n  accelerators: A100:8\nfile_mounts:\n  /data: s3://bucket\n{TRIVIAL}")
    result = run("apply", yaml)
    assert result.code == 1
    assert f"{yaml}: line 2, column 17: resources.accelerators: " in result.err
    assert f'{yaml}: line 4, column 10: file_mounts["/data"]: ' in result.err


def test_a_port_in_run_is_refused_for_several_replicas(run: Run, yaml: Path, controller: Lease) -> None:
    yaml.write_text(f"resources:\n  ports: 8080\n{TRIVIAL}".replace('"$PORT"', "8080"))
    result = run("apply", yaml)
    assert (result.code, Service.objects.count()) == (1, 0)
    assert "line 4, column 6: run: listens on port 8080" in result.err
    yaml.write_text(yaml.read_text().replace("replicas: 2", "replicas: 1"))
    assert run("apply", yaml).code == 0


def test_a_missing_workdir_is_named_at_its_line(run: Run, yaml: Path) -> None:
    yaml.write_text(f"workdir: nowhere\n{TRIVIAL}")
    result = run("apply", yaml)
    assert result.code == 1
    assert result.err.startswith(f"Error: {yaml}: line 1, column 10: workdir: {yaml.parent}/nowhere does not exist")


def test_a_workdir_that_lies_beside_the_file_gets_a_hint(run: Run, folder: Path) -> None:
    there = folder / "deploy"
    (there / "app").mkdir(parents=True)
    (there / "web.yaml").write_text(f"workdir: app\n{TRIVIAL}")
    result = run("apply", "deploy/web.yaml")
    assert result.code == 1
    assert f"{folder}/app does not exist" in result.err
    assert f"They lead somewhere from {there}: apply it there." in result.err


def test_a_file_that_is_not_there(run: Run, folder: Path) -> None:
    result = run("apply", "rm -rf somewhere")
    assert result.code == 4
    assert result.err.startswith("Error: There is no file rm -rf somewhere (looked from ")
    assert run("apply", folder).code == 1


def test_standard_input(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, controller: Lease) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(TRIVIAL.encode())))
    assert run("apply", "-").out.startswith("web is new")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"name: [")))
    broken = run("apply", "-")
    assert broken.code == 1
    assert broken.err.startswith("Error: standard input: line 2, column 1: ")


@pytest.mark.parametrize(
    "arguments", [("--env", "=x"), ("--secret", "NOT_IN_THE_ENVIRONMENT"), ("--timeout", "0"), ("--nonsense",), ()]
)
def test_a_wrong_command_line(run: Run, yaml: Path, arguments: tuple[str, ...]) -> None:
    assert run("apply", *([yaml] if arguments else []), *arguments).code == 2
    assert not Service.objects.exists()


def test_somebody_else_was_faster(
    run: Run, yaml: Path, config: Config, monkeypatch: pytest.MonkeyPatch, controller: Lease
) -> None:
    (yaml.parent / "app").mkdir()
    yaml.write_text(f"workdir: app\n{TRIVIAL}")
    run("apply", yaml)
    yaml.write_text(yaml.read_text().replace("replicas: 2", "replicas: 3"))
    real = services.apply

    def meanwhile_restarted(*args: Any, **options: Any) -> services.Applied:
        services.restart(service().pk, actor="ann")
        return real(*args, **options)

    monkeypatch.setattr(services, "apply", meanwhile_restarted)
    result = run("apply", yaml)
    assert result.code == 1
    assert "version 2 by now, not 1" in result.err
    assert len(versions_on_disk(config)) == 1, "the copy of the refused version is gone"
