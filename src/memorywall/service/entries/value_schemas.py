"""Checks of values against the schemas of their namespace."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from memorywall.records.entry import Entry
from memorywall.records.feature_errors import SchemaVersionError, SchemaViolationError
from memorywall.records.namespace import Namespace
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.schema_cache import LoadedSchemas
from memorywall.tiers import NAMESPACE_TIERS

_SHARED = frozenset(NAMESPACE_TIERS)


async def check_value(context: OperationContext, namespace: Namespace | None, entry: Entry) -> None:
    """Checks a new value against the schemas of its namespace.

    entry: the entry with its value in clear text
    Raises SchemaViolationError, and UnavailableError if schemas cannot be checked.
    """
    if namespace is None or namespace.schemas is None:
        return
    loaded = await context.service.schemas.load(context.transaction, namespace)
    misfits = await context.transaction.compute(len(entry.value), lambda: loaded.misfits(entry))
    for record, misfit in misfits:
        place = f"`{misfit.pointer}` of the value" if misfit.pointer else "the value"
        missing = "" if misfit.missing is None else f" (`{misfit.missing[:64]}`)"
        raise SchemaViolationError(
            f"{place} violates `{misfit.keyword}`{missing} of the schema `{record.name}`"
            f" {record.version}",
            schema=record.name,
            schema_version=record.version,
            pointer=misfit.pointer,
        )


async def select_fitting(
    context: OperationContext, entries: Iterable[Entry], major: int
) -> list[Entry]:
    """The opened entries that fit the schemas of their namespaces at a major version. An entry
    without a schema of that version is left out."""
    known: dict[str, LoadedSchemas] = {}
    fitting = []
    for entry in entries:
        if entry.tier not in _SHARED:
            continue
        if entry.namespace not in known:
            namespace = await context.transaction.namespaces.get(entry.namespace)
            known[entry.namespace] = (
                LoadedSchemas(())
                if namespace is None
                else await context.service.schemas.load(context.transaction, namespace)
            )
        fits = partial(known[entry.namespace].fits_major, entry, major)
        if await context.transaction.compute(len(entry.value), fits):
            fitting.append(entry)
    return fitting


async def require_major(context: OperationContext, entry: Entry, major: int | None) -> None:
    """Raises SchemaVersionError unless an opened entry fits the schemas of its namespace at a major
    version; None for any version."""
    if major is not None and not await select_fitting(context, (entry,), major):
        raise SchemaVersionError(
            "the entry does not fit schemas of this major version; read it without"
            " `schema_version`, or with another one"
        )
