"""Settings of the test process: a home of its own under /tmp, removed at the end; static files straight from disk."""

import atexit
import os
import shutil
import sys
import tempfile

HERE = os.getpid()


def _remove(home: str) -> None:
    """Remove the home at the end of the process that made it, not of one that it forked."""
    if os.getpid() == HERE:
        shutil.rmtree(home, ignore_errors=True)


# Only in pytest itself: a program that a test starts keeps the home that it was given.
if "pytest" in sys.modules:
    os.environ["ROLLCALL_HOME"] = tempfile.mkdtemp(prefix="rc-", dir="/tmp")
    os.environ["ROLLCALL_GATEWAY"] = "0"  # controllers of tests drive no HAProxy, unless one asks for it
    atexit.register(_remove, os.environ["ROLLCALL_HOME"])

from controlplane.settings import *  # noqa: E402, F403
from controlplane.settings import DATABASES, MIDDLEWARE, ROLLCALL, SQLITE, STORAGES  # noqa: E402

STORAGES = STORAGES | {"staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}}
SERVESTATIC_AUTOREFRESH = True
SERVESTATIC_USE_FINDERS = True
if "pytest" in sys.modules:
    # It looks through all static files for each client that a test makes, and no test asks such a client for one.
    MIDDLEWARE = [each for each in MIDDLEWARE if each != "servestatic.middleware.ServeStaticMiddleware"]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
if SQLITE:
    # A file, as in life: a database in memory knows no second connection.
    DATABASES["default"]["TEST"] = {"NAME": str(ROLLCALL.home / "db" / "test.sqlite3")}
