"""What fails inside the published client, whatever server it speaks to.

The documentation tells each, so that nobody looks for the fault in the server. When a later version
of the client mends one, the test of this scene says so.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from openintent import Agent
from openintent.agents import BaseAgent

from tests.published_client.colours import Client


@Agent("ana")
class _Ana:
    """An agent as the package's own examples make one."""


async def play(ana: Client, ben: Client, name: str) -> dict[str, list[str]]:
    intent = await ana.create_intent(f"Stumble {name}", "")
    agent: BaseAgent = _Ana(base_url=ana.published.base_url, api_key=ana.published.api_key)
    try:
        return {
            **await _proxies(agent, intent.id),
            "complete_intent": await _failure(agent.complete_intent(intent.id)),
            "is_active": await _failure(_whether_active(ana, intent.id)),
            "another_type": await _failure(
                ana.create_memory("ana", f"{name}/desk", "turn", {"text": "hello"}, "session")
            ),
            "conflict": await _failure(_conflict_over_innocent_words(ana, f"{name}/desk")),
        }
    finally:
        await agent.async_client.close()


async def _proxies(agent: BaseAgent, intent: str) -> dict[str, list[str]]:
    return {
        "memory.store": await _failure(agent.memory.store("key", {"value": 1})),
        "memory.recall": await _failure(agent.memory.recall(key="key")),
        "memory.forget": await _failure(agent.memory.forget("key")),
        "memory.pin": await _failure(agent.memory.pin("key")),
        "tasks.create": await _failure(agent.tasks.create(intent, "Work")),
        "tasks.complete": await _failure(agent.tasks.complete("task")),
        "tasks.fail": await _failure(agent.tasks.fail("task")),
        "tasks.list": await _failure(agent.tasks.list(intent)),
        "governance.request_approval": await _failure(
            agent.governance.request_approval(intent, "complete")
        ),
    }


async def _whether_active(ana: Client, intent: str) -> bool:
    lease = await ana.acquire_lease(intent, "desk")
    active: bool = lease.is_active
    return active


async def _conflict_over_innocent_words(ana: Client, desk: str) -> None:
    for _ in range(2):
        await ana.create_memory("ana", desk, "wish", {"text": "say please"})


async def _failure(call: Awaitable[Any]) -> list[str]:
    """The class and the words of what a call raises."""
    try:
        outcome = await call
    except Exception as error:
        return [type(error).__name__, str(error)]
    return ["nothing", repr(outcome)]
