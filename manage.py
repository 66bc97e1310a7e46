#!/usr/bin/env python
"""Entry point of the management commands; `manage.py up` runs the whole control plane."""

import os
import sys


def main() -> None:
    """Point Django at the project's settings and run one command."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
    from django.core.management import execute_from_command_line

    from controlplane.home import HomeError
    from replicas.config import ConfigError

    try:
        execute_from_command_line(sys.argv)
    except (ConfigError, HomeError) as error:  # a setting is wrong: its message is for a person
        sys.exit(f"{error}")


if __name__ == "__main__":
    main()
