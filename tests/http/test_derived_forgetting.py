"""Forgetting after random updates: nothing that was derived from memory about a person stays."""

from __future__ import annotations

from collections.abc import AsyncIterator
from random import Random
from typing import Any

import httpx
import pytest

from memorywall.records.principal import Permission
from tests.http.checks import MEMORY, assert_problem
from tests.support.extent import chosen_seed, extent
from tests.support.service import RunningService, draft

pytestmark = pytest.mark.anyio

FACT = {"memory_type": "semantic", "namespace": "facts"}
Entry = dict[str, Any]


@pytest.fixture
async def chief(service: RunningService) -> AsyncIterator[httpx.AsyncClient]:
    async with await service.agent("chief", permissions=tuple(Permission)) as client:
        yield client


def _source(entry: Entry) -> Entry:
    return {"id": entry["id"], "version": entry["version"]}


class _Walk:
    """Random writes of an agent, and which entries have to do with eve.

    entries: the current state of each entry
    made_from: the ids of its present sources
    derived: the ids of entries that have, or once had, sources
    touched: the ids of entries that are, or once were, about eve or derived from such an entry
    """

    def __init__(self, client: httpx.AsyncClient, random: Random) -> None:
        self._client, self._random = client, random
        self.entries: dict[str, Entry] = {}
        self.made_from: dict[str, set[str]] = {}
        self.touched: set[str] = set()
        self.derived: set[str] = set()

    async def step(self, number: int) -> None:
        kind = self._random.choice(("create", "create", "update", "update", "update", "delete"))
        if kind == "create" or not self.entries:
            await self._create(number)
        elif kind == "update":
            await self._update()
        else:
            await self._delete(self._random.choice(list(self.entries)))

    async def delete_sources(self) -> None:
        """Deletes what was derived from nothing, after which only derived entries lead to eve."""
        for one in self.entries.keys() - self.derived:
            await self._delete(one)

    async def _delete(self, entry_id: str) -> None:
        assert (await self._client.delete(f"{MEMORY}/{entry_id}")).status_code == 204
        del self.entries[entry_id]

    async def _create(self, number: int) -> None:
        fields: Entry = self._random.choice(({}, FACT, {"sensitivity": "restricted"}))
        sources = self._sources()
        body = draft(f"k{number}", subjects=self._people(), derived_from=sources, **fields)
        reply = await self._client.post(MEMORY, json=body)
        assert reply.status_code == 201, reply.text
        self._learn(reply.json(), sources)

    async def _update(self) -> None:
        entry = self.entries[self._random.choice(list(self.entries))]
        is_derived = entry["id"] in self.derived
        change: Entry = {"pinned": not entry["pinned"]}
        if self._random.random() < 0.6:
            change["subjects"] = self._people()
            if not is_derived and entry["id"] in self.touched:
                # Whoever writes an entry may say that it is about somebody else.
                change["subjects"] = [*change["subjects"], "eve"]
        if self._random.random() < 0.5:
            change["value"] = {"n": self._random.random()}
        if self._random.random() < 0.3:
            change["derived_from"] = self._random.choice(([], self._sources()))
        headers = {"If-Match": str(entry["version"])}
        path = f"{MEMORY}/{entry['id']}"
        reply = await self._client.patch(path, json=change, headers=headers)
        if reply.status_code == 200:
            self._learn(reply.json(), change.get("derived_from"))
        else:
            assert_problem(reply, 422)
            assert is_derived, "only derived entries refuse such a change"

    def _learn(self, entry: Entry, sources: list[Entry] | None) -> None:
        entry_id = entry["id"]
        if sources is not None:
            self.made_from[entry_id] = {one["id"] for one in sources}
            self.derived |= {entry_id} if sources else set()
        if "eve" in entry.get("subjects", ()) or self.made_from[entry_id] & self.touched:
            self.touched.add(entry_id)
        self.entries[entry_id] = entry

    async def read_again(self) -> None:
        """Subjects that were passed on have changed the versions of entries."""
        for entry_id in self.entries:
            entry = (await self._client.get(f"{MEMORY}/{entry_id}")).json()
            self._learn(entry, None)
        before = -1
        while before != len(self.touched):
            before = len(self.touched)
            self.touched |= {one for one in self.entries if self.made_from[one] & self.touched}

    def _people(self) -> list[str]:
        return self._random.sample(("eve", "bob", "cay"), self._random.choice((0, 0, 1, 2)))

    def _sources(self) -> list[Entry]:
        known = list(self.entries.values())
        return [_source(one) for one in self._random.sample(known, min(len(known), 2))
                if self._random.random() < 0.6]  # fmt: skip


async def test_forgetting_finds_what_was_derived_after_any_updates(
    chief: httpx.AsyncClient,
) -> None:
    random = Random(chosen_seed())
    for round_ in range(extent(40, long=400)):
        walk = _Walk(chief, random)
        for number in range(25):
            await walk.step(100 * round_ + number)
            await walk.read_again()
        await walk.delete_sources()
        assert (await chief.post("/api/v1/subjects/eve/forget")).status_code == 200
        left = {
            one for one in walk.entries
            if (await chief.get(f"{MEMORY}/{one}")).status_code == 200
        }  # fmt: skip
        assert left == walk.entries.keys() - walk.touched, round_
        for one in left:
            await chief.delete(f"{MEMORY}/{one}")
