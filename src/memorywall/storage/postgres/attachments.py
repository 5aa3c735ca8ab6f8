"""Attachments and their content in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator

from memorywall.records.attachment import Attachment
from memorywall.storage.postgres.session import Noun
from memorywall.storage.statements import load
from memorywall.storage.work_rows import attachment_to_row, decode_attachment

_SQL = load("postgres", "attachments")


class PostgresAttachments(Noun):
    """`port.Attachments` in one transaction."""

    async def get(self, tenant: str, attachment_id: str) -> Attachment | None:
        row = await self._row(_SQL["get"], tenant, attachment_id)
        return None if row is None else decode_attachment(row[0])

    async def insert(self, attachment: Attachment) -> None:
        await self._change(_SQL["insert"], *attachment_to_row(attachment))

    async def replace(self, attachment: Attachment) -> None:
        if not await self._change(_SQL["replace"], *attachment_to_row(attachment)):
            raise LookupError("the attachment to replace was not read in this transaction")

    async def list(self, tenant: str, intent_id: str) -> list[Attachment]:
        rows = await self._rows(_SQL["list"], tenant, intent_id)
        return [decode_attachment(row[0]) for row in rows]

    async def remove(self, tenant: str, attachment_id: str) -> bool:
        if not await self._change(_SQL["remove"], tenant, attachment_id):
            return False
        await self._change(_SQL["remove_pieces"], tenant, attachment_id)
        return True

    async def put_piece(self, tenant: str, attachment_id: str, place: int, content: bytes) -> None:
        await self._change(_SQL["put_piece"], tenant, attachment_id, place, content)

    async def pieces(self, tenant: str, attachment_id: str) -> Iterator[bytes]:
        # Not remembered with the small facts of the transaction: it may be sixteen megabytes.
        rows = await self._session.rows(_SQL["pieces"], tenant, attachment_id)
        return (row[0] for row in rows)
