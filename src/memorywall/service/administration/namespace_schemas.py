"""Schemas for the values of a namespace, which its administrators store and delete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from memorywall.kinds.json_schema import SchemaError, ValidatorMissingError, check_schema
from memorywall.kinds.schema_changes import first_narrowing
from memorywall.records.decision import Verb
from memorywall.records.entry import Entry
from memorywall.records.errors import ResourceNotFoundError, UnavailableError, ValidationError
from memorywall.records.feature_errors import BreakingSchemaError
from memorywall.records.filter import EntryFilter
from memorywall.records.identifiers import LONGEST_KEY, is_same_name
from memorywall.records.namespace import Namespace
from memorywall.records.value_schema import ValueSchema, parse_version, schema_id
from memorywall.service.access.visibility import load_visibility
from memorywall.service.administration.namespace_permissions import (
    check_administered,
    get,
    load_administered,
)
from memorywall.service.requests.namespace_names import stored_filter
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.schema_cache import (
    VALIDATOR_MISSING,
    LoadedSchemas,
    digest_schemas,
    read_schemas,
)
from memorywall.service.requests.validation import check_name
from memorywall.storage.sql.record_table import VALUE_SCHEMAS
from memorywall.tiers import NAMESPACE_TIERS
from memorywall.wire.value_schemas import ValueSchemaRequest

MOST_SCHEMAS = 64
"""The most major versions of all schemas of a namespace."""
LONGEST_NAME = 64
_MISSING = "the namespace has no schema of this name and version"
_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


async def list_schemas(context: OperationContext, namespace: str) -> list[ValueSchema]:
    """Returns the schemas of a namespace that the caller may read, by name and version. Raises
    ResourceNotFoundError, MemoryAccessError."""
    found, _ = await get(context, namespace)
    records = await read_schemas(context.transaction, found.name)
    return sorted(records, key=lambda one: (one.name, one.semantic_version))


async def find_schema(
    context: OperationContext, namespace: str, name: str, major: int | None
) -> ValueSchema:
    """Returns a schema of a namespace that the caller may read.

    major: its major version; None for the newest version
    Raises ResourceNotFoundError, MemoryAccessError.
    """
    found, _ = await get(context, namespace)
    loaded = LoadedSchemas(await read_schemas(context.transaction, found.name))
    versions = loaded.newest if major is None else loaded.all
    for one in versions:
        if is_same_name(name, one.record.name) and major in (None, one.version.major):
            return one.record
    raise ResourceNotFoundError(_MISSING)


async def put_schema(
    context: OperationContext, namespace: str, name: str, asked: ValueSchemaRequest
) -> ValueSchema:
    """Stores a schema for each stored form of a namespace that the caller administers. Returns the
    schema. Raises ValidationError, UnavailableError, BreakingSchemaError, MemoryAccessError."""
    name = check_name("name", name, longest=LONGEST_NAME, without="/")
    new = _checked(context, name, namespace, asked)
    forms = await load_administered(context, new.namespace)
    shown = [await _put(context, one, replace(new, namespace=one.name)) for one in forms]
    return replace(shown[0], namespace=new.namespace)


async def remove_schema(context: OperationContext, namespace: str, name: str) -> None:
    """Removes all versions of a schema from a namespace that the caller administers. Raises
    ValidationError, ResourceNotFoundError, MemoryAccessError."""
    forms = await load_administered(context, check_administered(namespace))
    for form in forms:
        records = await read_schemas(context.transaction, form.name)
        named = [one for one in records if is_same_name(name, one.name)]
        if not named:
            raise ResourceNotFoundError(_MISSING)
        for one in named:
            await context.transaction.records(VALUE_SCHEMAS).remove(one.namespace, one.id)
        await _save(context, form, [one for one in records if one not in named])


async def load_entries_to_check(
    context: OperationContext, namespace: str, before: str | None, limit: int
) -> tuple[LoadedSchemas, list[Entry]]:
    """Returns the schemas of a namespace that the caller may read, and a page of its entries with
    their values in clear text, in any state, newest first.

    before: the id of an entry; only older ones are on the page
    limit: the most entries
    Raises ResourceNotFoundError, MemoryAccessError, UnavailableError.
    """
    found, _ = await get(context, namespace)
    loaded = await context.service.schemas.load(context.transaction, found)
    wanted = EntryFilter(
        tenant=context.tenant,
        tiers=tuple(NAMESPACE_TIERS),
        namespace=namespace,
        before=before,
        limit=limit,
        counted=False,
        state=None,
        listed_only=False,
    )
    wanted = await stored_filter(context, wanted)
    within = await load_visibility(context, Verb.READ, wanted)
    entries, _ = await context.transaction.entries.search(wanted, within, context.now)
    return loaded, [await context.service.cipher.open(context.transaction, one) for one in entries]


async def _put(context: OperationContext, namespace: Namespace, new: ValueSchema) -> ValueSchema:
    """Stores a schema for one stored form of a namespace. Returns the schema, the stored one if
    nothing changes. Raises ValidationError, BreakingSchemaError."""
    records = await read_schemas(context.transaction, new.namespace)
    old = next((one for one in records if one.id == new.id), None)
    if old is not None and replace(old, updated_at=new.updated_at) == new:
        return old
    _check_version([one for one in records if one.name == new.name], old, new)
    others = [one for one in records if one is not old]
    if len(others) >= MOST_SCHEMAS:
        raise ValidationError(
            f"a namespace has at most {MOST_SCHEMAS} major versions of schemas; delete a schema"
        )
    stored = context.transaction.records(VALUE_SCHEMAS)
    await _save(context, namespace, [*others, new])
    await (stored.insert(new) if old is None else stored.replace(new))
    return new


def _checked(
    context: OperationContext, name: str, namespace: str, asked: ValueSchemaRequest
) -> ValueSchema:
    """Returns the record of a request. Raises ValidationError, UnavailableError."""
    version = parse_version(asked.version)
    if version is None:
        raise ValidationError("`version` must be a semantic version without a suffix, as `1.0.0`")
    if asked.key_pattern is not None:
        check_name("key_pattern", asked.key_pattern, longest=LONGEST_KEY)
    try:
        check_schema(asked.schema)
    except SchemaError as error:
        raise ValidationError(str(error)) from None
    except ValidatorMissingError:
        raise UnavailableError(VALIDATOR_MISSING) from None
    return ValueSchema(
        tenant=context.tenant,
        namespace=check_administered(namespace),
        id=schema_id(name, version.major),
        name=name,
        version=asked.version,
        document=_encode(asked.schema).decode(),
        updated_at=context.now,
        key_pattern=asked.key_pattern,
    )


def _check_version(
    stored: Sequence[ValueSchema], old: ValueSchema | None, new: ValueSchema
) -> None:
    """Checks a version against the stored versions of its schema.

    old: the stored version of the same major version
    Raises ValidationError for a version that is not above, and BreakingSchemaError.
    """
    below = stored if old is None else (old,)
    if any(new.semantic_version <= one.semantic_version for one in below):
        raise ValidationError(
            "`version` must be above the stored version, and a new major version above all others;"
            " read the schema, and send a higher version"
        )
    if old is None:
        return
    advice = "send it with a new major version"
    if old.key_pattern != new.key_pattern:
        raise BreakingSchemaError(f"a change of `key_pattern` is breaking; {advice}")
    pointer = first_narrowing(_decode(old.document), _decode(new.document))
    if pointer is not None:
        raise BreakingSchemaError(
            f"`{pointer}` of `schema` may refuse values that the stored version accepts; {advice}"
        )


async def _save(
    context: OperationContext, namespace: Namespace, records: Sequence[ValueSchema]
) -> None:
    """Stores a namespace with the digest of its schemas, and creates a new namespace."""
    await context.transaction.namespaces.save(replace(namespace, schemas=digest_schemas(records)))
