"""Replacement of the key-encryption key: beside a server, after interruptions, and to its end."""

from __future__ import annotations

import base64
import secrets
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from memorywall.assembly import open_memory
from memorywall.records.errors import ConfigurationError
from memorywall.records.idempotency import DataKey
from memorywall.service.administration import key_rotation
from memorywall.service.administration.key_rotation import master_key_status, rewrap_data_keys
from memorywall.service.encryption.key_file import begin_rotation, read_key_file, retire_old_keys
from memorywall.service.encryption.master_keys import MasterKeys
from memorywall.settings import Settings
from tests.cli.shell import misuse, refuse, succeed
from tests.http.checks import MEMORY, make
from tests.support.service import RunningService, draft, open_service, settings_of
from tests.support.stored import rows

pytestmark = pytest.mark.anyio

AGENTS = tuple(f"agent-{number}" for number in range(7))
SECRET = {"text": "sealed under a data key"}


class Interrupted(Exception):
    """What ends a rotation in the middle."""


async def seal_one(service: RunningService, agent: str, key: str = "k") -> tuple[Any, str]:
    """A client of the agent, and the path of a new sealed entry."""
    client = await service.agent(agent)
    made = await make(client, key, sensitivity="restricted", value=SECRET)
    return client, f"{MEMORY}/{made['id']}"


async def is_read(client: httpx.AsyncClient, path: str) -> bool:
    reply = await client.get(path)
    return reply.status_code == 200 and reply.json()["value"] == SECRET


async def rotate(settings: Settings) -> int:
    """What the command does beside a running server."""
    begin_rotation(settings, None)
    async with open_memory(settings, exclusive=False) as beside:
        return await rewrap_data_keys(beside)


def fail_after(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the process end after some data keys were wrapped anew."""
    rewrap, left = MasterKeys.rewrap, [count]

    def failing(self: MasterKeys, data_key: DataKey) -> DataKey:
        left[0] -= 1
        if left[0] < 0:
            raise Interrupted
        return rewrap(self, data_key)

    monkeypatch.setattr(MasterKeys, "rewrap", failing)


async def test_the_key_is_replaced_while_a_server_runs(
    service: RunningService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = service.services.settings
    sealed = [await seal_one(service, agent) for agent in AGENTS]
    (old,) = read_key_file(settings.key_file)
    before = await master_key_status(service.services)
    assert (before.done > len(AGENTS), before.left) == (True, 0)
    monkeypatch.setattr(key_rotation, "_AT_ONCE", 2)
    for interruption in (1, 3):
        with monkeypatch.context() as patched:
            fail_after(interruption, patched)
            with pytest.raises(Interrupted):
                await rotate(settings)
        # Data keys of both kinds are in use, and new ones are wrapped under the new key at once.
        sealed.append(await seal_one(service, f"late-{interruption}"))
        service.services.cipher._opened.clear()
        service.services.cipher._current.clear()
        assert all([await is_read(*one) for one in sealed])
    half = await master_key_status(service.services)
    assert half.left > 0
    assert half.newest != before.newest
    with pytest.raises(ConfigurationError, match="both keys"):
        async with open_memory(replace(settings, encryption_key=_text(old)), exclusive=False):
            pass
    await rotate(settings)
    assert await rotate(settings) == 0
    done = await master_key_status(service.services)
    assert (done.newest, done.left) == (half.newest, 0)
    assert {name for (name,) in rows(service, "SELECT wrapped_by FROM data_keys")} == {done.newest}
    assert retire_old_keys(settings) == 1
    assert old not in read_key_file(settings.key_file)
    sealed.append(await seal_one(service, "last"))
    service.services.cipher._opened.clear()
    assert all([await is_read(*one) for one in sealed])


async def test_the_old_key_is_not_needed_after_the_rotation(tmp_path: Path) -> None:
    async with open_service(tmp_path) as service:
        _, path = await seal_one(service, "ada")
        key = await service.key("ada")
        await rotate(service.services.settings)
        (old, new) = read_key_file(service.services.settings.key_file)
        retire_old_keys(service.services.settings)
    async with open_service(tmp_path, encryption_key=_text(new)) as service:
        assert await is_read(service.client(key), path)
        once = {"Idempotency-Key": "first"}
        body = draft("again", sensitivity="restricted")
        assert (await service.client(key).post(MEMORY, json=body, headers=once)).is_success
    with pytest.raises(ConfigurationError, match="key-encryption key"):
        async with open_service(tmp_path, encryption_key=_text(old)):
            pass


async def test_keys_of_the_environment_are_replaced_by_the_operator(tmp_path: Path) -> None:
    old, new = _text(secrets.token_bytes(32)), _text(secrets.token_bytes(32))
    async with open_service(tmp_path, encryption_key=old) as service:
        _, path = await seal_one(service, "ada")
        with pytest.raises(ConfigurationError, match="MEMORYWALL_KEY"):
            begin_rotation(service.services.settings, None)
    both = settings_of(tmp_path, encryption_key=f"{old} {new}")
    await rotate(both)
    with pytest.raises(ConfigurationError, match="MEMORYWALL_KEY"):
        retire_old_keys(both)
    async with open_service(tmp_path, encryption_key=new) as service:
        key = await service.key("ada")
        assert await is_read(service.client(key), path)


async def test_a_second_rotation_waits_for_the_first(
    service: RunningService, tmp_path: Path
) -> None:
    settings = service.services.settings
    given = tmp_path / "new.key"
    given.write_text(_text(secrets.token_bytes(32)) + "\n")
    with pytest.raises(ConfigurationError, match="chmod 600"):
        begin_rotation(settings, given)
    given.chmod(0o600)
    before = read_key_file(settings.key_file)
    begin_rotation(settings, given)
    begin_rotation(settings, given)
    assert read_key_file(settings.key_file) == (*before, *read_key_file(given))
    assert settings.key_file.stat().st_mode & 0o777 == 0o600
    other = tmp_path / "other.key"
    other.write_text(_text(secrets.token_bytes(32)))
    other.chmod(0o600)
    with pytest.raises(ConfigurationError, match="has begun"):
        begin_rotation(settings, other)
    for content in ("", "x", f"{given.read_text()} {other.read_text()}"):
        other.write_text(content)
        with pytest.raises(ConfigurationError):
            begin_rotation(settings, other)
    assert read_key_file(settings.key_file) == (*before, *read_key_file(given))


@pytest.mark.sqlite("the command; the store does not matter to it")
def test_the_command_replaces_the_key(tmp_path: Path) -> None:
    data = ("--data", str(tmp_path / "d"))
    succeed("keys", "create", *data, "--agent", "ada", "--subject", "ann")
    first = succeed("keys", "rotate-master", *data, "--status")
    assert first.endswith(": 1 data keys; 0 left\n")
    second = succeed("keys", "rotate-master", *data)
    assert second.endswith(": 1 data keys; 0 left\n")
    assert second != first
    assert succeed("keys", "rotate-master", *data, "--status") == second
    assert succeed("keys", "rotate-master", *data) == second
    assert "one of" in misuse("keys", "rotate-master", *data, "--status", "--retire")
    file = tmp_path / "d" / "memory.db.key"
    old, new = file.read_text().split()
    file.write_text(f"{new}\n{old}\n")
    assert "run `memorywall keys rotate-master`" in refuse(
        "keys", "rotate-master", *data, "--retire"
    )
    file.write_text(f"{old}\n{new}\n")
    retire = ("keys", "rotate-master", *data, "--retire")
    assert succeed(*retire) == f"retired the previous key\n{second}"
    assert succeed(*retire) == f"there is no previous key\n{second}"
    assert file.read_text().split() == [new]
    absent = str(tmp_path / "no")
    said = refuse("keys", "rotate-master", *data, "--new-key-file", absent)
    assert said.endswith("must hold one key")


@pytest.mark.sqlite("the command; the store does not matter to it")
def test_the_command_replaces_data_keys(tmp_path: Path) -> None:
    data = ("--data", str(tmp_path / "d"))
    succeed("keys", "create", *data, "--agent", "ada", "--subject", "ann")
    assert "nothing is sealed" in refuse("keys", "rotate-data", *data, "--agent", "ada")
    own = (*data, "--agent", "ada")
    succeed("set", "n", "k", "{}", *own, "--sensitivity", "restricted")
    said = succeed("keys", "rotate-data", *data, "--agent", "ada")
    assert said == "1 entries, records and files are sealed with a new data key\n"
    assert succeed("keys", "rotate-data", *data).startswith("0 entries")
    succeed("verify", *data)
    assert "tenant not found" in refuse("keys", "rotate-data", *data, "--tenant", "nobody")


@pytest.mark.sqlite("the command; the store does not matter to it")
def test_the_command_starts_a_new_digest_key(tmp_path: Path) -> None:
    data = ("--data", str(tmp_path / "d"))
    succeed("keys", "create", *data, "--agent", "ada")
    own = (*data, "--agent", "ada")
    for number in (1, 2):
        succeed("set", "n", f"k{number}", "{}", *own)
        named = succeed("keys", "rotate-digest", *data).split()[-1]
    succeed("set", "n", "k3", "{}", *own)
    keys = rows(tmp_path / "d", "SELECT DISTINCT digest_key FROM events ORDER BY seq")
    assert len(keys) == 3
    assert keys[-1] == (named,)
    succeed("verify", *data)
    assert "no tenant" in refuse("keys", "rotate-digest", *data, "--tenant", "nobody")


def _text(key: bytes) -> str:
    return base64.b64encode(key).decode()
