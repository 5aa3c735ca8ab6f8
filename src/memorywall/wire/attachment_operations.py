"""Operations on attachments: the same ones for the files of intents and for those of entries."""

from __future__ import annotations

from memorywall.records.attachment import ParentKind
from memorywall.records.errors import (
    MemoryCapacityError,
    MemoryNotFoundError,
    MemorywallError,
    ResourceConflictError,
    ResourceNotFoundError,
)
from memorywall.records.principal import Permission
from memorywall.wire.access import AttachmentListResponse, AttachmentRequest, AttachmentResponse
from memorywall.wire.operation import Operation

_PATHS: dict[ParentKind, str] = {
    "intent": "/api/v1/intents/{intent_id}/attachments",
    "entry": "/api/v1/memory/{entry_id}/attachments",
}
_PREFIXES: dict[ParentKind, str] = {"intent": "", "entry": "entry_"}
_SOURCES: dict[ParentKind, str] = {"intent": "RFC-0005", "entry": "memorywall"}
_CONTENT_SOURCES: dict[ParentKind, str] = {
    "intent": "RFC-0005, RFC-0015 section 6.2",
    "entry": "RFC-0015 section 6.2",
}
_ABSENT: dict[ParentKind, tuple[type[MemorywallError], ...]] = {
    "intent": (ResourceNotFoundError,),
    "entry": (MemoryNotFoundError, ResourceNotFoundError),
}


def attachment_operation(verb: str, parent: ParentKind) -> str:
    """The name of an operation on the attachments of an intent or of an entry.

    verb: what it does, such as "add"; "list" is the only one about several files
    """
    return f"{verb}_{_PREFIXES[parent]}attachment{'s' if verb == 'list' else ''}"


def _metadata_operations(parent: ParentKind) -> tuple[Operation, ...]:
    path, source, absent = _PATHS[parent], _SOURCES[parent], _ABSENT[parent]
    return (
        Operation(
            name=attachment_operation("add", parent),
            method="POST",
            path=path,
            group="Attachments",
            summary=f"Attach a file to an {parent}.",
            source=source,
            permission=Permission.WRITE,
            body=AttachmentRequest,
            reply=AttachmentResponse,
            status=201,
            raises=(*absent, MemoryCapacityError),
        ),
        Operation(
            name=attachment_operation("list", parent),
            method="GET",
            path=path,
            group="Attachments",
            summary=f"List the files of an {parent}.",
            source=source,
            permission=Permission.READ,
            reply=AttachmentListResponse,
            raises=absent,
        ),
        Operation(
            name=attachment_operation("get", parent),
            method="GET",
            path=path + "/{attachment_id}",
            group="Attachments",
            summary=f"Get the metadata of a file of an {parent}.",
            source=source,
            permission=Permission.READ,
            reply=AttachmentResponse,
            raises=absent,
        ),
    )


def _content_operations(parent: ParentKind) -> tuple[Operation, ...]:
    one, absent = _PATHS[parent] + "/{attachment_id}", _ABSENT[parent]
    return (
        Operation(
            name=attachment_operation("upload", parent),
            method="PUT",
            path=f"{one}/content",
            group="Attachments",
            summary=f"Store the content of a file of an {parent}.",
            source=_CONTENT_SOURCES[parent],
            permission=Permission.WRITE,
            body=bytes,
            content="bytes",
            reply=AttachmentResponse,
            raises=(*absent, ResourceConflictError),
        ),
        Operation(
            name=attachment_operation("download", parent),
            method="GET",
            path=f"{one}/content",
            group="Attachments",
            summary=f"Get the content of a file of an {parent}.",
            source=_CONTENT_SOURCES[parent],
            permission=Permission.READ,
            reply=bytes,
            media="bytes",
            raises=absent,
        ),
        Operation(
            name=attachment_operation("delete", parent),
            method="DELETE",
            path=one,
            group="Attachments",
            summary=f"Delete a file of an {parent} and its content permanently.",
            source=_SOURCES[parent],
            permission=Permission.WRITE,
            status=204,
            raises=absent,
        ),
    )


ATTACHMENT_OPERATIONS: tuple[Operation, ...] = (
    *_metadata_operations("intent"),
    *_content_operations("intent"),
    *_metadata_operations("entry"),
    *_content_operations("entry"),
)
