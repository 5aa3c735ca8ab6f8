"""Judges what leaves memory: items of working memory that go, and sessions that were archived.

Judging embeds and searches, so it is done before the transaction of a step, in the name of the
agent that owns the memory. A promotion is stored once, whatever is judged again after a crash.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from msgspec.structs import replace

from memorywall.jobs.job_runner import JobSpec, JobStep, StepResult
from memorywall.kinds.promotions import PROMOTION, Promotion
from memorywall.kinds.sessions import TURN, Session, Turn
from memorywall.kinds.working_memory import SCRATCH
from memorywall.longterm.decisions import change_decision, load_decision
from memorywall.longterm.episodes import episode_entry, episode_of_session
from memorywall.longterm.promotion import PromotionCandidate, promote
from memorywall.recall.index import Index, open_index_of
from memorywall.records.decision import Verb
from memorywall.records.entry import Entry, Source
from memorywall.records.errors import (
    MemoryAccessError,
    MemoryCapacityError,
    MemoryConflictError,
    MemoryNotFoundError,
    ValidationError,
)
from memorywall.records.principal import (
    DEFAULT_PERMISSIONS,
    Maintenance,
    Principal,
    PrincipalKind,
)
from memorywall.records.tier import Tier
from memorywall.redaction.personal_data import choose_stricter
from memorywall.service.entries.governed_entries import read_value, read_values
from memorywall.service.entries.writes import create_entry
from memorywall.service.requests.operation_context import OperationCall, OperationContext
from memorywall.service.requests.services import SharedServices
from memorywall.service.runner.maintenance import inspect
from memorywall.service.runner.operation_runner import OperationTransactions
from memorywall.wire.entries import REMEMBERED
from memorywall.wire.operations import OPERATIONS_BY_NAME
from memorywall.working_memory.departures import remove_judged

_log = logging.getLogger("memorywall.longterm")
_CHUNK = 100
_SESSIONS = 5
_TURNS = 500
JUDGE_INTERVAL: Final = 5.0
"""The most seconds that an item waits for its judgement."""
_CANNOT = (MemoryNotFoundError, MemoryAccessError, MemoryConflictError, ValidationError)
"""What an agent may not or cannot promote is not promoted."""


class _Waiting(NamedTuple):
    """What waits to be judged.

    items: the entries of items of working memory
    sessions: the pending decisions about sessions
    """

    items: Sequence[Entry] = ()
    sessions: Sequence[Entry] = ()


async def _load_waiting(context: OperationContext) -> _Waiting:
    edges = context.transaction.edges
    return _Waiting(
        await edges.due(context.now, _CHUNK, SCRATCH.name),
        await edges.due(context.now, _SESSIONS, PROMOTION.name),
    )


async def _has_waiting(context: OperationContext) -> bool:
    edges = context.transaction.edges
    kinds = (SCRATCH.name, PROMOTION.name)
    return any([await edges.due(context.now, 1, kind) for kind in kinds])


async def _judge_waiting(service: SharedServices, tenant: str, _cursor: str) -> JobStep:
    """Judges what waits, and returns the step that removes the judged items."""
    waiting = await inspect(service, tenant, JUDGE_JOB.maintenance, _load_waiting)
    answers = {}
    with open_index_of(service) as index:
        for entry in waiting.items:
            answers[entry.id] = await _judge_entry(index, entry.owner, entry.id, tenant)
        for entry in waiting.sessions:
            await _judge_session(index, entry, tenant)
    return partial(_remove, answers=answers, sessions=len(waiting.sessions))


async def _remove(
    context: OperationContext, cursor: str, answers: Mapping[str, str], sessions: int
) -> StepResult:
    entries = await context.transaction.entries.get_many(list(answers), context.now)
    leaving = [one for one in entries if one.kind == SCRATCH.name and one.due_at is not None]
    await remove_judged(context, leaving, answers)
    return StepResult(len(leaving) + sessions, "", bool(answers or sessions))


async def _judge_entry(index: Index, owner: str, entry_id: str, tenant: str) -> str:
    """Promotes an entry to the episodic memory of its owner if it is worth it. Returns `yes` or
    `no`, a colon and the rule."""
    candidate = PromotionCandidate(entry_id, Tier.EPISODIC, REMEMBERED)
    try:
        transactions = _act_as(index, owner, tenant)
        found = (await promote(index, transactions, candidate, is_asked=False)).value
    except _CANNOT as error:
        return f"no: {error.code.lower()}"
    word = "yes" if found.status in ("promoted", "merged") else "no"
    return f"{word}: {found.rule}"


async def _judge_session(index: Index, decision: Entry, tenant: str) -> None:
    """Promotes the turns of an archived session that are worth it, and closes its decision."""
    transactions = _act_as(index, decision.owner, tenant)
    wanted = await transactions.read(load_decision, decision.id, Verb.READ)
    turns = await transactions.read(_load_turns, wanted.value.candidate)
    answers = [await _judge_entry(index, decision.owner, one.id, tenant) for one in turns]
    promoted = sum(one.startswith("yes") for one in answers)
    reason = f"{promoted} of {len(turns)} turns were worth keeping"
    decided = replace(
        wanted.value, status="promoted" if promoted else "rejected", rule="session", reason=reason
    )
    await transactions.write(_close, decision.id, decided, turns)


async def _load_turns(context: OperationContext, session_id: str) -> list[Entry]:
    """Returns the turns of a session, in order; none of a session that is gone."""
    context.decide_by_row()
    found, after, owner = list[Entry](), "", context.principal.id
    while True:
        page = await context.transaction.entries.of_session(
            session_id, TURN.name, owner, _TURNS, after=after
        )
        found += page
        if len(page) < _TURNS:
            return found
        after = page[-1].key


async def _close(
    context: OperationContext, decision_id: str, decided: Promotion, turns: Sequence[Entry]
) -> None:
    """Stores the decision about a session, and its episode if its agent has done something."""
    found = await load_decision(context, decision_id, Verb.UPDATE)
    if found.entry is None or found.value.status != "pending":
        return
    episode = await _make_episode(context, decided.candidate, turns)
    closed = replace(
        decided,
        status="promoted" if episode is not None else decided.status,
        result=None if episode is None else episode.id,
        due=None,
        decided_at=context.now,
    )
    data = {"decision": closed.status, "candidate": closed.candidate, "rule": closed.rule}
    await change_decision(context, found.entry, closed, data)


async def _make_episode(
    context: OperationContext, session_id: str, turns: Sequence[Entry]
) -> Entry | None:
    """Stores the episode of a session; none for a session without calls of tools, of which nothing
    is left to learn but what was said, and none for lack of room."""
    session = await context.transaction.entries.get(session_id, context.now)
    if session is None or not turns:
        return None
    head = await read_value(context, session, Session)
    episode = episode_of_session(
        head,
        await read_values(context, turns, Turn),
        session_id=session_id,
        begun_at=session.created_at,
        ended_at=turns[-1].created_at,
    )
    if episode is None or not episode.actions:
        return None
    owner = context.principal.id
    entry = episode_entry(context, episode, owner=owner, key=session_id, subjects=session.subjects)
    source = (Source(id=session_id, version=session.version),)
    entry = replace(entry, provenance=replace(entry.provenance, derived_from=source))
    policy = choose_stricter(head.policy.personal_data, context.service.settings.personal_data)
    try:
        return await create_entry(context, entry, policy=policy)
    except MemoryCapacityError as error:
        _log.warning("the session %s has no episode: %s", session_id, error)
        return None


def _act_as(index: Index, owner: str, tenant: str) -> OperationTransactions:
    """The transactions of an operation of the agent that owns what is judged."""
    principal = Principal(
        tenant=tenant, id=owner, kind=PrincipalKind.AGENT, permissions=DEFAULT_PERMISSIONS
    )
    call = OperationCall(operation=OPERATIONS_BY_NAME["promote_entry"], principal=principal)
    return OperationTransactions(index.services, call, index)


JUDGE_JOB: Final = JobSpec(
    name="judge",
    maintenance=Maintenance.JUDGE,
    interval=lambda context: JUDGE_INTERVAL,
    is_needed=_has_waiting,
    step=partial(_remove, answers={}, sessions=0),
    prepare=_judge_waiting,
)
