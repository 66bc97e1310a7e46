"""Prints the JSON Schema of a spec: python -m replicas.core.spec > docs/spec.schema.json."""

import sys

from replicas.core.spec.schema import schema_text

sys.stdout.write(schema_text())
