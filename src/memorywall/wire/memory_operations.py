"""The operations of memory: entries, batches and namespaces."""

from __future__ import annotations

from memorywall.records.draft import EntryMergePatch, EntryPatch, EntryPut, NewEntry
from memorywall.records.errors import (
    CursorLostError,
    EntryExistsError,
    EntryNotIndexedError,
    MemoryCapacityError,
    MemoryConflictError,
    MemoryNotFoundError,
    PreconditionError,
    ResourceNotFoundError,
)
from memorywall.records.feature_errors import (
    ExpressionError,
    ScanLimitError,
    SchemaVersionError,
    SchemaViolationError,
)
from memorywall.wire.entries import (
    BatchRequest,
    BatchResponse,
    DeletedResponse,
    EntryListQuery,
    EntryPageResponse,
    EntryQuery,
    EntryResponse,
    ExportQuery,
    FoundEntry,
    HistoryQuery,
    HistoryResponse,
    NameQuery,
    VersionQuery,
    WriteQuery,
)
from memorywall.wire.events import ChangePageResponse, ChangeQuery
from memorywall.wire.namespaces import (
    NAMESPACE_OPERATIONS,
)
from memorywall.wire.operation import Operation
from memorywall.wire.operation_group import OperationGroup
from memorywall.wire.recall import ReshapeRequest, ReshapeResponse, SearchRequest, SearchResponse

_CRUD = 'RFC-0015 "Memory CRUD"'
_BATCH = 'RFC-0015 "Batch Operations"'
_MEMORY = OperationGroup(name="Memory", not_found=(MemoryNotFoundError,))

# Paths with a fixed last segment come before paths with an id there.
MEMORY_OPERATIONS: tuple[Operation, ...] = (
    _MEMORY(
        "create_entry",
        "POST /memory",
        "Create a memory entry.",
        source=_CRUD,
        query=WriteQuery,
        body=NewEntry,
        reply=EntryResponse,
        status=201,
        accepts_idempotency_key=True,
        location="/api/v1/memory/{id}",
        etag=True,
        raises=(EntryExistsError, MemoryCapacityError, EntryNotIndexedError, SchemaViolationError),
    ),
    _MEMORY(
        "put_entry",
        "PUT /memory",
        "Create an entry, or replace the value of the entry of this name.",
        source="RFC-0015 section 3.1, memorywall",
        query=WriteQuery,
        body=EntryPut,
        reply=EntryResponse,
        created=201,
        if_match="any",
        if_none_match=True,
        accepts_idempotency_key=True,
        location="/api/v1/memory/{id}",
        etag=True,
        raises=(
            MemoryNotFoundError,
            MemoryConflictError,
            EntryExistsError,
            MemoryCapacityError,
            EntryNotIndexedError,
            SchemaViolationError,
        ),
    ),
    _MEMORY(
        "query_entries",
        "GET /memory",
        "Query memory entries with filters, newest first by default.",
        source="RFC-0015 section 4",
        query=EntryListQuery,
        reply=EntryPageResponse,
        raises=(ExpressionError, ScanLimitError),
    ),
    _MEMORY(
        "write_batch",
        "POST /memory/batch",
        "Create or update several entries, all or none.",
        source=_BATCH,
        query=WriteQuery,
        body=BatchRequest,
        reply=BatchResponse,
        accepts_idempotency_key=True,
        raises=(
            MemoryNotFoundError,
            MemoryConflictError,
            EntryExistsError,
            MemoryCapacityError,
            PreconditionError,
            EntryNotIndexedError,
            SchemaViolationError,
        ),
    ),
    _MEMORY(
        "delete_matching",
        "DELETE /memory/batch",
        "Delete the entries that match a filter; an empty filter is refused.",
        source=_BATCH,
        query=EntryQuery,
        reply=DeletedResponse,
        raises=(ExpressionError, ScanLimitError),
    ),
    _MEMORY(
        "find_entry",
        "GET /memory/by-name",
        "Get the entry of a name, from the narrowest tier that has one.",
        query=NameQuery,
        reply=FoundEntry,
        etag=True,
        raises=(MemoryNotFoundError, SchemaVersionError),
    ),
    _MEMORY(
        "list_changes",
        "GET /memory/changes",
        "Follow the changes of readable memory, as a page, a long poll or a stream.",
        query=ChangeQuery,
        reply=ChangePageResponse,
        media="events",
        raises=(CursorLostError,),
    ),
    _MEMORY(
        "export_entries",
        "GET /memory/export",
        "Stream the matching entries as JSON Lines, newest first.",
        query=ExportQuery,
        reply=EntryResponse,
        media="lines",
        raises=(ExpressionError, ScanLimitError),
    ),
    _MEMORY(
        "search_entries",
        "POST /memory/search",
        "Search memory by words and meaning, best first.",
        body=SearchRequest,
        reply=SearchResponse,
        safe=True,
    ),
    _MEMORY(
        "reshape_query",
        "POST /memory/reshape",
        "Augment a query with guidance from lessons of earlier queries.",
        body=ReshapeRequest,
        reply=ReshapeResponse,
        safe=True,
    ),
    *NAMESPACE_OPERATIONS,
    _MEMORY(
        "get_entry_history",
        "GET /memory/{entry_id}/history",
        "List the versions of an entry that its tier keeps, newest first.",
        query=HistoryQuery,
        reply=HistoryResponse,
    ),
    _MEMORY(
        "get_entry",
        "GET /memory/{entry_id}",
        "Get one entry, as it is, or as it was where its tier keeps versions.",
        source=_CRUD,
        query=VersionQuery,
        reply=EntryResponse,
        etag=True,
        raises=(ResourceNotFoundError, SchemaVersionError),
    ),
    _MEMORY(
        "update_entry",
        "PATCH /memory/{entry_id}",
        "Replace fields of an entry at the version given as If-Match, or merge them.",
        source="RFC-0015 section 3",
        query=WriteQuery,
        body=EntryPatch,
        merge_patch=EntryMergePatch,
        reply=EntryResponse,
        if_match="required",
        etag=True,
        raises=(
            MemoryConflictError,
            MemoryCapacityError,
            EntryNotIndexedError,
            SchemaViolationError,
        ),
    ),
    _MEMORY(
        "delete_entry",
        "DELETE /memory/{entry_id}",
        "Delete an entry permanently.",
        source=_CRUD,
        if_match="optional",
        raises=(MemoryConflictError,),
    ),
)
