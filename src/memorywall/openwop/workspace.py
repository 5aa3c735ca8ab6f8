"""Files of the workspace: entries of one namespace, keyed by path, that keep their versions."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from memorywall.kinds.openwop import WORKSPACE_FILE, WorkspaceFile
from memorywall.openwop.runs import Run
from memorywall.operations.entries import get
from memorywall.records.decision import Verb
from memorywall.records.draft import EntryPut
from memorywall.records.entry import Entry
from memorywall.records.errors import ResourceNotFoundError, ValidationError
from memorywall.records.feature_errors import WorkspaceConflictError, WorkspaceSizeError
from memorywall.records.filter import EntryFilter
from memorywall.records.tier import Tier
from memorywall.service.access.targets import load_namespace_target
from memorywall.service.access.visibility import load_visibility
from memorywall.service.entries.create import put
from memorywall.service.entries.history import search_as_of
from memorywall.service.entries.update import delete
from memorywall.service.entries.writes import refuse_proposal
from memorywall.service.requests.operation_context import OperationContext
from memorywall.wire.openwop import LARGEST_ENTRY, FileResponse
from memorywall.wire.operation import ANY_VERSION

_NAMESPACE = "openwop-workspace"
_PATH = re.compile(r"(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9._/-]{0,255}")


async def list_files(
    context: OperationContext, prefix: str = "", as_of: str | None = None
) -> list[Entry]:
    """Returns the entries of files, by path, with their values in clear text.

    prefix: the beginning of their paths
    as_of: the instant whose versions are returned, without files that are deleted; default: now
    """
    wanted = EntryFilter(
        tenant=context.tenant,
        tiers=(Tier.SEMANTIC,),
        namespace=_NAMESPACE,
        key_prefix=prefix or None,
        kind=WORKSPACE_FILE.name,
        order="key",
        ascending=True,
        limit=None,
        counted=False,
    )
    visible = await load_visibility(context, Verb.READ, wanted)
    if as_of is None:
        found, _ = await context.transaction.entries.search(wanted, visible, context.now)
    else:
        found, _ = await search_as_of(context, wanted, visible, as_of, None)
        found.sort(key=lambda one: one.key)
    return [await context.service.cipher.open(context.transaction, one) for one in found]


async def find_file(context: OperationContext, path: str) -> Entry | None:
    """Returns the entry of a file that the caller may read; None without one."""
    target = await load_namespace_target(context, Tier.SEMANTIC, _NAMESPACE)
    if not context.allows(Verb.READ, target) or not _PATH.fullmatch(path):
        return None
    entry = await context.transaction.entries.find(Tier.SEMANTIC, "", _NAMESPACE, path)
    if entry is None or entry.kind != WORKSPACE_FILE.name:
        return None
    return await context.service.cipher.open(context.transaction, entry)


async def load_file(
    context: OperationContext, path: str, version: int | None = None, as_of: str | None = None
) -> Entry:
    """Returns the entry of a file, or an earlier version.

    version: its number; default: the latest
    as_of: the instant whose version is returned; default: now

    Raises MemoryNotFoundError, also for a file that did not exist at that instant or is deleted.
    """
    entry = await find_file(context, path)
    if entry is None:
        raise ResourceNotFoundError(
            "the workspace has no such file; `GET /v1/host/workspace/files` lists them"
        )
    if version is None and as_of is None:
        return entry
    return await get(context, entry.id, version, as_of)


async def put_file(
    context: OperationContext,
    path: str,
    content: str,
    content_type: str,
    version: int | None = None,
    run: Run | None = None,
) -> FileResponse:
    """Creates or replaces a file, secrets redacted.

    version: the version that it replaces; default: any
    run: the run that writes, whose log gets a `workspace.updated`; default: none

    Raises ValidationError, WorkspaceSizeError, MemoryAccessError, WorkspaceConflictError, and
    RuleError in a closed tier.
    """
    if not _PATH.fullmatch(path):
        raise ValidationError(
            "the path must have 1 to 256 letters, digits, `.`, `_`, `-` and `/`, begin with a"
            " letter or digit, and not contain `..`"
        )
    if len(content.encode()) > LARGEST_ENTRY:
        raise WorkspaceSizeError(f"`content` may have at most {LARGEST_ENTRY} bytes")
    old = await find_file(context, path)
    _check_version(old, version)
    given = EntryPut(
        namespace=_NAMESPACE,
        key=path,
        value=msgspec.to_builtins(WorkspaceFile(content=content, content_type=content_type)),
        memory_type=Tier.SEMANTIC,
        kind=WORKSPACE_FILE.name,
    )
    stored = await put(context, given, None if old is None else old.version)
    refuse_proposal(WORKSPACE_FILE.name, stored)
    await _attribute(run, path, stored.version)
    return view_file(stored)


async def delete_file(
    context: OperationContext, path: str, version: int | None = None, run: Run | None = None
) -> None:
    """Deletes a file with its versions.

    version: the version that is deleted; default: any
    run: the run that deletes, whose log gets a `workspace.updated` with the version after the last
        one; default: none

    Raises MemoryNotFoundError, MemoryAccessError, WorkspaceConflictError.
    """
    entry = await load_file(context, path)
    _check_version(entry, version)
    await delete(context, entry.id)
    await _attribute(run, path, entry.version + 1)


async def _attribute(run: Run | None, path: str, version: int) -> None:
    """Tells the log of a run, without content, what the run has changed."""
    if run is not None:
        await run.emit("workspace.updated", {"path": path, "version": version})


def _check_version(entry: Entry | None, version: int | None) -> None:
    current = None if entry is None else entry.version
    if version is None or current == version or (version == ANY_VERSION and entry is not None):
        return
    details: dict[str, Any] = {"currentVersion": current}
    raise WorkspaceConflictError("read the file again, and name its version", details=details)


def view_file(entry: Entry, *, with_content: bool = True) -> FileResponse:
    """Returns a file as OpenWOP shows it."""
    file = msgspec.json.decode(entry.value, type=WorkspaceFile)
    return FileResponse(
        path=entry.key,
        content=file.content if with_content else msgspec.UNSET,
        content_type=file.content_type,
        version=entry.version,
        etag=f'"{entry.version}"',
        updated_at=entry.updated_at,
    )


def decode_file(entry: Entry, shape: type[Any]) -> Any:
    """Returns the content of a JSON file as a struct; None if it does not fit."""
    try:
        file = msgspec.json.decode(entry.value, type=WorkspaceFile)
        return msgspec.json.decode(file.content, type=shape)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
