"""Tasks and the way through their states (RFC-0012)."""

from __future__ import annotations

from typing import Any

from openintent import TaskStatus

from tests.published_client.colours import Client, refused

ABSENT = "task_01ARZ3NDEKTSV4RRFFQ69G5FAV"


async def play(ana: Client, ben: Client, name: str) -> dict[str, Any]:
    intent = (await ana.create_intent(f"Work {name}", "")).id
    made = await ana.create_task(
        intent,
        "Read the invoices",
        description="Every one of them",
        priority="high",
        input={"count": 3},
        capabilities_required=["ocr"],
        metadata={"source": "mailbox"},
        max_attempts=2,
        assigned_agent="ana",
        memory_policy={"archive_on_completion": True, "max_entries": 5, "max_total_size_kb": 64},
    )
    waiting = await ana.create_task(
        intent, "Book them", depends_on=[made.id], parent_task_id=made.id
    )
    got = await ana.get_task(made.id)
    lists = await _list(ana, intent)
    walk = await _walk(ana, made.id, made.version)
    released = await ana.get_task(waiting.id)
    return {
        "intent": intent,
        "made": made,
        "got": got,
        "waiting": waiting,
        "lists": lists,
        "walk": walk,
        "stale": await refused(ana.update_task(made.id, made.version, status="running")),
        "impossible": await _impossible(ana, made.id),
        "released": released,
        "skipped": await ana.update_task(waiting.id, released.version, status="skipped"),
        "retried": await _retry(ana, intent),
        "reassigned": await _reassign(ana, ben, intent),
        "absent": await refused(ana.get_task(ABSENT)),
        "hidden": await refused(ben.get_task(made.id)),
        "hidden_change": await refused(ben.update_task(made.id, 1, status="ready")),
        # Last, for it gives ben a part in the intent.
        "started_at_once": await _start_at_once(ana, ben, intent),
    }


async def _list(ana: Client, intent: str) -> dict[str, list[str]]:
    async def names(**conditions: Any) -> list[str]:
        return [task.name for task in await ana.list_tasks(intent, **conditions)]

    everything = await names()
    return {
        "all": everything,
        "pending": await names(status=TaskStatus.PENDING),
        "running": await names(status=TaskStatus.RUNNING),
        "pages": [*await names(limit=1), *await names(limit=1, offset=1)],
        "behind_the_end": await names(offset=2),
    }


async def _walk(ana: Client, task: str, version: int) -> list[Any]:
    views = []
    for change in (
        {"status": "claimed"},
        {"status": "running"},
        {"status": "blocked", "blocked_reason": "the scanner is off"},
        {"status": "running", "metadata": {"source": "paper"}},
        {"status": "completed", "output": {"read": 3}},
    ):
        view = await ana.update_task(task, version, **change)
        version = view.version
        views.append(view)
    return views


async def _impossible(ana: Client, task: str) -> dict[str, Any]:
    current = await ana.get_task(task)
    return await refused(ana.update_task(task, current.version, status="running"))


async def _retry(ana: Client, intent: str) -> list[Any]:
    task = await ana.create_task(intent, "Try", assigned_agent="ana")
    views = [task]
    for change in (
        {"status": "claimed"},
        {"status": "running"},
        {"status": "failed", "error": "unreadable"},
        {"status": "ready"},
        {"status": "cancelled"},
    ):
        views.append(await ana.update_task(task.id, views[-1].version, **change))
    return views


async def _reassign(ana: Client, ben: Client, intent: str) -> dict[str, Any]:
    task = await ana.create_task(intent, "Hand over", assigned_agent="ana")
    started = await ana.update_task(task.id, task.version, status="claimed")
    given = await ana.update_task(task.id, started.version, assigned_agent="ben")
    seen = await ben.get_task(task.id)
    taken_away = await ana.update_task(task.id, given.version, assigned_agent=None)
    return {
        "started": started,
        "given": given,
        "seen_by_the_new_agent": seen,
        "taken_away": taken_away,
    }


async def _start_at_once(ana: Client, ben: Client, intent: str) -> dict[str, Any]:
    free = await ana.create_task(intent, "Start at once")
    started = await ana.update_task(free.id, free.version, status="running", assigned_agent="ana")
    hers = await ana.create_task(intent, "Start what is assigned", assigned_agent="ana")
    again = await ana.update_task(hers.id, hers.version, status="running", assigned_agent="ana")
    given = await ana.create_task(intent, "Give and start")
    theirs = await ana.update_task(given.id, given.version, status="running", assigned_agent="ben")
    other = await ana.create_task(intent, "Not for ben", assigned_agent="ana")
    return {
        "views": [started, again],
        "given": theirs,
        "refused": await refused(
            ben.update_task(other.id, other.version, status="running", assigned_agent="ben")
        ),
    }
