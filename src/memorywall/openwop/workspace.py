"""Files of the workspace: entries of one namespace, keyed by path, that keep their versions."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from memorywall.kinds.openwop import WORKSPACE_FILE, WorkspaceFile
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
from memorywall.service.entries.update import delete
from memorywall.service.entries.writes import refuse_proposal
from memorywall.service.requests.operation_context import OperationContext
from memorywall.wire.openwop import LARGEST_ENTRY, FileResponse
from memorywall.wire.operation import ANY_VERSION

_NAMESPACE = "openwop-workspace"
_PATH = re.compile(r"(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9._/-]{0,255}")


async def list_files(context: OperationContext, prefix: str = "") -> list[Entry]:
    """Returns the entries of files, by path, with their values in clear text.

    prefix: the beginning of their paths
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
    found, _ = await context.transaction.entries.search(wanted, visible, context.now)
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


async def load_file(context: OperationContext, path: str, version: int | None = None) -> Entry:
    """Returns the entry of a file, or an earlier version. Raises MemoryNotFoundError."""
    entry = await find_file(context, path)
    if entry is None:
        raise ResourceNotFoundError("the workspace has no such file")
    return entry if version is None else await get(context, entry.id, version)


async def put_file(
    context: OperationContext, path: str, content: str, content_type: str, version: int | None
) -> FileResponse:
    """Creates or replaces a file, secrets redacted.

    version: the version that it replaces; None for any

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
    return view_file(stored)


async def delete_file(context: OperationContext, path: str, version: int | None) -> None:
    """Deletes a file with its versions. Raises MemoryNotFoundError, MemoryAccessError,
    WorkspaceConflictError."""
    entry = await load_file(context, path)
    _check_version(entry, version)
    await delete(context, entry.id)


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
