"""The values of secrets: read from the text or given at apply, and taken out of the text that is stored."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from replicas.core.spec.errors import Refused
from replicas.core.spec.kinds import env_name
from replicas.core.spec.loader import Document, Fields, Items, Scalar
from replicas.core.spec.report import Report
from replicas.core.spec.scalars import as_text, quote_reason

MASK = "***"
MOST_SECRETS = 200
_TELLING = 16  # characters: a shorter value may stand elsewhere by chance


@dataclass(slots=True)
class Secrets:
    """Values by name, and the parts of the text that hold them."""

    values: dict[str, str] = field(default_factory=dict)
    parts: list[Scalar] = field(default_factory=list)


def read_secrets(
    document: Document, tree: dict[str, Any], report: Report, given: Mapping[str, str], kept: Mapping[str, str]
) -> Secrets:
    """Take the values out of the tree, which keeps the names; faults go to the report, without any value."""
    found = Secrets()
    declared = _declared(document, report)
    if len(declared) > MOST_SECRETS:
        report.add(("secrets",), f"has {len(declared)} names: at most {MOST_SECRETS} can be kept")
        declared = {}
    for name in [*declared, *(name for name in given if name not in declared)]:
        try:
            env_name(name)
            found.values[name] = _value(name, declared.get(name), given, kept, found)
        except Refused as refused:
            report.refused(("secrets", name) if name in declared else ("secrets",), refused)
    if found.values or "secrets" in tree:
        tree["secrets"] = sorted(found.values)
    _refuse_copies(document, found, report)
    return found


def masked_text(document: Document, secrets: Secrets) -> str:
    """The text with "***" (in quotes, as YAML needs them) for the value of each secret; all else byte for byte."""
    text, done, pieces = document.text, 0, []
    for part in sorted(secrets.parts, key=lambda part: part.start):
        span = text[part.start : part.end]
        ending = span[len(span.rstrip()) :] if "\n" in span else ""
        pieces += [text[done : part.start], f'"{MASK}"', ending]
        done = part.end
    return "".join([*pieces, text[done:]])


def _declared(document: Document, report: Report) -> dict[str, Scalar | None]:
    """The names in the text's `secrets`, with the part that holds the value where there is one."""
    section = document.root.child("secrets")
    if section is None or (isinstance(section, Scalar) and section.empty):
        return {}
    if section.marked or (isinstance(section, Fields) and section.merged):
        report.add(("secrets",), "must be written out: aliases, anchors and tags could show a value elsewhere")
        return {}
    if isinstance(section, Items):
        if not all(isinstance(part, Scalar) for part in section.items):
            report.add(("secrets",), "a list of secrets holds only names; to give values, write a mapping: NAME: value")
        return {part.text: None for part in section.items if isinstance(part, Scalar) and _is_name(part, report)}
    if not isinstance(section, Fields):
        report.add(("secrets",), "must be a mapping of names and texts, or a list of names")
        return {}
    declared: dict[str, Scalar | None] = {}
    for name, (_, part) in section.fields.items():
        if part.marked:
            report.add(("secrets", name), "must be written out: aliases, anchors and tags could show a value elsewhere")
        elif not isinstance(part, Scalar):
            report.add(("secrets", name), "must be a text, not a list or a mapping")
        else:
            declared[name] = None if part.empty else part
    return declared


def _is_name(part: Scalar, report: Report) -> bool:
    if not part.empty:
        return True
    report.add(("secrets",), "a list of secrets holds only names; to give values, write a mapping: NAME: value")
    return False


def _value(name: str, part: Scalar | None, given: Mapping[str, str], kept: Mapping[str, str], found: Secrets) -> str:
    written = part.text if part and part.text != MASK else None
    if part and written is not None:
        found.parts.append(part)
    if name in given:
        return as_text(given[name])
    if written is None:
        if name in kept:
            return kept[name]
        cause = f"{MASK} stands for a value that is not known here" if part else "has no value"
        raise Refused(((), f"{cause}: write one, or give it at apply with --secret {name}=VALUE"))
    if part and part.plain and quote_reason(written):
        raise Refused(((), "YAML may take the value for something other than a text: put it in quotes"))
    return as_text(written)


def _refuse_copies(document: Document, secrets: Secrets, report: Report) -> None:
    """A long value that also stands elsewhere in the text would be stored in the clear."""
    if not secrets.values:
        return
    rest = masked_text(document, secrets)
    for name, value in secrets.values.items():
        if len(value) >= _TELLING and value in rest:
            report.add(("secrets", name), f"its value stands elsewhere in the text, too: write ${{{name}}} there")
