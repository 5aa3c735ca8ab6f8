"""Whether a new version of a schema accepts every value that the old version accepted.

The rule is conservative: a change that it cannot show to be loosening counts as breaking. Its cost
is bounded by the product of the sizes of both schemas. It compares keyword by keyword, so the
following are loosening: removed constraints, wider bounds, types and enumerations, fewer required
properties, further alternatives in `anyOf`, and further optional properties where the old schema
allowed no additional properties.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from memorywall.kinds.json_schema import (
    ANNOTATIONS,
    LISTS_OF_SCHEMAS,
    NAMED_SCHEMAS,
    ONE_SCHEMA,
    CompiledSchema,
    pointer_to,
    referred_name,
    words,
)

Path = tuple[Any, ...]
Schema = dict[str, Any]
_ANYTHING: Schema = {}
_NOTHING: Schema = {"not": {}}
"""The schema that no value fits."""
MOST_COMPARISONS = 10_000
"""Pairs of parts that are compared; a change that needs more counts as breaking."""
_LOWER = words("minimum exclusiveMinimum minLength minItems minProperties")
_UPPER = words("maximum exclusiveMaximum maxLength maxItems maxProperties")
_TOGETHER = {
    "contains": ("contains", "minContains", "maxContains"),
    "if": ("if", "then", "else"),
    "multipleOf": ("multipleOf",),
    "pattern": ("pattern",),
    "oneOf": ("oneOf",),
}
"""Keywords that must be as they were, with those that they are read with."""
_READ_WITH = words("then else minContains maxContains")
_OF_PROPERTIES = words("properties patternProperties additionalProperties")
_OF_ITEMS = words("prefixItems items")
_encode = msgspec.json.Encoder(order="deterministic").encode


def first_narrowing(old: Schema, new: Schema) -> str | None:
    """The JSON Pointer to the first place in the new schema that may refuse a value which the old
    schema accepted, with references expanded; None if there is no such place.

    old, new: schemas that `check_schema` has accepted
    """
    expanded = [_expand(one, one.get("$defs", {})) for one in (old, new)]
    path = _Comparison().compare(*expanded)
    return None if path is None else pointer_to(path)


def _expand(schema: Any, definitions: dict[str, Any]) -> Schema:
    """The schema without annotations, references and booleans."""
    if isinstance(schema, bool):
        return {} if schema else _NOTHING
    plain: Schema = {}
    for keyword, argument in schema.items():
        if keyword in ONE_SCHEMA:
            plain[keyword] = _expand(argument, definitions)
        elif keyword in LISTS_OF_SCHEMAS:
            plain[keyword] = [_expand(one, definitions) for one in argument]
        elif keyword in NAMED_SCHEMAS:
            plain[keyword] = {name: _expand(one, definitions) for name, one in argument.items()}
        elif keyword not in ANNOTATIONS and keyword not in ("$ref", "$defs", "$schema"):
            plain[keyword] = argument
    if "$ref" in schema:
        target = _expand(definitions[referred_name(schema["$ref"])], definitions)
        if not plain:
            return target
        plain["allOf"] = [*plain.get("allOf", ()), target]
    return plain


class _Comparison:
    """Compares each pair of parts of two schemas at most once. The parts outlive it."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], Path | None] = {}
        self._compiled: dict[int, CompiledSchema] = {}

    def compare(self, old: Schema, new: Schema) -> Path | None:
        """The path in `new` to the first place that may refuse a value which `old` accepts."""
        pair = (id(old), id(new))
        if pair not in self._known:
            if len(self._known) >= MOST_COMPARISONS:
                return ()
            self._known[pair] = ()
            self._known[pair] = self._narrowing(old, new)
        return self._known[pair]

    def covers(self, old: Schema, new: Schema) -> bool:
        """Whether `new` accepts every value that `old` accepts."""
        return self.compare(old, new) is None

    def _narrowing(self, old: Schema, new: Schema) -> Path | None:
        if not new or old == _NOTHING or _encode(old) == _encode(new):
            return None
        if values := _only_values(old):
            compiled = self._compiled.setdefault(id(new), CompiledSchema(new))
            return None if all(map(compiled.fits, values)) else ()
        for keyword in sorted(new):
            if keyword in _OF_PROPERTIES or keyword in _OF_ITEMS:
                continue
            if not self._keeps(keyword, old, new):
                return (keyword,)
        for step, before, after in (*_items(old, new), *_properties(old, new)):
            if (path := self.compare(before, after)) is not None:
                return (*step, *path)
        return None

    def _keeps(self, keyword: str, old: Schema, new: Schema) -> bool:
        """Whether a keyword of `new` refuses no value that `old` accepts."""
        if keyword in _READ_WITH or new[keyword] is False:
            return True
        if keyword in _TOGETHER:
            return all(_encode(old.get(one)) == _encode(new.get(one)) for one in _TOGETHER[keyword])
        if keyword == "allOf":
            return all(self._is_implied(old, one) for one in new["allOf"])
        if keyword == "anyOf":
            return self._has_alternatives(old, new["anyOf"])
        if keyword not in old:
            return keyword == "propertyNames" and not new[keyword]
        was, now = old[keyword], new[keyword]
        if keyword in _LOWER:
            return bool(was >= now)
        if keyword in _UPPER:
            return bool(was <= now)
        rule = _RULES.get(keyword)
        return rule is not None and rule(self, was, now)

    def _is_implied(self, old: Schema, new: Schema) -> bool:
        return any(self.covers(one, new) for one in (old, *old.get("allOf", ())))

    def _has_alternatives(self, old: Schema, new: list[Schema]) -> bool:
        def is_covered(one: Schema) -> bool:
            return any(self.covers(one, alternative) for alternative in new)

        return is_covered(old) or ("anyOf" in old and all(map(is_covered, old["anyOf"])))


def _items(old: Schema, new: Schema) -> Iterator[tuple[Path, Schema, Schema]]:
    """The pairs of schemas for the items of an array, with their path in `new`."""
    was, now = old.get("prefixItems", []), new.get("prefixItems", [])
    was_rest, now_rest = old.get("items", _ANYTHING), new.get("items", _ANYTHING)
    for place in range(max(len(was), len(now))):
        before = was[place] if place < len(was) else was_rest
        if place < len(now):
            yield ("prefixItems", place), before, now[place]
        else:
            yield ("items",), before, now_rest
    yield ("items",), was_rest, now_rest


def _properties(old: Schema, new: Schema) -> Iterator[tuple[Path, Schema, Schema]]:
    """The pairs of schemas for the properties of an object, with their path in `new`."""
    was, now = old.get("properties", {}), new.get("properties", {})
    was_by, now_by = old.get("patternProperties", {}), new.get("patternProperties", {})
    was_rest = old.get("additionalProperties", _ANYTHING)
    now_rest = new.get("additionalProperties", _ANYTHING)
    for pattern, after in now_by.items():
        yield ("patternProperties", pattern), was_by.get(pattern, _ANYTHING), after
    # A pattern of the old schema may have decided about a property that is new.
    unnamed = _ANYTHING if was_by else was_rest
    for name, after in now.items():
        yield ("properties", name), was.get(name, unnamed), after
    others = [was[name] for name in was if name not in now]
    others += [was_by[pattern] for pattern in was_by if pattern not in now_by]
    for before in (was_rest, *others):
        yield ("additionalProperties",), before, now_rest


def _only_values(schema: Schema) -> list[Any]:
    """The only values that may fit a schema; empty if they are not enumerated."""
    if "const" in schema:
        return [schema["const"]]
    return list(schema.get("enum", ()))


def _types(names: Any) -> set[str]:
    found = {names} if isinstance(names, str) else set(names)
    return found | {"integer"} if "number" in found else found


_RULES: dict[str, Callable[[_Comparison, Any, Any], bool]] = {
    "type": lambda _, was, now: _types(was) <= _types(now),
    "required": lambda _, was, now: set(now) <= set(was),
    "dependentRequired": lambda _, was, now: all(
        set(names) <= set(was.get(name, ())) for name, names in now.items()
    ),
    "uniqueItems": lambda _, was, now: bool(was),
    # What is excluded may only become less.
    "not": lambda comparison, was, now: comparison.covers(now, was),
    "propertyNames": lambda comparison, was, now: comparison.covers(was, now),
    "dependentSchemas": lambda comparison, was, now: all(
        name in was and comparison.covers(was[name], one) for name, one in now.items()
    ),
}
"""Keywords for which the old argument decides whether the new one refuses more."""
