"""What all our commands share: exit codes, quiet ends, and errors that say what to do next."""

import argparse
import difflib
import fnmatch
import os
import pwd
import sys
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any, NoReturn

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser, DjangoHelpFormatter
from django.db import OperationalError, ProgrammingError, connection

from replicas.actions.operations import Refused
from replicas.actions.origin import COMMAND, Origin, acting
from replicas.actions.services import Conflict
from replicas.management.following import NotRunning, control_plane_runs
from replicas.management.printing import Paint, clean, terminal_columns
from replicas.models import Replica, Service

NOT_RUNNING = "The control plane is not running: this is written down and will be carried out when `manage.py up` runs."
REPLICAS_LISTED = 10
MOST_DAYS = 36500


class Exit(IntEnum):
    """What a command's exit code says; argparse gives 2 by itself."""

    OK = 0
    REFUSED = 1
    USAGE = 2
    TIMED_OUT = 3
    NOT_FOUND = 4
    NOT_RUNNING = 5
    INTERRUPTED = 130
    PIPE_CLOSED = 141


class Error(CommandError):
    """What ends a command: Django prints the name of the class and the text, and exits with `returncode`."""


EXIT_CODES = """\
exit codes:
  0    done
  1    refused, or what was waited for has failed; the reason is on stderr
  2    the command line is wrong
  3    --timeout has passed
  4    there is no such service, replica, operation, log or file
  5    --wait, but the control plane is not running
  130  stopped by Ctrl-C
"""


class Formatter(DjangoHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Keeps the line breaks of examples and of the list of exit codes."""


class Verb(BaseCommand):
    """One verb of ours. `examples` are shown by --help. Subclasses raise with `fail`."""

    requires_system_checks: list[str] = []
    examples = ""
    foreseen: tuple[type[Exception], ...] = (Conflict, Refused)  # their texts are for the user
    _forced = False

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """The parser, with examples and exit codes below its options."""
        shown = f"examples:\n{self.examples}\n" if self.examples else ""
        return super().create_parser(
            prog_name, subcommand, formatter_class=Formatter, epilog=shown + EXIT_CODES, **kwargs
        )

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Run the verb; every foreseen fault becomes one message and an exit code."""
        self._forced = bool(options.get("force_color"))
        try:
            with acting(Origin(COMMAND)):
                result = super().execute(*args, **options)
            self.stdout.flush()
        except KeyboardInterrupt:
            raise SystemExit(Exit.INTERRUPTED) from None
        except BrokenPipeError:
            _mute(sys.stdout)
            raise SystemExit(Exit.PIPE_CLOSED) from None
        except self.foreseen as error:
            raise Error(clean_lines(str(error)), returncode=Exit.REFUSED) from error
        except NotRunning as error:
            raise Error(f"Not waiting. {NOT_RUNNING}", returncode=Exit.NOT_RUNNING) from error
        except (OperationalError, ProgrammingError) as error:
            raise Error(_database_fault(error), returncode=Exit.REFUSED) from error
        return result

    @property
    def paint(self) -> Paint:
        """Colours for standard output: on a terminal, unless --no-color or NO_COLOR forbids it."""
        wanted = self.stdout.isatty() and not os.environ.get("NO_COLOR")
        return Paint(self._forced or (wanted and self.style.SUCCESS("x") != "x"))

    @property
    def columns(self) -> int | None:
        """The width to cut lines to: the terminal's, None elsewhere."""
        return terminal_columns() if self.stdout.isatty() else None

    def say(self, text: str) -> None:
        """Print a line at once."""
        self.stdout.write(text)
        self.stdout.flush()

    def warn(self, text: str) -> None:
        """Print a warning on stderr."""
        self.stderr.write(f"warning: {text}", self.style.WARNING)
        self.stderr.flush()

    def warn_unless_running(self) -> None:
        """Say so if nobody is there to carry out what was just written."""
        if not control_plane_runs():
            self.warn(NOT_RUNNING)


def fail(message: str, code: Exit = Exit.REFUSED) -> NoReturn:
    """End the command with a message on stderr and an exit code."""
    raise Error(message, returncode=code)


def actor() -> str:
    """Who runs the command, for the events: the login name."""
    try:
        name = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        name = f"uid {os.getuid()}"
    return f"{name} (command)"


def find_service(name: str) -> Service:
    """The service of exactly this name; ends the command if there is none."""
    service = Service.objects.select_related("version").filter(name=name).first()
    return service if service is not None else unknown_service(name)


def find_user(name: str) -> User:
    """The user of the dashboard of this name; ends the command if there is none."""
    found = User.objects.filter(username=name).first()
    if found is None:
        near = difflib.get_close_matches(name, User.objects.values_list("username", flat=True), n=3)
        hint = f"Did you mean {' or '.join(near)}?" if near else "`manage.py role NAME viewer` makes one."
        fail(f"There is no user {clean(name)}. {hint}", Exit.NOT_FOUND)
    return found


def unknown_service(name: str) -> NoReturn:
    """End the command; name the services that may have been meant."""
    names = list(Service.objects.values_list("name", flat=True))
    near = difflib.get_close_matches(name, names, n=3)
    if near:
        hint = f"Did you mean {' or '.join(near)}?"
    elif names:
        hint = "`manage.py status --all` lists the services."
    else:
        hint = "There are no services yet; `manage.py apply FILE` makes one."
    fail(f"There is no service {clean(name)}. {hint}", Exit.NOT_FOUND)


def match_services(patterns: Sequence[str]) -> list[Service]:
    """The services that are named, each once. A pattern is an exact name, or a glob if it has *, ? or [ in it.

    Ends the command if any pattern matches nothing: then nothing is done to the others either.
    """
    services = list(Service.objects.order_by("name"))
    wanted: set[int] = set()
    for pattern in patterns:
        glob = any(c in pattern for c in "*?[")
        found = [s.pk for s in services if (fnmatch.fnmatchcase(s.name, pattern) if glob else s.name == pattern)]
        if not found and glob:
            fail(f"No service matches {clean(pattern)}. `manage.py status --all` lists the services.", Exit.NOT_FOUND)
        if not found:
            unknown_service(pattern)
        wanted.update(found)
    return [s for s in services if s.pk in wanted]


def find_replica(service: Service, number: int) -> Replica:
    """The replica of this number, live or ended; ends the command if there is none."""
    replica = Replica.objects.select_related("service", "version").filter(service=service, number=number).first()
    if replica is not None:
        return replica
    numbers = list(Replica.objects.filter(service=service).order_by("-number").values_list("number", flat=True))
    if not numbers:
        hint = "It has no replicas yet."
    else:
        shown = ", ".join(map(str, sorted(numbers[:REPLICAS_LISTED])))
        hint = f"It has {'the newest ' if len(numbers) > REPLICAS_LISTED else ''}replicas {shown}."
    fail(f"Service {service.name} has no replica {number}. {hint}", Exit.NOT_FOUND)


def whole(least: int, most: int, what: str) -> Callable[[str], int]:
    """An argparse type: a whole number between two bounds, both included."""

    def check(text: str) -> int:
        if not text.lstrip("+").isdecimal() or not text.isascii() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is no {what}: give a whole number from {least} to {most}")
        return int(text)

    return check


def seconds(text: str) -> float:
    """An argparse type: a number of seconds above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return value


def days(text: str) -> float:
    """An argparse type: a number of days, 0 or more."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= MOST_DAYS:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of days from 0 to {MOST_DAYS}")
    return value


def clean_lines(text: str) -> str:
    """The text without control characters; its line breaks stay."""
    return "\n".join(clean(line) for line in text.splitlines())


def _mute(stream: Any) -> None:
    """Whoever read our output is gone: let the rest, and Python's own flush at exit, go nowhere."""
    try:
        descriptor = stream.fileno()
    except (AttributeError, OSError, ValueError):
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


def _database_fault(error: Exception) -> str:
    home = settings.ROLLCALL.home
    try:
        ready = Service._meta.db_table in connection.introspection.table_names()
    except (OperationalError, ProgrammingError):
        return f"The database cannot be used ({clean(str(error))}). See DATABASE_URL and ROLLCALL_HOME (now {home})."
    if not ready:
        return (
            f"The database of {home} is empty. Run `manage.py up` or `manage.py migrate` with this ROLLCALL_HOME first."
        )
    return f"The database refused ({clean(str(error))}). If it is of an older version, run `manage.py migrate`."
