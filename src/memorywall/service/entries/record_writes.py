"""The only functions that write and open declared records with sealed fields.

The fields in `RecordSpec.sealed` are encrypted together, with the data key of the agent that
created the record. When that agent is forgotten, its key is destroyed and the sealed fields are
removed. A record that was stored in clear text is readable and is sealed at its next write.
"""

from __future__ import annotations

from typing import Any

import msgspec

from memorywall.records.sealed import SealedPart
from memorywall.service.requests.operation_context import OperationContext
from memorywall.storage.sql.record_spec import Record, RecordSpec
from memorywall.storage.sql.record_table import RECORDS, spec_of

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


async def insert_record(context: OperationContext, record: Record) -> None:
    """Stores a new record."""
    spec = spec_of(record)
    await context.transaction.records(spec).insert(await _seal(context, spec, record))


async def replace_record(context: OperationContext, record: Record) -> None:
    """Stores the next version of a record that was read in this transaction, opened or not. Raises
    LookupError."""
    spec = spec_of(record)
    await context.transaction.records(spec).replace(await _seal(context, spec, record))


async def open_record(context: OperationContext, record: Record) -> Record:
    """Returns the record with its sealed fields in clear text, and gives way after it. Raises
    KeyUnavailableError."""
    spec = spec_of(record)
    part: SealedPart | None = record.sealed  # type: ignore[attr-defined]
    if part is None:
        return record
    content = await context.service.cipher.open_bytes(
        context.transaction, context.tenant, part.key_id, part.content, _binding(spec, record)
    )
    # Fields in clear text beside sealed ones are newer: their writer did not open the record.
    fields = {
        name: value
        for name, value in _decode(content).items()
        if getattr(record, name) == spec.empty[name]
    }
    await context.transaction.give_way()
    return msgspec.structs.replace(record, sealed=None, **fields)


async def has_unsealed(context: OperationContext) -> bool:
    """Returns whether any record is stored in clear text and must be sealed."""
    for spec in RECORDS.values():
        if await context.transaction.records(spec).unsealed(1):
            return True
    return False


async def seal_stored(context: OperationContext, limit: int) -> int:
    """Seals up to `limit` records of each declaration that are stored in clear text; returns their
    number."""
    sealed = 0
    for spec in RECORDS.values():
        found = await context.transaction.records(spec).unsealed(limit)
        for record in found:
            await replace_record(context, record)
        sealed += len(found)
    return sealed


async def erase_sealed(context: OperationContext, agent: str, limit: int) -> int:
    """Removes data that is sealed with an agent's data keys from up to `limit` records; returns
    their number."""
    erased = 0
    for spec in RECORDS.values():
        erased += await context.transaction.records(spec).erase_sealed(agent, limit - erased)
    return erased


async def _seal(context: OperationContext, spec: RecordSpec[Record], record: Record) -> Record:
    if not spec.has_clear_content(record):
        return record
    record = await open_record(context, record)
    values = {name: getattr(record, name) for name in spec.sealed}
    content = {name: value for name, value in values.items() if value != spec.empty[name]}
    key_id, sealed = await context.service.cipher.seal_for(
        context.transaction,
        context.tenant,
        getattr(record, spec.owner),
        _encode(content),
        _binding(spec, record),
        context.now,
    )
    return msgspec.structs.replace(record, sealed=SealedPart(key_id, sealed), **spec.empty)


def _binding(spec: RecordSpec[Record], record: Record) -> str:
    # NUL separates the parts; no name or id can contain NUL.
    tenant: str = record.tenant  # type: ignore[attr-defined]
    return "\0".join((f"record {spec.table}", tenant, *spec.key_of(record)))
