"""Conditions on fields that the store cannot read, because they are sealed."""

from __future__ import annotations

from msgspec.structs import replace

from memorywall.expressions.entry_fields import is_met_by, reads_sealed
from memorywall.records.decision import VisibilityFilter
from memorywall.records.feature_errors import ScanLimitError
from memorywall.records.filter import EntryFilter
from memorywall.service.entries.value_index import with_index
from memorywall.service.requests.operation_context import OperationContext

MOST_SCANNED = 10_000
"""The most entries whose values the condition of one query reads."""
MOST_BYTES = 16 * 1024 * 1024
"""The most bytes of these values. SQLite reads 60 bytes in a microsecond of the server's loop."""
_PAGE = 500


async def prepare_where(
    context: OperationContext, wanted: EntryFilter, within: VisibilityFilter
) -> EntryFilter:
    """Returns the filter with the matches among the entries whose fields the store cannot read.

    Only entries that are visible and meet the other conditions are read and counted. Raises
    ScanLimitError if they are more than `MOST_SCANNED` or `MOST_BYTES`, KeyUnavailableError.
    """
    where = wanted.where
    if where is None or not reads_sealed(where):
        return wanted
    wanted = await with_index(context, wanted, where)
    entries, now = context.transaction.entries, context.now
    others = replace(wanted, where=None, position=None, order="created", ascending=False)
    scanned = await entries.count(others, within, now, MOST_SCANNED + 1)
    if scanned.entries > MOST_SCANNED or scanned.bytes > MOST_BYTES:
        raise ScanLimitError(
            f"`where` reads the values of more than {MOST_SCANNED} entries or {MOST_BYTES} bytes;"
            " narrow the query with `namespace`, `kind`, `tags`, `key_prefix` or another parameter,"
            " or declare the path in `indexed_paths` of the namespace"
        )
    met: list[str] = []
    before = wanted.before
    while True:
        page, _ = await entries.search(
            replace(others, opaque=True, before=before, limit=_PAGE, offset=0, counted=False),
            within,
            now,
        )
        for entry in page:
            opened = await context.service.cipher.open(context.transaction, entry)
            if is_met_by(where, opened):
                met.append(entry.id)
        if len(page) < _PAGE:
            return replace(wanted, met=tuple(met))
        before = page[-1].id
