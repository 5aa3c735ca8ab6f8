"""Makes episodes of tasks that ended and of sessions (memory wall 11.4.1)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from memorywall.kinds.content_parts import spoken_text
from memorywall.kinds.episodes import (
    EPISODE,
    Action,
    Episode,
    EpisodeContext,
    EpisodeMetadata,
    EpisodeOutcome,
    EpisodeReport,
    Trigger,
)
from memorywall.kinds.sessions import SESSION, Session, Turn
from memorywall.records.clock import instant_to_milliseconds
from memorywall.records.decision import Verb
from memorywall.records.entry import EMPTY_SCOPE, Entry
from memorywall.records.errors import MemoryCapacityError
from memorywall.records.task import Task, TaskStatus
from memorywall.redaction.personal_data import choose_stricter
from memorywall.service.access.subjects import check_count, check_subjects
from memorywall.service.access.targets import owner_target
from memorywall.service.entries.governed_entries import make_governed_entry, read_value
from memorywall.service.entries.writes import create_entry
from memorywall.service.requests.operation_context import OperationContext

NAMESPACE = "episodes"
"""The namespace of the episodes that the server makes."""
_MOST_ACTIONS = 100
"""The most actions of a session in its episode: the last ones."""
_LONGEST_TEXT, _LONGEST_SUMMARY = 400, 8_000
_LARGEST_OUTPUT = 4_000
"""The most bytes of the output of a task in its episode; a larger one stays in the task."""
_STATUSES: dict[TaskStatus, Literal["success", "failure"]] = {
    TaskStatus.COMPLETED: "success",
    TaskStatus.FAILED: "failure",
}
"""The outcome of each status of a task of which there are episodes."""
_encode = msgspec.json.Encoder().encode
_log = logging.getLogger("memorywall.longterm")


async def store_task_episode(
    context: OperationContext, task: Task, report: EpisodeReport | None
) -> None:
    """Stores the episode of a task that has ended in this transaction, if its agent reports one or
    the setting `task_episodes` asks for it. The task ends even if there is no room for it.

    task: the opened task after its end
    report: what the agent reports; None for nothing

    Raises ValidationError, ValueTooLargeError, MemoryAccessError, all because of the report.
    """
    wanted = context.service.settings.task_episodes
    is_asked = report is not None or wanted == "all"
    is_asked = is_asked or (wanted == "failed" and task.status is TaskStatus.FAILED)
    if not is_asked or task.status not in _STATUSES:
        return
    owner = task.assigned_agent or context.principal.id
    if owner == context.principal.id:
        target = owner_target(context.tenant, owner, NAMESPACE)
        if report is None and not context.allows(Verb.CREATE, target):
            return
        context.authorize(Verb.CREATE, target)
    session, value = await _session_of(context, task, owner)
    subjects = () if session is None else session.subjects
    policy = choose_stricter(value.policy.personal_data, context.service.settings.personal_data)
    if report is not None:
        subjects = (*subjects, *check_subjects(context.principal, report.subjects))
    entry = episode_entry(
        context,
        _episode_of_task(task, report or EpisodeReport(), None if session is None else session.id),
        owner=owner,
        key=f"{task.id}.{task.attempt}",
        subjects=subjects,
    )
    try:
        await create_entry(context, entry, policy=policy)
    except MemoryCapacityError as error:
        _log.warning("task %s has no episode: %s", task.id, error)


def episode_entry(
    context: OperationContext,
    episode: Episode,
    *,
    owner: str,
    key: str,
    subjects: Iterable[str] = (),
) -> Entry:
    """Returns the entry of an episode, which lasts longer than its task and its session: it names
    both in its provenance instead of its scope.

    owner: the agent whose experience it is
    subjects: the people that it is about; each counts once
    Raises ValidationError, ValueTooLargeError.
    """
    entry = make_governed_entry(
        context,
        EPISODE,
        episode,
        owner=owner,
        namespace=NAMESPACE,
        key=key,
        scope=EMPTY_SCOPE,
        subjects=check_count(tuple(dict.fromkeys(subjects))),
        field="episode",
    )
    place = episode.metadata
    provenance = replace(entry.provenance, session=place.session_id, task=place.task_id)
    return replace(entry, provenance=provenance)


def episode_of_session(
    session: Session,
    turns: Sequence[Turn],
    *,
    session_id: str,
    begun_at: str,
    ended_at: str,
    summary: str = "",
) -> Episode | None:
    """Returns the episode of a session: what its user asked first, the calls of tools, and what the
    assistant said last. Returns None for a session in which no user has said anything.

    turns: in order
    begun_at, ended_at: instants in the stored form
    summary: that of the session; default: none
    """
    asked = next((one for one in turns if one.role == "user" and one.trusted), None)
    trigger = "" if asked is None else spoken_text(asked.content).strip()
    if asked is None or not trigger:
        return None
    actions = _actions_of(turns)
    said = [spoken_text(one.content) for one in turns if one.role == "assistant"]
    answer = next((text for text in reversed(said) if text.strip()), "")
    # A result that nobody has answered is how the session ended.
    failed = turns[-1].role == "tool" and turns[-1].is_error
    return Episode(
        trigger=Trigger(text=trigger[:_LONGEST_SUMMARY]),
        context=EpisodeContext(
            summary=summary[:_LONGEST_SUMMARY], conditions=dict(session.metadata)
        ),
        actions=tuple(actions[-_MOST_ACTIONS:]),
        outcome=EpisodeOutcome(
            status="failure" if failed else "success",
            artifacts=(answer[:_LONGEST_TEXT],) if answer else (),
            error=spoken_text(turns[-1].content)[:_LONGEST_TEXT] if failed else None,
        ),
        metadata=EpisodeMetadata(
            timestamp=ended_at,
            duration_ms=_milliseconds_between(begun_at, ended_at),
            token_cost=sum(one.tokens for one in turns),
            session_id=session_id,
        ),
    )


def _actions_of(turns: Sequence[Turn]) -> list[Action]:
    """Returns the calls of tools in turns, with their results."""
    results = {one.tool_call_id: one for one in turns if one.role == "tool"}
    actions = []
    for call in (call for one in turns for call in one.tool_calls):
        result = results.get(call.id)
        text = "" if result is None else spoken_text(result.content)[:_LONGEST_TEXT]
        is_error = result is not None and result.is_error
        arguments: Any = call.arguments
        if len(_encode(arguments)) > _LONGEST_TEXT:
            arguments = _encode(arguments)[:_LONGEST_TEXT].decode(errors="replace")
        actions.append(
            Action(
                tool=call.name or "unnamed",
                input=arguments,
                output=None if is_error else text or None,
                error=text or "failed" if is_error else None,
            )
        )
    return actions


async def _session_of(
    context: OperationContext, task: Task, owner: str
) -> tuple[Entry | None, Session]:
    """Returns the session that a task belongs to. A session in which the agent takes no part is
    none: any task may name it, and the episode would tell who it is about."""
    inside = context.principal.session
    named = inside.id if inside is not None else task.session_id
    entry = None if named is None else await context.transaction.entries.get(named, context.now)
    if entry is not None and entry.kind == SESSION.name:
        value = await read_value(context, entry, Session)
        if owner in (entry.owner, *(one.agent_id for one in value.participants)):
            return entry, value
    return None, Session(agent_id=owner)


def _episode_of_task(task: Task, report: EpisodeReport, session: str | None) -> Episode:
    """Returns the episode of a task from its record and the report of its agent."""
    ended = task.completed_at or task.updated_at
    artifacts = report.artifacts
    if not artifacts and task.output and len(_encode(task.output)) <= _LARGEST_OUTPUT:
        artifacts = (task.output,)
    return Episode(
        trigger=Trigger(text=report.trigger or task.description or task.name),
        context=report.context if report.context.task else replace(report.context, task=task.name),
        actions=report.actions,
        outcome=EpisodeOutcome(
            status=_STATUSES[task.status],
            artifacts=artifacts,
            side_effects=report.side_effects,
            error=task.error,
            correction=report.correction,
        ),
        evaluation=report.evaluation,
        metadata=EpisodeMetadata(
            timestamp=ended,
            duration_ms=_milliseconds_between(task.started_at or task.created_at, ended),
            agent_version=report.agent_version,
            model_version=report.model_version,
            token_cost=report.token_cost,
            session_id=session,
            task_id=task.id,
        ),
    )


def _milliseconds_between(begun_at: str, ended_at: str) -> float:
    return max(0, instant_to_milliseconds(ended_at) - instant_to_milliseconds(begun_at))
