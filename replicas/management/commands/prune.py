"""`prune`: remove old history and what nothing uses any more."""

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from replicas import clock
from replicas.actions import pruning
from replicas.core.wording import some
from replicas.jobs import orphans
from replicas.jobs.pruning import forget_replica, forget_versions
from replicas.management.verb import Verb, actor, days


class Command(Verb):
    """Does at once what the control plane does by itself now and then."""

    help = (
        "Remove ended replicas with their logs and directories, settled operations with their logs, and events, all"
        f" older than --days; the newest {pruning.KEPT_PER_SERVICE} ended replicas of a service that is up stay."
        " Also remove what is kept on disk for versions that nothing uses,"
        " and what a crash or a purge has left there, once it is an hour old."
    )
    examples = "  manage.py prune --dry-run\n  manage.py prune --days 1\n"

    def add_arguments(self, parser: CommandParser) -> None:
        """--days and --dry-run."""
        parser.add_argument(
            "--days", metavar="N", type=days, help="older than so many days; ROLLCALL_PRUNE_DAYS if not given"
        )
        parser.add_argument("--dry-run", action="store_true", help="only print how much would go")

    def handle(self, *, days: float | None, dry_run: bool, **_: Any) -> None:
        """Count or remove."""
        kept = settings.ROLLCALL.prune_days if days is None else days
        before = clock.now() - timedelta(days=kept)
        if dry_run:
            gone, versions, verb = pruning.count(before), len(pruning.unused_versions()), "Would remove"
            left = orphans.find()
        else:
            pruning.note(kept, actor())
            gone, versions, verb = pruning.prune(before, forget_replica=forget_replica), forget_versions(), "Removed"
            left = orphans.remove()
        self.say(
            f"{verb} {some(gone.replicas, 'ended replica')}, {some(gone.operations, 'settled operation')}"
            f" and {some(gone.events, 'event')} older than {kept:g} days,"
            f" and the files of {some(versions, 'unused version')}."
        )
        if left:
            self.say(left.hindrance() or f"{verb} what no row names any more: {left.words()}.")
