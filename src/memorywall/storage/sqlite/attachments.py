"""Attachments and their content in SQLite."""

from __future__ import annotations

from collections.abc import Iterator

import apsw

from memorywall.records.attachment import Attachment
from memorywall.storage.statements import load
from memorywall.storage.work_rows import attachment_to_row, decode_attachment

_SQL = load("sqlite", "attachments")
_BEFORE_EVERY_PLACE = -1


class SqliteAttachments:
    """`port.Attachments` on one connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._execute = connection.execute
        self.removals = 0
        """How many attachments were removed through this connection: their bytes have yet to leave
        the write-ahead log."""

    async def get(self, tenant: str, attachment_id: str) -> Attachment | None:
        row = self._execute(_SQL["get"], (tenant, attachment_id)).fetchone()
        return None if row is None else decode_attachment(row[0])

    async def insert(self, attachment: Attachment) -> None:
        self._execute(_SQL["insert"], attachment_to_row(attachment))

    async def replace(self, attachment: Attachment) -> None:
        if self._execute(_SQL["replace"], attachment_to_row(attachment)).fetchone() is None:
            raise LookupError("the attachment to replace was not read in this transaction")

    async def remove(self, tenant: str, attachment_id: str) -> bool:
        if self._execute(_SQL["remove"], (tenant, attachment_id)).fetchone() is None:
            return False
        self._execute(_SQL["remove_pieces"], (tenant, attachment_id))
        self.removals += 1
        return True

    async def put_piece(self, tenant: str, attachment_id: str, place: int, content: bytes) -> None:
        self._execute(_SQL["put_piece"], (tenant, attachment_id, place, content))

    async def pieces(self, tenant: str, attachment_id: str) -> Iterator[bytes]:
        return self._pieces(tenant, attachment_id)

    async def list(self, tenant: str, intent_id: str) -> list[Attachment]:
        return [
            decode_attachment(row[0]) for row in self._execute(_SQL["list"], (tenant, intent_id))
        ]

    def _pieces(self, tenant: str, attachment_id: str) -> Iterator[bytes]:
        """Each piece by a statement of its own: one that nobody reads to its end would keep the
        snapshot open after its time."""
        place = _BEFORE_EVERY_PLACE
        statement = _SQL["next_piece"]
        while row := self._execute(statement, (tenant, attachment_id, place)).fetchone():
            place = row[0]
            yield row[1]
