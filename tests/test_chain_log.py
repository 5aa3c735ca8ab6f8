"""A log that is older than the chain is taken into it when a store is opened."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from memorywall.jobs import chain_log
from memorywall.records.event import Event, LogEvent
from memorywall.records.idempotency import KeyPurpose
from memorywall.service.erasure.entry_erasure import forget
from memorywall.storage.port import Transaction
from memorywall.storage.rows import encode_names
from tests.support import stored
from tests.support.damage import inspected, verified
from tests.support.service import RunningService, draft, open_service

pytestmark = pytest.mark.anyio


async def _fill(service: RunningService, entries: int = 5) -> None:
    agent = await service.agent("ada")
    for number in range(entries):
        fields = {"tags": ["t"], "sensitivity": "confidential" if number == 1 else "internal"}
        made = await agent.post("/api/v1/memory", json=draft(f"key-{number}", **fields))
        assert made.status_code == 201, made.text
    changed = made.json()["id"]
    patch = await agent.patch(
        f"/api/v1/memory/{changed}", json={"value": {"n": 2}}, headers={"If-Match": "1"}
    )
    assert patch.status_code == 200, patch.text


def _events(directory: Path) -> list[Event]:
    with inspected(directory / "memory.db") as inspection:
        return sorted(inspection.events("default"), key=lambda event: event.seq)


def _make_old(directory: Path) -> list[Event]:
    """Puts the log back into the form it had before the chain; returns it."""
    events = _events(directory)
    for event in events:
        row = (
            event.tenant, event.seq, str(event.type), event.stream, event.agent_id, event.actor,
            event.entry_id, "" if event.tier is None else event.tier.value, event.namespace,
            event.key, event.version, event.previous_version, encode_names(event.tags),
            event.task_id, event.intent_id, event.timestamp, event.data,
        )  # fmt: skip
        places = ", ".join(f"?{number}" for number in range(1, len(row) + 1))
        stored.change(directory, f"INSERT INTO legacy_events VALUES ({places})", *row)
    stored.change(directory, "DELETE FROM events")
    stored.change(directory, "DELETE FROM event_contents")
    stored.change(directory, "DELETE FROM data_keys WHERE purpose = 'digest'")
    if stored.database_of(directory) is not None:
        stored.change(directory, "UPDATE heads SET hash = NULL")
    return events


def _plain(events: list[Event]) -> list[Event]:
    """The events without what an old log does not have."""
    return [msgspec.structs.replace(event, row=None, kind=None, subjects=None) for event in events]


@pytest.mark.parametrize("at_once", [1, 2, 500])
async def test_an_old_log_is_chained_as_it_was_found(
    tmp_path: Path, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chain_log, "_EVENTS_AT_ONCE", at_once)
    monkeypatch.setattr(chain_log, "_ENTRIES_AT_ONCE", at_once)
    async with open_service(tmp_path) as service:
        await _fill(service)
    old = _make_old(tmp_path)
    assert any("not been taken" in text for text in verified(tmp_path / "memory.db").problems)
    async with open_service(tmp_path) as service:
        for agent in (await service.agent("grace"), await service.agent("ada", tenant="globex")):
            made = await agent.post("/api/v1/memory", json=draft("new"))
            assert made.status_code == 201, made.text
    events = _events(tmp_path)
    assert _plain(events[: len(old)]) == _plain(old)
    genesis, *rows = [event for event in events if isinstance(event.type, LogEvent)]
    assert genesis.type is LogEvent.GENESIS
    assert genesis.data is not None
    assert msgspec.json.decode(genesis.data)["events"] == len(old)
    assert all(event.type is LogEvent.ROWS for event in rows)
    assert rows
    assert verified(tmp_path / "memory.db").problems == []
    # What is older than the chain is covered by the digests of its rows.
    stored.change(tmp_path, "UPDATE entries SET created_by = 'eve' WHERE key = 'key-2'")
    (problem,) = verified(tmp_path / "memory.db").problems
    assert problem.endswith("has another row than its log says")


async def test_interrupted_chaining_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chain_log, "_EVENTS_AT_ONCE", 2)
    monkeypatch.setattr(chain_log, "_ENTRIES_AT_ONCE", 2)
    async with open_service(tmp_path) as service:
        await _fill(service)
    old = _make_old(tmp_path)
    real, steps = chain_log.append_event, 0

    async def failing(to: Transaction, event: Event) -> Event:
        nonlocal steps
        steps += 1
        if steps % 4 == 0:
            raise RuntimeError("interrupted")
        return await real(to, event)

    monkeypatch.setattr(chain_log, "append_event", failing)
    for _ in range(30):
        try:
            async with open_service(tmp_path):
                break
        except RuntimeError:
            continue
    else:
        raise AssertionError("the takeover does not come to an end")
    assert steps > 4
    assert _plain(_events(tmp_path)[: len(old)]) == _plain(old)
    assert verified(tmp_path / "memory.db").problems == []
    assert [event.type for event in _events(tmp_path)].count(LogEvent.GENESIS) == 1


async def test_a_store_that_is_chained_is_left_alone(tmp_path: Path) -> None:
    async with open_service(tmp_path) as service:
        await _fill(service)
    before = stored.all_rows(tmp_path)["events"]
    async with open_service(tmp_path):
        pass
    assert stored.all_rows(tmp_path)["events"] == before


async def test_contents_can_be_erased_and_the_rest_still_verifies(tmp_path: Path) -> None:
    async with open_service(tmp_path) as service:
        await _fill(service)
        await service.services.store.write("default", lambda to: to.events.erase_content([1, 3, 6]))
    report = verified(tmp_path / "memory.db")
    assert (report.problems, report.erased) == ([], 3)


async def test_retired_digest_keys_verify_and_outlive_forgotten_agents(
    tmp_path: Path,
) -> None:
    async with open_service(tmp_path) as service:
        await _fill(service)
        cipher, store = service.services.cipher, service.services.store
        made = await cipher.rotate_digest_key(store, "default", service.services.now())
        agent = await service.agent("grace")
        assert (await agent.post("/api/v1/memory", json=draft("new"))).status_code == 201
        await forget(service.services, "default", "ada")
        current = await store.read(
            "default", lambda to: to.data_keys.current(purpose=KeyPurpose.DIGEST)
        )
        assert current is not None
        assert current.id == made
    assert verified(tmp_path / "memory.db").problems == []
    named = {key for (key,) in stored.rows(tmp_path, "SELECT digest_key FROM events")}
    kept = {key for (key,) in stored.rows(tmp_path, "SELECT id FROM data_keys")}
    assert len(named) == 2
    assert named <= kept
