"""Sends one notice, as a program of its own: an order as JSON on standard input, what went wrong as JSON on output.

A program, so that a receiver that answers a byte at a time costs a process that is killed, and not a worker; and so
that no worker carries the libraries. It is run by `sending`, isolated, and knows nothing of the rest of Rollcall.
"""

import base64
import hashlib
import hmac
import ipaddress
import json
import logging
import re
import signal
import socket
import sys
from typing import Any

ANSWER_MOST = 4096  # bytes of an answer that are read at all
BEYOND_SECONDS = 0.5  # after which a wait that no library ends ends with this program
# Where clouds tell a machine's own passwords, beside the addresses of the link.
METADATA = frozenset({"fd00:ec2::254", "100.100.100.200"})


class Unsent(Exception):
    """The receiver did not take it. The text shows nothing of the address, which is a secret."""


def main() -> None:
    """Send what the order says: `{kind, url, key, uid, at, title, body, payload, timeout, link_local}`."""
    order = json.load(sys.stdin)
    refused = [] if order.get("link_local") else guarded()
    try:
        (webhook if order["kind"] == "webhook" else by_apprise)(order)
        error = ""
    except Unsent as unsent:
        error = str(unsent)
    if error and refused:
        where = f"{refused[0]}, an address of the link or of a cloud's metadata"
        error = f"its name leads to {where}: ROLLCALL_NOTICE_LINK_LOCAL=1 allows that"
    json.dump({"error": error}, sys.stdout)


def guarded() -> list[str]:
    """From here on no name leads to an address of the link. The list gets those that were refused.

    Every library connects to what this look-up gave it, so that a name cannot lead elsewhere a moment later.
    """
    look_up = socket.getaddrinfo
    refused: list[str] = []

    def checked(*asked: Any, **how: Any) -> list[Any]:
        found = look_up(*asked, **how)
        if near := [entry[4][0] for entry in found if of_the_link(str(entry[4][0]))]:
            refused.extend(map(str, near))
            raise socket.gaierror(socket.EAI_FAIL, "not to be asked")
        return found

    socket.getaddrinfo = checked
    return refused


def of_the_link(host: str) -> bool:
    """Whether it is an address that only this link knows, or one of a cloud's metadata."""
    address = ipaddress.ip_address(host.partition("%")[0])
    address = getattr(address, "ipv4_mapped", None) or address
    return address.is_link_local or str(address) in METADATA


def webhook(order: dict[str, Any]) -> None:
    """One signed POST. Raises Unsent for all but a 2xx; a redirect is not followed, as it could lead anywhere."""
    import requests

    body = json.dumps(order["payload"], separators=(",", ":")).encode()
    headers = {"Content-Type": "application/json", "User-Agent": order["agent"]}
    headers |= signature(order["key"], order["uid"], order["at"], body)
    wait = limited(order)
    try:
        with requests.post(
            order["url"],
            data=body,
            headers=headers,
            timeout=(wait, wait),
            allow_redirects=False,
            stream=True,
            auth=lambda request: request,  # else the password that a .netrc has for the host
        ) as answer:
            answer.raw.read(ANSWER_MOST)
    except requests.exceptions.SSLError:
        raise Unsent("its certificate is not to be trusted, or it does not speak TLS") from None
    except requests.Timeout:
        raise Unsent(f"it did not answer within {wait:g} s") from None
    except (requests.exceptions.InvalidURL, requests.exceptions.InvalidSchema, UnicodeError):
        raise Unsent("its address is none") from None
    except requests.RequestException:
        raise Unsent("it cannot be connected to, or ended the connection") from None
    except OSError:
        raise Unsent("it ended the connection in its answer") from None
    if 300 <= answer.status_code < 400:
        raise Unsent(
            f"it answered with a redirect ({answer.status_code}), which is not followed: give the last address"
        )
    if not 200 <= answer.status_code < 300:
        raise Unsent(f"it answered with {answer.status_code}")


def limited(order: dict[str, Any]) -> float:
    """From here on the order's time runs; that of loading the libraries is not the receiver's. Seconds."""
    wait = float(order["timeout"])
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, wait + BEYOND_SECONDS)
    return wait


def signature(key: str, uid: str, at: int, body: bytes) -> dict[str, str]:
    """The headers of a signed message, as the Standard Webhooks specification has them (standardwebhooks.com).

    `key`: "whsec_" and base64; signed is "uid.at.body", `at` in seconds since 1970.
    """
    secret = base64.b64decode(key.removeprefix("whsec_"))
    digest = hmac.new(secret, f"{uid}.{at}.".encode() + body, hashlib.sha256).digest()
    return {
        "webhook-id": uid,
        "webhook-timestamp": str(at),
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }


def by_apprise(order: dict[str, Any]) -> None:
    """Mail or chat. Raises Unsent; of what the library says only a status is told, since the rest may name secrets."""
    import apprise

    said: list[str] = []
    listener = logging.Handler()
    listener.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("apprise")
    logger.handlers, logger.propagate = [listener], False
    logger.setLevel(logging.WARNING)
    asset = apprise.AppriseAsset(app_id="Rollcall", app_desc="Rollcall", app_url="", plugin_paths=[], async_mode=False)
    receiver = apprise.Apprise(asset=asset)
    if not receiver.add(order["url"]):
        raise Unsent("its address is none that apprise knows; see the address formats of its documentation")
    limited(order)
    if not receiver.notify(title=order["title"], body=order["body"], body_format=apprise.NotifyFormat.TEXT):
        status = next((found[1] for text in said if (found := re.search(r"error=(\d{3})\b", text))), "")
        raise Unsent(f"it answered with {status}" if status else "it did not take it: check address and password")


if __name__ == "__main__":
    main()
