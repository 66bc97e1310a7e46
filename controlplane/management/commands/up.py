"""`manage.py up`: everything that makes a control plane, from the tables to the running processes."""

import os
import socket
import sys
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connections

from controlplane import listening, occupancy, preparation
from controlplane.supervisor import ensure_standard_descriptors
from replicas.config import unknown_variables


class Command(BaseCommand):
    """Prepare, then become the supervisor."""

    help = "Run the control plane: dashboard, pools and controller, until Ctrl-C. Replicas go on running without it."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Where to listen, and whether to make the first user."""
        environ = os.environ
        parser.add_argument("--host", default=environ.get("ROLLCALL_HOST", "127.0.0.1"), help="default: 127.0.0.1")
        parser.add_argument(
            "--port", type=int, default=environ.get("ROLLCALL_PORT", "8000"), help="default: 8000; 0: any free one"
        )
        parser.add_argument("--no-admin", action="store_true", help="do not make a first user")

    def handle(self, *args: Any, host: str, port: int, no_admin: bool, **options: Any) -> None:
        """Take the home and the port first, so that nothing is touched when one of them is not to be had."""
        ensure_standard_descriptors()
        config = settings.ROLLCALL
        try:
            lock = occupancy.occupy(config.home, config.run)
        except occupancy.Occupied as error:
            raise CommandError(str(error)) from None
        listener = listening.listen(host, port)
        url = listening.url(listener)
        occupancy.note(config.run, url)
        self._prepare(no_admin)
        self._allow(host)
        self._say(f"Rollcall: {url} (home {config.home}). Ctrl-C stops it; replicas go on running.")
        self._become_supervisor(lock, listener, url)

    def _prepare(self, no_admin: bool) -> None:
        for name, near in unknown_variables(os.environ).items():
            self._say(f"{name} means nothing to Rollcall{f'; did you mean {near}?' if near else '.'}")
        if preparation.migrate():
            self._say("The database is up to date.")
        if preparation.build_static():
            self._say("The static files are in place.")
        admin = None if no_admin else preparation.first_admin()
        if admin is not None:
            name, password = admin
            shown = f"password {password} (shown this once)" if password else "the password of ROLLCALL_ADMIN_PASSWORD"
            self._say(f"The first user is made: {name}, {shown}.")

    def _allow(self, host: str) -> None:
        """Let the dashboard be asked for by the name that it listens on."""
        everywhere = host in {"0.0.0.0", "::"}  # noqa: S104  (a comparison)
        if host in {"127.0.0.1", "::1", "localhost"}:
            return
        names = [*settings.ROLLCALL.allowed_hosts, socket.gethostname() if everywhere else host]
        os.environ["ROLLCALL_ALLOWED_HOSTS"] = ",".join(dict.fromkeys(names))
        if not settings.ROLLCALL.https:
            self._say(f"Listening on {host} without HTTPS: others on the network can read passwords and cookies.")

    def _become_supervisor(self, lock: int, listener: socket.socket, url: str) -> None:
        """Replace this process, with all of Django in it, by the slim supervisor. Lock and socket stay open."""
        config = settings.ROLLCALL
        connections.close_all()
        os.environ.pop("ROLLCALL_ADMIN_PASSWORD", None)
        os.environ["ROLLCALL_HOME"] = str(config.home)
        descriptors = {"lock": lock, "listener": listener.detach()}
        command = [sys.executable, "-m", "controlplane.supervisor", f"--url={url}"]
        command += [f"--home={config.home}", f"--run={config.run}", f"--logs={config.logs}"]
        for name, descriptor in descriptors.items():
            os.set_inheritable(descriptor, True)
            command.append(f"--{name}={descriptor}")
        self.stdout.flush()
        os.chdir(settings.BASE_DIR)
        os.execv(command[0], command)  # noqa: S606  (an argument list of our own)

    def _say(self, line: str) -> None:
        try:
            self.stdout.write(line)
            self.stdout.flush()
        except (OSError, ValueError, AttributeError):  # nobody listens: started without a standard output
            return
