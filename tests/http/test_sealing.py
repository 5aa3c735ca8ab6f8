"""Sensitive values at rest: RFC-0015 section 9.2, and bytes that are really gone: 9.3."""

from __future__ import annotations

import base64
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from memorywall.assembly import open_memory
from memorywall.records.errors import ConfigurationError
from memorywall.settings import KEY_ENVIRONMENT, Settings
from tests.http.checks import (
    BATCH,
    MARKER,
    MEMORY,
    assert_problem,
    everything,
    make,
    until_erased,
)
from tests.support.process import ServerProcess, run_cli
from tests.support.rounds import sweep
from tests.support.service import RunningService, draft, open_service, settings_of
from tests.support.stored import all_rows, change, places_holding, rows

pytestmark = pytest.mark.anyio

SECRET: dict[str, Any] = {"value": {"text": MARKER}}
SEALED = pytest.mark.parametrize("sensitivity", ["confidential", "restricted"])
KEY = base64.b64encode(bytes(range(32))).decode()


def _stored(service: RunningService, entry_id: str) -> tuple[Any, ...]:
    """The value, the name of its key, and its tenant."""
    statement = "SELECT value, sealing_key, tenant FROM entries WHERE id = ?"
    (found,) = rows(service, statement, entry_id)
    return found


def _store(service: RunningService, entry_id: str, value: bytes, sealing_key: str | None) -> None:
    """What somebody does who can write to the database but has not the key."""
    statement = "UPDATE entries SET value = ?, sealing_key = ? WHERE id = ?"
    change(service, statement, value, sealing_key, entry_id)


@SEALED
async def test_a_sealed_value_reads_as_it_was_written(
    service: RunningService, sensitivity: str
) -> None:
    agent = await service.agent("ada")
    made = await make(agent, sensitivity=sensitivity, tags=["x"], **SECRET)
    assert (made["value"], made["sensitivity"]) == (SECRET["value"], sensitivity)
    path = f"{MEMORY}/{made['id']}"
    assert (await agent.get(path)).json() == made
    assert (await agent.get(MEMORY, params={"tags": "x"})).json()["entries"] == [made]
    assert (await agent.get("/api/v1/agents/ada/memory")).json() == [made]
    assert (await agent.get(f"{MEMORY}/export")).json() == made
    clash = await agent.post(MEMORY, json=draft())
    assert assert_problem(clash, 409)["current"] == made
    late = await agent.patch(path, json={"tags": []}, headers={"If-Match": "2"})
    assert assert_problem(late, 409)["current"] == made
    changed = await agent.patch(path, json={"tags": []}, headers={"If-Match": "1"})
    assert changed.json() == {**made, "tags": [], "version": 2}
    summary = (await agent.get("/api/v1/agents/ada/memory/summary")).json()
    assert summary["working"]["total_size_kb"] == 1


@SEALED
@pytest.mark.parametrize("tier", ["working", "episodic", "semantic"])
async def test_sealed_value_is_nowhere_in_clear_text(
    tmp_path: Path, tier: str, sensitivity: str
) -> None:
    async with open_service(tmp_path) as service:
        agent = await service.agent("ada")
        made = await make(agent, "single", memory_type=tier, sensitivity=sensitivity, **SECRET)
        element = draft("batch", memory_type=tier, sensitivity=sensitivity, **SECRET)
        kept = await agent.post(
            BATCH, json={"entries": [element]}, headers={"Idempotency-Key": "key"}
        )
        assert kept.is_success
        changed = await agent.patch(
            f"{MEMORY}/{made['id']}", json={"value": {MARKER: 1}}, headers={"If-Match": "1"}
        )
        assert changed.is_success
        assert places_holding(tmp_path, MARKER.encode()) == []
        # The search itself is sound: what is not sensitive is found.
        await make(agent, "open", value={"text": "open-marker"})
        assert places_holding(tmp_path, b"open-marker") != []
    assert places_holding(tmp_path, MARKER.encode()) == []


async def test_two_equal_values_are_sealed_differently(service: RunningService) -> None:
    agent = await service.agent("ada")
    entries = [await make(agent, name, sensitivity="restricted", **SECRET) for name in "ab"]
    values = {_stored(service, entry["id"])[0] for entry in entries}
    assert len(values) == 2


@SEALED
async def test_a_change_seals_and_unseals(tmp_path: Path, sensitivity: str) -> None:
    async with open_service(tmp_path, erasure_deadline=0.2) as service:
        agent = await service.agent("ada")
        made = await make(agent, sensitivity="public", **SECRET)
        path = f"{MEMORY}/{made['id']}"
        assert places_holding(tmp_path, MARKER.encode()) != []
        sealed = await agent.patch(
            path, json={"sensitivity": sensitivity}, headers={"If-Match": "1"}
        )
        assert sealed.json()["value"] == SECRET["value"]
        await until_erased(service)
        assert places_holding(tmp_path, MARKER.encode()) == []
        assert (await agent.get(path)).json() == sealed.json()
        opened = await agent.patch(
            path, json={"sensitivity": "internal"}, headers={"If-Match": "2"}
        )
        assert opened.json()["value"] == SECRET["value"]
        assert places_holding(tmp_path, MARKER.encode()) != []


async def _refused(client: httpx.AsyncClient, entry_id: str) -> None:
    """No way of reading the entry gives anything away."""
    path = f"{MEMORY}/{entry_id}"
    replies = [
        await client.get(path),
        await client.patch(path, json={"tags": []}, headers={"If-Match": "1"}),
        await client.patch(path, json={"tags": []}, headers={"If-Match": "2"}),
    ]
    opened = [reply for reply in replies if reply.status_code != 409]
    assert opened
    for reply in opened:
        assert_problem(reply, 503, "KEY_UNAVAILABLE")
    for reply in (
        *replies,
        await client.get(MEMORY),
        await client.get("/api/v1/agents/ada/memory"),
    ):
        assert MARKER not in reply.text
        assert "other-secret" not in reply.text


@pytest.mark.parametrize("where", ["entry", "version", "tenant", "tenant-with-its-key"])
async def test_a_sealed_value_opens_nowhere_else(service: RunningService, where: str) -> None:
    agent = await service.agent("ada")
    made = await make(agent, "first", sensitivity="restricted", **SECRET)
    other = agent
    if where.startswith("tenant"):
        other = await service.agent("ada", tenant="elsewhere")
    target = await make(other, "second", sensitivity="restricted", value={"t": "other-secret"})
    value, sealing_key, tenant = _stored(service, made["id"])
    if where == "version":
        changed = await agent.patch(
            f"{MEMORY}/{made['id']}", json={"value": {}}, headers={"If-Match": "1"}
        )
        assert changed.is_success
        target = made
    if where == "tenant-with-its-key":
        change(
            service,
            "INSERT INTO data_keys (tenant, id, subject, wrapped, wrapped_by, created_at)"
            " SELECT 'elsewhere', id, subject, wrapped, wrapped_by, created_at"
            " FROM data_keys WHERE tenant = ? AND id = ?",
            tenant,
            sealing_key,
        )
    _store(service, target["id"], value, sealing_key)
    await _refused(other, target["id"])


@pytest.mark.parametrize("part", ["value", "data-key", "nothing-left", "too-short", "no-seal"])
async def test_tampered_value_does_not_open(service: RunningService, part: str) -> None:
    agent = await service.agent("ada")
    made = await make(agent, sensitivity="restricted", **SECRET)
    value, sealing_key, _ = _stored(service, made["id"])
    spoiled = {
        "value": value[:-1] + bytes([value[-1] ^ 1]),
        "nothing-left": b"",
        "too-short": value[:5],
    }.get(part, value)
    name = {"data-key": "dek_00000000000000000000000000", "no-seal": None}.get(part, sealing_key)
    _store(service, made["id"], spoiled, name)
    await _refused(agent, made["id"])


async def test_one_unreadable_entry_does_not_hide_the_others_or_itself_from_deletion(
    service: RunningService,
) -> None:
    agent = await service.agent("ada")
    made = await make(agent, "sealed", sensitivity="restricted", **SECRET)
    fine = await make(agent, "fine")
    _store(service, made["id"], b"\0", _stored(service, made["id"])[1])
    assert (await agent.get(f"{MEMORY}/{fine['id']}")).json() == fine
    assert (await agent.delete(f"{MEMORY}/{made['id']}")).status_code == 204


async def _open(settings: Settings) -> None:
    async with open_memory(settings):
        pass


async def _seal_something(directory: Path, **settings: Any) -> Settings:
    async with open_service(directory, **settings) as service:
        await make(await service.agent("ada"), sensitivity="restricted", **SECRET)
        return service.services.settings


async def test_the_key_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    settings = await _seal_something(tmp_path)
    assert stat.S_IMODE(settings.key_file.stat().st_mode) == 0o600
    assert len(base64.b64decode(settings.key_file.read_text())) == 32
    await _open(settings)


@pytest.mark.sqlite("the mode of its file")
async def test_the_database_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    settings = await _seal_something(tmp_path)
    assert stat.S_IMODE(settings.sqlite_path.stat().st_mode) & 0o077 == 0


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660, 0o606])
async def test_a_key_file_others_can_reach_is_refused(tmp_path: Path, mode: int) -> None:
    settings = await _seal_something(tmp_path)
    settings.key_file.chmod(mode)
    with pytest.raises(ConfigurationError, match="chmod 600"):
        await _open(settings)


@pytest.mark.parametrize(
    "content", [None, "", "short", KEY[:-8], KEY + KEY, "é" * 44, KEY], ids=lambda text: repr(text)
)
async def test_a_missing_or_wrong_key_file_fails_closed(
    tmp_path: Path, content: str | None
) -> None:
    settings = await _seal_something(tmp_path)
    held = all_rows(tmp_path)
    if content is None:
        settings.key_file.unlink()
    else:
        settings.key_file.write_text(content)
    with pytest.raises(ConfigurationError) as refusal:
        await _open(settings)
    assert content is None or not content or content not in str(refusal.value)
    assert all_rows(tmp_path) == held
    if content is None:
        assert not settings.key_file.exists()


@pytest.mark.parametrize("key", ["", "short", KEY[:-8], "%" * 44], ids=repr)
async def test_invalid_key_from_the_environment_is_refused(tmp_path: Path, key: str) -> None:
    with pytest.raises(ConfigurationError, match=KEY_ENVIRONMENT) as refusal:
        await _open(settings_of(tmp_path, encryption_key=key))
    assert not key or key not in str(refusal.value).replace(KEY_ENVIRONMENT, "")


async def test_a_key_from_the_environment_needs_no_file(tmp_path: Path) -> None:
    settings = await _seal_something(tmp_path, encryption_key=KEY)
    assert not settings.key_file.exists()
    assert KEY not in repr(settings)
    await _open(settings)
    with pytest.raises(ConfigurationError):
        await _open(replace(settings, encryption_key=None))
    wrong = base64.b64encode(bytes(32)).decode()
    with pytest.raises(ConfigurationError):
        await _open(replace(settings, encryption_key=wrong))


def test_the_server_takes_the_key_from_its_environment_and_refuses_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    monkeypatch.setenv(KEY_ENVIRONMENT, KEY)
    with ServerProcess(data) as server, server.client() as client:
        made = client.post(MEMORY, json=draft(sensitivity="restricted", **SECRET)).json()
    assert list(data.glob("*.key")) == []
    with ServerProcess(data) as server, server.client() as client:
        assert client.get(f"{MEMORY}/{made['id']}").json() == made
    monkeypatch.delenv(KEY_ENVIRONMENT)
    refused = run_cli("serve", *server.place, "--port", "0", check=False)
    assert refused.returncode != 0
    assert len(refused.stderr.strip().splitlines()) == 1, refused.stderr
    assert "key" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.parametrize("end", ["deleted", "by-filter", "evicted", "expired", "replaced"])
async def test_bytes_of_removed_data_leave_every_file(tmp_path: Path, end: str) -> None:
    async with open_service(tmp_path, episodic_capacity=1, erasure_deadline=0.2) as service:
        agent = await service.agent("ada")
        tier = "episodic" if end == "evicted" else "working"
        made = await make(
            agent, memory_type=tier, value={"text": MARKER * 1_000}, ttl="duration:PT1M"
        )
        path = f"{MEMORY}/{made['id']}"
        assert places_holding(tmp_path, MARKER.encode()) != []
        if end == "deleted":
            assert (await agent.delete(path)).is_success
        elif end == "by-filter":
            removed = await agent.request("DELETE", BATCH, params={"key": "progress"})
            assert removed.json() == {"deleted": 1}
        elif end == "evicted":
            await make(agent, "other", memory_type="episodic")
        elif end == "expired":
            service.clock.advance(60)
            assert await sweep(service.services) == 1
        else:
            change = await agent.patch(path, json={"value": {}}, headers={"If-Match": "1"})
            assert change.is_success
        await until_erased(service)
        assert places_holding(tmp_path, MARKER.encode()) == []
        assert len((await everything(service)).events) >= 2
