"""The JSON Schema of a spec, for editors. `python -m replicas.core.spec` prints docs/spec.schema.json."""

import json
from typing import Any

from replicas.core.spec.task import Spec


def schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of the YAML that users write. It knows the fields; `parse` also knows the rules."""
    found = Spec.model_json_schema(by_alias=True, mode="validation")
    _tidy(found)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **found,
        "title": "Rollcall service",
        "required": [],
        "anyOf": [{"required": ["service"]}, {"required": ["pool"]}],
    }


def _tidy(part: Any) -> None:
    """A field that may be left out is not one that may be null (an empty value is an error); titles say nothing new."""
    if isinstance(part, list):
        for item in part:
            _tidy(item)
    if not isinstance(part, dict):
        return
    if isinstance(part.get("title"), str):
        del part["title"]
    choices = [choice for choice in part.get("anyOf", ()) if choice != {"type": "null"}]
    if len(choices) == 1 and len(part["anyOf"]) == 2:
        del part["anyOf"]
        part.update(choices[0])
    elif choices:
        part["anyOf"] = choices
    if part.get("default", ...) is None:
        del part["default"]
    for item in part.values():
        _tidy(item)


def schema_text() -> str:
    """The schema as it is published."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"
