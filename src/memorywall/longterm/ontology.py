"""Ontologies: hierarchies of types, what fits them, and what a new version may change.

Sources: memory wall, 11.5.2; Semantic Versioning 2.0.0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, NoReturn, TypeVar, get_args

import msgspec
from msgspec.structs import replace

from memorywall.kinds.facts import (
    AttributeType,
    Entity,
    EntityType,
    Fact,
    Literals,
    LiteralType,
    MigrationStep,
    Ontology,
    RelationType,
    instant_of,
)
from memorywall.records.entry import SEALED_SENSITIVITIES, Entry
from memorywall.records.errors import ValidationError
from memorywall.records.feature_errors import RuleError

ONTOLOGY_KEY: Final = "ontology"
"""The key of the ontology of a namespace."""
IS_A: Final = "is_a"
"""The relation of a pattern that is true for an entity and each of its classes."""
NO_ONTOLOGY: Final = Ontology(version="0.0.0")
MOST_LEVELS: Final = 16
"""The most levels of a hierarchy of types."""
_LITERALS = frozenset(get_args(LiteralType))
Type = TypeVar("Type", bound=EntityType)
Stored = TypeVar("Stored", bound=Entity | Fact)

_decode = msgspec.json.Decoder(Ontology).decode
_decode_once = lru_cache(maxsize=64)(_decode)


def decode_ontology(entry: Entry) -> Ontology:
    """Returns the ontology of an entry.

    entry: with its value in clear text
    """
    # What is sealed must not stay in memory, where no erasure of its key would reach it.
    is_sealed = entry.sensitivity in SEALED_SENSITIVITIES
    return _decode(entry.value) if is_sealed else _decode_once(entry.value)


def ancestors(types: Mapping[str, EntityType], name: str) -> list[str]:
    """Returns a type and the types above it, from the lowest. Ends at an unknown type, at one that
    it has passed, and after one more than `MOST_LEVELS`."""
    found: list[str] = []
    step: str | None = name
    while step is not None and step not in found and len(found) <= MOST_LEVELS:
        found.append(step)
        known = types.get(step)
        step = None if known is None else known.parent
    return found


def descendants(types: Mapping[str, EntityType], name: str) -> list[str]:
    """Returns a type and the types below it."""
    children: dict[str | None, list[str]] = {}
    for one, known in types.items():
        children.setdefault(known.parent, []).append(one)
    found = [name]
    for one in found:
        found += (child for child in children.get(one, ()) if child != name)
    return found


def _lineage(types: Mapping[str, Type], name: str) -> list[Type]:
    """Returns a type and the types above it like `ancestors`, without an unknown one."""
    return [types[one] for one in ancestors(types, name) if one in types]


def _inherited_attributes(lineage: Sequence[EntityType]) -> dict[str, AttributeType]:
    return {key: one for each in reversed(lineage) for key, one in each.attributes.items()}


def _relation_of_fact(ontology: Ontology, name: str) -> RelationType:
    """Returns a relation with what it inherits. Raises RuleError for an unknown relation."""
    types = ontology.relation_types
    if name not in types:
        refuse("unknown_relation", "the ontology has no relation of the name in `value.relation`")
    lineage = _lineage(types, name)
    return RelationType(
        attributes=_inherited_attributes(lineage),
        domain=next((one.domain for one in lineage if one.domain is not None), None),
        range=next((one.range for one in lineage if one.range is not None), None),
    )


def same_key(ontology: Ontology, relation: str) -> list[str]:
    """Returns the relations of which a subject has one object at a time, together with `relation`;
    none for a relation that is not functional."""
    types = ontology.relation_types
    roots = [one for one in ancestors(types, relation) if one in types and types[one].functional]
    return descendants(types, roots[-1]) if roots else []


def check_entity(ontology: Ontology, entity: Entity) -> None:
    """Raises RuleError for an entity that does not fit."""
    types = ontology.entity_types
    if entity.alias_of is not None:
        return
    if entity.entity_class is None or entity.entity_class not in types:
        refuse("unknown_class", "`value.class` must name a class of the ontology")
    lineage = _lineage(types, entity.entity_class)
    _check_attributes(_inherited_attributes(lineage), entity.attributes)


def check_fact(
    ontology: Ontology, fact: Fact, subject_class: str | None, object_class: str | None
) -> None:
    """Raises RuleError for a fact that does not fit.

    subject_class, object_class: the classes of the entities; None for what is no entity
    """
    relation = _relation_of_fact(ontology, fact.relation)
    _check_attributes(relation.attributes, fact.attributes)
    if relation.domain is not None and not _is_a(ontology, subject_class, relation.domain):
        refuse(
            "domain",
            f"the subject of this relation must be an entity of class `{relation.domain}`; create"
            " the entity first, or name it by `subject_id` if several have the name",
        )
    if relation.range is None:
        return
    if relation.range in _LITERALS:
        if fact.object is None or fact.object_id or not has_type(fact.object, relation.range):
            refuse("range", f"`value.object` must be of the type `{relation.range}`")
    elif not _is_a(ontology, object_class, relation.range):
        refuse(
            "range",
            f"the object of this relation must be an entity of class `{relation.range}`; create"
            " the entity first, or name it by `object_id` if several have the name",
        )


def _is_a(ontology: Ontology, name: str | None, wanted: str) -> bool:
    return name is not None and wanted in ancestors(ontology.entity_types, name)


def _check_attributes(allowed: Mapping[str, AttributeType], given: Mapping[str, Literals]) -> None:
    for name, value in given.items():
        if name not in allowed:
            refuse("attributes", "the ontology does not have each name in `value.attributes`")
        wanted = allowed[name].type
        if not has_type(value, wanted):
            refuse("attributes", f"`value.attributes.{name}` must be of the type `{wanted}`")
    for name, one in allowed.items():
        if one.required and name not in given:
            refuse("attributes", f"`value.attributes.{name}` is required")


def has_type(value: Literals, wanted: str) -> bool:
    """Returns whether a literal has a type of `LiteralType`."""
    if isinstance(value, bool):
        return wanted == "boolean"
    if isinstance(value, int | float):
        return wanted == "number"
    return wanted == "text" or (wanted == "date" and instant_of(value) is not None)


def refuse(rule: str, detail: str) -> NoReturn:
    """Raises RuleError."""
    raise RuleError(f"{detail} (rule `{rule}`)", rule=rule)


# Versions


def _check_types(ontology: Ontology) -> None:
    for field in ("entity_types", "relation_types"):
        types: Mapping[str, EntityType] = getattr(ontology, field)
        for name, one in types.items():
            if one.parent is not None and one.parent not in types:
                raise ValidationError(f"`value.{field}`: each `parent` must be one of the types")
            if one.parent is not None and name in ancestors(types, one.parent):
                raise ValidationError(f"`value.{field}`: no type may be its own ancestor")
            if len(ancestors(types, name)) > MOST_LEVELS:
                raise ValidationError(f"`value.{field}` has more than {MOST_LEVELS} levels")
    classes = ontology.entity_types
    if not _LITERALS.isdisjoint(classes):
        raise ValidationError("`value.entity_types` must not have a name of a literal type")
    if IS_A in ontology.relation_types:
        raise ValidationError(f"`value.relation_types` must not have the name `{IS_A}`")
    for relation in ontology.relation_types.values():
        if relation.domain is not None and relation.domain not in classes:
            raise ValidationError("`domain` of a relation must name a class of the ontology")
        if relation.range is not None and relation.range not in {*classes, *_LITERALS}:
            raise ValidationError("`range` of a relation must name a class or a literal type")


def next_version(old: Ontology, new: Ontology) -> Ontology:
    """Returns the new version of an ontology as it is stored: with a migration that has not run for
    a new major version, without steps for the first one.

    old: `NO_ONTOLOGY` for the first one

    Raises ValidationError for types that do not fit each other, and RuleError for a version that is
    not greater, or too small for the changes; for a new major version that has no migration, or
    leaves out a type that is gone, or follows one whose migration still runs.
    """
    _check_types(new)
    if old is NO_ONTOLOGY:
        return replace(new, migration=(), migrated=True)
    before, after = version_of(old.version), version_of(new.version)
    if replace(new, migration=(), migrated=True) == replace(old, migration=(), migrated=True):
        return old
    if after <= before:
        refuse("ontology_version", "`value.version` must be greater than that of the ontology")
    breaking = next(_breaking(old, new), None)
    if after[0] == before[0]:
        if breaking is not None:
            refuse(
                "breaking_ontology",
                f"{breaking}, which may break facts; raise the major version and declare"
                " `migration`",
            )
        if after[1] == before[1] and old != replace(new, version=old.version, migration=()):
            refuse("ontology_version", "new types and attributes need a new minor version")
        return replace(new, migration=old.migration, migrated=old.migrated)
    if not old.migrated:
        refuse("migration_pending", "the facts are still being migrated to the present version")
    if after[0] != before[0] + 1:
        refuse("ontology_version", "`value.version` must raise the major version by 1")
    if not new.migration:
        refuse("migration", "a new major version needs `migration`: the steps that facts take")
    for field, name in _removed(old, new):
        if name not in {getattr(step, field) for step in new.migration if step.attribute is None}:
            refuse("migration", "`value.migration` must have a step for each type that is gone")
    return replace(new, migrated=False)


def version_of(text: str | None) -> tuple[int, ...]:
    """Returns the numbers of a version; zeros for none."""
    return (0, 0, 0) if text is None else tuple(map(int, text.split(".")))


def _removed(old: Ontology, new: Ontology) -> Iterator[tuple[str, str]]:
    yield from (("entity_type", name) for name in old.entity_types.keys() - new.entity_types)
    yield from (("relation", name) for name in old.relation_types.keys() - new.relation_types)


def _breaking(old: Ontology, new: Ontology) -> Iterator[str]:
    """Yields what may break facts that fit the old version."""
    if any(_removed(old, new)):
        yield "a type is gone"
    yield from _changed(old.entity_types, new.entity_types)
    yield from _changed(old.relation_types, new.relation_types)


def _changed(old: Mapping[str, Type], new: Mapping[str, Type]) -> Iterator[str]:
    for name, one in old.items():
        other = new.get(name)
        if other is None:
            continue
        if replace(one, attributes={}) != replace(other, attributes={}):
            yield f"the type `{name}` changes its parent, domain, range or `functional`"
        if any(other.attributes.get(key) != value for key, value in one.attributes.items()):
            yield f"an attribute of the type `{name}` changes or is gone"
        if any(other.attributes[key].required for key in other.attributes.keys() - one.attributes):
            yield f"the type `{name}` has a new required attribute"


# Steps of a migration


def migrate(ontology: Ontology, value: Stored) -> Stored | None:
    """Returns an entity or a fact after the steps of the migration; None if it is dropped. One of
    the present major version stays as it is.

    A value that a step cannot convert stays as it is, and does not fit the ontology.
    """
    if version_of(value.ontology_version)[0] >= version_of(ontology.version)[0]:
        return value
    changed: Stored | None = value
    for step in ontology.migration:
        if changed is None:
            break
        changed = _take_step(ontology, step, changed)
    return None if changed is None else replace(changed, ontology_version=ontology.version)


def _take_step(ontology: Ontology, step: MigrationStep, value: Stored) -> Stored | None:
    types: Mapping[str, EntityType]
    if isinstance(value, Fact):
        field, name, wanted, types = (
            "relation", value.relation, step.relation, ontology.relation_types,
        )  # fmt: skip
    else:
        field, name, wanted, types = (
            "entity_class", value.entity_class or "", step.entity_type, ontology.entity_types,
        )  # fmt: skip
    if wanted is None:
        return value
    if step.attribute is not None:
        has_it = wanted in ancestors(types, name) and step.attribute in value.attributes
        return _change_attribute(step, step.attribute, value) if has_it else value
    if name != wanted:
        return value
    if step.action == "drop":
        return None
    if step.action == "rename":
        return replace(value, **{field: step.to})
    if isinstance(value, Fact) and value.object is not None:
        return replace(value, object=_convert(step, value.object))
    return value


def _change_attribute(step: MigrationStep, name: str, value: Stored) -> Stored:
    attributes = dict(value.attributes)
    found = attributes.pop(name)
    if step.action == "rename":
        attributes[step.to or name] = found
    elif step.action != "drop":
        attributes[name] = _convert(step, found)
    return replace(value, attributes=attributes)


def _convert(step: MigrationStep, found: Literals) -> Literals:
    """Returns a literal after `retype` or `map`; the same if the step cannot convert it."""
    text = str(found).lower() if isinstance(found, bool) else str(found)
    if step.action == "map":
        return step.values.get(text, found)
    if step.to == "text":
        return text
    if step.to == "boolean":
        return {"true": True, "false": False}.get(text.lower(), found)
    if step.to != "number" or isinstance(found, bool):
        return found
    try:
        number = float(text)
    except ValueError:
        return found
    # What is no number of JSON stays as it is.
    return found if not abs(number) < float("inf") else int(number) if number % 1 == 0 else number
