"""Short texts of specs for the tests, and what `parse` says of them."""

import textwrap

from replicas.core.spec import Spec, SpecErrors, parse


def web(lines: str = "", *, service: str = "{}") -> str:
    """A spec named web with more top-level lines."""
    return f"name: web\nrun: serve\nservice: {service}\n{textwrap.dedent(lines)}"


def service(lines: str) -> str:
    """A spec named web whose service section has the lines."""
    return f"name: web\nrun: serve\nservice:\n{textwrap.indent(textwrap.dedent(lines), '  ')}"


def read(text: str, **given: object) -> Spec:
    """The spec of a text that must be right; relative paths start from /srv."""
    return parse(text, **{"base": "/srv", **given}).spec  # type: ignore[arg-type]


def faults(text: str | bytes, **given: object) -> list[str]:
    """What is wrong with a text, one line each; empty if nothing is."""
    try:
        parse(text, **{"base": "/srv", **given})  # type: ignore[arg-type]
    except SpecErrors as errors:
        return [str(error) for error in errors.errors]
    return []


def fault(text: str | bytes, **given: object) -> str:
    """The one thing that is wrong with a text."""
    found = faults(text, **given)
    assert len(found) == 1, found
    return found[0]
