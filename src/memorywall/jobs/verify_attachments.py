"""Compares the stored content of attachments with the digests of the uploads."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from memorywall.coordination.attachments import chunk_binding, count_chunks
from memorywall.records.attachment import Attachment
from memorywall.records.errors import KeyUnavailableError
from memorywall.records.idempotency import DataKey
from memorywall.service.encryption.cipher import EnvelopeCipher
from memorywall.storage.consistency import ConsistencyReader


def check_attachments(
    inspection: ConsistencyReader, tenant: str, cipher: EnvelopeCipher
) -> Iterator[str]:
    """Yields the attachments of a tenant whose content cannot be opened or is another content."""
    keys = {one.id: one for one in inspection.data_keys(tenant)}
    for attachment, chunks in inspection.attachments(tenant):
        if attachment.digest is None:
            continue
        key = keys.get(attachment.sealing_key or "")
        if key is None:
            yield f"the attachment {attachment.id} has no data key"
        elif not _is_whole(attachment, chunks, key, cipher):
            yield f"the attachment {attachment.id} has another content than was uploaded"


def _is_whole(
    attachment: Attachment, chunks: Sequence[bytes], key: DataKey, cipher: EnvelopeCipher
) -> bool:
    count, digest = count_chunks(attachment.size or 0), hashlib.sha256()
    if len(chunks) != count:
        return False
    try:
        for index, chunk in enumerate(chunks):
            digest.update(cipher.open_with(key, chunk, chunk_binding(attachment, index, count)))
    except KeyUnavailableError:
        return False
    return digest.hexdigest() == attachment.digest
