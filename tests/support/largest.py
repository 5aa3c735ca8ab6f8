"""The largest JSON that a schema of the OpenAPI document allows."""

from __future__ import annotations

from typing import Any

ANYTHING = {"l": list(range(10)) * 3_100}
"""Nearly as large as a value may be, in as many parts as possible."""
_TEXT = "lorem ipsum dolor sit amet, consectetur adipiscing elit "
_WORDS = {
    "date-time": "2026-02-02T03:00:00Z",
    "uuid": "01900000-0000-7000-8000-000000000000",
    "byte": "QUJD",
}


class Largest:
    """Makes instances.

    document: the OpenAPI document, to whose components the schemas refer
    room: about how many bytes one instance may have
    """

    def __init__(self, document: dict[str, Any], room: int) -> None:
        self._document = document
        self._room = room

    def instance(self, schema: Any, depth: int = 0) -> Any:
        """Returns the largest instance of a schema."""
        if not isinstance(schema, dict) or not schema:
            return ANYTHING if depth < 3 else "x"
        if "$ref" in schema:
            found: Any = self._document
            for part in schema["$ref"].removeprefix("#/").split("/"):
                found = found[part]
            return self.instance(found, depth)
        for name in ("anyOf", "oneOf"):
            if name in schema:
                others = [one for one in schema[name] if one.get("type") != "null"]
                return self.instance(others[-1] if others else {}, depth)
        if "allOf" in schema:
            return self.instance(schema["allOf"][0], depth)
        if "const" in schema or "enum" in schema:
            return schema.get("const", schema.get("enum", [None])[-1])
        kind = schema.get("type")
        if isinstance(kind, list):
            kind = next(one for one in kind if one != "null")
        return getattr(self, f"_{kind}", self._other)(schema, depth)

    def _object(self, schema: dict[str, Any], depth: int) -> Any:
        if depth > 5:
            return {}
        made = {
            name: self.instance(one, depth + 1)
            for name, one in schema.get("properties", {}).items()
        }
        further = schema.get("additionalProperties")
        if isinstance(further, dict) and not made:
            made = {f"name{number}": self.instance(further, depth + 1) for number in range(16)}
        return made or ANYTHING

    def _array(self, schema: dict[str, Any], depth: int) -> list[Any]:
        item = self.instance(schema.get("items", {}), depth + 1)
        size = len(repr(item))
        return [item] * max(1, min(schema.get("maxItems", 1_000), self._room // size))

    def _string(self, schema: dict[str, Any], depth: int) -> str:
        if schema.get("format") in _WORDS:
            return _WORDS[schema["format"]]
        length = schema.get("maxLength", 200)
        return (_TEXT * (length // len(_TEXT) + 1))[: min(length, self._room)].strip()

    def _integer(self, schema: dict[str, Any], depth: int) -> int:
        return int(schema.get("maximum", schema.get("minimum", 1)))

    def _number(self, schema: dict[str, Any], depth: int) -> float:
        return float(schema.get("maximum", schema.get("minimum", 1)))

    def _boolean(self, schema: dict[str, Any], depth: int) -> bool:
        return True

    def _other(self, schema: dict[str, Any], depth: int) -> Any:
        return None
