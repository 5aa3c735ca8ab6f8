"""Facts, the entities that they are about, and the ontologies that they fit (memory wall, 11.5)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal, TypeAlias
from unicodedata import normalize

import msgspec
from msgspec import Meta

from memorywall.kinds.episodes import plain_text
from memorywall.kinds.indexed import IndexedField
from memorywall.kinds.spec import Edge, KindSpec, Lookup
from memorywall.records.tier import Tier
from memorywall.records.validity import instant_of_field

ALIAS_OF: Final = "alias_of"
"""The relation between an entity that is only another name, and the entity that it names."""
FOREVER: Final = "~"
"""The end of a validity without one, which is after every instant in the stored form."""
_LONGEST_NODE = 80
_LONGEST_CLASS = 64
_DAY = 10
"""The characters of a date at the beginning of an instant."""

Literals: TypeAlias = str | bool | int | float
"""The values of objects and attributes."""
Name = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]
TypeName = Annotated[
    str, Meta(min_length=1, max_length=_LONGEST_CLASS, pattern=r"^[^\x00-\x1f\x7f]+$")
]
"""The name of a class of entities or of a relation."""
Attributes = Annotated[
    dict[TypeName, Literals],
    Meta(max_length=64, description="Its attributes: texts, numbers and truth values by name."),
]
LiteralType = Literal["text", "number", "date", "boolean"]
"""The types of literals. A date is a date, or an RFC 3339 instant."""


class Entity(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True,
             forbid_unknown_fields=True):  # fmt: skip
    """A thing that facts are about, such as a person or a service."""

    name: Annotated[Name, Meta(description="The name by which facts name it.")]
    entity_class: Annotated[
        TypeName | None, Meta(description="Its class, a type of the ontology; default: none.")
    ] = msgspec.field(default=None, name="class")
    aliases: Annotated[
        tuple[Name, ...], Meta(max_length=32, description="Its other names; default: none.")
    ] = ()
    attributes: Attributes = {}
    alias_of: Annotated[
        str | None,
        Meta(
            description="The id of the entity that this name is an alias of. Such an entry is no"
            " entity of its own, and deleting it takes the alias back."
        ),
    ] = None
    ontology_version: Annotated[
        str | None, Meta(description="The version of the ontology that it fits; set by the server.")
    ] = None


class Fact(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True,
           forbid_unknown_fields=True):  # fmt: skip
    """A statement that is valid for a time: a subject has a relation to an object."""

    subject: Annotated[
        Name | None, Meta(description="The name of an entity; needed without `subject_id`.")
    ] = None
    subject_id: Annotated[str | None, Meta(description="The id of an entity.")] = None
    relation: Annotated[TypeName, Meta(description="Such as `lives_in`.")]
    object: Annotated[
        Annotated[str, Meta(max_length=4_000)] | bool | int | float | None,
        Meta(description="The name of an entity, or a literal; needed without `object_id`."),
    ] = None
    object_id: Annotated[str | None, Meta(description="The id of an entity.")] = None
    attributes: Attributes = {}
    confidence: Annotated[
        float, Meta(ge=0, le=1, description="The trust in it, from 0 to 1; default: 1.")
    ] = 1.0
    evidence_count: Annotated[
        int, Meta(ge=0, le=2**31, description="How many observations support it; default: 0.")
    ] = 0
    valid_from: Annotated[
        str | None, Meta(description="The instant or date from which it holds; null: always.")
    ] = None
    valid_until: Annotated[
        str | None,
        Meta(
            description="The first instant at which it no longer holds, or the last date on which"
            " it does; null: without end."
        ),
    ] = None
    ontology_version: Annotated[
        str | None, Meta(description="The version of the ontology that it fits; set by the server.")
    ] = None

    def __post_init__(self) -> None:
        if not ((self.subject or "").strip() or self.subject_id):
            raise ValueError("give `subject` or `subject_id`")
        if self.object_id is None and (
            self.object is None or (isinstance(self.object, str) and not self.object.strip())
        ):
            raise ValueError("give `object` or `object_id`")

    @property
    def subject_node(self) -> str:
        """The node of the subject, see `node_of`."""
        return node_of_id(self.subject_id) if self.subject_id else node_of(self.subject or "")

    @property
    def object_node(self) -> str:
        """The node of the object, see `node_of`."""
        if self.object_id is not None or self.object is None:
            return node_of_id(self.object_id or "")
        return node_of(self.object)

    @property
    def subject_name(self) -> str:
        """The name of the subject; without it, the id of its entity."""
        return self.subject if self.subject is not None else self.subject_id or ""

    @property
    def object_name(self) -> Literals:
        """The name of the object, or the literal; without it, the id of its entity."""
        return self.object if self.object is not None else self.object_id or ""

    @property
    def end(self) -> str:
        """The end of its validity, in the order of time."""
        return self.valid_until or FOREVER


def node_of_id(entity_id: str) -> str:
    """Returns the node of an entity."""
    return f"@{entity_id}"


def node_of(literal: Literals) -> str:
    """Returns the node of a name or literal. Equal ones have the same node: names in any case,
    numbers with the same value, and dates for the same instant."""
    if isinstance(literal, str) and (instant := instant_of(literal)) is not None:
        return f"i{instant}"
    if not isinstance(literal, str):
        return f"b{int(literal)}" if isinstance(literal, bool) else f"n{number_of(literal)!r}"
    normalized = _normalize_name(literal)
    if len(normalized) > _LONGEST_NODE:
        normalized = hashlib.sha256(normalized.encode()).hexdigest()
        return f"#{normalized}"
    return f"={normalized}"


def number_of(literal: float) -> float:
    """Returns the number by which numbers are compared."""
    try:
        # `-0.0` equals 0.
        return float(literal) or 0.0
    except OverflowError:
        return float("inf") if literal > 0 else float("-inf")


def _normalize_name(name: str) -> str:
    """Returns the form in which names are compared: of the normal form NFKC, without upper case."""
    return " ".join(normalize("NFKC", name).casefold().split())


def instant_of(text: str) -> str | None:
    """Returns the instant of a text that is one, or of a date its beginning in UTC, in the stored
    form; None for any other text."""
    return instant_of_field("", text) if text[:4].isdigit() else None


def _entity_edges(value: Any) -> Iterator[Edge]:
    if value.alias_of is not None:
        yield Edge(ALIAS_OF, value.alias_of, is_id=True)


def _entity_lookups(value: Any) -> Iterator[Lookup]:
    for name in (value.name, *value.aliases):
        yield Lookup("name", (node_of(name),))
    if value.entity_class is not None:
        yield Lookup("class", (value.entity_class,))


def _entity_text(value: Any) -> str:
    names = " ".join((value.name, *value.aliases))
    parts = [names if value.entity_class is None else f"{names}: {value.entity_class}"]
    return _with_attributes(parts, value)


def _fact_edges(value: Any) -> Iterator[Edge]:
    for relation, target in (("subject", value.subject_id), ("object", value.object_id)):
        if target is not None:
            yield Edge(relation, target, is_id=True)


def _fact_lookups(value: Any) -> Iterator[Lookup]:
    yield Lookup("subject", (value.subject_node, value.relation, value.end))
    yield Lookup("object", (value.object_node, value.relation, value.end))
    yield Lookup("relation", (value.relation, value.end))


def _fact_text(value: Any) -> str:
    said = (value.subject, value.relation.replace("_", " "), value.object)
    return _with_attributes([" ".join(str(one) for one in said if one is not None)], value)


def _fact_line(value: Any) -> str:
    said = (value.subject_name, value.relation.replace("_", " "), plain_text(value.object_name))
    line = " ".join(said)
    if value.attributes:
        line += f"; {plain_text(value.attributes)}"
    limits = [
        f"{word} {instant[:_DAY]}"
        for word, instant in (("since", value.valid_from), ("until", value.valid_until))
        if instant
    ]
    return f"{line} ({', '.join(limits)})" if limits else line


def _with_attributes(parts: list[str], value: Any) -> str:
    parts += (f"{name.replace('_', ' ')}: {one}" for name, one in value.attributes.items())
    return "\n".join(parts)


class AttributeType(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True,
                    forbid_unknown_fields=True):  # fmt: skip
    """An attribute of a type."""

    type: Annotated[LiteralType, Meta(description="The type of its values.")]
    required: Annotated[
        bool, Meta(description="Whether each has the attribute; default: false.")
    ] = False  # fmt: skip


class EntityType(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True,
                 forbid_unknown_fields=True):  # fmt: skip
    """A class of entities."""

    parent: Annotated[
        str | None, Meta(description="The class whose attributes it has as well; default: none.")
    ] = None
    attributes: Annotated[
        dict[TypeName, AttributeType],
        Meta(max_length=64, description="The attributes by name; default: none."),
    ] = {}


class RelationType(EntityType, frozen=True, kw_only=True, omit_defaults=True,
                   forbid_unknown_fields=True):  # fmt: skip
    """A relation. It inherits attributes from its parent, and what it leaves out of `domain` and
    `range`."""

    domain: Annotated[
        str | None, Meta(description="The class of its subjects; default: any.")
    ] = None  # fmt: skip
    range: Annotated[
        str | None,
        Meta(
            description="The class of its objects, or `text`, `number`, `date` or `boolean`;"
            " default: any."
        ),
    ] = None
    functional: Annotated[
        bool, Meta(description="Whether a subject has one object at a time; default: false.")
    ] = False


class MigrationStep(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True,
                    forbid_unknown_fields=True):  # fmt: skip
    """A step of the migration from the previous major version. It changes a class, a relation, or
    with `attribute` one of its attributes. Of a relation `retype` and `map` change the objects."""

    action: Annotated[
        Literal["rename", "retype", "map", "drop"], Meta(description="What changes.")
    ]  # fmt: skip
    entity_type: Annotated[str | None, Meta(description="The class that changes.")] = None
    relation: Annotated[str | None, Meta(description="Or the relation that changes.")] = None
    attribute: Annotated[str | None, Meta(description="The attribute that changes.")] = None
    to: Annotated[
        str | None, Meta(description="The new name for `rename`, the new type for `retype`.")
    ] = None
    values: Annotated[
        dict[str, Literals], Meta(description="For `map`: new values by the text of the old ones.")
    ] = {}

    def __post_init__(self) -> None:
        if (self.entity_type is None) == (self.relation is None):
            raise ValueError("a step names either `entity_type` or `relation`")
        if (self.to is None) == (self.action in ("rename", "retype")):
            raise ValueError("`to` belongs to the steps `rename` and `retype`, which need it")
        if bool(self.values) != (self.action == "map"):
            raise ValueError("`values` belongs to the step `map`, which needs it")
        has_values = self.attribute is not None or self.relation is not None
        if self.action in ("retype", "map") and not has_values:
            raise ValueError(f"the step `{self.action}` of a class needs `attribute`")


class Ontology(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True,
               forbid_unknown_fields=True):  # fmt: skip
    """The types of entities and relations of a namespace. Its key is `ontology`."""

    version: Annotated[
        str,
        Meta(
            pattern=r"^(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})$",
            description="By Semantic Versioning: what may break facts needs a new major version.",
        ),
    ]
    entity_types: Annotated[
        dict[TypeName, EntityType],
        Meta(max_length=1_000, description="The classes by name; default: none."),
    ] = {}
    relation_types: Annotated[
        dict[TypeName, RelationType],
        Meta(max_length=1_000, description="The relations by name; default: none."),
    ] = {}
    migration: Annotated[
        tuple[MigrationStep, ...],
        Meta(max_length=256, description="The steps from the previous major version."),
    ] = ()
    migrated: Annotated[
        bool, Meta(description="Whether all facts have been migrated; set by the server.")
    ] = True


_VERSION = "value.ontology_version"

FACT_KINDS: tuple[KindSpec, ...] = (
    KindSpec(
        name="entity",
        schema=Entity,
        description="A thing that facts are about, with its names and attributes.",
        tier=Tier.SEMANTIC,
        text=_entity_text,
        edges=_entity_edges,
        lookups=_entity_lookups,
        indexed=(IndexedField(_VERSION, since=1),),
    ),
    KindSpec(
        name="fact",
        schema=Fact,
        description="A statement about an entity that is valid for a time.",
        tier=Tier.SEMANTIC,
        text=_fact_text,
        line=_fact_line,
        edges=_fact_edges,
        lookups=_fact_lookups,
        indexed=(
            IndexedField("value.valid_from", since=1, is_instant=True),
            IndexedField("value.valid_until", since=1, is_instant=True),
            IndexedField(_VERSION, since=1),
        ),
    ),
    KindSpec(
        name="ontology",
        schema=Ontology,
        description="The types of the entities and facts of a namespace.",
        tier=Tier.SEMANTIC,
        is_searchable=False,
        statuses=("current", "migrating"),
        status=lambda value: "current" if value.migrated else "migrating",
        # At once: the job that migrates asks for what is due.
        due=lambda value: None if value.migrated else "1970-01-01T00:00:00.000Z",
    ),
)
ENTITY, FACT, ONTOLOGY = FACT_KINDS
