"""docs/commands.md and --help speak of the same commands, options, keys and exit codes."""

import argparse
import json
import re
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class

from replicas.management.standing import standing, standing_row
from replicas.management.verb import EXIT_CODES, Exit
from replicas.models import Event, Operation
from replicas.models.public import operation_row
from replicas.web.outbox import event_row
from tests.commands import acts
from tests.commands.conftest import Run

DOCS = (Path(__file__).parents[2] / "docs" / "commands.md").read_text()
SECTIONS = {part.split("\n", 1)[0]: part for part in DOCS.split("\n## ")[1:]}
VERBS = sorted(name for name, app in get_commands().items() if app == "replicas" and name in SECTIONS)
DJANGOS = {
    "-h",
    "--version",
    "-v",
    "--settings",
    "--pythonpath",
    "--traceback",
    "--no-color",
    "--force-color",
    "--skip-checks",
}


def options(name: str) -> list[argparse.Action]:
    parser = load_command_class("replicas", name).create_parser("manage.py", name)
    return [action for action in parser._actions if not DJANGOS.intersection(action.option_strings)]


def test_all_commands_are_listed() -> None:
    ours = {name for name, app in get_commands().items() if app in ("replicas", "controlplane")}
    listed = set(re.findall(r"^\| `([a-z]+)", DOCS, re.MULTILINE))
    assert {name for name in ours if name != "controller"} - listed == set()
    assert len(VERBS) >= 10


@pytest.mark.parametrize("name", VERBS)
def test_every_option_is_documented_and_explained(name: str) -> None:
    usage = re.search(r"```\nmanage\.py (.+?)\n```", SECTIONS[name], re.DOTALL)
    assert usage is not None
    documented = set(re.findall(r"--[a-z-]+", usage[1]))
    known = {action.option_strings[0]: action for action in options(name) if action.option_strings}
    assert documented == set(known)
    for action in known.values():
        assert action.help, action.option_strings


@pytest.mark.parametrize("name", VERBS)
def test_help_has_examples_that_parse_and_the_exit_codes(name: str) -> None:
    command = load_command_class("replicas", name)
    parser = command.create_parser("manage.py", name)
    text = parser.format_help()
    assert EXIT_CODES in text
    examples = re.findall(r"manage\.py (\w+) ?([^|(\n]*)", command.examples)
    assert examples
    for verb, arguments in examples:
        assert verb == name
        words = [word.strip("'") for word in arguments.split()]
        parser.parse_args([word.replace("TOKEN", "TOKEN=x") for word in words])


def test_exit_codes_are_those_of_the_table() -> None:
    table = {int(code) for code in re.findall(r"^\| (\d+) \|", SECTIONS["Exit codes"], re.MULTILINE)}
    assert table == {code.value for code in Exit}


def documented_json(name: str) -> dict[str, object]:
    block = re.search(r"```json\n(.+?)\n```", SECTIONS[name], re.DOTALL)
    assert block is not None
    found = json.loads(block[1])
    row: dict[str, object] = found[0] if isinstance(found, list) else found
    return row


def test_the_documented_json_has_the_keys_of_the_real_one(run: Run, yaml: Path) -> None:
    run("apply", yaml)
    acts.ready(acts.service())
    status = documented_json("status")
    (real,) = map(standing_row, standing())
    assert list(status) == list(real)
    replicas = status["replicas"]
    assert isinstance(replicas, list)
    assert list(replicas[0]) == list(real["replicas"][0])
    assert isinstance(status["rollout"], dict)
    assert list(status["rollout"]) == list(real["rollout"])
    version = documented_json("versions")
    (shown,) = json.loads(run("versions", "web", "--json").out)
    assert list(version) == list(shown)
    assert list(version["rollout"]) == list(shown["rollout"])  # type: ignore[call-overload]
    assert list(documented_json("events")) == list(event_row(Event.objects.latest("id")))
    operation = Operation.objects.select_related("replica").latest("id")
    assert list(documented_json("operations")) == ["service", *operation_row(operation)]
