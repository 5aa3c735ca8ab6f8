"""JSON Schemas (draft 2020-12) of users: which are accepted, and whether a value fits one.

The cost of a check is bounded. A schema has at most `MOST_PARTS` parts after its references are
expanded, refers only to its own `$defs`, and is not recursive. Regular expressions run in linear
time. Keywords that the dialect does not define are refused, so that a misspelt one has an effect.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any, NamedTuple

import msgspec


def words(text: str) -> frozenset[str]:
    """The words of a text, such as the names of keywords."""
    return frozenset(text.split())


LARGEST = 16 * 1024
"""Bytes of the compact JSON text of a schema."""
MOST_PARTS = 1_000
"""Subschemas, required names and enumerated values, each counted where it is referred to."""
DEEPEST = 32
LONGEST_POINTER = 512
DIALECT = "https://json-schema.org/draft/2020-12/schema"
ANNOTATIONS = words(
    "title description default examples deprecated readOnly writeOnly format contentEncoding"
    " contentMediaType contentSchema $comment"
)
"""Keywords without an effect on the values that fit."""
ONE_SCHEMA = words(
    "additionalProperties propertyNames items contains not if then else unevaluatedItems"
    " unevaluatedProperties"
)
LISTS_OF_SCHEMAS = words("allOf anyOf oneOf prefixItems")
NAMED_SCHEMAS = words("properties patternProperties dependentSchemas")
_COUNTED = words("enum required dependentRequired")
_SIMPLE = words(
    "type const minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength"
    " pattern minItems maxItems uniqueItems minContains maxContains minProperties maxProperties"
    " $ref"
)
_KNOWN = ANNOTATIONS | ONE_SCHEMA | LISTS_OF_SCHEMAS | NAMED_SCHEMAS | _COUNTED | _SIMPLE
_REFERENCE = "#/$defs/"
_PATTERN_BYTES = 100_000
"""The largest compiled regular expression."""
Path = tuple[Any, ...]
_encode = msgspec.json.Encoder(order="deterministic").encode


class SchemaError(ValueError):
    """A schema is not accepted. The message names the place in the schema, and no value."""


class ValidatorMissingError(Exception):
    """The optional package that checks values is not installed."""


class Misfit(NamedTuple):
    """The first place where a value does not fit a schema.

    pointer: a JSON Pointer into the value, "" for the whole value
    keyword: the keyword of the schema that the value violates
    missing: the name of the missing property if the keyword is `required`
    """

    pointer: str
    keyword: str
    missing: str | None = None


class CompiledSchema:
    """A schema that values are checked against.

    document: a schema that `check_schema` has accepted
    Raises SchemaError, and ValidatorMissingError if `jsonschema_rs` is not installed.
    """

    __slots__ = ("_library", "_validator")

    def __init__(self, document: dict[str, Any]) -> None:
        self._library = _load()
        options = self._library.RegexOptions(size_limit=_PATTERN_BYTES)
        try:
            self._validator = self._library.Draft202012Validator(document, pattern_options=options)
        except self._library.ValidationError as error:
            raise SchemaError(_message_at("is not a valid schema", error.instance_path)) from None

    def fits(self, value: Any) -> bool:
        """Whether a value fits."""
        return bool(self._validator.is_valid(value))

    def misfit(self, value: Any) -> Misfit | None:
        """The first place where a value does not fit; None if it fits."""
        if self._validator.is_valid(value):
            return None
        try:
            self._validator.validate(value)
        except self._library.ValidationError as error:
            keyword = next((str(one) for one in reversed(error.schema_path) if one in _KNOWN), "")
            missing = error.kind.property if keyword == "required" else None
            return Misfit(pointer_to(error.instance_path)[:LONGEST_POINTER], keyword, missing)
        return None


def check_schema(document: dict[str, Any]) -> CompiledSchema:
    """The compiled form of a schema of a user.

    Raises SchemaError for an invalid schema and for one beyond the limits, and
    ValidatorMissingError.
    """
    size = len(_encode(document))
    if size > LARGEST:
        raise SchemaError(f"`schema` has {size} bytes, at most {LARGEST} are allowed")
    library = _load()
    try:
        library.meta.validate({"$schema": DIALECT, **document})
    except (library.ValidationError, library.ReferencingError) as error:
        path = getattr(error, "instance_path", ())
        raise SchemaError(_message_at("is not a valid schema", path)) from None
    if document.get("$schema", DIALECT) != DIALECT:
        raise SchemaError(f"`/$schema` of `schema` must be {DIALECT}, or left out")
    parts = _Counter(document.get("$defs", {})).count_root(document)
    if parts > MOST_PARTS:
        raise SchemaError(f"`schema` has {parts} parts, at most {MOST_PARTS} are allowed")
    return CompiledSchema(document)


def pointer_to(path: Any) -> str:
    """A JSON Pointer (RFC 6901)."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def referred_name(reference: str) -> str:
    """The name in `$defs` that a reference names; other references were refused."""
    return reference.removeprefix(_REFERENCE).replace("~1", "/").replace("~0", "~")


def subschemas(keyword: str, argument: Any) -> Iterator[tuple[Path, Any]]:
    """The subschemas of a keyword, each with its path."""
    if keyword in ONE_SCHEMA:
        yield (keyword,), argument
    elif keyword in LISTS_OF_SCHEMAS:
        yield from (((keyword, place), one) for place, one in enumerate(argument))
    elif keyword in NAMED_SCHEMAS:
        yield from (((keyword, name), one) for name, one in argument.items())


class _Size(NamedTuple):
    """The size of a schema with its references expanded: its parts and its levels."""

    parts: int
    levels: int


class _Counter:
    """Measures a schema, and refuses keywords and references."""

    def __init__(self, definitions: dict[str, Any]) -> None:
        self._definitions = definitions
        self._known: dict[str, _Size] = {}

    def count_root(self, document: dict[str, Any]) -> int:
        """The parts of the whole schema."""
        for name in self._definitions:
            self._of_definition(name, ("$defs", name), ())
        own = {key: one for key, one in document.items() if key not in ("$schema", "$defs")}
        return self._measure(own, (), ()).parts + len(self._definitions)

    def _measure(self, schema: Any, path: Path, within: tuple[str, ...], level: int = 1) -> _Size:
        """The size of a schema at a level, counted through references."""
        if level > DEEPEST:
            raise SchemaError(f"`schema` is nested deeper than {DEEPEST} levels")
        if isinstance(schema, bool):
            return _Size(1, 1)
        parts, levels = 1, 1
        for keyword, argument in schema.items():
            if keyword not in _KNOWN:
                raise SchemaError(
                    _message_at("is not a keyword that is supported", (*path, keyword))
                )
            if keyword in _COUNTED:
                parts += len(argument)
            inner = [
                self._measure(one, (*path, *steps), within, level + 1)
                for steps, one in subschemas(keyword, argument)
            ]
            if keyword == "$ref":
                inner.append(self._of_reference(argument, (*path, keyword), within, level))
            parts += sum(one.parts for one in inner)
            levels = max(levels, *(1 + one.levels for one in inner), 1)
        return _Size(parts, levels)

    def _of_reference(
        self, reference: str, path: Path, within: tuple[str, ...], level: int
    ) -> _Size:
        name = referred_name(reference)
        if not reference.startswith(_REFERENCE) or name not in self._definitions:
            raise SchemaError(_message_at(f"must be `{_REFERENCE}` and a name in `$defs`", path))
        if name in within:
            raise SchemaError(_message_at("is recursive, which is not supported", path))
        return self._of_definition(name, path, within, level + 1)

    def _of_definition(
        self, name: str, path: Path, within: tuple[str, ...], level: int = 1
    ) -> _Size:
        size = self._known.get(name)
        if size is None:
            inner = self._definitions[name]
            size = self._measure(inner, ("$defs", name), (*within, name), level)
            self._known[name] = size
        if level + size.levels > DEEPEST + 1:
            raise SchemaError(f"`schema` is nested deeper than {DEEPEST} levels")
        return size


def _message_at(what: str, path: Any) -> str:
    return f"`{pointer_to(path)[:LONGEST_POINTER]}` of `schema` {what}"


def _load() -> Any:
    """The module that checks values, which is imported only where a namespace has a schema."""
    try:
        return import_module("jsonschema_rs")
    except ImportError:
        raise ValidatorMissingError from None
