"""`client.value_schemas`: schemas for the values of a namespace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memorywall.sdk import retry
from memorywall.sdk.effects import RequestGenerator
from memorywall.sdk.facade import AsyncFacade, Facade, method
from memorywall.sdk.retry import call
from memorywall.wire.value_schemas import (
    SchemaCheckResponse,
    ValueSchemaBrief,
    ValueSchemaListResponse,
    ValueSchemaResponse,
)


class ValueSchemasCore:
    """The operations on the schemas of namespaces, as request generators."""

    def list(self, namespace: str) -> RequestGenerator[list[ValueSchemaBrief]]:
        """Returns the schemas of a namespace, without their JSON Schemas. Raises
        ResourceNotFoundError, MemoryAccessError."""
        query = {"namespace": namespace}
        return (yield from call("list_value_schemas", ValueSchemaListResponse, query=query)).schemas

    def get(
        self, namespace: str, name: str, *, version: int | None = None
    ) -> RequestGenerator[ValueSchemaResponse]:
        """Returns a schema of a namespace.

        version: the major version; default: the newest
        Raises ResourceNotFoundError, MemoryAccessError.
        """
        return call(
            "get_value_schema",
            ValueSchemaResponse,
            query={"version": version},
            name=name,
            namespace=namespace,
        )

    def put(
        self,
        namespace: str,
        name: str,
        schema: Mapping[str, Any],
        *,
        version: str,
        key_pattern: str | None = None,
    ) -> RequestGenerator[ValueSchemaResponse]:
        """Gives a namespace a schema, or a schema a new version; for administrators of the
        namespace.

        schema: a JSON Schema (draft 2020-12) that every new value must fit
        version: a semantic version such as "1.2.0", above the stored version
        key_pattern: a glob of the keys that the schema applies to; default: every key

        Raises BreakingSchemaError, whose message names the place, if the major version is the same
        and the schema may refuse values that the stored version accepts.
        Raises ValidationError, MemoryAccessError, and UnavailableError if the server has no package
        that checks schemas.
        """
        return call(
            "put_value_schema",
            ValueSchemaResponse,
            body={"version": version, "schema": dict(schema), "key_pattern": key_pattern},
            name=name,
            namespace=namespace,
        )

    def delete(self, namespace: str, name: str) -> RequestGenerator[None]:
        """Deletes a schema of a namespace with all its versions; for administrators of the
        namespace. Raises ResourceNotFoundError, MemoryAccessError."""
        yield from retry.remove("delete_value_schema", name=name, namespace=namespace)

    def check(
        self, namespace: str, *, before: str | None = None, limit: int = 100
    ) -> RequestGenerator[SchemaCheckResponse]:
        """Checks a page of the readable entries of a namespace, newest first, and returns those
        that do not fit the newest version of a schema.

        before: the `next` of the page before; default: the first page
        limit: the most entries to check, up to 500
        Raises ResourceNotFoundError, MemoryAccessError.
        """
        query = {"namespace": namespace, "before": before, "limit": limit}
        return call("check_value_schemas", SchemaCheckResponse, query=query)


class _ValueSchemasMethods:
    list = method(ValueSchemasCore.list)
    get = method(ValueSchemasCore.get)
    put = method(ValueSchemasCore.put)
    delete = method(ValueSchemasCore.delete)
    check = method(ValueSchemasCore.check)


class ValueSchemasClient(_ValueSchemasMethods, Facade[ValueSchemasCore]):
    """Lists, sets and deletes schemas for the values of a namespace, and checks entries."""


class AsyncValueSchemasClient(_ValueSchemasMethods, AsyncFacade[ValueSchemasCore]):
    """Lists, sets and deletes schemas for the values of a namespace, and checks entries."""
