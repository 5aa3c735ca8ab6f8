"""Many scripts at once, which a backend may run in one transaction of its own.

Whether it does is nowhere to be seen: each script is whole or not at all by itself, sees what those
before it left and nothing else, and is in nobody's way.
"""

# ruff: noqa: S101 - a case asserts.

from __future__ import annotations

import asyncio

from memorywall.records.entry import Entry
from memorywall.records.namespace import Access, Namespace
from memorywall.records.tier import Tier
from memorywall.records.usage import AgentLimits, Usage
from memorywall.storage.port import Store, Transaction
from memorywall_testing.base import (
    AGENT,
    NOW,
    TENANT,
    StoreCase,
    UndoError,
    find,
    log_event,
    make_entry,
    make_event,
    make_reply,
    newest_first,
    put,
    read_log,
    search,
    undone,
    usage_of,
)
from memorywall_testing.work import INTENT, make_intent, make_task

_MANY = 64


class GroupCommitConformance(StoreCase):
    """`port.Store.write` and `read` with many scripts at a time."""

    async def test_name_conflict_returns_the_existing_entry(self, store: Store) -> None:
        entries = [make_entry(key="same") for _ in range(_MANY)]

        async def write(entry: Entry) -> tuple[bool, Entry | None]:
            async def script(to: Transaction) -> tuple[bool, Entry | None]:
                won = await to.entries.insert(entry, NOW)
                if won:
                    await log_event(to, make_event(entry_id=entry.id))
                one = await to.entries.find(entry.tier, entry.owner, entry.namespace, entry.key)
                return won, one

            return await store.write(TENANT, script)

        outcomes = await asyncio.gather(*map(write, entries))
        (winner,) = [one for one, (won, _) in zip(entries, outcomes, strict=True) if won]
        assert [seen for _, seen in outcomes] == [winner] * _MANY
        assert [event.entry_id for event in await read_log(store)] == [winner.id]
        assert await usage_of(store) == Usage(entries=1, bytes=winner.size)

    async def test_a_name_that_is_let_go_is_the_next_ones(self, store: Store) -> None:
        """The first ten take the name, if it is free, and are undone."""
        entries = [make_entry(key="same", tags=(str(number),)) for number in range(_MANY)]

        async def write(number: int) -> bool:
            async def script(to: Transaction) -> bool:
                won = await to.entries.insert(entries[number], NOW)
                if number < 10:
                    raise UndoError
                return won

            return await store.write(TENANT, script)

        outcomes = await asyncio.gather(*map(write, range(_MANY)), return_exceptions=True)
        assert undone(outcomes) == [number < 10 for number in range(_MANY)]
        (winner,) = [one for one, won in zip(entries, outcomes, strict=True) if won is True]
        assert await search(store) == [winner] == await search(store, tags=winner.tags)
        assert await find(store, entries[0]) == winner

    async def test_a_name_passes_from_owner_to_owner(self, store: Store) -> None:
        """Each removes what has the name and puts its own there, and every third is undone."""
        first = make_entry(key="same", value=b"1")
        await put(store, first)

        async def write(number: int) -> tuple[str, str]:
            mine = make_entry(key="same", value=b"1", tags=(f"tag-{number}",))

            async def script(to: Transaction) -> tuple[str, str]:
                old = await to.entries.find(mine.tier, mine.owner, mine.namespace, mine.key)
                assert old is not None
                await to.entries.remove(old)
                assert await to.entries.insert(mine, NOW)
                if number % 3 == 0:
                    raise UndoError
                return old.id, mine.id

            return await store.write(TENANT, script)

        outcomes = await asyncio.gather(*map(write, range(_MANY)), return_exceptions=True)
        assert undone(outcomes) == [number % 3 == 0 for number in range(_MANY)]
        after = dict(one for one in outcomes if not isinstance(one, BaseException))
        last, passed = first.id, 0
        while last in after:
            last, passed = after.pop(last), passed + 1
        assert (after, passed) == ({}, _MANY - len(range(0, _MANY, 3)))
        (left,) = await search(store)
        assert left.id == last
        assert await search(store, tags=left.tags) == [left]
        assert await usage_of(store) == Usage(entries=1, bytes=1)

    async def test_each_script_builds_on_those_that_were_kept(self, store: Store) -> None:
        """Each counts what it finds, adds one to everything, and counts again."""

        async def write(number: int) -> list[int]:
            async def script(to: Transaction) -> list[int]:
                before = await _counts(to)
                await _add_one_to_each(to, before[0])
                assert await _counts(to) == [count + 1 for count in before]
                if number % 3 == 0:
                    raise UndoError
                return before

            return await store.write(TENANT, script)

        outcomes = await asyncio.gather(*map(write, range(_MANY)), return_exceptions=True)
        assert undone(outcomes) == [number % 3 == 0 for number in range(_MANY)]
        counted = sorted(one for one in outcomes if not isinstance(one, BaseException))
        kept = _MANY - len(range(0, _MANY, 3))
        assert counted == [[number] * len(counted[0]) for number in range(kept)]
        assert await store.read(TENANT, _counts) == [kept] * len(counted[0])

    async def test_a_duplicate_id_undoes_one_transaction_and_no_neighbour(
        self, store: Store
    ) -> None:
        """The second insert is the last a script does, so it may show as late as at the end."""
        entries = [make_entry() for _ in range(_MANY)]

        async def write(number: int) -> None:
            async def script(to: Transaction) -> None:
                assert await to.entries.insert(entries[number], NOW)
                await log_event(to, make_event(entry_id=entries[number].id))
                if number % 7 == 3:
                    await to.entries.insert(make_entry(id=entries[number].id), NOW)

            await store.write(TENANT, script)

        outcomes = await asyncio.gather(*map(write, range(_MANY)), return_exceptions=True)
        assert [one is None for one in outcomes] == [number % 7 != 3 for number in range(_MANY)]
        kept = [entry for number, entry in enumerate(entries) if number % 7 != 3]
        assert await search(store) == newest_first(kept)
        log = await read_log(store)
        assert {event.entry_id for event in log} == {entry.id for entry in kept}
        assert [event.seq for event in log] == list(range(1, len(kept) + 1))

    async def test_logs_of_two_tenants_have_no_gaps_after_rollbacks(self, store: Store) -> None:
        async def write(number: int) -> tuple[str, list[int]]:
            tenant = ("acme", "globex")[number % 2]

            async def script(to: Transaction) -> tuple[str, list[int]]:
                seqs = [
                    (await log_event(to, make_event(tenant=tenant, version=number + 1))).seq
                    for _ in range(1 + number % 3)
                ]
                if number % 5 == 0:
                    raise UndoError
                return tenant, seqs

            return await store.write(tenant, script)

        outcomes = await asyncio.gather(*map(write, range(_MANY)), return_exceptions=True)
        assert undone(outcomes) == [number % 5 == 0 for number in range(_MANY)]
        for tenant in ("acme", "globex"):
            told = [one[1] for one in outcomes if isinstance(one, tuple) and one[0] == tenant]
            assert all(seqs == list(range(seqs[0], seqs[-1] + 1)) for seqs in told)
            given = sorted(seq for seqs in told for seq in seqs)
            log = await read_log(store, tenant)
            assert given == [event.seq for event in log] == list(range(1, len(log) + 1))

    async def test_concurrent_repetitions_store_one_response(self, store: Store) -> None:
        async def repeat(number: int) -> bytes | None:
            kept = make_reply(reply=b"%d" % number)

            async def script(to: Transaction) -> bytes | None:
                known = await to.replies.get(AGENT, "key")
                if known is None:
                    await log_event(to, make_event())
                    await to.replies.put(kept)
                return kept.reply if known is None else known.reply

            return await store.write(TENANT, script)

        replies = await asyncio.gather(*map(repeat, range(_MANY)))
        assert len(set(replies)) == len(await read_log(store)) == 1


async def _counts(to: Transaction) -> list[int]:
    """As many as there were scripts that were kept, asked in different ways."""
    limits = await to.identities.limits(AGENT)
    namespace = await to.namespaces.get("policies")
    latest = await to.events.latest()
    intents, _ = await to.intents.list("grace", (), None, 1_000, 0)
    return [
        (await to.entries.usage(Tier.WORKING, AGENT, NOW)).entries,
        await to.tasks.count(INTENT),
        len(await to.tasks.unassigned((INTENT,), 1_000)),
        limits.episodic_capacity or 0,
        0 if namespace is None else namespace.version,
        0 if latest is None else latest.seq,
        len(intents),
        len(await to.intents.children("int_0")),
    ]


async def _add_one_to_each(to: Transaction, count: int) -> None:
    assert await to.entries.insert(make_entry(), NOW)
    await to.tasks.insert(make_task())
    limits = AgentLimits(episodic_capacity=count + 1)
    await to.identities.set_limits(AGENT, limits)
    await to.namespaces.save(
        Namespace(
            tenant=TENANT,
            name="policies",
            default=Access.READ,
            version=count + 1,
            created_at=NOW,
            updated_at=NOW,
        )
    )
    await log_event(to, make_event())
    await to.intents.insert(make_intent(created_by="grace", parent_intent_id="int_0"))
