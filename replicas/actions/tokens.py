"""API tokens: made, found by what a script sends, used, revoked."""

import hashlib
import secrets
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q

from replicas import clock
from replicas.actions import audit
from replicas.actions.powers import DEPLOY, OPERATE, SEE
from replicas.actions.transition import writing
from replicas.core.values import Scope
from replicas.models import ApiToken
from replicas.models.public import stamp

MARK = "rollcall_"  # so that a scanner for leaked secrets knows one
SHOWN = len(MARK) + 6
USE_NOTED = timedelta(minutes=1)
REACHES: dict[str, frozenset[str]] = {
    Scope.READ: frozenset({SEE}),
    Scope.OPERATE: frozenset({SEE, OPERATE}),
    Scope.DEPLOY: frozenset({SEE, OPERATE, DEPLOY}),
}


def make(
    owner: Any, name: str, scope: Scope, *, services: Iterable[str] = (), expires_at: datetime | None = None
) -> tuple[ApiToken, str]:
    """A new token, and its text, which nobody can tell again."""
    text = MARK + secrets.token_urlsafe(32)
    with writing():
        row = ApiToken.objects.create(
            owner=owner,
            name=name,
            prefix=text[:SHOWN],
            digest=digest(text),
            scope=scope,
            services=sorted(set(services)),
            created_at=clock.now(),
            expires_at=expires_at,
        )
        _note(row, "made", f"with the scope {scope}, for {', '.join(row.services) or 'all services'}", str(owner))
    return row, text


def _note(row: ApiToken, trigger: str, reason: str, actor: str) -> None:
    data = {
        "name": row.name,
        "owner": row.owner.get_username(),
        "prefix": row.prefix,
        "scope": row.scope,
        "services": row.services,
        "expires_at": stamp(row.expires_at),
    }
    audit.note(audit.TOKEN, row.pk, trigger, data, reason=reason, actor=actor)


def digest(text: str) -> str:
    """By what a token is kept and found."""
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()


def find(text: str) -> ApiToken | None:
    """The token of this text, if it still gives any right: not revoked, not expired, its owner not disabled."""
    if not text.startswith(MARK):
        return None
    now = clock.now()
    alive = Q(expires_at=None) | Q(expires_at__gt=now)
    rows = ApiToken.objects.select_related("owner").filter(alive, revoked_at=None, owner__is_active=True)
    return rows.filter(digest=digest(text)).first()


def state(token: ApiToken, now: datetime) -> str:
    """REVOKED, EXPIRED, DISABLED (its owner is) or ACTIVE."""
    if token.revoked_at is not None:
        return "REVOKED"
    if token.expires_at is not None and token.expires_at <= now:
        return "EXPIRED"
    return "ACTIVE" if token.owner.is_active else "DISABLED"


def note_use(token: ApiToken, address: str) -> None:
    """Keep when and from where it was used, at most once a minute."""
    now = clock.now()
    stale = Q(last_used_at=None) | Q(last_used_at__lt=now - USE_NOTED)
    if token.last_used_at is None or token.last_used_at < now - USE_NOTED:
        ApiToken.objects.filter(stale, pk=token.pk).update(last_used_at=now, last_used_from=address)


def refusal(token: ApiToken, need: str, service: str | None = None) -> str:
    """Why the token does not reach so far, whatever its owner may; "" where it does."""
    if need not in REACHES[token.scope]:
        wanted = next(scope for scope in Scope if need in REACHES[scope])
        return f"The token {token.name} has the scope {token.scope}; this needs {wanted}."
    if service is not None and token.services and service not in token.services:
        return f"The token {token.name} is only for {', '.join(token.services)}, not for {service}."
    return ""


def revoke(token_id: int, *, actor: str, owner: Any = None) -> ApiToken | None:
    """End a token for good. None: there is none (of that owner). One that is revoked already stays as it is."""
    rows = ApiToken.objects.filter(pk=token_id)
    if owner is not None:
        rows = rows.filter(owner=owner)
    with writing():
        revoked = rows.filter(revoked_at=None).update(revoked_at=clock.now(), revoked_by=actor)
        row = rows.select_related("owner").first()
        if row is not None and revoked:
            _note(row, "revoked", f"revoked by {actor}", actor)
    return row
