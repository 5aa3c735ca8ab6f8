"""Entries that the server makes of values of a kind, and reads back as such values."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, TypeVar, cast

import msgspec

from memorywall.kinds.spec import KindSpec
from memorywall.records.entry import Entry, Origin, Scope
from memorywall.service.entries.provenance import provenance_of
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.validation import encode_value

Value = TypeVar("Value", bound=msgspec.Struct)
MOST_TOKENS_IN_LOOP = 500_000
"""The most tokens of values that are read in the event loop: some 5 milliseconds."""


def make_governed_entry(
    context: OperationContext,
    spec: KindSpec,
    value: msgspec.Struct,
    *,
    owner: str,
    namespace: str,
    key: str,
    scope: Scope,
    subjects: tuple[str, ...] = (),
    entry_id: str | None = None,
    origin: Origin | None = None,
    source: str | None = None,
    expires_at: str | None = None,
    field: str = "value",
) -> Entry:
    """Returns a new entry with a value of a kind, written by the principal of the request.

    spec: a kind with a tier
    owner: the agent that owns the entry
    entry_id: default: a new id
    origin, source: as in `provenance_of`
    expires_at: the instant from which the entry is hidden; default: None, never
    field: the name of what makes the value large, for messages

    Raises ValidationError, ValueTooLargeError.
    """
    if spec.tier is None:
        raise LookupError(f"the kind {spec.name} has no tier")
    encoded = encode_value(cast(dict[str, Any], value), field)
    provenance = provenance_of(context.principal, False, origin, source)
    if scope.session_id is not None:
        provenance = msgspec.structs.replace(provenance, session=scope.session_id)
    return Entry(
        tenant=context.tenant,
        id=entry_id or context.service.ids.next("mem"),
        tier=spec.tier,
        owner=owner,
        agent_id=owner,
        namespace=namespace,
        key=key,
        value=encoded,
        size=len(encoded),
        scope=scope,
        expires_at=expires_at,
        created_at=context.now,
        updated_at=context.now,
        created_by=context.principal.id,
        provenance=provenance,
        kind=spec.name,
        kind_version=spec.version,
        listed=spec.listed,
        subjects=subjects,
    )


async def read_value(context: OperationContext, entry: Entry, schema: type[Value]) -> Value:
    """Returns the value of an entry as the struct of its kind, and gives way after it. Raises
    KeyUnavailableError."""
    opened = await context.service.cipher.open(context.transaction, entry)
    value: Value = _decoder(schema).decode(opened.value)
    await context.transaction.give_way()
    return value


def decode_value(opened: Entry, schema: type[Value]) -> Value:
    """Returns the value of an entry, which is in clear text, as the struct of its kind."""
    value: Value = _decoder(schema).decode(opened.value)
    return value


async def read_values(
    context: OperationContext, entries: Iterable[Entry], schema: type[Value]
) -> list[Value]:
    """Returns the values of entries like `read_value`."""
    return [await read_value(context, entry, schema) for entry in entries]


@cache
def _decoder(schema: type[msgspec.Struct]) -> msgspec.json.Decoder[Any]:
    # There are few kinds, and a page of turns is decoded with each compile.
    return msgspec.json.Decoder(schema)
