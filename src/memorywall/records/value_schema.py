"""Schemas that administrators give to the values of a namespace."""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec

_VERSION = re.compile(r"(0|[1-9]\d{0,5})\.(0|[1-9]\d{0,5})\.(0|[1-9]\d{0,5})", re.ASCII)


class SchemaVersion(NamedTuple):
    """A semantic version of a schema. Versions of one `major` only loosen the schema."""

    major: int
    minor: int
    patch: int


class ValueSchema(msgspec.Struct, frozen=True, kw_only=True):
    """The newest version of one major version of a schema.

    id: the name and the major version, such as `profile@1`; unique within the namespace
    version: a semantic version, such as `1.2.0`
    document: the JSON Schema, as compact JSON text
    key_pattern: a glob; the schema applies to entries whose key matches; None for every key
    """

    tenant: str
    namespace: str
    id: str
    name: str
    version: str
    document: str
    updated_at: str
    key_pattern: str | None = None

    @property
    def semantic_version(self) -> SchemaVersion:
        """The parts of the version."""
        return parse_version(self.version) or SchemaVersion(0, 0, 0)


def schema_id(name: str, major: int) -> str:
    """The id of the record of a major version."""
    return f"{name}@{major}"


def parse_version(text: str) -> SchemaVersion | None:
    """The parts of a semantic version without a suffix; None for any other text."""
    match = _VERSION.fullmatch(text)
    return None if match is None else SchemaVersion(*map(int, match.groups()))
