"""Operations on attachments: the same ones for the files of intents and for those of entries."""

from __future__ import annotations

from memorywall.records.attachment import ParentKind
from memorywall.records.errors import (
    MemoryCapacityError,
    MemoryNotFoundError,
    ResourceConflictError,
    ResourceNotFoundError,
)
from memorywall.wire.access import AttachmentListResponse, AttachmentRequest, AttachmentResponse
from memorywall.wire.operation import Operation
from memorywall.wire.operation_group import OperationGroup

_PATHS: dict[ParentKind, str] = {
    "intent": "/intents/{intent_id}/attachments",
    "entry": "/memory/{entry_id}/attachments",
}
_PREFIXES: dict[ParentKind, str] = {"intent": "", "entry": "entry_"}
_CONTENT_SOURCES: dict[ParentKind, str] = {
    "intent": "RFC-0005, RFC-0015 section 6.2",
    "entry": "RFC-0015 section 6.2",
}
_GROUPS: dict[ParentKind, OperationGroup] = {
    "intent": OperationGroup(name="Attachments", source="RFC-0005"),
    "entry": OperationGroup(
        name="Attachments", not_found=(MemoryNotFoundError, ResourceNotFoundError)
    ),
}


def attachment_operation(verb: str, parent: ParentKind) -> str:
    """The name of an operation on the attachments of an intent or of an entry.

    verb: what it does, such as "add"; "list" is the only one about several files
    """
    return f"{verb}_{_PREFIXES[parent]}attachment{'s' if verb == 'list' else ''}"


def _operations(parent: ParentKind) -> tuple[Operation, ...]:
    group, path, content_source = _GROUPS[parent], _PATHS[parent], _CONTENT_SOURCES[parent]
    one = path + "/{attachment_id}"
    return (
        group(
            attachment_operation("add", parent),
            f"POST {path}",
            f"Attach a file to an {parent}.",
            body=AttachmentRequest,
            reply=AttachmentResponse,
            status=201,
            raises=(MemoryCapacityError,),
        ),
        group(
            attachment_operation("list", parent),
            f"GET {path}",
            f"List the files of an {parent}.",
            reply=AttachmentListResponse,
        ),
        group(
            attachment_operation("get", parent),
            f"GET {one}",
            f"Get the metadata of a file of an {parent}.",
            reply=AttachmentResponse,
        ),
        group(
            attachment_operation("upload", parent),
            f"PUT {one}/content",
            f"Store the content of a file of an {parent}.",
            source=content_source,
            body=bytes,
            content="bytes",
            reply=AttachmentResponse,
            raises=(ResourceConflictError,),
        ),
        group(
            attachment_operation("download", parent),
            f"GET {one}/content",
            f"Get the content of a file of an {parent}.",
            source=content_source,
            reply=bytes,
            media="bytes",
        ),
        group(
            attachment_operation("delete", parent),
            f"DELETE {one}",
            f"Delete a file of an {parent} and its content permanently.",
        ),
    )


ATTACHMENT_OPERATIONS: tuple[Operation, ...] = (*_operations("intent"), *_operations("entry"))
