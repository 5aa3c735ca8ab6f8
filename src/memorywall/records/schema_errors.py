"""The errors of value schemas; see the tree in `errors.py`."""

from __future__ import annotations

from typing import Any

from memorywall.records.errors import MemorywallError, ValidationError


class SchemaVersionError(MemorywallError):
    """The entry does not fit the schemas of its namespace at the major version of the request."""

    status = 406
    code = "SCHEMA_VERSION_MISMATCH"
    title = "The entry does not fit this version of its schemas"


class SchemaViolationError(ValidationError):
    """The value does not fit a schema of its namespace.

    schema, schema_version: the name and the version of the schema
    pointer: a JSON Pointer into the value, "" for the whole value
    """

    code = "SCHEMA_VIOLATION"
    title = "The value does not fit a schema of its namespace"

    def __init__(
        self,
        detail: str = "",
        *,
        schema: str | None = None,
        schema_version: str | None = None,
        pointer: str | None = None,
        index: int | None = None,
    ) -> None:
        super().__init__(detail, index=index)
        self.schema = schema
        self.schema_version = schema_version
        self.pointer = pointer

    def fields(self) -> dict[str, Any]:
        members = super().fields()
        for name in ("schema", "schema_version", "pointer"):
            if getattr(self, name) is not None:
                members[name] = getattr(self, name)
        return members


class BreakingSchemaError(ValidationError):
    """A new version of a schema may refuse values that the version before it accepted."""

    code = "BREAKING_SCHEMA_CHANGE"
    title = "A breaking change of a schema needs a new major version"
