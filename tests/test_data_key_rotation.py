"""Replacement of data keys: all that they have sealed is sealed anew, also after interruptions."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Any

import httpx
import pytest

from memorywall.assembly import open_inspection, open_memory, open_vault
from memorywall.jobs import reseal
from memorywall.jobs.job_control import run_job
from memorywall.jobs.verify import verify
from memorywall.records.idempotency import DataKey, KeyPurpose
from memorywall.service.access.subjects import subject_form
from memorywall.service.administration.key_rotation import rotate_data_key
from memorywall.service.administration.tenants import create_tenant
from memorywall.service.encryption.cipher import EnvelopeCipher
from memorywall.service.erasure.entry_erasure import forget
from tests.http.checks import EVERY_PERMISSION, MEMORY, make
from tests.http.files import make_intent, stored
from tests.support.rounds import sweep
from tests.support.service import RunningService, draft
from tests.support.stored import all_rows

pytestmark = pytest.mark.anyio

SEALED: dict[str, Any] = {"sensitivity": "restricted", "value": {"text": "a secret"}}
TENANT = "default"
OWNERS = ("", "ada")
ANN = {"X-Subject": "ann"}
KEY_NAME = re.compile(r"dek_[0-9A-Za-z]+")
NAMING = ("entries", "entry_history", "intents", "tasks", "attachments", "kept_replies")


class Interrupted(Exception):
    """What ends a step of the job in its middle."""


class Sealed:
    """Content of every kind that data keys of a tenant and of an agent seal."""

    def __init__(self, service: RunningService, agent: httpx.AsyncClient) -> None:
        self.service = service
        self.agent = agent
        self.shown: list[tuple[str, dict[str, str], bytes]] = []

    async def fill(self) -> None:
        agent = self.agent
        for tier in ("working", "session", "episodic", "semantic", "procedural"):
            made = await make(agent, f"k-{tier}", memory_type=tier, **SEALED)
            path = f"{MEMORY}/{made['id']}"
            headers = {"If-Match": "1"}
            assert (await agent.patch(path, json={"tags": ["x"]}, headers=headers)).is_success
            await self.show(path)
            if tier in ("semantic", "procedural"):
                await self.show(f"{path}?version=1")
            files = f"{path}/attachments"
            await self.show(await stored(agent, files, os.urandom(70_000)))
        intent = await make_intent(agent)
        await self.show(await stored(agent, intent, os.urandom(300_000)))
        body = {"title": "Close the books", "state": {"step": "secret"}}
        created = (await agent.post("/api/v1/intents", json=body)).json()["id"]
        await self.show(f"/api/v1/intents/{created}")
        task = {"intent_id": created, "name": "Collect", "input": {"secret": 1}}
        added = (await agent.post("/api/v1/tasks", json=task)).json()["id"]
        await self.show(f"/api/v1/tasks/{added}")
        about = await agent.post(MEMORY, json=draft("about", **SEALED), headers=ANN)
        assert about.status_code == 201, about.text
        await self.show(f"{MEMORY}/{about.json()['id']}", ANN)

    async def show(self, path: str, headers: dict[str, str] | None = None) -> None:
        """Remembers what a GET answers."""
        reply = await self.agent.get(path, headers=headers or {})
        assert reply.status_code == 200, (path, reply.text)
        self.shown.append((path, headers or {}, reply.content))

    async def check(self) -> None:
        """Everything reads as before, and `verify` finds nothing."""
        cipher = self.service.services.cipher
        cipher._opened.clear()
        cipher._current.clear()
        for path, headers, content in self.shown:
            reply = await self.agent.get(path, headers=headers)
            assert (reply.status_code, reply.content) == (200, content), path
        settings = self.service.services.settings
        inspection = open_inspection(settings)
        try:
            assert verify(inspection, lambda _: None, open_vault(settings)).problems == []
        finally:
            inspection.close()

    def named(self) -> set[str]:
        """The data keys that stored content names."""
        stored_rows = all_rows(self.service)
        return {
            name
            for table in NAMING
            for row in stored_rows[table]
            for cell in row
            if isinstance(cell, str)
            for name in KEY_NAME.findall(cell)
        }

    def keys(self, *purposes: KeyPurpose) -> dict[str, DataKey]:
        """The data keys with these purposes."""
        inspection = open_inspection(self.service.services.settings)
        try:
            every = inspection.data_keys(TENANT)
        finally:
            inspection.close()
        return {key.id: key for key in every if key.purpose in purposes}

    async def reseal(self) -> None:
        await run_job(self.service.services, TENANT, "reseal")


@pytest.fixture
async def sealed(service: RunningService) -> Sealed:
    world = Sealed(service, await service.agent("ada", permissions=EVERY_PERMISSION))
    await world.fill()
    return world


async def rotate(service: RunningService, owners: Iterable[str] = OWNERS) -> None:
    """What the command does beside a running server."""
    settings = service.services.settings
    async with open_memory(settings, exclusive=False, clock=service.clock) as beside:
        for owner in owners:
            assert await rotate_data_key(beside, TENANT, owner)


def fail_after(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a step of the job fail in its middle, after some entries were sealed anew."""
    original, left = EnvelopeCipher.reseal, [count]

    async def failing(self: EnvelopeCipher, *arguments: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise Interrupted
        return await original(self, *arguments)

    monkeypatch.setattr(EnvelopeCipher, "reseal", failing)


async def test_everything_is_sealed_anew_and_the_old_keys_are_destroyed(
    sealed: Sealed, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = sealed.service
    old = sealed.keys(KeyPurpose.SEALING)
    assert sealed.named() == old.keys()
    await rotate(service)
    new = sealed.keys(KeyPurpose.SEALING)
    assert {key.owner for key in new.values()} == set(OWNERS)
    assert not old.keys() & new.keys()
    # A server with the old keys in memory uses the new ones at once.
    for tier in ("working", "semantic"):
        await make(sealed.agent, f"late-{tier}", memory_type=tier, **SEALED)
    assert sealed.named() - old.keys() == new.keys()
    await sealed.check()
    monkeypatch.setattr(reseal, "_AT_ONCE", 3)
    for interruption in (1, 2):
        with monkeypatch.context() as patched:
            fail_after(interruption, patched)
            with pytest.raises(Interrupted):
                await sealed.reseal()
        assert sealed.named() & old.keys()
        await sealed.check()
    await sealed.reseal()
    assert sealed.named() == new.keys()
    assert sealed.keys(KeyPurpose.REPLACED) == {}
    assert [key.owner for key in sealed.keys(KeyPurpose.RETIRED).values()] == [""]
    await sealed.check()
    # A second replacement leaves the digests of the first key.
    await rotate(service)
    await sealed.reseal()
    await sealed.check()
    assert len(sealed.keys(KeyPurpose.RETIRED)) == 2
    assert not sealed.named() & new.keys()


async def test_the_digest_of_a_name_outlives_its_key(sealed: Sealed) -> None:
    context = sealed.service.services
    before = await subject_form(context, TENANT, "ann")
    limited = await sealed.service.agent("ada", subjects=["ann"])
    await rotate(sealed.service)
    await sealed.reseal()
    context.cipher._literal_keys.clear()
    assert await subject_form(context, TENANT, "ann") == before
    page = (await limited.get(MEMORY, params={"agent_id": "ada"}, headers=ANN)).json()
    assert "about" in [entry["key"] for entry in page["entries"]]


async def test_a_key_stays_until_stored_responses_expire(sealed: Sealed) -> None:
    service, once = sealed.service, {"Idempotency-Key": "first"}
    body = draft("once")
    first = await sealed.agent.post(MEMORY, json=body, headers=once)
    await rotate(service)
    await sealed.reseal()
    assert [key.owner for key in sealed.keys(KeyPurpose.REPLACED).values()] == ["ada"]
    again = await sealed.agent.post(MEMORY, json=body, headers=once)
    assert (again.status_code, again.content) == (201, first.content)
    service.clock.advance(25 * 3_600)
    await sweep(service.services)
    await sealed.reseal()
    assert sealed.keys(KeyPurpose.REPLACED) == {}
    await sealed.check()


async def test_forgetting_an_agent_destroys_replaced_keys_too(sealed: Sealed) -> None:
    await rotate(sealed.service)
    await forget(sealed.service.services, TENANT, "ada")
    assert {key.owner for key in sealed.keys(*KeyPurpose).values()} == {""}
    await sealed.reseal()
    assert sealed.keys(KeyPurpose.REPLACED) == {}


async def test_a_file_that_was_sealed_with_a_replaced_key_is_refused(
    sealed: Sealed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is sealed outside the transaction that stores it."""
    agent, service = sealed.agent, sealed.service
    made = await make(agent, "file", memory_type="semantic")
    files = f"{MEMORY}/{made['id']}/attachments"
    added = await agent.post(files, json={"filename": "f", "mime_type": "text/plain", "size": 4})
    path = f"{files}/{added.json()['id']}/content"
    prepare = EnvelopeCipher.prepare

    async def prepare_and_rotate(self: EnvelopeCipher, *arguments: Any) -> str:
        prepared = await prepare(self, *arguments)
        patched.undo()
        await rotate(service, [""])
        return prepared

    with monkeypatch.context() as patched:
        patched.setattr(EnvelopeCipher, "prepare", prepare_and_rotate)
        refused = await agent.put(path, content=b"text")
    assert (refused.status_code, refused.json()["error"]) == (503, "KEY_UNAVAILABLE")
    assert (await agent.put(path, content=b"text")).is_success


async def test_what_has_no_data_key_is_not_rotated(service: RunningService) -> None:
    await create_tenant(service.services, "empty")
    assert not await rotate_data_key(service.services, "empty", "")
    assert await run_job(service.services, "empty", "reseal") is None
