"""Where notices may be sent, what of such an address may be shown, and sending one within a time."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qsl, urlsplit

from replicas.providers.courier import of_the_link

COURIER = Path(__file__).with_name("courier.py")
START_SECONDS = 20.0  # for loading the libraries, on a machine that is busy
LONGEST_URL = 2000
WEBHOOK_SCHEMES = frozenset({"http", "https"})
# Those that only send something over the network. The library has others, which run programs or write files.
APPRISE_SCHEMES = frozenset(
    (
        *("mailto", "mailtos", "mailgun", "sendgrid", "slack", "discord", "msteams", "workflows", "tgram", "matrix"),
        *("matrixs", "mmost", "mmosts", "rocket", "rockets", "zulip", "gchat", "wxteams", "webex", "ntfy", "ntfys"),
        *("gotify", "gotifys", "pover", "pagerduty", "opsgenie", "signal", "signals", "twilio"),
    )
)
# Others may name files of this machine (templates, keys), or switch the check of certificates off.
APPRISE_OPTIONS = frozenset(
    (
        *("to", "cc", "bcc", "from", "name", "user", "pass", "smtp", "mode", "reply", "host", "port", "channel"),
        *("token", "thread", "topic", "priority", "region", "mention"),
    )
)
# What a program that asks the network may need of our environment; no password of ours is among it.
PASSED_ON = ("PATH", "HOME", "LANG", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE")
PROXIES = ("http_proxy", "https_proxy", "no_proxy")


class Unusable(Exception):
    """No notice can be sent to such an address. The text says why, and shows nothing of it but its scheme."""


class Unsent(Exception):
    """The receiver did not take it, or not in time. The text may be shown."""


def kind_of(url: str) -> str:
    """webhook for an address of the web, apprise for all others."""
    return "webhook" if url.partition("://")[0].lower() in WEBHOOK_SCHEMES else "apprise"


def check(kind: str, url: str, *, link_local: bool = False) -> str:
    """What of the address may be shown: it may hold a password anywhere else. `link_local`: it may be an address of
    the link. Raises Unusable."""
    if len(url) > LONGEST_URL or not url.isprintable() or " " in url:
        raise Unusable(f"an address has at most {LONGEST_URL} characters, without spaces")
    try:
        parts = urlsplit(url)
        host = parts.hostname
        port = parts.port if kind == "webhook" else None
    except ValueError:
        raise Unusable("the address cannot be read: write SCHEME://HOST/...") from None
    scheme = parts.scheme.lower()
    if kind == "webhook":
        if scheme not in WEBHOOK_SCHEMES or not host:
            raise Unusable("a webhook is an address that begins with https:// or http:// and names a host")
        if not link_local and (near := _of_the_link(host)):
            raise Unusable(
                f"{near} is an address of the link or of a cloud's metadata: ROLLCALL_NOTICE_LINK_LOCAL=1 allows that"
            )
        shown = f"[{host}]" if ":" in host else host
        return f"{scheme}://{shown}{f':{port}' if port else ''}/…"
    return _checked_apprise(scheme, parts)


def _of_the_link(host: str) -> str:
    """The address that a host of digits is, in any of its spellings, if it is one of the link; no name is looked up."""
    try:
        found = socket.getaddrinfo(host, None, flags=socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):
        return ""
    return next((str(entry[4][0]) for entry in found if of_the_link(str(entry[4][0]))), "")


def _checked_apprise(scheme: str, parts: SplitResult) -> str:
    if scheme not in APPRISE_SCHEMES:
        known = ", ".join(sorted(APPRISE_SCHEMES))
        hint = "; for http:// and https:// there is the kind webhook" if scheme in WEBHOOK_SCHEMES else ""
        raise Unusable(f"the scheme {scheme[:20]!r} is not allowed{hint}: use one of {known}")
    given = {name.lower() for name, _ in parse_qsl(parts.query, keep_blank_values=True)}
    if strange := given - APPRISE_OPTIONS:
        allowed = ", ".join(sorted(APPRISE_OPTIONS))
        raise Unusable(f"the option {min(strange)[:20]!r} is not allowed: those that are: {allowed}")
    if not parts.netloc:
        raise Unusable(f"there is nothing behind {scheme}://")
    host = parts.hostname if scheme.startswith("mailto") else ""  # elsewhere a token may stand in its place
    return f"{scheme}://{host}/…" if host else f"{scheme}://…"


def send(order: dict[str, Any], seconds: float) -> None:
    """Have the courier send it, in at most so many seconds. Raises Unsent.

    `order`: kind (webhook or apprise), url, key, uid, at (seconds since 1970), agent, title, body, payload; link_local
    where it may go to addresses of the link.
    """
    given = {name: os.environ[name] for name in _passed_on() if name in os.environ}
    told = json.dumps(order | {"timeout": seconds}).encode()
    try:
        done = subprocess.run(
            [sys.executable, "-I", str(COURIER)],
            input=told,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # a traceback would show the address
            timeout=seconds + START_SECONDS,
            env=given,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Unsent(f"the program that sends was not done within {seconds + START_SECONDS:g} s") from None
    except OSError as error:
        raise Unsent(f"the program that sends cannot be run: {error.strerror}") from None
    if done.returncode == -signal.SIGALRM:
        raise Unsent(f"it was not done within {seconds:g} s")
    if done.returncode:
        raise Unsent(f"the program that sends ended with code {done.returncode}")
    if fault := str(json.loads(done.stdout)["error"]):
        raise Unsent(fault)


def _passed_on() -> list[str]:
    return [*PASSED_ON, *PROXIES, *(name.upper() for name in PROXIES)]
