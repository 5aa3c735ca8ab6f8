"""Files of the workspace: entries of one namespace, keyed by path, that keep their versions."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec.structs import replace

from memorywall.kinds.openwop import WORKSPACE_FILE, WorkspaceFile
from memorywall.records.decision import Verb
from memorywall.records.draft import EntryPatch
from memorywall.records.entry import EMPTY_SCOPE, Entry
from memorywall.records.errors import ResourceNotFoundError, ValidationError
from memorywall.records.event import EventType
from memorywall.records.feature_errors import WorkspaceConflictError, WorkspaceSizeError
from memorywall.records.filter import EntryFilter
from memorywall.records.tier import Tier
from memorywall.service.access.targets import load_namespace_target, load_target
from memorywall.service.access.visibility import load_visibility
from memorywall.service.entries.governed_entries import make_governed_entry, read_value
from memorywall.service.entries.namespace_entry import enter_namespace
from memorywall.service.entries.provenance import provenance_of, update_provenance
from memorywall.service.entries.removal import remove_entry
from memorywall.service.entries.writes import create_new_entry, replace_entry
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.validation import encode_value
from memorywall.wire.openwop import LARGEST_ENTRY, FileResponse
from memorywall.wire.operation import ANY_VERSION

_NAMESPACE = "openwop-workspace"
_PATH = re.compile(r"(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9._/-]{0,255}")
_UNKNOWN = "the workspace has no such file"


async def list_files(context: OperationContext, prefix: str = "") -> list[Entry]:
    """Returns the entries of files, by path.

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
    return found


async def read_file(
    context: OperationContext, path: str, version: int | None = None
) -> FileResponse:
    """Returns a file, or an earlier version of it. Raises ResourceNotFoundError."""
    entry = await find_file(context, path)
    if entry is None:
        raise ResourceNotFoundError(_UNKNOWN)
    if version is not None and version != entry.version:
        earlier = await context.transaction.history.get(entry.id, version)
        if earlier is None:
            raise ResourceNotFoundError("the file has no such version")
        entry = earlier
    return await view(context, entry)


async def find_file(context: OperationContext, path: str) -> Entry | None:
    """Returns the entry of a file that the caller may read; None without one."""
    target = await load_namespace_target(context, Tier.SEMANTIC, _NAMESPACE)
    if not context.allows(Verb.READ, target) or not _PATH.fullmatch(path):
        return None
    entry = await context.transaction.entries.find(Tier.SEMANTIC, "", _NAMESPACE, path)
    return None if entry is None or entry.kind != WORKSPACE_FILE.name else entry


async def put_file(
    context: OperationContext, path: str, content: str, content_type: str, version: int | None
) -> FileResponse:
    """Creates or replaces a file, secrets redacted.

    version: the version that it replaces; None for any

    Raises ValidationError, WorkspaceSizeError, MemoryAccessError, WorkspaceConflictError.
    """
    if not _PATH.fullmatch(path):
        raise ValidationError(
            "the path must have 1 to 256 letters, digits, `.`, `_`, `-` and `/`, begin with a"
            " letter or digit, and not contain `..`"
        )
    if len(content.encode()) > LARGEST_ENTRY:
        raise WorkspaceSizeError(f"`content` may have at most {LARGEST_ENTRY} bytes")
    value = WorkspaceFile(content=content, content_type=content_type)
    old = await context.transaction.entries.find(Tier.SEMANTIC, "", _NAMESPACE, path)
    await enter_namespace(context, Tier.SEMANTIC, _NAMESPACE, _NAMESPACE)
    _check_version(old, version)
    own = context.principal.id
    if old is None:
        entry = make_governed_entry(
            context, WORKSPACE_FILE, value, owner="", namespace=_NAMESPACE, key=path,
            scope=EMPTY_SCOPE, field="content",
        )  # fmt: skip
        provenance = provenance_of(context.principal, shared=True)
        entry = replace(entry, agent_id=own, curated_by=own, provenance=provenance)
        return await view(context, await create_new_entry(context, entry))
    context.authorize(Verb.UPDATE, await load_target(context, Verb.UPDATE, old))
    encoded = encode_value(msgspec.to_builtins(value), "content")
    new = replace(
        old,
        value=encoded,
        size=len(encoded),
        version=old.version + 1,
        updated_at=context.now,
        curated_by=own,
    )
    new = update_provenance(context, old, new, EntryPatch())
    return await view(context, await replace_entry(context, old, new))


async def delete_file(context: OperationContext, path: str, version: int | None) -> None:
    """Deletes a file with its versions. Raises ResourceNotFoundError, MemoryAccessError,
    WorkspaceConflictError."""
    entry = await find_file(context, path)
    if entry is None:
        raise ResourceNotFoundError(_UNKNOWN)
    context.authorize(Verb.DELETE, await load_target(context, Verb.DELETE, entry))
    _check_version(entry, version)
    await remove_entry(context, EventType.DELETED, entry)


def _check_version(entry: Entry | None, version: int | None) -> None:
    current = None if entry is None else entry.version
    if version is None or current == version or (version == ANY_VERSION and entry is not None):
        return
    details: dict[str, Any] = {"currentVersion": current}
    raise WorkspaceConflictError("read the file again, and name its version", details=details)


async def view(
    context: OperationContext, entry: Entry, *, with_content: bool = True
) -> FileResponse:
    """Returns a file as OpenWOP shows it."""
    file = await read_value(context, entry, WorkspaceFile)
    return FileResponse(
        path=entry.key,
        content=file.content if with_content else msgspec.UNSET,
        content_type=file.content_type,
        version=entry.version,
        etag=f'"{entry.version}"',
        updated_at=entry.updated_at,
    )


async def read_json(context: OperationContext, path: str, shape: type[Any]) -> Any:
    """Returns a JSON file as a struct; None if there is none, or if it does not fit."""
    entry = await find_file(context, path)
    return None if entry is None else await decode_file(context, entry, shape)


async def decode_file(context: OperationContext, entry: Entry, shape: type[Any]) -> Any:
    """Returns the content of a file as a struct; None if it does not fit."""
    file = await read_value(context, entry, WorkspaceFile)
    try:
        return msgspec.json.decode(file.content, type=shape)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
