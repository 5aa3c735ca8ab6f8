"""Bodies about the server itself, and problem documents."""

from __future__ import annotations

from typing import Any

import msgspec

from memorywall.records.entry import VALUE_LIMIT
from memorywall.records.errors import MemorywallError
from memorywall.records.filter import LARGEST_PAGE
from memorywall.records.recall import LONGEST_QUERY, MOST_HITS
from memorywall.records.tier import Tier
from memorywall.wire.entries import LARGEST_BATCH

PROTOCOL_VERSION = "0.17"


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the server is alive, or ready for work."""

    status: str


class EmbeddingView(msgspec.Struct, frozen=True, kw_only=True):
    """How far embedding is. `model` is null where there is none; `backlog` counts the changes to
    memory that it has yet to look at."""

    model: str | None
    backlog: int


class Readiness(Status, frozen=True, kw_only=True):
    """That the server is ready for work, and what of it is still to be done in the background."""

    embedding: EmbeddingView


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What the server refuses more of."""

    value_bytes: int = VALUE_LIMIT
    page_entries: int = LARGEST_PAGE
    batch_entries: int = LARGEST_BATCH
    query_characters: int = LONGEST_QUERY
    search_hits: int = MOST_HITS
    episodic_capacity: int
    working_capacity_per_task: int


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What this server can do."""

    name: str = "memorywall"
    version: str
    protocol_version: str = PROTOCOL_VERSION
    rfcs: list[str]
    capabilities: list[str]
    memory_types: list[Tier]
    eviction_policies: list[str]
    extensions: dict[str, str]
    limits: Limits


class Discovery(msgspec.Struct, frozen=True, kw_only=True):
    """The document at /.well-known/openintent.json."""

    name: str = "memorywall"
    version: str
    protocol_version: str = PROTOCOL_VERSION
    api_base: str = "/api/v1"
    rfcs: list[str]
    capabilities: list[str]
    openapi: str = "/openapi.json"
    documentation: str = "/docs"


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """RFC 9457, with the members RFC-0015's clients read. `error` is the code to switch on."""

    type: str
    title: str
    status: int
    detail: str
    error: str
    message: str
    index: int | None = None
    current_version: int | None = None
    current: dict[str, Any] | None = None
    current_count: int | None = None
    max_capacity: int | None = None
    existing_lease: dict[str, Any] | None = None


def problem(error: MemorywallError) -> dict[str, Any]:
    """The problem document of an error, without members that are absent."""
    return {
        "type": "urn:memorywall:problem:" + error.code.lower().replace("_", "-"),
        "title": error.title,
        "status": error.status,
        "detail": error.detail,
        "error": error.code,
        "message": error.detail,
        **error.fields(),
    }
