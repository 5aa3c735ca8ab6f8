"""Which changes of a schema are compatible, and that a compatible change refuses no value that the
old schema accepted."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest

from memorywall.kinds.json_schema import (
    DEEPEST,
    LISTS_OF_SCHEMAS,
    NAMED_SCHEMAS,
    ONE_SCHEMA,
    CompiledSchema,
    Misfit,
    SchemaError,
    check_schema,
    words,
)
from memorywall.kinds.schema_changes import first_narrowing
from tests.support.extent import chosen_seed, extent

Schema = dict[str, Any]
S: Schema = {"type": "string"}
I: Schema = {"type": "integer"}  # noqa: E741 - the initial of its type


def closed(**properties: Any) -> Schema:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def within(schema: Schema) -> Schema:
    """The schema below `$defs`, a property and an item."""
    return {
        "$defs": {"x": {"title": "X", **schema}},
        **closed(a={"items": {"$ref": "#/$defs/x"}}),
    }


COMPATIBLE: list[tuple[Any, Any]] = [
    (closed(a=S), closed(a=S, b=I)),
    (closed(a=S), {"type": "object", "properties": {"a": S}}),
    ({**closed(a=S), "required": ["a"]}, closed(a=S)),
    ({"properties": {"a": S}}, {"properties": {}}),
    ({"enum": ["x"]}, {"enum": ["x", "y"]}),
    ({"enum": ["x", 1]}, {"type": ["string", "integer"]}),
    ({"const": 1}, {"enum": [1, 2]}),
    (I, {"type": "number"}),
    (S, {"type": ["string", "null"]}),
    (S, {"anyOf": [I, S]}),
    ({"anyOf": [S, I]}, {"anyOf": [I, {"type": ["string", "null"]}, {"type": "array"}]}),
    ({"minimum": 3, "maxLength": 4}, {"minimum": 2, "maxLength": 5}),
    ({"pattern": "^a", "description": "x"}, {"pattern": "^a", "title": "y"}),
    ({"uniqueItems": True}, {"uniqueItems": False}),
    ({"allOf": [S, {"minLength": 2}]}, {"allOf": [{"minLength": 1}]}),
    ({"not": {"type": ["string", "null"]}}, {"not": {"type": "null"}}),
    ({"oneOf": [S, I], "maximum": 1}, {"oneOf": [S, I], "maximum": 2}),
    ({"prefixItems": [S], "items": I}, {"prefixItems": [S, I], "items": {"type": "number"}}),
    ({"patternProperties": {"^x": S}}, {"patternProperties": {"^x": {"type": ["string", "null"]}}}),
    ({"dependentRequired": {"a": ["b", "c"]}}, {"dependentRequired": {"a": ["c"]}}),
    ({"items": False}, {"items": S}),
    ({"if": S, "then": {"minLength": 1}}, {}),
]
BREAKING: list[tuple[Any, Any, str]] = [
    (closed(a=S), closed(a=I), "/properties/a/type"),
    (closed(a=S, b=S), closed(a=S), "/additionalProperties/not"),
    ({"properties": {"a": S}}, {"properties": {"a": S, "b": I}}, "/properties/b/type"),
    (closed(a=S), {**closed(a=S), "required": ["a"]}, "/required"),
    ({"enum": ["x", "y"]}, {"enum": ["x"]}, ""),
    ({"enum": [1]}, {"enum": [True]}, ""),
    ({}, {"enum": ["x"]}, "/enum"),
    ({"type": "number"}, I, "/type"),
    ({"minimum": 2}, {"minimum": 3}, "/minimum"),
    ({}, {"maxProperties": 3}, "/maxProperties"),
    ({"pattern": "^a"}, {"pattern": "^b"}, "/pattern"),
    ({"oneOf": [S]}, {"oneOf": [S, {"maxLength": 2}]}, "/oneOf"),
    ({"contains": S, "minContains": 0}, {"contains": S}, "/contains"),
    ({"if": S, "then": {"minLength": 1}}, {"if": S, "then": {"minLength": 2}}, "/if"),
    ({"not": {"type": "null"}}, {"not": {"type": ["string", "null"]}}, "/not"),
    ({"items": S}, {"prefixItems": [I], "items": S}, "/prefixItems/0/type"),
    ({"patternProperties": {"^x": S}}, {"properties": {"xy": I}}, "/properties/xy/type"),
    ({"patternProperties": {"^x": S}}, {"additionalProperties": I}, "/additionalProperties/type"),
    (
        {"patternProperties": {"^x": S}, "additionalProperties": I},
        {"additionalProperties": I},
        "/additionalProperties/type",
    ),
    (
        {"patternProperties": {"^x": {}}, "additionalProperties": False},
        {"properties": {"x1": S}, "additionalProperties": False},
        "/properties/x1/type",
    ),
    ({"properties": {"a": S}}, {"unevaluatedProperties": False}, "/unevaluatedProperties"),
    ({"anyOf": [S, I]}, {"anyOf": [S]}, "/anyOf"),
    ({}, {"uniqueItems": True}, "/uniqueItems"),
]


@pytest.mark.parametrize(("old", "new"), COMPATIBLE)
def test_a_compatible_change(old: Schema, new: Schema) -> None:
    for before, after in ((old, new), (within(old), within(new))):
        check_schema(before)
        check_schema(after)
        assert first_narrowing(before, after) is None


@pytest.mark.parametrize(("old", "new", "place"), BREAKING)
def test_a_breaking_change_is_found_where_it_is(old: Schema, new: Schema, place: str) -> None:
    assert first_narrowing(old, new) == place
    assert first_narrowing(within(old), within(new)) == f"/properties/a/items{place}"


class Schemas:
    """Random small schemas."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def schema(self, depth: int = 2) -> Any:
        pick = self._random
        if pick.random() < 0.1:
            return pick.random() < 0.8
        made: Schema = {}
        for _ in range(pick.randint(0, 3)):
            keyword = pick.choice(_SIMPLE if depth == 0 else _KEYWORDS)
            made[keyword] = self._argument(keyword, depth - 1)
        return made

    def edited(self, schema: Any, depth: int = 2) -> Any:
        """A schema with a part of it replaced, added or removed."""
        if isinstance(schema, bool) or self._random.random() < 0.2:
            return self.schema(depth)
        made = dict(schema)
        keyword = self._random.choice([*made, *_KEYWORDS])
        inner = made.get(keyword)
        if self._random.random() < 0.4:
            made.pop(keyword, None)
        elif inner is not None and keyword in NAMED_SCHEMAS and depth > 0:
            name = self._random.choice("abc")
            made[keyword] = {**inner, name: self.edited(inner.get(name, True), depth - 1)}
        elif inner is not None and keyword in ONE_SCHEMA and depth > 0:
            made[keyword] = self.edited(inner, depth - 1)
        else:
            made[keyword] = self._argument(keyword, max(depth - 1, 0))
        return made

    def _argument(self, keyword: str, depth: int) -> Any:
        pick = self._random
        if keyword == "type":
            return pick.sample(_TYPES, pick.randint(1, 3))
        if keyword == "enum":
            return pick.sample(SCALARS, 2)
        if keyword == "const":
            return pick.choice(SCALARS)
        if keyword == "pattern":
            return pick.choice(["^a", "b$"])
        if keyword == "required":
            return pick.sample("abc", pick.randint(0, 2))
        if keyword == "dependentRequired":
            return {pick.choice("abc"): pick.sample("abc", 1)}
        if keyword == "uniqueItems":
            return pick.random() < 0.5
        if keyword in _SIMPLE:
            return pick.randint(1 if keyword == "multipleOf" else 0, 3)
        if keyword in ("allOf", "anyOf", "oneOf", "prefixItems"):
            return [self.schema(depth) for _ in range(pick.randint(1, 2))]
        if keyword in ("properties", "dependentSchemas"):
            return {name: self.schema(depth) for name in pick.sample("abc", pick.randint(1, 2))}
        if keyword == "patternProperties":
            return {name: self.schema(depth) for name in pick.sample("abc", 1)}
        return self.schema(depth)


_SIMPLE = sorted(
    words(
        "type enum const minimum maximum minLength maxLength pattern required minItems maxItems"
        " uniqueItems minProperties maxProperties dependentRequired multipleOf minContains"
    )
)
_KEYWORDS = [
    *_SIMPLE,
    *sorted(ONE_SCHEMA | LISTS_OF_SCHEMAS | NAMED_SCHEMAS),
    # Most schemas have these.
    *(3 * ["properties", "additionalProperties", "required"]),
]
# Few names and values, so that the parts of a schema concern the same values.
SCALARS: list[Any] = [None, True, 0, 1, 2, 0.5, "", "a", "ab"]
_INNER: list[Any] = [None, 1, "a", [], {"a": 1}]
VALUES: list[Any] = [
    *SCALARS,
    *([], [[]], [{}], [1, 1], ["a", 1], [1, "a", None], [0, 1, 2, "ab"]),
    *({name: one} for name in "abc" for one in SCALARS),
    *({"a": one, "b": other} for one in _INNER for other in _INNER),
    *({}, {"a": 1, "b": "a", "c": None}, {"b": 2, "c": "a"}, {"a": ["a", "a"]}, {"b": [1, {}]}),
]
_TYPES = ["null", "boolean", "integer", "number", "string", "array", "object"]


def test_a_compatible_change_refuses_no_value() -> None:
    made = Schemas(chosen_seed())
    compatible = 0
    for _ in range(extent(2_500, long=100_000)):
        old = made.schema()
        new = made.edited(old)
        old, new = ({"anyOf": [one]} if isinstance(one, bool) else one for one in (old, new))
        if first_narrowing(old, new) is not None:
            continue
        compatible += 1
        before, after = CompiledSchema(old), CompiledSchema(new)
        for value in VALUES:
            assert after.fits(value) or not before.fits(value), (old, new, value)
    assert compatible > 300


def test_the_cost_of_a_comparison_is_bounded() -> None:
    old = {"anyOf": [{"enum": [f"a{n}"], "minLength": 1} for n in range(330)]}
    new = {"anyOf": [{"enum": [f"b{n}"], "minLength": 2} for n in range(330)]}
    check_schema(old)
    began = time.process_time()
    assert first_narrowing(old, new) == "/anyOf"
    assert time.process_time() - began < 5


def test_the_parts_of_a_schema_are_counted_where_they_are_referred_to() -> None:
    doubled = {
        f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]}
        for n in range(10)
    }
    with pytest.raises(SchemaError, match="parts"):
        check_schema({"$defs": {**doubled, "d10": S}, "$ref": "#/$defs/d0"})
    chain = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(300)}
    with pytest.raises(SchemaError, match="levels"):
        check_schema({"$defs": {**chain, "d300": S}, "$ref": "#/$defs/d0"})
    nested: Any = S
    for _ in range(DEEPEST - 1):
        nested = {"items": nested}
    check_schema(nested)
    with pytest.raises(SchemaError, match="levels"):
        check_schema({"items": nested})
    # A definition that is within the limit by itself counts at the level of its reference.
    with pytest.raises(SchemaError, match="levels"):
        check_schema({"$defs": {"x": nested}, "items": {"$ref": "#/$defs/x"}})


def test_a_misfit_is_named_by_place_and_keyword() -> None:
    compiled = check_schema(
        {**closed(a=S, **{"b/~": {"items": I}}), "required": ["a"], "minProperties": 1}
    )
    assert compiled.misfit({"a": ""}) is None
    assert compiled.misfit({"b/~": []}) == Misfit("", "required", "a")
    assert compiled.misfit({"a": 5}) == Misfit("/a", "type")
    assert compiled.misfit({"a": "", "b/~": [1, "x"]}) == Misfit("/b~1~0/1", "type")
    assert compiled.misfit({"a": "", "c": 1}) == Misfit("", "additionalProperties")
