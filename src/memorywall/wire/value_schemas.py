"""Schemas for the values of a namespace, and the operations on them."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from memorywall.records.errors import ResourceNotFoundError
from memorywall.records.feature_errors import BreakingSchemaError
from memorywall.records.principal import Permission
from memorywall.wire.operation import Operation
from memorywall.wire.operation_group import OperationGroup

LARGEST_CHECK = 500
_Namespace = Annotated[str, Meta(description="The full name of the namespace.")]
Major = Annotated[int, Meta(ge=0, le=999_999)]


class ValueSchemaRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A version of a schema.

    Within a major version, a new version must accept every value that the version before it
    accepted. Another change needs a new major version.
    """

    version: Annotated[
        str, Meta(description="The semantic version, such as `1.2.0`, above the stored one.")
    ]
    schema: Annotated[
        dict[str, Any], Meta(description="A JSON Schema (draft 2020-12) of the value.")
    ]
    key_pattern: Annotated[
        str | None,
        Meta(description="A glob of the keys that the schema applies to; default: every key."),
    ] = None


class ValueSchemaBrief(msgspec.Struct, frozen=True, kw_only=True):
    """The newest version of one major version of a schema."""

    name: str
    namespace: str
    version: str
    key_pattern: str | None
    updated_at: str


class ValueSchemaResponse(ValueSchemaBrief, frozen=True, kw_only=True):
    """The same with the JSON Schema."""

    schema: dict[str, Any]


class ValueSchemaListResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The schemas of a namespace, by name and major version."""

    schemas: list[ValueSchemaBrief]


class ValueSchemaListQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The namespace of a list of schemas."""

    namespace: _Namespace


class ValueSchemaQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The version of a schema."""

    version: Annotated[
        Major | None, Meta(description="The major version; default: the newest.")
    ] = None


class SchemaCheckQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A page of the entries to check."""

    namespace: _Namespace
    before: Annotated[
        str | None, Meta(description="The `next` of the previous page; default: the first page.")
    ] = None
    limit: Annotated[
        int, Meta(ge=1, le=LARGEST_CHECK, description="The most entries to check; default: 100.")
    ] = 100


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """The first place in an entry that does not fit the newest version of a schema.

    `pointer` is a JSON Pointer into the value, empty for the whole value. `keyword` is the violated
    keyword of the schema.
    """

    entry_id: str
    key: str
    schema: str
    schema_version: str
    pointer: str
    keyword: str


class SchemaCheckResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The entries of a page that do not fit, newest first; `checked` counts the entries of the
    page. `next` is `before` of the next page, null at the end."""

    violations: list[Violation]
    checked: int
    next: str | None


_SCHEMAS = OperationGroup(name="Validation", write=Permission.ADMIN)

VALUE_SCHEMA_OPERATIONS: tuple[Operation, ...] = (
    _SCHEMAS(
        "list_value_schemas",
        "GET /memory/schemas",
        "List the schemas of a namespace.",
        query=ValueSchemaListQuery,
        reply=ValueSchemaListResponse,
        raises=(ResourceNotFoundError,),
    ),
    _SCHEMAS(
        "check_value_schemas",
        "GET /memory/schemas/check",
        "List the readable entries of a namespace that do not fit its schemas.",
        query=SchemaCheckQuery,
        reply=SchemaCheckResponse,
        raises=(ResourceNotFoundError,),
    ),
    _SCHEMAS(
        "get_value_schema",
        "GET /memory/schemas/{name}/{namespace:path}",
        "Get a schema of a namespace, at its newest or another major version.",
        query=ValueSchemaQuery,
        reply=ValueSchemaResponse,
    ),
    _SCHEMAS(
        "put_value_schema",
        "PUT /memory/schemas/{name}/{namespace:path}",
        "Give a namespace a schema, or a schema a new version, for administrators.",
        body=ValueSchemaRequest,
        reply=ValueSchemaResponse,
        not_found=(),
        raises=(BreakingSchemaError,),
    ),
    _SCHEMAS(
        "delete_value_schema",
        "DELETE /memory/schemas/{name}/{namespace:path}",
        "Delete a schema of a namespace with all its versions, for administrators.",
    ),
)
