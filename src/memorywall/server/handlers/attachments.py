"""Files of intents, and their content."""

from __future__ import annotations

import base64
import re
from urllib.parse import quote

from memorywall.coordination import attachments
from memorywall.coordination.attachments import NewAttachment
from memorywall.server.dispatch import Call
from memorywall.server.replies import Header, Reply, json_reply
from memorywall.wire.access import AttachmentList, attachment_view

# What a file contains is its uploader's doing: no browser may show it as a page of this server.
_NEVER_A_PAGE: Header = (b"content-security-policy", b"default-src 'none'; sandbox")
_NOT_QUOTABLE = re.compile(r"[^ !#$&-\[\]^-~]")


async def add_attachment(call: Call) -> Reply:
    body = call.body
    script = await attachments.add(
        call.door,
        call.principal,
        call.path["intent_id"],
        NewAttachment(
            filename=body.filename,
            mime_type=body.declared_type,
            size=body.declared_size,
            storage_url=body.declared_url,
            metadata=body.metadata,
        ),
    )
    return json_reply(
        attachment_view(await call.door.store.write(call.principal.tenant, script)), 201
    )


async def list_attachments(call: Call) -> Reply:
    found = await attachments.list_attachments(call.door, call.principal, call.path["intent_id"])
    return json_reply(AttachmentList(attachments=[attachment_view(one) for one in found]))


async def get_attachment(call: Call) -> Reply:
    found = await attachments.get(
        call.door, call.principal, call.path["intent_id"], call.path["attachment_id"]
    )
    return json_reply(attachment_view(found))


async def upload_attachment(call: Call) -> Reply:
    stored = await attachments.upload(
        call.door,
        call.principal,
        call.path["intent_id"],
        call.path["attachment_id"],
        call.content,
    )
    return json_reply(attachment_view(stored))


async def download_attachment(call: Call) -> Reply:
    file = await attachments.download(
        call.door, call.principal, call.path["intent_id"], call.path["attachment_id"]
    )
    digest = file.attachment.digest or ""
    headers: tuple[Header, ...] = (
        (b"content-disposition", _disposition(file.attachment.filename)),
        (b"repr-digest", b"sha-256=:" + base64.b64encode(bytes.fromhex(digest)) + b":"),
        (b"etag", b'"sha256-' + digest.encode() + b'"'),
        _NEVER_A_PAGE,
    )
    return Reply(200, file.content, headers, file.attachment.mime_type.encode())


async def delete_attachment(call: Call) -> Reply:
    script = await attachments.delete(
        call.door, call.principal, call.path["intent_id"], call.path["attachment_id"]
    )
    # Overwriting what a large file leaves behind takes a while.
    await call.door.store.write(call.principal.tenant, script, long=True)
    return Reply(204, b"")


def _disposition(filename: str) -> bytes:
    """To be saved, never shown, under its name (RFC 6266): in ASCII for old clients, and exactly
    (RFC 8187)."""
    plain = _NOT_QUOTABLE.sub("_", filename)
    exact = quote(filename, safe="!#$&+-.^_`|~")
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{exact}".encode("ascii")
