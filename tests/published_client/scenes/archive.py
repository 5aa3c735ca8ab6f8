"""Working memory of a task, and what becomes of it when the task ends (RFC-0015 section 2.1)."""

from __future__ import annotations

from typing import Any

from openintent import MemoryPolicy, MemoryScope

from tests.published_client.colours import Client, refused


async def play(ana: Client, ben: Client, name: str) -> dict[str, Any]:
    intent = (await ana.create_intent(f"Remember {name}", "")).id
    return {
        "intent": intent,
        "kept": await _work(ana, intent, name, MemoryPolicy(max_entries=2)),
        "dropped": await _work(ana, intent, name, MemoryPolicy(archive_on_completion=False)),
        # The client parses each of these; one of a type it does not know would raise.
        "log": await ana.get_events(intent, limit=1_000),
        "hidden": await refused(ben.get_events(intent)),
    }


async def _work(ana: Client, intent: str, name: str, policy: MemoryPolicy) -> dict[str, Any]:
    task = await ana.create_task(
        intent, "Work", assigned_agent="ana", memory_policy=policy.to_dict()
    )
    running = await _start(ana, task)
    shelf = f"{name}/{task.id}"
    scope = MemoryScope(task_id=task.id, intent_id=intent).to_dict()

    async def note(key: str, number: int) -> Any:
        return await ana.create_memory("ana", shelf, key, {"number": number}, scope=scope)

    progress = await note("progress", 1)
    scratch = await note("scratch", 0)
    full = await refused(note("third", 3)) if policy.max_entries == 2 else None
    changed = await ana.update_memory(progress.id, progress.version, value={"number": 2})
    await ana.delete_memory(scratch.id)
    before = await ana.list_memory("ana", namespace=shelf)
    done = await ana.update_task(
        task.id, running.version, status="completed", output={"answer": 42}
    )
    return {
        "task": task,
        "done": done,
        "full": full,
        "changed": changed,
        "scratch": scratch,
        "before": before,
        "after": await ana.list_memory("ana", namespace=shelf),
        "gone": await refused(ana.get_memory(progress.id)),
    }


async def _start(ana: Client, task: Any) -> Any:
    claimed = await ana.update_task(task.id, task.version, status="claimed")
    return await ana.update_task(task.id, claimed.version, status="running")
