"""Erasure of an agent: deletes its memory and destroys its data keys.

Deleted rows leave copies for a while, in pages of the database, in its log and on replicas. Sealed
copies cannot be opened once the row of the data key is gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

from memorywall.records.event import EventType, WorkEventType
from memorywall.records.event_chain import NO_EVENTS, LogHead
from memorywall.records.identifiers import name_forms
from memorywall.records.principal import ApiKey, Maintenance
from memorywall.records.suppression import SuppressionKind
from memorywall.records.tier import Tier
from memorywall.records.usage import AgentLimits
from memorywall.service.access.groups import remove_member
from memorywall.service.administration.tenants import known_tenant, require_tenant
from memorywall.service.entries.record_writes import erase_sealed, seal_stored
from memorywall.service.entries.removal import remove_entry
from memorywall.service.erasure.query_sample import remove_queries
from memorywall.service.erasure.suppression import record_suppression
from memorywall.service.requests.event_log import append_work_event
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.services import SharedServices
from memorywall.service.requests.validation import check_agent
from memorywall.service.runner.maintenance import maintain
from memorywall.storage.sql.record_table import REUSE_HISTOGRAMS

_ENTRIES_AT_ONCE = 100
_REPLIES_AT_ONCE = 500
_RECORDS_AT_ONCE = 500
_LOOK_AGAIN = 0.05

Result = TypeVar("Result")


class StepRunner(Protocol):
    """Runs a step of an erasure in its own transaction, after an access decision."""

    async def __call__(self, step: Callable[[OperationContext], Awaitable[Result]]) -> Result:
        """Returns the result of the step after the commit. The step may run more than once."""
        ...


def run_as_system(service: SharedServices, tenant: str) -> StepRunner:
    """Returns a runner for the system principal of erasure."""

    async def run(step: Callable[[OperationContext], Awaitable[Result]]) -> Result:
        return await maintain(service, tenant, Maintenance.ERASE, step, long=True)

    return run


@dataclass(frozen=True, slots=True)
class ErasureReport:
    """The counts of an erasure.

    entries: the number of deleted entries of each tier
    groups: the number of groups that the agent has left
    bytes_left_in_files: whether deleted bytes are not overwritten in the files yet
    in_ledger: whether the suppression ledger names the agent
    """

    entries: dict[Tier, int]
    kept_replies: int
    limits: int
    groups: int
    api_keys: int
    data_keys: int
    bytes_left_in_files: bool
    in_ledger: bool


@dataclass(slots=True)
class _ErasureStep:
    """The counts of one transaction.

    head: the end of the log after the last step
    """

    entries: dict[Tier, int]
    kept_replies: int = 0
    limits: int = 0
    groups: int = 0
    data_keys: int = 0
    records: int = 0
    is_last: bool = False
    head: LogHead = NO_EVENTS

    def add(self, step: _ErasureStep) -> None:
        """Adds the counts of a later step."""
        for tier, number in step.entries.items():
            self.entries[tier] += number
        self.kept_replies += step.kept_replies
        self.limits += step.limits
        self.groups += step.groups
        self.data_keys += step.data_keys
        self.head = step.head

    @property
    def removed(self) -> bool:
        return any(
            (
                *self.entries.values(),
                self.kept_replies,
                self.limits,
                self.groups,
                self.data_keys,
                self.records,
            )
        )


async def forget(
    service: SharedServices,
    tenant: str,
    agent: str,
    run: StepRunner | None = None,
    *,
    patience: float = 0,
) -> ErasureReport:
    """Erases everything that only the agent owns, in small transactions: revokes its API keys,
    deletes its entries, stored responses, limits and memberships, and destroys its data keys.

    The function may be repeated, also after an interruption.

    run: default: as the system principal of erasure
    patience: seconds to wait until deleted bytes are overwritten in the files
    Raises ConfigurationError for an unknown tenant, ValidationError, and UnavailableError if the
    suppression ledger cannot be written.
    """
    check_agent("agent", agent, is_new=False)
    tenant = await known_tenant(service, tenant)
    run = run or run_as_system(service, tenant)
    forms = name_forms(agent)
    # The keys are revoked first, so that no request with them writes meanwhile.
    revoked = [await run(partial(_revoke_keys, agent=form)) for form in forms]
    total = _ErasureStep(dict.fromkeys(Tier, 0))
    for form, keys in zip(forms, revoked, strict=True):
        service.query_notes.drop(tenant, form)
        removed, is_last = keys > 0, False
        while not is_last:
            step = await run(partial(_forget_some, agent=form, removed=removed))
            total.add(step)
            removed, is_last = removed or step.removed, step.is_last
        service.cipher.drop(tenant, form)
    kind = SuppressionKind.AGENT
    in_ledger = await record_suppression(service, tenant, kind, forms, total.head)
    return ErasureReport(
        total.entries,
        total.kept_replies,
        total.limits,
        total.groups,
        sum(revoked),
        total.data_keys,
        not await wait_until_erased(service, patience),
        in_ledger,
    )


async def _revoke_keys(context: OperationContext, agent: str) -> int:
    await require_tenant(context.transaction, context.tenant)
    return await revoke_keys(context, lambda key: key.principal == agent)


async def revoke_keys(context: OperationContext, is_meant: Callable[[ApiKey], bool]) -> int:
    """Revokes the matching API keys of the tenant that are not revoked yet; returns their
    number."""
    identities, revoked = context.transaction.identities, 0
    for key in await identities.keys(context.tenant):
        if is_meant(key) and key.revoked_at is None:
            revoked += await identities.revoke_key(key.prefix, context.now)
    return revoked


async def _forget_some(context: OperationContext, agent: str, removed: bool) -> _ErasureStep:
    """Deletes some of the agent's memory. The transaction that deletes the last of it destroys the
    data keys: earlier writes are deleted, and later writes are sealed with a new key.

    removed: whether an earlier step has deleted anything
    """
    transaction, step = context.transaction, _ErasureStep({})
    if not await _remove_entries(context, agent, step):
        return step
    step.kept_replies = await transaction.replies.remove(agent, _REPLIES_AT_ONCE)
    if step.kept_replies == _REPLIES_AT_ONCE:
        return step
    if await seal_stored(context, _RECORDS_AT_ONCE):
        return step
    await remove_queries(context, lambda query: query.agent_id == agent)
    step.records = await erase_sealed(context, agent, _RECORDS_AT_ONCE)
    if step.records == _RECORDS_AT_ONCE:
        return step
    if await transaction.identities.limits(agent) != AgentLimits():
        await transaction.identities.set_limits(agent, AgentLimits())
        step.limits = 1
    for group in await transaction.groups.of(agent):
        step.groups += await remove_member(context, group, agent)
    step.data_keys = await transaction.data_keys.remove(agent)
    step.is_last = True
    if removed or step.removed:
        await append_work_event(context, WorkEventType.AGENT_FORGOTTEN, agent=agent, data={})
    step.head = await transaction.events.head()
    return step


async def _remove_entries(context: OperationContext, agent: str, step: _ErasureStep) -> bool:
    """Deletes some entries of the agent. Returns whether none remain."""
    room = _ENTRIES_AT_ONCE
    for tier in Tier:
        found = await context.transaction.entries.of_owner(tier, agent, room + 1)
        for entry in found[:room]:
            await remove_entry(context, EventType.DELETED, entry)
        for namespace in {entry.namespace for entry in found[:room]}:
            await context.transaction.records(REUSE_HISTOGRAMS).remove(namespace)
        step.entries[tier] = min(len(found), room)
        if len(found) > room:
            return False
        room -= len(found)
    return True


async def wait_until_erased(service: SharedServices, patience: float) -> bool:
    """Waits at most `patience` seconds; returns whether the bytes of all data that was deleted
    before the call are overwritten in the files."""
    deadline = asyncio.get_running_loop().time() + patience
    removals = service.store.count_removals()
    while not service.store.is_erasure_complete(removals):
        if asyncio.get_running_loop().time() >= deadline:
            return False
        await asyncio.sleep(_LOOK_AGAIN)
    return True
