#!/usr/bin/env python
"""Entry point of the management commands; `manage.py up` runs the whole control plane."""

import os
import sys


def main() -> None:
    """Point Django at the project's settings and run one command."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
    from django.core.management import ManagementUtility
    from django.core.management.base import BaseCommand

    from controlplane.home import HomeError
    from replicas.config import ConfigError

    class Utility(ManagementUtility):
        """Ends with 2, as any wrong command line does, where there is no such command."""

        def fetch_command(self, subcommand: str) -> BaseCommand:
            """The command of that name."""
            try:
                return super().fetch_command(subcommand)
            except SystemExit:  # it has said which ones are like it
                raise SystemExit(2) from None

    try:
        Utility(sys.argv).execute()
    except (ConfigError, HomeError) as error:  # a setting is wrong: its message is for a person
        sys.exit(f"{error}")


if __name__ == "__main__":
    main()
