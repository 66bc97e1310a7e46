"""Static files under hashed names, built once for all homes and only when something changed."""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from django.conf import settings
from servestatic.storage import CompressedManifestStaticFilesStorage

STAMP = "rollcall-stamp"
# Parts of packages that no page asks for: nine tenths of Ace are modes of other languages than YAML, JSON and text.
LEFT_OUT = ["snippets", "*.map", "mode-[!jpty]*.js", "worker-[!bjy]*.js"]


class BuildError(Exception):
    """collectstatic failed; the message holds what it said."""


class HashedStorage(CompressedManifestStaticFilesStorage):
    """Hashed names, also in the imports of our own ES modules.

    Django can rewrite imports in every script or in none; packages' scripts (Ace, htmx) do not bear it.
    """

    _aggregation = CompressedManifestStaticFilesStorage._js_module_import_aggregation_patterns
    patterns = (*CompressedManifestStaticFilesStorage.patterns, ("js/*.js", _aggregation[1]))


def build() -> bool:
    """Collect the static files into STATIC_ROOT unless that was done from the same sources; True if it was done.

    Several processes may call it at once: the first one builds beside the directory and puts it in its place.
    """
    root = Path(settings.STATIC_ROOT)
    root.parent.mkdir(parents=True, exist_ok=True)
    digest = sources()
    if _stamp(root) == digest:
        return False
    with open(root.parent / f".{root.name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _stamp(root) == digest:
            return False
        _build(root, digest)
    return True


def sources() -> str:
    """A digest of where the static files come from: our own by name, size and time; packages by their version."""
    found: list[Any] = [
        (name, metadata.version(name)) for name in ("django", "django-ace", "django-htmx", "django-q2", "servestatic")
    ]
    found.append(Path(__file__).stat().st_mtime_ns)
    for directory in map(Path, settings.STATICFILES_DIRS):
        for path in sorted(directory.rglob("*")):
            status = path.stat()
            found.append((str(path), status.st_size, status.st_mtime_ns))
    return hashlib.sha256(json.dumps(found).encode()).hexdigest()


def _build(root: Path, digest: str) -> None:
    draft, old = root.with_name(f"{root.name}.new"), root.with_name(f"{root.name}.old")
    for path in (draft, old):
        if path.exists():
            shutil.rmtree(path)
    command = [sys.executable, str(settings.BASE_DIR / "manage.py"), "collectstatic", "--noinput", "--verbosity=0"]
    for pattern in LEFT_OUT:
        command += ["--ignore", pattern]
    # In a process of its own: where files go is fixed in a process once its storage is loaded.
    done = subprocess.run(
        command, env=os.environ | {"ROLLCALL_STATIC_ROOT": str(draft)}, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise BuildError(f"The static files could not be put together:\n{done.stderr.strip()}")
    (draft / STAMP).write_text(digest)
    if root.exists():
        os.rename(root, old)
        os.rename(draft, root)
        shutil.rmtree(old)
    else:
        os.rename(draft, root)


def _stamp(root: Path) -> str:
    try:
        return (root / STAMP).read_text()
    except OSError:
        return ""
