"""Schemas for the values of a namespace."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec

from memorywall.operations.binding import operation
from memorywall.records.copier import copier
from memorywall.records.entry import Entry
from memorywall.records.value_schema import ValueSchema
from memorywall.service.administration.namespace_schemas import (
    find_schema,
    list_schemas,
    load_entries_to_check,
    put_schema,
    remove_schema,
)
from memorywall.service.requests.operation_context import OperationCall, OperationContext
from memorywall.service.requests.schema_cache import LoadedSchemas
from memorywall.wire.value_schemas import (
    SchemaCheckResponse,
    ValueSchemaBrief,
    ValueSchemaListResponse,
    ValueSchemaResponse,
    Violation,
)

_decode = msgspec.json.Decoder(dict[str, Any]).decode
_view = copier(ValueSchema, ValueSchemaResponse, schema=lambda record: _decode(record.document))
_brief = copier(ValueSchema, ValueSchemaBrief)


@operation("list_value_schemas")
async def list_value_schemas(
    context: OperationContext, call: OperationCall
) -> ValueSchemaListResponse:
    found = await list_schemas(context, call.query.namespace)
    return ValueSchemaListResponse(schemas=[_brief(one) for one in found])


@operation("get_value_schema")
async def get_value_schema(context: OperationContext, call: OperationCall) -> ValueSchemaResponse:
    namespace, name = call.path["namespace"], call.path["name"]
    return _view(await find_schema(context, namespace, name, call.query.version))


@operation("put_value_schema", is_long=lambda call: True)
async def put_value_schema(context: OperationContext, call: OperationCall) -> ValueSchemaResponse:
    namespace, name = call.path["namespace"], call.path["name"]
    return _view(await put_schema(context, namespace, name, call.body))


@operation("delete_value_schema")
async def delete_value_schema(context: OperationContext, call: OperationCall) -> None:
    await remove_schema(context, call.path["namespace"], call.path["name"])


@operation("check_value_schemas", is_long=lambda call: True)
async def check_value_schemas(
    context: OperationContext, call: OperationCall
) -> SchemaCheckResponse:
    asked = call.query
    loaded, entries = await load_entries_to_check(
        context, asked.namespace, asked.before, asked.limit
    )
    violations: list[Violation] = []
    for entry in entries:
        found = partial(_violations, loaded, entry)
        violations += await context.transaction.compute(len(entry.value), found)
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
