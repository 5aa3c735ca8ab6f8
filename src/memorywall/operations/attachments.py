"""Files of intents and of entries, and their content.

The path of a request says what a file belongs to, so that an operation on the files of entries is
that on the files of intents under another name.
"""

from __future__ import annotations

import base64
import re
from urllib.parse import quote

from memorywall.coordination import attachments
from memorywall.coordination.attachments import NewAttachment
from memorywall.operations.binding import multi_transaction_operation, operation
from memorywall.records.attachment import AttachmentParent
from memorywall.records.decision import Verb
from memorywall.service.requests.operation_context import OperationCall, OperationContext
from memorywall.service.runner.operation_runner import OperationTransactions
from memorywall.wire.attachments import AttachmentListResponse, AttachmentResponse, attachment_view
from memorywall.wire.results import Header, HttpResponse

# The content of a file is untrusted: no browser may render it as a page of this server.
_NEVER_A_PAGE: Header = (b"content-security-policy", b"default-src 'none'; sandbox")
_NOT_QUOTABLE = re.compile(r"[^ !#$&-\[\]^-~]")


async def _authorize_repeat(context: OperationContext, call: OperationCall) -> None:
    """Raises the error of a caller that may not attach a file any more."""
    await attachments.authorize_change(context, _parent(call))


@operation("add_attachment", recheck=_authorize_repeat)
async def add_attachment(context: OperationContext, call: OperationCall) -> AttachmentResponse:
    body = call.body
    result = await attachments.add(
        context,
        _parent(call),
        NewAttachment(
            filename=body.filename,
            mime_type=body.declared_type,
            size=body.declared_size,
            storage_url=body.declared_url,
            metadata=body.metadata,
        ),
    )
    return attachment_view(result)


@operation("list_attachments")
async def list_attachments(
    context: OperationContext, call: OperationCall
) -> AttachmentListResponse:
    found = await attachments.list_attachments(context, _parent(call))
    return AttachmentListResponse(attachments=[attachment_view(one) for one in found])


@operation("get_attachment")
async def get_attachment(context: OperationContext, call: OperationCall) -> AttachmentResponse:
    found = await attachments.get(context, _parent(call), call.path["attachment_id"])
    return attachment_view(found)


@multi_transaction_operation("upload_attachment")
async def upload_attachment(transactions: OperationTransactions) -> AttachmentResponse:
    call = transactions.call
    stored = await attachments.upload(
        transactions,
        _parent(call),
        call.path["attachment_id"],
        call.content,
    )
    return attachment_view(stored)


@multi_transaction_operation("download_attachment")
async def download_attachment(transactions: OperationTransactions) -> HttpResponse:
    call = transactions.call
    file = await attachments.download(transactions, _parent(call), call.path["attachment_id"])
    digest = file.attachment.digest or ""
    headers: tuple[Header, ...] = (
        (b"content-disposition", _disposition(file.attachment.filename)),
        (b"repr-digest", b"sha-256=:" + base64.b64encode(bytes.fromhex(digest)) + b":"),
        (b"etag", b'"sha256-' + digest.encode() + b'"'),
        _NEVER_A_PAGE,
    )
    return HttpResponse(200, file.content, headers, file.attachment.mime_type.encode())


# Overwriting the stored content of a large file takes a while.
@operation("delete_attachment", is_long=lambda call: True)
async def delete_attachment(context: OperationContext, call: OperationCall) -> None:
    await attachments.delete(context, _parent(call), call.path["attachment_id"])


# The reply names the file, and is erased with the entry.
@operation(
    "add_entry_attachment",
    shows=lambda shown: (shown.entry_id,),
    recheck=_authorize_repeat,
    repeat_verbs=(Verb.UPDATE,),
)
async def add_entry_attachment(
    context: OperationContext, call: OperationCall
) -> AttachmentResponse:
    return await add_attachment(context, call)


@operation("list_entry_attachments")
async def list_entry_attachments(
    context: OperationContext, call: OperationCall
) -> AttachmentListResponse:
    return await list_attachments(context, call)


@operation("get_entry_attachment")
async def get_entry_attachment(
    context: OperationContext, call: OperationCall
) -> AttachmentResponse:
    return await get_attachment(context, call)


@multi_transaction_operation("upload_entry_attachment")
async def upload_entry_attachment(transactions: OperationTransactions) -> AttachmentResponse:
    return await upload_attachment(transactions)


@multi_transaction_operation("download_entry_attachment")
async def download_entry_attachment(transactions: OperationTransactions) -> HttpResponse:
    return await download_attachment(transactions)


@operation("delete_entry_attachment", is_long=lambda call: True)
async def delete_entry_attachment(context: OperationContext, call: OperationCall) -> None:
    await delete_attachment(context, call)


def _parent(call: OperationCall) -> AttachmentParent:
    """Returns the parent of a file, as the path of the request names it."""
    if "entry_id" in call.path:
        return AttachmentParent("entry", call.path["entry_id"])
    return AttachmentParent("intent", call.path["intent_id"])


def _disposition(filename: str) -> bytes:
    """Returns a Content-Disposition header that makes browsers save the file under its name (RFC
    6266): in ASCII for old clients, and exactly (RFC 8187)."""
    plain = _NOT_QUOTABLE.sub("_", filename)
    exact = quote(filename, safe="!#$&+-.^_`|~")
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{exact}".encode("ascii")
