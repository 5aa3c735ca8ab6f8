"""Schemas for the values of a namespace."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from memorywall.kinds.json_schema import SchemaError, ValidatorMissingError, check_schema
from memorywall.kinds.schema_changes import first_narrowing
from memorywall.operations.binding import operation
from memorywall.operations.namespaces import check_administered, get, load_administered
from memorywall.records.copier import copier
from memorywall.records.decision import Verb
from memorywall.records.entry import Entry
from memorywall.records.errors import ResourceNotFoundError, UnavailableError, ValidationError
from memorywall.records.feature_errors import BreakingSchemaError
from memorywall.records.filter import EntryFilter
from memorywall.records.identifiers import LONGEST_KEY
from memorywall.records.namespace import Namespace
from memorywall.records.value_schema import ValueSchema, parse_version, schema_id
from memorywall.service.access.visibility import load_visibility
from memorywall.service.requests.namespace_names import stored_filter
from memorywall.service.requests.operation_context import OperationCall, OperationContext
from memorywall.service.requests.schema_cache import (
    VALIDATOR_MISSING,
    LoadedSchemas,
    digest_schemas,
    read_schemas,
)
from memorywall.service.requests.validation import check_name
from memorywall.storage.sql.record_table import VALUE_SCHEMAS
from memorywall.tiers import NAMESPACE_TIERS
from memorywall.wire.value_schemas import (
    SchemaCheckResponse,
    ValueSchemaBrief,
    ValueSchemaListResponse,
    ValueSchemaRequest,
    ValueSchemaResponse,
    Violation,
)

MOST_SCHEMAS = 64
"""The most major versions of all schemas of a namespace."""
LONGEST_NAME = 64
_MISSING = "the namespace has no schema of this name and version"
_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


@operation("list_value_schemas")
async def list_value_schemas(
    context: OperationContext, call: OperationCall
) -> ValueSchemaListResponse:
    namespace, _ = await get(context, call.query.namespace)
    records = await read_schemas(context.transaction, namespace.name)
    return ValueSchemaListResponse(
        schemas=[
            _brief(one) for one in sorted(records, key=lambda one: (one.name, one.semantic_version))
        ]
    )


@operation("get_value_schema")
async def get_value_schema(context: OperationContext, call: OperationCall) -> ValueSchemaResponse:
    namespace, _ = await get(context, call.path["namespace"])
    loaded = LoadedSchemas(await read_schemas(context.transaction, namespace.name))
    major = call.query.version
    versions = loaded.newest if major is None else loaded.all
    for one in versions:
        if one.record.name == call.path["name"] and major in (None, one.version.major):
            return _view(one.record)
    raise ResourceNotFoundError(_MISSING)


@operation("put_value_schema", is_long=lambda call: True)
async def put_value_schema(context: OperationContext, call: OperationCall) -> ValueSchemaResponse:
    name = check_name("name", call.path["name"], longest=LONGEST_NAME, without="/")
    new = _checked(context, name, call.path["namespace"], call.body)
    forms = await load_administered(context, new.namespace)
    shown = [await _put(context, one, replace(new, namespace=one.name)) for one in forms]
    return _view(replace(shown[0], namespace=new.namespace))


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


@operation("delete_value_schema")
async def delete_value_schema(context: OperationContext, call: OperationCall) -> None:
    check_administered(call.path["namespace"])
    forms = await load_administered(context, call.path["namespace"])
    for namespace in forms:
        records = await read_schemas(context.transaction, namespace.name)
        named = [one for one in records if one.name == call.path["name"]]
        if not named:
            raise ResourceNotFoundError(_MISSING)
        for one in named:
            await context.transaction.records(VALUE_SCHEMAS).remove(one.namespace, one.id)
        await _save(context, namespace, [one for one in records if one not in named])


@operation("check_value_schemas", is_long=lambda call: True)
async def check_value_schemas(
    context: OperationContext, call: OperationCall
) -> SchemaCheckResponse:
    asked = call.query
    namespace, _ = await get(context, asked.namespace)
    loaded = await context.service.schemas.load(context.transaction, namespace)
    wanted = EntryFilter(
        tenant=context.tenant,
        tiers=tuple(NAMESPACE_TIERS),
        namespace=asked.namespace,
        before=asked.before,
        limit=asked.limit,
        counted=False,
        state=None,
        listed_only=False,
    )
    wanted = await stored_filter(context, wanted)
    within = await load_visibility(context, Verb.READ, wanted)
    entries, _ = await context.transaction.entries.search(wanted, within, context.now)
    violations: list[Violation] = []
    for entry in entries:
        opened = await context.service.cipher.open(context.transaction, entry)
        found = partial(_violations, loaded, opened)
        violations += await context.transaction.compute(len(opened.value), found)
    return SchemaCheckResponse(
        violations=violations,
        checked=len(entries),
        next=entries[-1].id if len(entries) == asked.limit else None,
    )


def _violations(loaded: LoadedSchemas, entry: Entry) -> list[Violation]:
    return [
        Violation(
            entry_id=entry.id,
            key=entry.key,
            schema=record.name,
            schema_version=record.version,
            pointer=misfit.pointer,
            keyword=misfit.keyword,
        )
        for record, misfit in loaded.misfits(entry)
    ]


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


_view = copier(ValueSchema, ValueSchemaResponse, schema=lambda record: _decode(record.document))
_brief = copier(ValueSchema, ValueSchemaBrief)
