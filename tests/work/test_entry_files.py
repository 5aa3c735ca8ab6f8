"""Files of entries: who may read or change the entry may do so with its files, which go with it."""

from __future__ import annotations

import secrets

import pytest

from memorywall.coordination import attachments
from memorywall.coordination.attachments import CHUNK_BYTES, NewAttachment
from memorywall.records.attachment import Attachment, AttachmentParent
from memorywall.records.errors import (
    KeyUnavailableError,
    MemoryAccessError,
    MemoryNotFoundError,
    ResourceNotFoundError,
)
from memorywall.records.principal import DEFAULT_PERMISSIONS, Principal, PrincipalKind
from memorywall.service.erasure.entry_erasure import forget
from memorywall.service.requests.operation_context import OperationCall
from memorywall.service.runner.operation_runner import (
    OperationTransactions,
    run_read,
    run_write,
)
from memorywall.wire.operations import OPERATIONS
from tests.http.checks import MEMORY
from tests.support.service import RunningService, draft
from tests.support.stored import rows
from tests.work.crew import ok

pytestmark = pytest.mark.anyio

TENANT = "default"
_ANY_OPERATION = next(iter(OPERATIONS))


def _principal(name: str) -> Principal:
    return Principal(
        tenant=TENANT, id=name, kind=PrincipalKind.AGENT, permissions=DEFAULT_PERMISSIONS
    )


def _session(service: RunningService, name: str) -> OperationTransactions:
    call = OperationCall(operation=_ANY_OPERATION, principal=_principal(name))
    return OperationTransactions(service.services, call)


async def _entry(service: RunningService, **fields: str) -> AttachmentParent:
    """An entry of ada's."""
    ada = await service.agent("ada")
    made = ok(await ada.post(MEMORY, json=draft("state", **fields)), 201)
    return AttachmentParent("entry", made["id"])


async def _attach(
    service: RunningService, parent: AttachmentParent, name: str = "ada"
) -> Attachment:
    wanted = NewAttachment(
        filename="checkpoint.bin",
        mime_type="application/octet-stream",
        size=None,
        storage_url=None,
        metadata={},
    )
    return await run_write(
        service.services, _principal(name), lambda context: attachments.add(context, parent, wanted)
    )


async def _stored(service: RunningService, content: bytes) -> tuple[AttachmentParent, Attachment]:
    """An entry of ada's with a file in it."""
    parent = await _entry(service)
    made = await _attach(service, parent)
    session = _session(service, "ada")
    return parent, await attachments.upload(session, parent, made.id, content)


async def _list(service: RunningService, parent: AttachmentParent, name: str) -> list[Attachment]:
    return await run_read(
        service.services,
        _principal(name),
        lambda context: attachments.list_attachments(context, parent),
    )


def _pieces(service: RunningService) -> int:
    return int(rows(service, "SELECT count(*) FROM attachment_pieces")[0][0])


async def test_a_file_of_an_entry_comes_back(service: RunningService) -> None:
    content = secrets.token_bytes(2 * CHUNK_BYTES + 1)
    parent, made = await _stored(service, content)
    file = await attachments.download(_session(service, "ada"), parent, made.id)
    assert file.content == content
    assert await _list(service, parent, "ada") == [made]
    assert made.parent == parent


async def test_it_is_sealed_with_the_key_of_the_entrys_owner(service: RunningService) -> None:
    _, made = await _stored(service, b"content")
    assert made.sealing_key is not None
    key = await service.services.store.read(
        TENANT, lambda to: to.data_keys.get(made.sealing_key or "")
    )
    assert key is not None
    assert key.owner == "ada"


async def test_files_are_unreadable_when_the_entry_is(service: RunningService) -> None:
    parent, made = await _stored(service, b"content")
    with pytest.raises(MemoryAccessError):
        await _list(service, parent, "eve")
    with pytest.raises(MemoryAccessError):
        await attachments.download(_session(service, "eve"), parent, made.id)
    with pytest.raises(MemoryAccessError):
        await _attach(service, parent, "eve")
    with pytest.raises(MemoryAccessError):
        await attachments.upload(_session(service, "eve"), parent, made.id, b"content")


async def test_file_is_found_only_under_its_own_entry(service: RunningService) -> None:
    parent, made = await _stored(service, b"content")
    ada = await service.agent("ada")
    other = ok(await ada.post(MEMORY, json=draft("other")), 201)["id"]
    with pytest.raises(ResourceNotFoundError):
        await attachments.download(
            _session(service, "ada"), AttachmentParent("entry", other), made.id
        )
    with pytest.raises(MemoryNotFoundError):
        await _list(service, AttachmentParent("entry", "mem_0"), "ada")
    assert await _list(service, parent, "ada") == [made]


async def test_the_files_go_with_their_entry(service: RunningService) -> None:
    parent, _ = await _stored(service, b"content")
    assert _pieces(service) == 1
    ada = await service.agent("ada")
    ok(await ada.delete(f"{MEMORY}/{parent.id}"), 204)
    assert _pieces(service) == 0
    assert rows(service, "SELECT id FROM attachments") == []


async def test_forgotten_agent_leaves_no_file_and_no_file_key(service: RunningService) -> None:
    _, made = await _stored(service, b"content")
    await forget(service.services, TENANT, "ada")
    assert _pieces(service) == 0
    with pytest.raises(KeyUnavailableError):
        await service.services.store.read(
            TENANT,
            lambda to: service.services.cipher.open_bytes(
                to, TENANT, made.sealing_key or "", b"", ""
            ),
        )
