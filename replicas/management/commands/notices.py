"""`notices`: who is told when something fails: list, add, test, switch, remove."""

import argparse
import getpass
import json
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from replicas.actions import notices
from replicas.core.values import NoticeKind
from replicas.management.printing import clean, table
from replicas.management.verb import Exit, Verb, actor, fail, find_service
from replicas.models import NoticeChannel
from replicas.models.public import channel_row
from replicas.providers import sending

HEADS = ("NAME", "ADDRESS", "ABOUT", "TOLD OF", "STATE", "LAST SENT", "LAST ERROR")
VERBS = ("list", "add", "test", "on", "off", "remove")
LONGEST_NAME = 100


class Command(Verb):
    """The address of a channel is a secret: it is asked for or read from standard input, never an argument."""

    help = (
        "Say who is told when a service fails, a rollout fails or turns back, replicas crash in a loop, and when that"
        " is over. The address is asked for, or read from standard input: https://... is posted signed JSON, anything"
        " else is an address of apprise, such as mailtos:// or slack://. docs/notices.md has more."
    )
    examples = (
        "  manage.py notices\n"
        "  manage.py notices add on-call\n"
        "  manage.py notices add shop --service web --on failed,recovered\n"
        "  manage.py notices test on-call\n"
    )
    foreseen = (*Verb.foreseen, sending.Unusable)

    def add_arguments(self, parser: CommandParser) -> None:
        """What to do, and to which channel."""
        parser.add_argument("what", metavar="|".join(VERBS), nargs="?", choices=VERBS, default="list")
        parser.add_argument("name", metavar="NAME", nargs="?")
        parser.add_argument("--service", metavar="SERVICE", help="only about this service")
        parser.add_argument(
            "--on", metavar="LIST", type=occasions, help=f"by comma, of {', '.join(notices.ALL)}; all if not given"
        )
        parser.add_argument("--json", action="store_true", help="a JSON list")

    def handle(self, *, what: str, name: str | None, **options: Any) -> None:
        """List, or do."""
        if what == "list":
            self._list(options["json"])
        elif name is None:
            fail(f"Which channel? `manage.py notices {what} NAME`", Exit.USAGE)
        elif what == "add":
            self._add(name, options["service"], options["on"] or notices.ALL)
        else:
            self._do(what, name)

    def _list(self, as_json: bool) -> None:
        rows = list(NoticeChannel.objects.select_related("service"))
        if as_json:
            self.say(json.dumps([channel_row(row) for row in rows], indent=2))
        elif not rows:
            self.say("Nobody is told anything. `manage.py notices add NAME` changes that.")
        else:
            self.say(table(HEADS, [self._cells(row) for row in rows], self.paint, self.columns))

    def _cells(self, row: NoticeChannel) -> tuple[str, ...]:
        return (
            row.name,
            row.shown,
            row.service.name if row.service else "all",
            ",".join(row.occasions),
            "on" if row.enabled else "off",
            f"{row.sent_at:%Y-%m-%d %H:%M:%S}" if row.sent_at else "-",
            row.last_error or "-",
        )

    def _add(self, name: str, service: str | None, wanted: tuple[str, ...]) -> None:
        if not name.strip() or len(name) > LONGEST_NAME or not name.isprintable():
            fail(f"{clean(name)} is no name for a channel: at most {LONGEST_NAME} printable characters.", Exit.USAGE)
        about = find_service(service) if service else None
        url = (getpass.getpass("Address: ") if sys.stdin.isatty() else sys.stdin.readline()).strip()
        kind = NoticeKind(sending.kind_of(url))
        shown = sending.check(kind, url, link_local=settings.ROLLCALL.notice_link_local)
        row, key = notices.add(name, kind, url, shown, service=about, occasions=wanted, actor=actor())
        self.say(f"Channel {clean(name)} is made: {row.shown} is told of {', '.join(row.occasions)}.")
        if key:
            self.say(f"Its receiver checks signatures with this key, which is shown this once: {key}")
        self.warn_unless_running()

    def _do(self, what: str, name: str) -> None:
        row = NoticeChannel.objects.filter(name=name).first()
        if row is None:
            fail(f"There is no channel {clean(name)}. `manage.py notices` lists them.", Exit.NOT_FOUND)
        if what == "test":
            notices.test(row.pk, actor=actor())
            self.say(f"A test is on its way to {clean(name)}; `manage.py notices` shows what came of it.")
            self.warn_unless_running()
        elif what == "remove":
            notices.remove(row.pk, actor=actor())
            self.say(f"Channel {clean(name)} is removed.")
        else:
            notices.switch(row.pk, what == "on", actor=actor())
            self.say(f"Channel {clean(name)} is {what}.")


def occasions(text: str) -> tuple[str, ...]:
    """An argparse type: words of what there is to be told, by comma."""
    found = tuple(part.strip() for part in text.split(",") if part.strip())
    if strange := [part for part in found if part not in notices.ALL]:
        raise argparse.ArgumentTypeError(f"{strange[0]!r} is not among {', '.join(notices.ALL)}")
    return found
