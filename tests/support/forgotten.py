"""A store with a person and an agent that are forgotten after a backup, and what looks for them."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import httpx

from memorywall.records.principal import DEFAULT_PERMISSIONS, Permission
from tests.cli.shell import succeed
from tests.http.checks import MEMORY, NAMESPACES
from tests.http.files import stored
from tests.support.damage import verified
from tests.support.postgres_databases import in_own_thread
from tests.support.service import RunningService, draft, open_service

EVERYTHING = (*DEFAULT_PERMISSIONS, Permission.ADMIN, Permission.TENANT_ADMIN)
SECRETS = (b"of-ann", b"of-billing")
"""Texts in every value of what is forgotten."""
_SEALED = {"sensitivity": "restricted"}


class World:
    """A store, a backup of it, and what has been forgotten since the backup.

    ids: entries by a name
    """

    def __init__(self, room: Path) -> None:
        self.room = room
        self.data, self.ledger, self.file = room / "data", room / "ledger", room / "file"
        self.ids: dict[str, str] = {}

    def work(self, data: Path, what: Callable[[RunningService], Coroutine[Any, Any, Any]]) -> Any:
        """Runs something on the service of a directory."""

        async def opened() -> Any:
            async with open_service(data, ledger=self.ledger) as service:
                return await what(service)

        return in_own_thread(lambda: asyncio.run(opened()))

    def restore(self, goal: Path, file: Path | None = None, *options: str) -> dict[str, Any]:
        """Restores a backup into a directory, and returns what the command says."""
        printed = succeed(*self.command(goal, file, *options), "--json")
        told: dict[str, Any] = json.loads(printed)
        return told

    def command(self, goal: Path, file: Path | None = None, *options: str) -> list[str]:
        self.give_key(goal)
        ledger = [] if "--without-ledger" in options else ["--ledger", str(self.ledger)]
        return ["restore", str(file or self.file), "--data", str(goal), *ledger, *options]

    def give_key(self, goal: Path) -> None:
        goal.mkdir(parents=True, exist_ok=True)
        shutil.copy(self.data / "memory.db.key", goal)

    def backup(self, data: Path, name: str) -> Path:
        file = self.room / name
        succeed("backup", "--data", str(data), "--ledger", str(self.ledger), str(file))
        return file

    def forget(self, data: Path, *who: str) -> None:
        succeed("forget", "--data", str(data), "--ledger", str(self.ledger), *who, "--yes")

    def content(self, data: Path) -> bytes:
        """All bytes of a store: those of a backup of it."""
        return self.backup(data, f"content-{os.urandom(4).hex()}").read_bytes()


async def make_entry_of(client: httpx.AsyncClient, key: str, owner: str, **fields: Any) -> str:
    body = draft(key, value={"text": f"secret {owner} {key}"}, **fields)
    response = await client.post(MEMORY, json=body)
    assert response.status_code == 201, response.text
    return str(response.json()["id"])


async def _fill(service: RunningService, ids: dict[str, str]) -> None:
    billing = await service.agent("billing")
    chief = await service.agent("chief", permissions=EVERYTHING)
    for name, fields in (("clear", {}), ("sealed", _SEALED)):
        ids[f"own-{name}"] = await make_entry_of(billing, name, "of-billing", **fields)
        about = await make_entry_of(chief, f"ann-{name}", "of-ann", subjects=["ann"], **fields)
        ids[f"ann-{name}"] = about
    source = [{"id": ids["ann-clear"], "version": 1}]
    ids["derived"] = await make_entry_of(
        chief, "derived", "of-ann", memory_type="semantic", derived_from=source
    )
    change_of = {"value": {"text": "secret of-ann again"}, "tags": ["of-ann"]}
    path, headers = f"{MEMORY}/{ids['derived']}", {"If-Match": "1"}
    patched = await chief.patch(path, json=change_of, headers=headers)
    assert patched.status_code == 200, patched.text
    await stored(chief, f"{MEMORY}/{ids['ann-clear']}/attachments", b"scan of-ann")
    ids["bob"] = await make_entry_of(chief, "bob", "of-bob", subjects=["bob"])
    ids["later"] = await make_entry_of(chief, "later", "of-ann")
    headers = {"X-Subject": "ann"}
    made = await chief.post(MEMORY, json=draft("bound"), headers=headers)
    ids["bound"] = made.json()["id"]


async def forget_ann(service: RunningService) -> None:
    chief = await service.agent("chief", permissions=EVERYTHING)
    response = await chief.post("/api/v1/subjects/ann/forget")
    assert response.status_code == 200, response.text
    assert response.json()["in_ledger"] is True


async def _relate_to_ann(service: RunningService, ids: dict[str, str]) -> None:
    """Makes an entry about a person that was not about the person in the backup."""
    chief = await service.agent("chief", permissions=EVERYTHING)
    body = {"subjects": ["ann"], "value": {"text": "secret of-ann later"}}
    path = f"{MEMORY}/{ids['later']}"
    patched = await chief.patch(path, json=body, headers={"If-Match": "1"})
    assert patched.status_code == 200, patched.text


async def look_for_the_forgotten(service: RunningService, ids: dict[str, str]) -> None:
    """Looks for everything that was forgotten, in every way."""
    chief = await service.agent("chief", permissions=EVERYTHING)
    for name, entry_id in ids.items():
        path = f"{MEMORY}/{entry_id}"
        expected = 200 if name == "bob" else 404
        assert (await chief.get(path)).status_code == expected, name
        if name == "derived":
            earlier = await chief.get(path, params={"version": "1"})
            assert earlier.status_code == 404, earlier.text
        assert (await chief.get(f"{path}/attachments")).status_code == expected, name
    answers = [
        await chief.get(f"{MEMORY}/export"),
        await chief.get(MEMORY, params={"agent_id": "chief"}),
        await chief.get(MEMORY, params={"subject": "ann"}),
        await chief.post(f"{MEMORY}/search", json={"query": "secret of-ann of-billing"}),
        await chief.get("/api/v1/agents/chief/events", params={"limit": 1000}),
        await chief.get("/api/v1/agents/billing/memory"),
        await chief.get(NAMESPACES),
    ]
    for answer in answers:
        assert answer.status_code == 200, answer.text
        assert "of-ann" not in answer.text
        assert "of-billing" not in answer.text
        assert "user/ann/" not in answer.text
    assert "of-bob" in answers[0].text


def check_restored(world: World, goal: Path) -> None:
    world.work(goal, lambda service: look_for_the_forgotten(service, world.ids))
    assert verified(goal / "memory.db").problems == []
    content = world.content(goal)
    assert not [secret for secret in SECRETS if secret in content]


def world_of(room: Path) -> World:
    """A store whose backup has a person and an agent that have been forgotten since."""
    made = World(room)
    made.work(made.data, lambda service: _fill(service, made.ids))
    made.file = made.backup(made.data, "file")
    assert all(secret in made.file.read_bytes() for secret in SECRETS)

    async def go_on(service: RunningService) -> None:
        await _relate_to_ann(service, made.ids)
        await forget_ann(service)

    made.work(made.data, go_on)
    made.forget(made.data, "--agent", "billing")
    return made
