"""The working memory of one agent on one task, read and written in a transaction."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from typing import Any

import msgspec

from memorywall.coordination.tasks import load_authorized_task
from memorywall.kinds.sessions import SESSION
from memorywall.kinds.spec import KindSpec
from memorywall.kinds.working_memory import SCRATCH, WORKING_STATE, Scratch, WorkingState
from memorywall.records.decision import Verb
from memorywall.records.entry import Entry, Scope, Sensitivity, is_expired
from memorywall.records.errors import TransitionError
from memorywall.records.task import Task
from memorywall.records.tier import Tier
from memorywall.service.access.authorization_facts import load_task_relations
from memorywall.service.access.known_names import find_agent
from memorywall.service.access.session_binding import takes_part_in
from memorywall.service.access.targets import load_target, owner_target
from memorywall.service.entries.governed_entries import make_governed_entry, read_value
from memorywall.service.entries.record_writes import open_record
from memorywall.service.entries.redaction import TAG, redact_value
from memorywall.service.entries.writes import create_new_entry, make_next_version, replace_entry
from memorywall.service.requests.fencing import guard_task, require_lease
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.validation import encode_value, expiry
from memorywall.tokens.estimate import estimate
from memorywall.working_memory.departures import record_changes
from memorywall.working_memory.externalized import (
    NewReference,
    next_reference,
    remove_content,
    store_content,
)
from memorywall.working_memory.steps import Outcome

NAMESPACE = "scratch"
"""The namespace of the entries."""
_NO_STEP = "no step is open; begin one"


@dataclass(slots=True)
class LoadedWorkingMemory:
    """The state of the steps and the items, with the entries that hold them.

    items: those that stay, in the order in which they were added
    session: the session whose working memory this is; None for none
    entries: the entry of each item by its name, as read
    references: content that the present operation moves to attachments, by the name of the item
    """

    context: OperationContext
    task: Task
    owner: str
    session: Entry | None = None
    state: WorkingState = field(default_factory=WorkingState)
    state_entry: Entry | None = None
    items: tuple[Scratch, ...] = ()
    entries: dict[str, Entry] = field(default_factory=dict)
    references: dict[str, NewReference] = field(default_factory=dict)

    def require_step(self) -> None:
        """Raises TransitionError unless a step is open."""
        if not self.state.is_open:
            raise TransitionError(_NO_STEP)

    def refer(self, item: Scratch) -> Any:
        """Makes the reference to the content of an item; `save` stores the content."""
        new = next_reference(self.context, self.entries[item.name].id, item)
        self.references[item.name] = new
        return new.reference

    async def save_state(self, state: WorkingState) -> None:
        """Stores the state of the steps."""
        state, _ = redact_value(self._policy, WORKING_STATE, state)
        if self.state_entry is None:
            self.state_entry = await self._create(self.task.id, WORKING_STATE, state)
        else:
            self.state_entry = await self._replace(self.state_entry, state)
        self.state = state

    async def add(self, item: Scratch, sensitivity: Sensitivity) -> None:
        """Stores a new item, or the next version of the item of its name."""
        item, kinds = redact_value(self._policy, SCRATCH, item)
        item = msgspec.structs.replace(item, tokens=await count_tokens(self.context, item.content))
        tags = tuple(TAG + kind for kind in kinds) if self._policy == "mark" else ()
        old = self.entries.get(item.name)
        if old is not None:
            await remove_content(self.context, old.id)
            self.entries[item.name] = await self._replace(
                old, item, tags=tags, sensitivity=sensitivity
            )
            self.items = tuple(item if one.name == item.name else one for one in self.items)
            return
        key = f"{self.task.id}/{item.order}"
        self.entries[item.name] = await self._create(
            key, SCRATCH, item, tags=tags, sensitivity=sensitivity
        )
        self.items = (*self.items, item)

    async def change(self, item: Scratch) -> None:
        """Stores the next version of an item whose content stays."""
        self.entries[item.name] = await self._replace(self.entries[item.name], item)
        self.items = tuple(item if one.name == item.name else one for one in self.items)

    async def save(self, outcome: Outcome) -> None:
        """Stores what became of the items, and appends the event about it."""
        old = {item.name: item for item in self.items}
        for item in outcome.items:
            if item != old[item.name]:
                await self.context.transaction.give_way()
                entry = self.entries[item.name]
                if item.name in self.references:
                    new = self.references.pop(item.name)
                    await store_content(self.context, entry, new)
                self.entries[item.name] = await self._replace(entry, item)
        for item in outcome.leaving:
            await self.context.transaction.give_way()
            reason = next(one.reason for one in outcome.changes if one.item == item.name)
            going = msgspec.structs.replace(item, leaving=reason, leaves_at=self.context.now)
            await self._replace(self.entries[item.name], going)
        self.items = outcome.items
        await record_changes(
            self.context,
            self.task.intent_id,
            self.task.id,
            self.owner,
            outcome.changes,
            step=self.state.step,
            tick=self.state.tick,
        )

    async def _replace(self, old: Entry, value: Scratch | WorkingState, **fields: Any) -> Entry:
        context = self.context
        text = encode_value(msgspec.to_builtins(value))
        opened = await context.service.cipher.open(context.transaction, old)
        new = make_next_version(
            context,
            opened,
            text,
            expires_at=expiry(old.ttl, None, context.moment) or old.expires_at,
            **fields,
        )
        return await self._stored(await replace_entry(context, old, new, policy="keep"))

    async def _stored(self, entry: Entry) -> Entry:
        """The entry as it is read: sealed, as its next change in this transaction needs it."""
        return await self.context.transaction.entries.get(entry.id, self.context.now) or entry

    @property
    def _policy(self) -> str:
        return self.context.service.settings.personal_data

    async def _create(
        self, key: str, spec: KindSpec, value: Scratch | WorkingState, **fields: Any
    ) -> Entry:
        entry = make_governed_entry(
            self.context,
            spec,
            value,
            owner=self.owner,
            namespace=NAMESPACE,
            key=key,
            scope=_scope_of(self.task, self.session),
            subjects=() if self.session is None else self.session.subjects,
        )
        entry = msgspec.structs.replace(entry, **fields)
        return await self._stored(await create_new_entry(self.context, entry, policy="keep"))


async def count_tokens(context: OperationContext, content: Any) -> int:
    """The tokens of content as the model reads it: a text, or JSON."""
    text = content if isinstance(content, str) else msgspec.json.encode(content).decode()
    return await context.transaction.compute(len(text), partial(estimate, text))


async def open_working_memory(context: OperationContext, task_id: str) -> LoadedWorkingMemory:
    """The caller's own working memory on a task that it may work on.

    Raises ResourceNotFoundError, MemoryAccessError, FencedError.
    """
    task, _ = await load_authorized_task(context, task_id, for_steps=True)
    require_lease(context)
    session = await _load_session(context, task)
    scope = _scope_of(task, session)
    work = await load_task_relations(context, scope, task, own=True)
    own = owner_target(context.tenant, context.principal.id, NAMESPACE)
    target = msgspec.structs.replace(own, work=work, tier=Tier.WORKING, session=scope.session_id)
    context.authorize(Verb.CREATE, target)
    await guard_task(context, task.intent_id, task.id)
    entries = await context.transaction.entries.of_task(Tier.WORKING, task.id)
    return await _select_items(context, task, context.principal.id, session, entries)


async def load_working_memory(
    context: OperationContext, task_id: str, agent: str | None = None
) -> LoadedWorkingMemory:
    """The working memory of an agent on a task, to read it. Its steps belong to the session of the
    request, or else to the one that the task names.

    agent: None for the caller, or else for the agent that the task is assigned to

    Raises ResourceNotFoundError, MemoryAccessError.
    """
    task, _ = await load_authorized_task(context, task_id, for_steps=True)
    session = await _load_session(context, task)
    entries = await context.transaction.entries.of_task(Tier.WORKING, task.id)
    owner = context.principal.id if agent is None else await find_agent(context, agent)
    loaded = await _select_items(context, task, owner, session, entries)
    if agent is None and loaded.state_entry is None and task.assigned_agent is not None:
        loaded = await _select_items(context, task, task.assigned_agent, session, entries)
    if loaded.state_entry is not None:
        context.authorize(Verb.READ, await load_target(context, Verb.READ, loaded.state_entry))
    return loaded


async def _load_session(context: OperationContext, task: Task) -> Entry | None:
    """The session whose working memory the steps of a task are: that of the request, or else the
    one that the task names, if the principal takes part in it."""
    if context.principal.session is not None:
        return context.session
    named = (await open_record(context, task)).session_id
    entry = None if named is None else await context.transaction.entries.get(named, context.now)
    if entry is None or entry.kind != SESSION.name or not await takes_part_in(context, entry):
        return None
    return entry


def _scope_of(task: Task, session: Entry | None) -> Scope:
    session_id = None if session is None else session.id
    return Scope(task_id=task.id, intent_id=task.intent_id, session_id=session_id)


async def _select_items(
    context: OperationContext,
    task: Task,
    owner: str,
    session: Entry | None,
    entries: Iterable[Entry],
) -> LoadedWorkingMemory:
    """The working memory of one agent, in one session, among the working entries of a task."""
    loaded = LoadedWorkingMemory(context, task, owner, session)
    scope = _scope_of(task, session)
    found: list[Scratch] = []
    for entry in entries:
        if (
            entry.owner != owner
            or entry.scope.session_id != scope.session_id
            or is_expired(entry, context.now)
        ):
            continue
        if entry.kind == WORKING_STATE.name:
            loaded.state = await read_value(context, entry, WorkingState)
            loaded.state_entry = entry
        elif entry.kind == SCRATCH.name and entry.status == "active":
            item = await read_value(context, entry, Scratch)
            loaded.entries[item.name] = entry
            found.append(item)
    loaded.items = tuple(sorted(found, key=attrgetter("order")))
    return loaded


def names_of(items: Iterable[Scratch]) -> set[str]:
    """The names of items."""
    return {item.name for item in items}
