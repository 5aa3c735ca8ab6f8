"""JSON Schema (draft 2020-12) of every kind, made from the struct of its value."""

from __future__ import annotations

from typing import Any

import msgspec

from memorywall.kinds.registry import KINDS, find_kind

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_DEFINITIONS = "#/$defs/{name}"


def schema_of(name: str) -> dict[str, Any]:
    """The JSON Schema of a kind's value. Raises KindError for a kind that is not known."""
    spec = find_kind(name)
    (reference,), definitions = msgspec.json.schema_components(
        [spec.schema], ref_template=_DEFINITIONS
    )
    own = str(reference["$ref"]).rpartition("/")[2]
    schema = dict(definitions.pop(own))
    schema["title"] = name
    schema["description"] = spec.description
    if definitions:
        schema["$defs"] = definitions
    return {"$schema": DIALECT, **schema}


def kind_names() -> list[str]:
    """Every kind's name, sorted."""
    return sorted(KINDS)
