"""Renames what older versions stored under names in other forms than NFC.

An entry gets the next version under its name in NFC, with an event, and keeps its id, so that
everything that refers to it still does. Each step is a transaction that renames nothing twice, so
the work may be interrupted at any time and repeated. Nothing is merged: an entry whose name in NFC
is taken, or whose namespace has other permissions in NFC, stays as it is, and requests still find
it. Entries of kinds that only operations of the server write are not renamed: others refer to them
by their names.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from memorywall.kinds.registry import spec_of
from memorywall.records.decision import VisibilityFilter
from memorywall.records.entry import SEALED_SENSITIVITIES, Entry, Scope
from memorywall.records.errors import KeyUnavailableError
from memorywall.records.filter import EntryFilter
from memorywall.records.identifiers import normalize_name
from memorywall.records.namespace import Grant, Namespace
from memorywall.records.principal import Maintenance
from memorywall.records.usage import Usage
from memorywall.service.administration.tenants import list_tenants
from memorywall.service.entries.namespace_entry import copy_namespace
from memorywall.service.entries.writes import make_next_version, rename_entry
from memorywall.service.requests.namespace_names import find_holders, stored_namespace
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.services import SharedServices
from memorywall.service.runner.maintenance import inspect, maintain
from memorywall.tiers import NAMESPACE_TIERS

_AT_ONCE = 100
_TAKEN = "another entry has its name in NFC; rename or delete one of both"
_OTHER_PERMISSIONS = (
    "the namespace exists in NFC with other permissions; give both forms the same ones"
)
_SEALED = "its data key is not available"


class RenameReport(NamedTuple):
    """The result of a run, or of one step.

    entries, namespaces: the numbers of renamed ones
    problems: each entry by its id, and namespace, that stays as it is, and the reason
    """

    entries: int = 0
    namespaces: int = 0
    problems: tuple[str, ...] = ()

    def plus(self, other: RenameReport) -> RenameReport:
        """The sum of both."""
        return RenameReport(
            self.entries + other.entries,
            self.namespaces + other.namespaces,
            self.problems + other.problems,
        )


async def count_entries(service: SharedServices) -> int:
    """Returns the number of entries of all tenants."""

    async def count(context: OperationContext) -> int:
        usage = await context.transaction.entries.usage_by_tier()
        return sum(one.entries for one in usage.values())

    numbers = [
        await inspect(service, tenant, Maintenance.ADMINISTER, count)
        for tenant in await list_tenants(service)
    ]
    return sum(numbers)


async def rename_everywhere(
    service: SharedServices, progress: Callable[[int], object]
) -> RenameReport:
    """Renames the entries and the namespaces of all tenants; see `rename_names`."""
    total = RenameReport()
    for tenant in await list_tenants(service):
        total = total.plus(await rename_names(service, tenant, progress))
    return total


async def rename_names(
    service: SharedServices, tenant: str, progress: Callable[[int], object]
) -> RenameReport:
    """Renames the entries of a tenant with their tags, scopes and people, and its namespaces.

    progress: receives the numbers of entries that were looked at
    """
    total, after = RenameReport(), ""
    while True:
        step = partial(_rename_some, after=after)
        looked_at, after, report = await maintain(
            service, tenant, Maintenance.ADMINISTER, step, long=True
        )
        total = total.plus(report)
        progress(looked_at)
        if looked_at < _AT_ONCE:
            break
    report = await maintain(service, tenant, Maintenance.ADMINISTER, _rename_namespaces, long=True)
    return total.plus(report)


async def _rename_some(context: OperationContext, after: str) -> tuple[int, str, RenameReport]:
    """Returns the number of entries that were looked at, the id of the last one, and the result."""
    report = RenameReport()
    entries = await context.transaction.entries.walk(after, _AT_ONCE)
    for entry in entries:
        spec = spec_of(entry.kind)
        if spec is None or not spec.is_governed:
            report = report.plus(await _rename(context, entry))
    return len(entries), entries[-1].id if entries else after, report


async def _rename(context: OperationContext, entry: Entry) -> RenameReport:
    opened = entry
    if entry.sealing_key is not None:
        try:
            opened = await context.service.cipher.open(context.transaction, entry)
        except KeyUnavailableError:
            return RenameReport(problems=(f"{entry.id}: {_SEALED}",))
    named = _named_anew(opened)
    if named == opened:
        return RenameReport()
    if any(one.id != entry.id for one in await find_holders(context, named)):
        return RenameReport(problems=(f"{entry.id}: {_TAKEN}",))
    stored = named
    if named.sensitivity in SEALED_SENSITIVITIES:
        stored = replace(named, namespace=await stored_namespace(context, named))
    if not await _enter(context, entry, stored.namespace):
        return RenameReport(problems=(f"{entry.id}: {_OTHER_PERMISSIONS}",))
    await rename_entry(context, entry, make_next_version(context, stored))
    return RenameReport(entries=1)


def _named_anew(entry: Entry) -> Entry:
    """Returns an opened entry with all its names in NFC."""
    scope = entry.scope
    ids = (scope.task_id, scope.intent_id, scope.session_id)
    task, intent, session = (None if one is None else normalize_name(one) for one in ids)
    return replace(
        entry,
        namespace=normalize_name(entry.namespace),
        key=normalize_name(entry.key),
        tags=tuple(dict.fromkeys(map(normalize_name, entry.tags))),
        subjects=tuple(dict.fromkeys(map(normalize_name, entry.subjects))),
        scope=Scope(task_id=task, intent_id=intent, session_id=session),
    )


async def _enter(context: OperationContext, entry: Entry, name: str) -> bool:
    """Creates the namespace of an entry under its new name. Returns whether it has the permissions
    of that under its old name."""
    if name == entry.namespace:
        return True
    namespaces = context.transaction.namespaces
    old, new = await namespaces.get(entry.namespace), await namespaces.get(name)
    if old is not None and new is None:
        await copy_namespace(context, old, name)
        return True
    if entry.owner:
        # Of the permissions only these concern entries that an agent owns.
        return _episodic_grants(old) == _episodic_grants(new)
    return _permissions_of(old) == _permissions_of(new)


def _permissions_of(namespace: Namespace | None) -> object:
    """Returns what a namespace allows, in a form that can be compared."""
    if namespace is None:
        return None
    grants = frozenset(namespace.grants)
    return namespace.default, grants, namespace.last_write_wins, namespace.schemas


def _episodic_grants(namespace: Namespace | None) -> frozenset[Grant]:
    return frozenset(one for one in namespace.grants if one.episodic) if namespace else frozenset()


async def _rename_namespaces(context: OperationContext) -> RenameReport:
    """Removes the namespaces whose entries have all been renamed, and renames those without
    entries."""
    namespaces, renamed, problems = context.transaction.namespaces, 0, list[str]()
    for listed in await namespaces.list_for(""):
        name = normalize_name(listed.name)
        old, new = await namespaces.get(listed.name), await namespaces.get(name)
        if name == listed.name or old is None or await _has_entries(context, listed.name):
            continue
        if new is None:
            await copy_namespace(context, old, name)
        elif _permissions_of(old) != _permissions_of(new):
            problems.append(f"namespace {name}: {_OTHER_PERMISSIONS}")
            continue
        await namespaces.remove(old.name)
        renamed += 1
    return RenameReport(namespaces=renamed, problems=tuple(problems))


async def _has_entries(context: OperationContext, name: str) -> bool:
    wanted = EntryFilter(
        tenant=context.tenant, namespace=name, tiers=NAMESPACE_TIERS, state=None, listed_only=False
    )
    within = VisibilityFilter(namespaces=(name,))
    return await context.transaction.entries.count(wanted, within, context.now, 1) != Usage()
