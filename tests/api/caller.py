"""Somebody who asks the API; every answer is compared with what the OpenAPI document promises for its route."""

import functools
import json
import re
from typing import Any

from django.contrib.auth.models import User
from django.test import Client
from jsonschema import Draft202012Validator

from replicas.actions import roles, tokens
from replicas.core.values import Role, Scope
from replicas.web.api import api

PREFIX = "/api/v1"
PARTS = {"{int:": "{", "{str:": "{"}


@functools.cache
def document() -> dict[str, Any]:
    """The OpenAPI document, as it is served."""
    found: dict[str, Any] = json.loads(json.dumps(api.get_openapi_schema(), default=str))
    return found


def promised(method: str, path: str) -> tuple[str, dict[str, Any]]:
    """The path of the document that an address belongs to, and what it says of the method."""
    for template, methods in document()["paths"].items():
        pattern = re.sub(r"\\\{[^}]+\\\}", "[^/]+", re.escape(template))
        if re.fullmatch(pattern, path) and method.lower() in methods:
            return template, methods[method.lower()]
    raise AssertionError(f"the document has no {method} {path}")


def conforms(method: str, path: str, answer: Any) -> None:
    """Whether the answer is one that the document promises."""
    _, operation = promised(method, path)
    content = operation["responses"][str(answer.status_code)]["content"]
    kind = answer["Content-Type"].split(";")[0]
    schema = content[kind]["schema"] | {"components": document()["components"]}
    if kind == "application/json":
        Draft202012Validator(schema).validate(answer.json())


def user(name: str = "ann", role: Role | None = Role.OPERATOR) -> User:
    """A user with a role, made on first use."""
    found = User.objects.filter(username=name).first()
    if found is None:
        found = User.objects.create_user(name, password="x")
        roles.give(found, role)
    return found


class Caller:
    """A program with a token."""

    def __init__(
        self, name: str = "ann", role: Role | None = Role.OPERATOR, scope: Scope = Scope.DEPLOY, **more: Any
    ) -> None:
        self.row, self.text = tokens.make(user(name, role), "CI", scope, **more)
        self._client = Client(raise_request_exception=False, REMOTE_ADDR="192.0.2.9")

    def get(self, path: str, **query: Any) -> Any:
        """A GET."""
        return self.ask("GET", path, query=query)

    def post(
        self, path: str, body: Any = None, kind: str = "application/json", *, key: str | None = None, **query: Any
    ) -> Any:
        """A POST of JSON, or of a text of another kind; `key` is its Idempotency-Key."""
        return self.ask("POST", path, body, kind, query, {} if key is None else {"Idempotency-Key": key})

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        kind: str = "",
        query: dict[str, Any] | None = None,
        more: dict[str, str] | None = None,
    ) -> Any:
        """The answer, which conforms."""
        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.text}", **(more or {})}
        given = {"content_type": kind} if kind and body is not None else {}
        answer = self._client.generic(method, PREFIX + path, data, headers=headers, query_params=query or {}, **given)
        conforms(method, PREFIX + path, answer)
        assert answer["Cache-Control"] == "no-store"
        return answer
