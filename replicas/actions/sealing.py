"""Secret values at rest: encrypted with a key made from SECRET_KEY, opened only to launch."""

import base64
import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from django.conf import settings

if TYPE_CHECKING:
    from cryptography.fernet import Fernet


class Unsealable(Exception):
    """The stored secrets cannot be opened; the text says what to do."""


def _box() -> "Fernet":
    from cryptography.fernet import Fernet  # some megabytes in every worker, for services that have secrets only

    digest = hashlib.sha256(b"rollcall sealed secrets\0" + settings.SECRET_KEY.encode()).digest()
    return Fernet(base64.urlsafe_b64encode(digest))


def seal(secrets: Mapping[str, str]) -> str:
    """Encrypt the values; empty text for no secrets."""
    return _box().encrypt(json.dumps(dict(secrets)).encode()).decode() if secrets else ""


def unseal(sealed: str) -> dict[str, str]:
    """The values again. Raises Unsealable when SECRET_KEY is not the one that sealed them."""
    if not sealed:
        return {}
    from cryptography.fernet import InvalidToken

    try:
        opened: dict[str, str] = json.loads(_box().decrypt(sealed.encode()))
    except InvalidToken:
        raise Unsealable(
            "the stored secrets were sealed with another SECRET_KEY; apply the service again with its secrets"
        ) from None
    return opened
