"""The table of kinds; checks, reads and upgrades values."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from memorywall.kinds.contexts import CONTEXT_KINDS
from memorywall.kinds.episodes import EPISODE_KINDS
from memorywall.kinds.facts import FACT_KINDS
from memorywall.kinds.indexed import store_instants
from memorywall.kinds.lessons import LESSONS
from memorywall.kinds.openwop import OPENWOP_KINDS
from memorywall.kinds.promotions import PROMOTION_KINDS
from memorywall.kinds.sessions import SESSION_KINDS
from memorywall.kinds.spec import RESERVED_RELATIONS, Edge, KindSpec, Lookup
from memorywall.kinds.working_memory import WORKING_KINDS
from memorywall.records.argument_names import unknown_names
from memorywall.records.clock import parse_instant
from memorywall.records.struct_errors import explain
from memorywall.records.tier import Tier

KINDS: dict[str, KindSpec] = {
    spec.name: spec
    for spec in (
        *LESSONS,
        *SESSION_KINDS,
        *WORKING_KINDS,
        *CONTEXT_KINDS,
        *PROMOTION_KINDS,
        *EPISODE_KINDS,
        *OPENWOP_KINDS,
        *FACT_KINDS,
    )
}
"""Every kind by its name."""

LONGEST_TARGET = 512
MOST_EDGES = 256


class KindError(ValueError):
    """A value does not fit its kind. The message names fields and repeats no value."""


@contextmanager
def register_kind(spec: KindSpec) -> Iterator[None]:
    """Adds a kind for as long as the context lasts. For tests, and for programs that bring a kind
    of their own; raises ValueError when the name is taken."""
    if spec.name in KINDS:
        raise ValueError(f"there is a kind {spec.name} already")
    KINDS[spec.name] = spec
    try:
        yield
    finally:
        del KINDS[spec.name]


class Derived(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The fields that the server derives from a value.

    due_at: an instant in the stored form
    """

    status: str | None = None
    edges: tuple[Edge, ...] = ()
    lookups: tuple[Lookup, ...] = ()
    due_at: str | None = None
    listed: bool = True


NOTHING_DERIVED = Derived()


def derive(kind: str | None, value: Any) -> Derived:
    """The derived fields of a value.

    value: the struct that `check` or `read` has returned
    Raises KindError when the kind's own functions return what cannot be stored.
    """
    if kind is None:
        return NOTHING_DERIVED
    spec = KINDS[kind]
    edges = tuple(dict.fromkeys(Edge(*edge) for edge in spec.edges(value)))
    if len(edges) > MOST_EDGES:
        raise KindError(f"the value points at {len(edges)} targets, at most {MOST_EDGES}")
    for edge in edges:
        if edge.relation in RESERVED_RELATIONS or not edge.relation.isidentifier():
            raise KindError(f"a kind must not derive the relation `{edge.relation[:64]}`")
        if not 0 < len(edge.target) <= LONGEST_TARGET or "\0" in edge.target:
            raise KindError(f"the target of `{edge.relation}` must have 1 to {LONGEST_TARGET}"
                            " characters")  # fmt: skip
    status, due = spec.status(value), spec.due(value)
    if status is not None and status not in spec.statuses:
        raise KindError(f"the status must be one of: {', '.join(spec.statuses)}")
    try:
        due_at = None if due is None else parse_instant(due)
    except ValueError:
        raise KindError("the instant at which it is due is no RFC 3339 instant") from None
    return Derived(
        status=status,
        edges=edges,
        lookups=tuple(dict.fromkeys(spec.lookups(value))),
        due_at=due_at,
        listed=spec.listed,
    )


def spec_of(name: str | None) -> KindSpec | None:
    """The kind with this name; None for free JSON and for a kind that this server does not know."""
    return None if name is None else KINDS.get(name)


def find_kind(name: str) -> KindSpec:
    """The kind with this name. Raises KindError."""
    spec = KINDS.get(name)
    if spec is None:
        raise KindError("`kind` names no kind that this server knows")
    return spec


def check(name: str, tier: Tier, value: dict[str, Any]) -> Any:
    """The value of an entry to be written, as the struct of its kind.

    name: the kind
    value: the value as JSON
    Raises KindError for a kind that is not known or lives in another tier, and for a value that
    does not fit the schema; it names every unknown field, or the first field that does not fit.
    """
    spec = find_kind(name)
    if spec.tier is not None and spec.tier is not tier:
        raise KindError(f"an entry of kind `{name}` must have memory_type `{spec.tier}`")
    found = convert(spec, value)
    _, wrong = store_instants(spec.indexed, value)
    if wrong:
        names = ", ".join(f"`{path}`" for path in wrong)
        raise KindError(f"dates, RFC 3339 instants with an offset, or null, must be in: {names}")
    return found


def convert(spec: KindSpec, value: dict[str, Any]) -> Any:
    """A value as the struct of a kind. Raises KindError."""
    try:
        return msgspec.convert(value, spec.schema, strict=True)
    except msgspec.ValidationError as error:
        unknown = sorted(set(value) - _fields(spec))
        if unknown:
            shown = [f"value.{name}" for name in unknown]
            raise KindError(unknown_names("fields", shown, _fields(spec))) from None
        text = explain(error, spec.schema, inside="value")
        raise KindError(f"the value does not fit kind `{spec.name}`: {text}") from None


def read(name: str | None, version: int, value: dict[str, Any]) -> Any:
    """The value of a stored entry as the struct of its kind at its present version.

    name: the kind the entry was stored with; None for free JSON
    version: the version of the kind it was stored with
    Returns None for free JSON, for a kind or version that this server does not know, and for a
    value that does not fit. Free JSON whose `type` names a lesson is read as that lesson, whatever
    other fields it has.
    """
    if name is not None:
        spec = KINDS.get(name)
        if spec is None or not 1 <= version <= spec.version:
            return None
        value = upgrade(spec, version, value)
    else:
        spec = lesson_of(value)
        if spec is None:
            return None
        known = _fields(spec)
        value = {field: part for field, part in value.items() if field in known}
    try:
        return msgspec.convert(value, spec.schema, strict=True)
    except msgspec.ValidationError:
        return None


def text_of(name: str | None, version: int, value: dict[str, Any]) -> str | None:
    """Returns the text of a stored entry, as its kind defines it; None for free JSON and for what
    `read` does not know."""
    spec = spec_of(name)
    found = None if spec is None else read(name, version, value)
    return None if spec is None or found is None else spec.text(found)


def line_of(name: str | None, version: int, value: dict[str, Any]) -> str | None:
    """Returns what people and models are shown of a stored entry of a kind; None like `text_of`."""
    spec = spec_of(name)
    found = None if spec is None else read(name, version, value)
    return None if spec is None or found is None else spec.show(found)


def lesson_of(value: dict[str, Any]) -> KindSpec | None:
    """The lesson that the `type` of free JSON names, None for none."""
    name = value.get("type")
    if not isinstance(name, str):
        return None
    return next((spec for spec in LESSONS if spec.name == name), None)


def upgrade(spec: KindSpec, version: int, value: dict[str, Any]) -> dict[str, Any]:
    """A value of an older version, upgraded to the present version."""
    for older in range(version, spec.version):
        value = spec.upgrades[older](value)
    return value


def _fields(spec: KindSpec) -> frozenset[str]:
    return frozenset(spec.schema.__struct_encode_fields__)


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
