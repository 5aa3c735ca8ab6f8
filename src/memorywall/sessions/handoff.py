"""A hand-off of a task lets its new agent take part in the session that the task names."""

from __future__ import annotations

from memorywall.kinds.session_end import OPEN
from memorywall.kinds.sessions import Participant
from memorywall.records.decision import Verb
from memorywall.records.errors import MemoryAccessError, MemoryNotFoundError
from memorywall.records.task import Task
from memorywall.service.requests.operation_context import OperationContext
from memorywall.sessions.access import load_session
from memorywall.sessions.checks import check_participants
from memorywall.sessions.life import change


async def admit_assigned_agent(context: OperationContext, task: Task) -> None:
    """Adds the agent of a task, with `append`, to the session that the task names.

    Only an agent that may add turns itself lets another one in: for others the assignment changes
    nothing in the session, and neither does it for a session that is over. What the owner has given
    an agent stays.

    task: opened
    Raises ValidationError if the session has too many participants.
    """
    session_id, agent = task.session_id, task.assigned_agent
    if session_id is None or agent is None or agent == context.principal.id:
        return
    try:
        loaded = await load_session(context, session_id, Verb.CREATE)
    except (MemoryNotFoundError, MemoryAccessError):
        return
    present = loaded.value.participants
    if loaded.value.status not in OPEN or agent in {
        loaded.owner,
        *(one.agent_id for one in present),
    }:
        return
    added = Participant(agent_id=agent)
    participants = await check_participants(context, loaded.owner, (*present, added))
    await change(context, loaded, participants=participants)
