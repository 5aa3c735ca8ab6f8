"""Background jobs: leased to one process at a time, under a fencing token."""

# ruff: noqa: S101 - a case asserts.

from __future__ import annotations

from dataclasses import replace
from typing import Any

from memorywall.records.scheduled_job import ScheduledJob
from memorywall.storage.port import Store
from memorywall_testing.base import NOW, TENANT, StoreCase, at


async def _take(
    store: Store, name: str = "expire", *, holder: str = "one", seconds: float = 0, **options: Any
) -> ScheduledJob | None:
    """Takes a job for a minute, so many seconds after the start."""
    return await store.write(
        TENANT,
        lambda to: to.jobs.take(name, holder, at(seconds), at(seconds + 60), **options),
    )


async def _finish(
    store: Store, token: int, *, due: str = "", done: int = 3, error: str = ""
) -> bool:
    return await store.write(
        TENANT,
        lambda to: to.jobs.finish("expire", token, due=due, done=done, error=error, now=NOW),
    )


async def _get(store: Store, name: str = "expire", tenant: str = TENANT) -> ScheduledJob | None:
    return await store.read(tenant, lambda to: to.jobs.get(name))


class ScheduledJobsConformance(StoreCase):
    """`scheduled_jobs.ScheduledJobs`."""

    async def test_a_job_that_has_never_run(self, store: Store) -> None:
        assert await _get(store) is None
        assert await store.read(TENANT, lambda to: to.jobs.list()) == []

    async def test_a_job_is_leased_with_a_token_that_grows(self, store: Store) -> None:
        taken = ScheduledJob(tenant=TENANT, name="expire", holder="one", held_until=at(60), token=1)
        assert await _take(store) == taken == await _get(store)
        assert await _get(store, tenant="globex") is None
        assert await _finish(store, 1, due=at(30), error="OSError")
        assert await _get(store) == replace(
            taken, holder="", held_until="", due=at(30), done=3, error="OSError", ran_at=NOW
        )
        again = await _take(store, holder="two", seconds=30)
        assert again is not None
        assert (again.token, again.holder, again.done) == (2, "two", 3)

    async def test_a_job_that_is_leased_is_refused_until_the_lease_is_over(
        self, store: Store
    ) -> None:
        assert await _take(store) is not None
        assert await _take(store, holder="two", seconds=59.999) is None
        assert await _take(store, holder="two", seconds=59.999, early=True) is None
        assert await _take(store, "other", holder="two") is not None
        taken = await _take(store, holder="two", seconds=60)
        assert taken is not None
        assert taken.token == 2

    async def test_job_that_is_not_due_is_leased_only_with_early(self, store: Store) -> None:
        await _take(store)
        await _finish(store, 1, due=at(30))
        assert await _take(store, seconds=29.999) is None
        assert await _take(store, seconds=29.999, early=True) is not None

    async def test_only_the_running_lease_notes_and_ends(self, store: Store) -> None:
        async def keep(token: int) -> bool:
            return await store.write(
                TENANT, lambda to: to.jobs.keep("expire", token, f"at {token}", at(90))
            )

        await _take(store)
        assert await keep(1)
        assert not await keep(2)
        assert await _take(store, holder="two", seconds=89.999) is None
        taken = await _take(store, holder="two", seconds=90)
        assert taken is not None
        assert taken.cursor == "at 1"
        assert not await keep(1)
        assert not await _finish(store, 1)
        assert await keep(2)
        assert await _finish(store, 2)
        assert not await keep(2)
        assert not await _finish(store, 2)

    async def test_paused_job_is_not_leased(self, store: Store) -> None:
        paused = await store.write(TENANT, lambda to: to.jobs.pause("expire", True))
        assert paused == ScheduledJob(tenant=TENANT, name="expire", paused=True)
        assert await _take(store) is None
        assert await _take(store, early=True) is None
        resumed = await store.write(TENANT, lambda to: to.jobs.pause("expire", False))
        assert not resumed.paused
        assert await _take(store) is not None
        # A started run continues.
        await store.write(TENANT, lambda to: to.jobs.pause("expire", True))
        assert await _finish(store, 1)

    async def test_what_is_noted_without_a_lease(self, store: Store) -> None:
        async def note(cursor: str) -> None:
            await store.write(TENANT, lambda to: to.jobs.note("x", cursor, 2, NOW))

        for cursor in ("half", "whole"):
            await note(cursor)
            noted = ScheduledJob(tenant=TENANT, name="x", cursor=cursor, done=2, ran_at=NOW)
            assert await _get(store, "x") == noted

    async def test_jobs_are_listed_by_name(self, store: Store) -> None:
        for name in ("b", "a", "B"):
            await _take(store, name)
        await store.write("globex", lambda to: to.jobs.pause("c", True))
        jobs = await store.read(TENANT, lambda to: to.jobs.list())
        assert [job.name for job in jobs] == ["B", "a", "b"]
