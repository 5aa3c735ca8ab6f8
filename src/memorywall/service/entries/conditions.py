"""Conditions on the fields of entries: what they may read, and those that the store cannot compute
because the fields are sealed."""

from __future__ import annotations

from msgspec.structs import replace

from memorywall.expressions.entry_fields import is_met_by, reads_sealed
from memorywall.expressions.evaluate import tests_of
from memorywall.records.condition import Condition, Test
from memorywall.records.decision import VisibilityFilter
from memorywall.records.entry import Entry
from memorywall.records.feature_errors import ScanLimitError
from memorywall.records.filter import EntryFilter
from memorywall.service.entries.value_index import with_index
from memorywall.service.requests.operation_context import OperationContext

MOST_SCANNED = 10_000
"""The most entries whose values the condition of one query reads."""
MOST_BYTES = 16 * 1024 * 1024
"""The most bytes of these values. SQLite reads 60 bytes in a microsecond."""
MOST_STEPS = 8 * MOST_BYTES
"""The most bytes that all tests of a condition read together: each reads the whole value. The
slowest condition with so many takes two to three seconds of processor time."""
_STEPS_OF_CONTAINS = 4
"""A comparison with each element of an array of numbers takes so many times as long as the search
for the array."""
_BYTES_OF_A_LITERAL = 256
"""A text is searched for so many bytes of the literal in the time of one step."""
_BYTES_OF_A_TEST = 64
"""The time of a test that reads almost nothing, as bytes of a value."""
_PAGE = 100


class ScanBudget:
    """What the condition of one request may still read.

    It does not depend on the order of the tests, nor on the values: whether a request is refused
    depends on the number and the size of the entries only, in every store.
    """

    def __init__(self, where: Condition) -> None:
        steps = [(test.path.field, _steps_of(test)) for test in tests_of(where)]
        self._per_byte = sum(count for field, count in steps if field == "value")
        self._per_entry = sum(count for _, count in steps) * _BYTES_OF_A_TEST
        self._left = MOST_STEPS

    @property
    def most_entries(self) -> int:
        """The most entries that the condition may read."""
        return self._left // self._per_entry

    def spend(self, entries: int, size: int) -> None:
        """Counts the reading of entries with values of this size in bytes. Raises
        ScanLimitError."""
        self._left -= entries * self._per_entry + size * self._per_byte
        if self._left < 0:
            raise ScanLimitError(
                "`where` has too many comparisons for the entries that it reads; use fewer, use"
                " `in` for several values of one path, or narrow the query with `namespace`,"
                " `kind`, `tags`, `key_prefix` or another parameter"
            )


def _steps_of(test: Test) -> int:
    if test.operator != "contains":
        return 1
    (literal,) = test.literals
    length = len(literal) if isinstance(literal, str) else 0
    return _STEPS_OF_CONTAINS + length // _BYTES_OF_A_LITERAL


async def prepare_where(
    context: OperationContext, wanted: EntryFilter, within: VisibilityFilter
) -> EntryFilter:
    """Returns the filter with the matches among the entries whose fields the store cannot read. A
    prepared filter stays as it is.

    Only entries that are visible and meet the other conditions are read and counted. Raises
    ScanLimitError if they are more than `MOST_SCANNED` or `MOST_BYTES`, or need more than
    `MOST_STEPS`; KeyUnavailableError.
    """
    where = wanted.where
    if where is None or wanted.met is not None:
        return wanted
    is_sealed = reads_sealed(where)
    if is_sealed:
        wanted = await with_index(context, wanted, where)
    entries, now = context.transaction.entries, context.now
    others = replace(wanted, where=None, position=None, order="created", ascending=False)
    budget = ScanBudget(where)
    most = MOST_SCANNED if is_sealed else budget.most_entries
    scanned = await entries.count(others, within, now, most + 1)
    if is_sealed and (scanned.entries > MOST_SCANNED or scanned.bytes > MOST_BYTES):
        raise ScanLimitError(
            f"`where` reads the values of more than {MOST_SCANNED} entries or {MOST_BYTES} bytes;"
            " narrow the query with `namespace`, `kind`, `tags`, `key_prefix` or another parameter,"
            " or declare the path in `indexed_paths` of the namespace"
        )
    budget.spend(scanned.entries, scanned.bytes)
    if not is_sealed:
        return replace(wanted, met=())
    met: list[str] = []
    before = wanted.before
    while True:
        page, _ = await entries.search(
            replace(others, opaque=True, before=before, limit=_PAGE, offset=0, counted=False),
            within,
            now,
        )
        met += [entry.id for entry in await select_met(context, where, page)]
        if len(page) < _PAGE:
            return replace(wanted, met=tuple(met))
        before = page[-1].id


async def select_met(
    context: OperationContext, where: Condition, entries: list[Entry]
) -> list[Entry]:
    """Returns the entries that meet a condition. Raises KeyUnavailableError."""
    opened = [await context.service.cipher.open(context.transaction, one) for one in entries]
    pairs = list(zip(entries, opened, strict=True))
    return await context.transaction.compute(
        sum(one.size for one in entries),
        lambda: [entry for entry, shown in pairs if is_met_by(where, shown)],
    )
