"""`manage.py doctor`: says what is wrong with this installation, and the next step for each."""

import json
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand

from replicas.checks import Finding, Level, examine


class Command(BaseCommand):
    """Look at everything, change nothing."""

    help = "Examine this installation. Exit code 1 if something is wrong; each such line says the next step."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Text for people, or JSON."""
        parser.add_argument("--json", action="store_true", help="a list of {level, name, detail, step}")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print each finding; fail if one is wrong."""
        findings = []
        for finding in examine():
            findings.append(finding)
            if not options["json"]:
                self.stdout.write(self._line(finding))
        if options["json"]:
            self.stdout.write(json.dumps([asdict(finding) for finding in findings], indent=2))
        if any(finding.level is Level.WRONG for finding in findings):
            raise SystemExit(1)

    def _line(self, finding: Finding) -> str:
        style = {Level.FINE: self.style.SUCCESS, Level.NOTE: self.style.WARNING, Level.WRONG: self.style.ERROR}
        step = f"\n       {finding.step}" if finding.step else ""
        return f"{style[finding.level](f'{finding.level.value:<6}')} {finding.name}: {finding.detail}{step}"
