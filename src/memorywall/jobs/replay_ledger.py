"""Repeats the erasures of the suppression ledger on a restored store, before it is used.

A line of the ledger names the event that its tenant's log ended with after the erasure. A log that
contains this event contains the erasure. Every other line is repeated, unless a later line says
that an earlier restore has repeated it in this very log. Lines have digests only, so the names of
the backup are digested and compared.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field

from memorywall.jobs.log_segments import AppliedLedger, begin_segment
from memorywall.kinds.spec import ABOUT
from memorywall.records.event_chain import Envelope, hash_of
from memorywall.records.suppression import LedgerKey, SuppressionKind, SuppressionLine
from memorywall.service.administration.tenants import list_tenants
from memorywall.service.erasure.entry_erasure import forget
from memorywall.service.erasure.subject_erasure import (
    erase_entries,
    erase_stored_subject,
    record_forgettings,
    subjects_in_content,
)
from memorywall.service.requests.namespace_names import USER_PREFIX
from memorywall.service.requests.services import SharedServices
from memorywall.storage.derived_rows import subjects_of_version
from memorywall.storage.rows import decode_edges, decode_names
from memorywall.storage.sql.record_table import INTENTS, NAMESPACES
from memorywall.storage.suppression_ledger import LedgerContent, SuppressionLedger
from memorywall.storage.transfer import (
    API_KEYS,
    DATA_KEYS,
    ENTRIES,
    ENTRY_HISTORY,
    EVENT_CONTENTS,
    EVENTS,
    CopySide,
    Key,
    Row,
    Table,
    tables,
)

_ENVELOPE = [EVENTS.indexes[name] for name in Envelope._fields]
_AGENT_COLUMNS = {
    "principals": "id",
    "agent_limits": "agent",
    "kept_replies": "principal",
    API_KEYS.name: "principal",
    DATA_KEYS.name: "subject",
    ENTRIES.name: "owner",
    INTENTS.table: INTENTS.owner,
}
"""The columns that name the owner of data that is erased with an agent."""
_NAMING = {*_AGENT_COLUMNS, NAMESPACES.table, ENTRY_HISTORY.name, EVENT_CONTENTS.name}
"""The tables with names that a line of the ledger may have."""

_Instants = dict[str, str]
"""Names or digests with the instants at which they were forgotten."""
_Names = dict[SuppressionKind, _Instants]


@dataclass(slots=True)
class ReplayPlan:
    """The names in a backup whose erasure has to be repeated.

    content: the ledger, None for a restore without one
    found: the names by tenant
    forgotten: the lines about people by tenant, also of people of whom the backup has nothing
    """

    content: LedgerContent | None = None
    found: dict[str, _Names] = field(default_factory=dict)
    forgotten: dict[str, list[SuppressionLine]] = field(default_factory=dict)

    def count(self, kind: SuppressionKind) -> int:
        """Returns the number of names of a kind."""
        return sum(len(names.get(kind, ())) for names in self.found.values())


async def plan_replay(
    source: CopySide, content: LedgerContent, ledger: SuppressionLedger
) -> ReplayPlan:
    """Returns the names in the source that lines of the ledger name and whose erasure the source
    does not contain.

    content: the content of the ledger
    """
    plan = ReplayPlan(content)
    if not content.lines:
        # Such a ledger may have no key yet.
        return plan
    key = ledger.key
    for tenant in await source.tenants():
        digests: _Names = {}
        for line in await _lines_to_apply(source, tenant, content, key):
            digests.setdefault(line.kind, {}).update(dict.fromkeys(line.digests, line.at))
            if line.kind is SuppressionKind.SUBJECT:
                plan.forgotten.setdefault(tenant, []).append(line)
        if digests:
            names = await _names_of(source, tenant, digests, key)
            if names:
                plan.found[tenant] = names
    return plan


async def replay(
    service: SharedServices, plan: ReplayPlan, ledger: SuppressionLedger | None
) -> None:
    """Begins a new segment of each log, repeats the erasures, and records in the ledger that its
    lines are applied to these logs.

    service: over the restored store, without a ledger of its own
    ledger: contains the lines of the plan; None for a restore without a ledger
    """
    lines = 0 if plan.content is None else len(plan.content.lines)
    applied = None
    if plan.content is not None:
        applied = AppliedLedger(lines=lines, mac=plan.content.macs[lines])
    made = []
    for tenant in await list_tenants(service):
        head = await begin_segment(service, tenant, applied)
        if head is not None and ledger is not None:
            kind, now = SuppressionKind.RESTORED, service.now()
            made.append(ledger.key.make_line(now, kind, tenant, (), head, lines))
    for tenant, lines_about_people in plan.forgotten.items():
        await record_forgettings(service, tenant, lines_about_people)
    for tenant, names in plan.found.items():
        for subject, forgotten_at in names.get(SuppressionKind.SUBJECT, {}).items():
            await erase_stored_subject(service, tenant, subject, forgotten_at)
        await erase_entries(service, tenant, list(names.get(SuppressionKind.ENTRIES, ())))
        for agent in names.get(SuppressionKind.AGENT, ()):
            await forget(service, tenant, agent)
    if ledger is not None and made:
        ledger.append(made)


async def _lines_to_apply(
    source: CopySide, tenant: str, content: LedgerContent, key: LedgerKey
) -> list[SuppressionLine]:
    """Returns the lines about a tenant whose erasure its log does not contain."""
    name, end = key.digest_tenant(tenant), await source.end_of_log(tenant)
    lines = [line for line in enumerate(content.lines) if line[1].tenant == name]
    contained = {number for number, line in lines if await _contains(source, tenant, line, end)}
    applied = max((line.applied for number, line in lines if number in contained), default=0)
    return [
        line
        for number, line in lines
        if number >= applied and number not in contained and line.digests
    ]


async def _contains(source: CopySide, tenant: str, line: SuppressionLine, end: int) -> bool:
    """Returns whether a log contains the event that it ended with when a line was written."""
    if not 0 < line.seq <= end:
        return False
    rows = await source.rows(EVENTS, tenant, [(line.seq,)])
    return any(
        hash_of(Envelope(*(row[place] for place in _ENVELOPE))).hex() == line.hash for row in rows
    )


async def _names_of(source: CopySide, tenant: str, digests: _Names, key: LedgerKey) -> _Names:
    """Returns the names in the rows of a tenant that have one of the digests."""
    found: _Names = {}
    tried: set[tuple[SuppressionKind, str]] = set()
    for table in tables():
        if table.name not in _NAMING:
            continue
        async for row in _rows(source, table, tenant):
            for kind, name in _names_in(table, row):
                if kind not in digests or (kind, name) in tried:
                    continue
                if kind is not SuppressionKind.ENTRIES:
                    # Ids do not repeat, and there may be too many to keep.
                    tried.add((kind, name))
                digest = key.digest(tenant, kind, name)
                if digest in digests[kind]:
                    found.setdefault(kind, {})[name] = digests[kind][digest]
    return found


def _names_in(table: Table, row: Row) -> Iterator[tuple[SuppressionKind, str]]:
    """Yields the names in a row that a line of the ledger may have, with their kinds."""
    at = table.indexes
    column = _AGENT_COLUMNS.get(table.name)
    if column is not None:
        yield SuppressionKind.AGENT, row[at[column]]
    if table is ENTRIES:
        yield SuppressionKind.ENTRIES, row[at["id"]]
        for relation, target in decode_edges(row[at["edges"]]):
            if relation == ABOUT:
                yield SuppressionKind.SUBJECT, target
    elif table is ENTRY_HISTORY:
        for subject in subjects_of_version(row[at["body"]]):
            yield SuppressionKind.SUBJECT, subject
    elif table is EVENT_CONTENTS:
        for subject in subjects_in_content(row[at["content"]]):
            yield SuppressionKind.SUBJECT, subject
    elif table is API_KEYS:
        for form in decode_names(row[at["subjects"]]):
            yield SuppressionKind.SUBJECT, form
    elif table.name == NAMESPACES.table and row[at["name"]].startswith(USER_PREFIX):
        yield SuppressionKind.SUBJECT, row[at["name"]].split("/")[1]


async def _rows(source: CopySide, table: Table, tenant: str) -> AsyncIterator[Row]:
    """Yields the rows of a table, in pages."""
    after: Key | None = None
    while page := await source.lines(table, tenant, after):
        after = page[-1].key
        for row in await source.rows(table, tenant, [line.key for line in page]):
            yield row
