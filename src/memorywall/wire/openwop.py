"""OpenWOP v1: requests, responses and operations of an agent-memory host.

The operations are a table of their own: they are not part of the API of memorywall, and their
errors have the flat form `{error, message, details?}`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from memorywall.records.errors import MemorywallError, ResourceConflictError
from memorywall.records.feature_errors import (
    CapabilityError,
    InvalidSequenceError,
    MediaTypeError,
    ReplayUnavailableError,
    SecretsUnavailableError,
    WorkspaceConflictError,
    WorkspaceSizeError,
)
from memorywall.records.principal import Permission
from memorywall.wire.operation import Operation
from memorywall.wire.operation_group import OperationGroup

PROTOCOL = "1.0"
QUERY_EXTENSION = "x-host-memorywall-memory-query"
"""The host extension under which memory is queried from outside (RFC 0080, section B)."""
LARGEST_ENTRY = 32_000
"""The most bytes of the content of an entry of agent memory."""
LARGEST_LIST = 1_000
_CODES = {"ENTRY_NOT_FOUND": "not_found", "ACCESS_DENIED": "forbidden"}
_SEQUENCE = Annotated[int, Meta(ge=-1, le=2**53)]


def code_of(error: MemorywallError) -> str:
    """Returns the code of an error in OpenWOP."""
    return _CODES.get(error.code, error.code.lower())


class _Camel(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Has the names of OpenWOP on the wire."""


class _Closed(_Camel, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A body that refuses unknown fields."""


class StartOptions(_Closed, frozen=True, kw_only=True):
    """What a caller says about a run besides its inputs."""

    tags: Annotated[list[Annotated[str, Meta(max_length=256)]], Meta(max_length=100)] = []
    metadata: dict[str, Any] = {}
    configurable: dict[str, Any] = {}


class StartRunRequest(StartOptions, frozen=True, kw_only=True):
    """Starts a run of a workflow. Options stand in `options`, or beside it as OpenWOP composes
    them."""

    workflow_id: Annotated[str, Meta(min_length=1, max_length=256)]
    inputs: dict[str, Any] = {}
    options: StartOptions = StartOptions()


class ForkRunRequest(_Closed, frozen=True, kw_only=True):
    """Repeats the log of a run."""

    from_seq: int
    mode: Literal["replay"] = "replay"


class StartedRunResponse(_Camel, frozen=True, kw_only=True):
    """A new run."""

    run_id: str


class RunResponse(_Camel, frozen=True, kw_only=True, omit_defaults=True):
    """A run as its log shows it."""

    run_id: str
    workflow_id: str
    status: str
    started_at: str
    completed_at: str | None = None
    variables: dict[str, Any] | None = None
    agent: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    tags: list[str] = []
    metadata: dict[str, Any] = {}


class RunEventResponse(_Camel, frozen=True, kw_only=True):
    """An event of a run."""

    event_id: str
    run_id: str
    type: str
    payload: dict[str, Any]
    timestamp: str
    sequence: int
    node_id: str | UnsetType = UNSET

    @property
    def seq(self) -> int:
        """The id of the event in a stream."""
        return self.sequence


class RunEventsResponse(_Camel, frozen=True, kw_only=True):
    """The log of a run."""

    events: list[RunEventResponse]


class PollResponse(RunEventsResponse, frozen=True, kw_only=True):
    """A part of the log of a run, and whether nothing follows it."""

    is_complete: bool


class PollQuery(_Camel, frozen=True, kw_only=True):
    """The last event that the client knows."""

    last_sequence: _SEQUENCE = -1


class MemoryEntryResponse(_Camel, frozen=True, kw_only=True):
    """A `MemoryEntry`."""

    id: str
    content: str
    tags: list[str]
    created_at: str
    expires_at: str | UnsetType = UNSET


class MemoryListResponse(_Camel, frozen=True, kw_only=True):
    """Entries of a memory, the newest first; of a search, the best first."""

    entries: list[MemoryEntryResponse]


class RunQuery(_Camel, frozen=True, kw_only=True):
    """The run whose view is shown; null for the present state."""

    run_id: Annotated[str, Meta(min_length=1, max_length=256)] | None = None


class MemoryQuery(RunQuery, frozen=True, kw_only=True):
    """Which entries of a memory are shown. `limit` 0 means no limit but that of the server; `query`
    finds entries by their meaning."""

    limit: Annotated[int, Meta(ge=0, le=2**53)] = 0
    tag: Annotated[str, Meta(min_length=1, max_length=256)] | None = None
    query: Annotated[str, Meta(min_length=1, max_length=2_000)] | None = None


class PutMemoryRequest(_Closed, frozen=True, kw_only=True):
    """An entry to store; the server gives its id."""

    content: str
    tags: Annotated[list[str], Meta(max_length=64)] = []
    expires_at: str | None = None


class SeedRequest(_Closed, frozen=True, kw_only=True):
    """Entries to store."""

    memory_ref: str
    entries: Annotated[list[PutMemoryRequest], Meta(min_length=1, max_length=1_000)]


class CompactRequest(_Closed, frozen=True, kw_only=True):
    """A memory whose entries become one."""

    memory_ref: str


class CompactionResponse(_Camel, frozen=True, kw_only=True):
    """The event of a compaction, and the content of its output."""

    type: str
    payload: dict[str, Any]
    output_content: str


class SecretRequest(_Closed, frozen=True, kw_only=True):
    """A secret of the tests, which every run may resolve."""

    secret_id: Annotated[str, Meta(pattern=r"^[A-Za-z0-9._:/-]{1,64}$")]
    value: Annotated[str, Meta(min_length=1, max_length=8_192)]


class ForgetMemoryRequest(_Closed, frozen=True, kw_only=True):
    """One entry of a memory, or everything about a person."""

    memory_ref: str | None = None
    memory_id: str | None = None
    subject: str | None = None


class ForgottenResponse(_Camel, frozen=True, kw_only=True):
    """The number of entries that were removed."""

    forgotten: int


class FileVersionQuery(RunQuery, frozen=True, kw_only=True):
    """A version of a file; null for the latest, of a run for that at its start."""

    version: Annotated[int, Meta(ge=1)] | None = None


class PutFileRequest(_Closed, frozen=True, kw_only=True):
    """The content of a file of the workspace."""

    content: str
    content_type: Annotated[str, Meta(max_length=128)] = "text/markdown"


class FileResponse(_Camel, frozen=True, kw_only=True):
    """A `WorkspaceFile`; lists leave `content` out."""

    path: str
    content: str | UnsetType = UNSET
    content_type: str
    version: int
    etag: str
    updated_at: str


class FileListResponse(_Camel, frozen=True, kw_only=True):
    """The files of the workspace, by path."""

    files: list[FileResponse]


class AgentsResponse(_Camel, frozen=True, kw_only=True):
    """The inventory of agents whose manifests the workspace has."""

    agents: list[dict[str, Any]]
    total: int


_GROUP = OperationGroup(name="OpenWOP", prefix="", source="OpenWOP v1")
_OFF = (CapabilityError,)


def _memory_operations(prefix: str, name: str) -> tuple[Operation, ...]:
    """The operations on a memory, which are served at two places."""
    one = "{memory_ref}/{memory_id}"
    return (
        _GROUP(
            f"openwop_list_{name}",
            f"GET {prefix}/{{memory_ref}}",
            "List the entries of a memory, or find some by meaning.",
            query=MemoryQuery,
            reply=MemoryListResponse,
            not_found=(),
        ),
        _GROUP(
            f"openwop_get_{name}",
            f"GET {prefix}/{one}",
            "Get an entry of a memory.",
            query=RunQuery,
            reply=MemoryEntryResponse,
        ),
        _GROUP(
            f"openwop_put_{name}",
            f"PUT {prefix}/{one}",
            "Store an entry; the server gives its id, because entries never change.",
            body=PutMemoryRequest,
            reply=MemoryEntryResponse,
            status=201,
        ),
        _GROUP(f"openwop_delete_{name}", f"DELETE {prefix}/{one}", "Delete an entry of a memory."),
    )


OPENWOP_OPERATIONS: tuple[Operation, ...] = (
    _GROUP(
        "openwop_discover",
        "GET /.well-known/openwop",
        "Get what this host offers.",
        public=True,
        reply=dict[str, Any],
    ),
    _GROUP(
        "openwop_start_run",
        "POST /v1/runs",
        "Run a workflow of the workspace.",
        body=StartRunRequest,
        reply=StartedRunResponse,
        status=201,
        accepts_idempotency_key=True,
        raises=(SecretsUnavailableError, *_OFF, MediaTypeError),
    ),
    _GROUP("openwop_get_run", "GET /v1/runs/{run_id}", "Get a run.", reply=RunResponse),
    _GROUP(
        "openwop_list_run_events",
        "GET /v1/runs/{run_id}/events",
        "Get the log of a run as JSON, or follow it as Server-Sent Events.",
        reply=RunEventsResponse,
        media="events",
    ),
    _GROUP(
        "openwop_poll_run_events",
        "GET /v1/runs/{run_id}/events/poll",
        "Get the events of a run after one.",
        query=PollQuery,
        reply=PollResponse,
    ),
    _GROUP(
        "openwop_fork_run",
        "POST /v1/runs/{run_id}:fork",
        "Replay a run from its log.",
        body=ForkRunRequest,
        reply=StartedRunResponse,
        status=201,
        raises=(InvalidSequenceError, ReplayUnavailableError, ResourceConflictError),
    ),
    _GROUP("openwop_list_agents", "GET /v1/agents", "List the agents.", reply=AgentsResponse),
    _GROUP("openwop_get_agent", "GET /v1/agents/{agent_id}", "Get an agent.", reply=dict[str, Any]),
    *_memory_operations(f"/v1/{QUERY_EXTENSION}", "memory"),
    *_memory_operations("/v1/memory", "test_memory"),
    _GROUP(
        "openwop_list_files",
        "GET /v1/host/workspace/files",
        "List the files of the workspace.",
        query=RunQuery,
        reply=FileListResponse,
        raises=_OFF,
    ),
    _GROUP(
        "openwop_get_file",
        "GET /v1/host/workspace/files/{path:path}",
        "Get a file, or an earlier version of it.",
        query=FileVersionQuery,
        reply=FileResponse,
        etag=True,
        raises=_OFF,
    ),
    _GROUP(
        "openwop_put_file",
        "PUT /v1/host/workspace/files/{path:path}",
        "Create or replace a file.",
        body=PutFileRequest,
        reply=FileResponse,
        if_match="any",
        created=201,
        etag=True,
        raises=(WorkspaceConflictError, WorkspaceSizeError, *_OFF),
    ),
    _GROUP(
        "openwop_delete_file",
        "DELETE /v1/host/workspace/files/{path:path}",
        "Delete a file.",
        if_match="any",
        raises=(WorkspaceConflictError, *_OFF),
    ),
    _GROUP(
        "openwop_compact_memory",
        "POST /v1/host/memorywall/memory/compact",
        "Replace the entries of a memory by a summary of them.",
        body=CompactRequest,
        reply=CompactionResponse,
    ),
    _GROUP(
        "openwop_test_seed",
        "POST /v1/test/memory/seed",
        "Store entries for a test.",
        body=SeedRequest,
        reply=MemoryListResponse,
        status=201,
    ),
    _GROUP(
        "openwop_test_compact",
        "POST /v1/test/memory/compact",
        "Compact a memory for a test.",
        body=CompactRequest,
        reply=CompactionResponse,
    ),
    _GROUP(
        "openwop_test_secret",
        "POST /v1/host/sample/byok/secrets",
        "Register a secret for a test.",
        body=SecretRequest,
        status=201,
        reply=dict[str, str],
    ),
    _GROUP(
        "openwop_test_drop_secret",
        "DELETE /v1/host/sample/byok/secrets/{secret_id}",
        "Forget a secret of a test.",
    ),
    _GROUP(
        "openwop_test_forget",
        "POST /v1/host/sample/memory/forget",
        "Forget an entry or a person for a test.",
        body=ForgetMemoryRequest,
        reply=ForgottenResponse,
        permission=Permission.WRITE,
    ),
)

OPENWOP_BY_NAME = {operation.name: operation for operation in OPENWOP_OPERATIONS}
