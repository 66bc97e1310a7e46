"""`apply FILE`: make a service what its YAML says, new or changed."""

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from replicas.actions import services
from replicas.actions.services import Applied
from replicas.core.spec import SpecErrors
from replicas.core.spec.loader import MAX_BYTES
from replicas.core.values import RolloutMode
from replicas.management.following import Deadline, News
from replicas.management.readiness import Readiness
from replicas.management.verb import Exit, Verb, actor, clean_lines, fail, find_service, find_user, seconds
from replicas.web import intake
from replicas.web.intake import IntakeError, Proposal
from replicas.web.outbox import newest

STDIN = "-"
TITLES = {
    "create": "{name} is new: version {next} is made",
    "update": "{name} changes: version {active} becomes version {next}",
    "revive": "{name} is down (version {active}) and comes up again",
    "scale": "{name} stays at version {active}",
    "unchanged": "{name} is unchanged: version {active} is active already",
}


class Command(Verb):
    """Reads the file, prints what it changes, applies it, and waits if so asked."""

    help = (
        "Create or update a service from a SkyServe service YAML, and print what changes. Relative paths in it start at"
        " the current directory, as with SkyPilot."
    )
    foreseen = (*Verb.foreseen, SpecErrors, IntakeError)
    examples = (
        "  manage.py apply examples/http.yaml --wait\n"
        "  manage.py apply service.yaml --name web-2 --env MODEL=small --secret TOKEN --dry-run\n"
        "  generate-yaml | manage.py apply -\n"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """FILE and what may be given beside it."""
        parser.add_argument("file", metavar="FILE", help="the YAML; - for standard input")
        parser.add_argument("--name", metavar="N", help="name of the service, in place of the one in the file")
        parser.add_argument(
            "--env",
            metavar="K[=V]",
            type=assignment,
            action="append",
            default=[],
            help="value of an environment variable; without =V it is taken from your environment; may be repeated",
        )
        parser.add_argument(
            "--secret",
            metavar="K[=V]",
            type=assignment,
            action="append",
            default=[],
            help="as --env, for a secret: masked in logs and stored encrypted; without =V others cannot see it in ps",
        )
        parser.add_argument("--message", "-m", metavar="M", default="", help="why, for the history")
        parser.add_argument(
            "--mode",
            choices=("rolling", "blue_green"),
            help="how replicas of the new version take over, in place of what the file says",
        )
        parser.add_argument(
            "--owner",
            metavar="USER",
            help="user of the dashboard to whom the service belongs from now on; a new one is nobody's if not given",
        )
        parser.add_argument("--dry-run", action="store_true", help="only print what would change, and how")
        parser.add_argument("--wait", action="store_true", help="wait until the version is ready, or has failed")
        parser.add_argument(
            "--timeout", metavar="S", type=seconds, default=1800.0, help="with --wait; 1800 if not given"
        )

    def handle(self, *, file: str, dry_run: bool, wait: bool, timeout: float, **options: Any) -> None:
        """Propose, print, carry out, wait."""
        text = read(file)
        owner = find_user(options["owner"]) if options["owner"] else None
        given = {
            "name": options["name"],
            "env": dict(options["env"]),
            "secrets": dict(options["secret"]),
            "message": options["message"],
            "mode": RolloutMode(options["mode"]) if options["mode"] else None,
        }
        proposal = self._propose(text, file, given)
        self._print(proposal)
        if dry_run or proposal.kind == "unchanged":
            intake.discard(proposal)
            if dry_run:
                self.say("Nothing was written (--dry-run).")
                return
        with News() as news:
            after = newest()
            if proposal.kind != "unchanged":
                applied = intake.carry_out(proposal, actor=actor(), owner=owner, expected=proposal.active_number)
                self._say_applied(applied, wait)
            if owner is not None:
                services.give(find_service(proposal.draft.name).pk, owner, actor=actor())
            if wait:
                Readiness(self, proposal.draft.name, after).wait(news, Deadline(timeout))

    def _propose(self, text: bytes, file: str, given: dict[str, Any]) -> Proposal:
        here = os.getcwd()
        try:
            return intake.propose(text, base=here, files=True, **given)
        except (SpecErrors, IntakeError) as error:
            beside = str(Path(file).resolve().parent)
            if file == STDIN or beside == here or not _readable(text, beside, given):
                raise self._located(file, error) from error
            hint = f"Relative paths start at the current directory. They lead somewhere from {beside}: apply it there."
            raise self._located(file, error, hint) from error

    def _located(self, file: str, error: Exception, hint: str = "") -> Exception:
        """The error with the file's name in front of each line, as compilers have it."""
        name = "standard input" if file == STDIN else file
        lines = [f"{name}: {line}" for line in clean_lines(str(error)).splitlines()]
        return IntakeError("\n".join([*lines, hint] if hint else lines))

    def _print(self, proposal: Proposal) -> None:
        number, draft = proposal.active_number, proposal.draft
        title = TITLES[proposal.kind]
        self.say(clean_lines(title.format(name=draft.name, active=number, next=number + 1)))
        for line in proposal.changes:
            self.say(f"  {clean_lines(line)}")
        if proposal.plan:
            self.say("plan:")
        for line in proposal.plan:
            self.say(f"  {clean_lines(line)}")
        for warning in proposal.warnings:
            self.warn(warning)

    def _say_applied(self, applied: Applied, wait: bool) -> None:
        self.say(f"{applied.service.name} {applied.change}: version {applied.version.number} is active.")
        if not wait:
            self.warn_unless_running()


def read(file: str) -> bytes:
    """The bytes of the file or of standard input, at most one more than the parser takes. Ends the command if not."""
    if file == STDIN:
        return sys.stdin.buffer.read(MAX_BYTES + 1)
    try:
        with open(file, "rb") as opened:
            return opened.read(MAX_BYTES + 1)
    except FileNotFoundError:
        fail(
            f"There is no file {file} (looked from {os.getcwd()}). Give the path of a YAML file, or -.", Exit.NOT_FOUND
        )
    except IsADirectoryError:
        fail(f"{file} is a directory. Give the path of a YAML file in it.")
    except OSError as error:
        fail(f"{file} cannot be read: {error.strerror}.")


def assignment(text: str) -> tuple[str, str]:
    """An argparse type: NAME=VALUE, or NAME with its value in our own environment."""
    name, equals, value = text.partition("=")
    if not name:
        raise argparse.ArgumentTypeError(f"{text!r} has no name: write NAME=VALUE")
    if equals:
        return name, value
    if name not in os.environ:
        raise argparse.ArgumentTypeError(f"{name} is not in your environment: write {name}=VALUE, or export it first")
    return name, os.environ[name]


def _readable(text: bytes, base: str, given: dict[str, Any]) -> bool:
    """Whether the text is right when its paths start at `base`."""
    try:
        proposal = intake.propose(text, base=base, files=True, **given)
    except (SpecErrors, IntakeError):
        return False
    intake.discard(proposal)
    return True
