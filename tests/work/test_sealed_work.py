"""The working state of tasks and intents is sealed, and goes with the agent that made them."""

from __future__ import annotations

import msgspec
import pytest

from memorywall.jobs.job_runner import run_everywhere
from memorywall.jobs.seal import SEAL_JOB
from memorywall.records.errors import KeyUnavailableError
from memorywall.records.intent import Intent
from memorywall.records.task import Task
from memorywall.service.erasure.entry_erasure import forget
from tests.support.service import RunningService
from tests.support.stored import all_rows, rows
from tests.work.crew import TASKS, Crew, at, ok

pytestmark = pytest.mark.anyio

TENANT = "default"
INPUT, OUTPUT, STATE = "made of numbers 4711", "found in row 8128", "waits for answer 6561"
_WORK = ("tasks", "intents")


def _stored(service: RunningService) -> str:
    """Every row of tasks and intents, as text."""
    everything = all_rows(service)
    return repr({table: everything[table] for table in _WORK})


def _sealing_keys(service: RunningService, table: str) -> list[str | None]:
    found = rows(service, f"SELECT sealing_key FROM {table} ORDER BY id")
    return [row[0] for row in found]


async def _owner_of(service: RunningService, key_id: str | None) -> str | None:
    assert key_id is not None
    key = await service.services.store.read(TENANT, lambda to: to.data_keys.get(key_id))
    return None if key is None else key.owner


async def _fill(crew: Crew) -> dict[str, str]:
    """A task with input and output, and an intent with state; returns their ids."""
    patches = [{"op": "set", "path": "note", "value": STATE}]
    path = f"{crew.intent_path}/state"
    changed = await crew.chief.post(
        path, json={"patches": patches}, headers=at(crew.intent["version"])
    )
    ok(changed)
    task = await crew.task(input={"text": INPUT}, assigned_agent="a")
    taken = await crew.take(crew.a, task["id"])
    await crew.change(crew.a, task["id"], taken.token, status="running")
    await crew.change(crew.a, task["id"], taken.token, output={"text": OUTPUT})
    return {"task": task["id"], "intent": crew.intent["id"]}


async def _clear_record(service: RunningService, ids: dict[str, str]) -> tuple[Task, Intent]:
    """Puts a task and an intent as an earlier version stored them, in the clear."""
    store = service.services.store
    task = await store.read(TENANT, lambda to: to.tasks.get(ids["task"]))
    intent = await store.read(TENANT, lambda to: to.intents.get(ids["intent"]))
    assert task is not None
    assert intent is not None
    clear = msgspec.structs.replace(task, sealed=None, input={"text": INPUT}, output=None)
    await store.write(TENANT, lambda to: to.tasks.replace(clear))
    plain = msgspec.structs.replace(intent, sealed=None, state={"note": STATE})
    await store.write(TENANT, lambda to: to.intents.replace(plain))
    assert INPUT in _stored(service)
    assert STATE in _stored(service)
    return clear, plain


async def test_inputs_results_and_state_are_stored_sealed(
    service: RunningService, crew: Crew
) -> None:
    ids = await _fill(crew)
    stored = _stored(service)
    assert INPUT not in stored
    assert OUTPUT not in stored
    assert STATE not in stored
    shown = await crew.now(ids["task"])
    assert shown["input"] == {"text": INPUT}
    assert shown["output"] == {"text": OUTPUT}
    intent = ok(await crew.chief.get(crew.intent_path))
    assert intent["state"] == {"note": STATE}
    listed = ok(await crew.chief.get(f"{crew.intent_path}/tasks"))
    assert [one["input"] for one in listed] == [{"text": INPUT}]


async def test_records_are_sealed_with_the_key_of_their_creator(
    service: RunningService, crew: Crew
) -> None:
    await _fill(crew)
    for table in _WORK:
        owners = [await _owner_of(service, key) for key in _sealing_keys(service, table)]
        assert owners == ["chief"]


async def test_a_record_without_content_is_not_sealed(service: RunningService, crew: Crew) -> None:
    await crew.task()
    assert _sealing_keys(service, "tasks") == [""]
    assert _sealing_keys(service, "intents") == [""]


async def test_update_of_other_fields_keeps_sealed_fields(
    service: RunningService, crew: Crew
) -> None:
    ids = await _fill(crew)
    again = await crew.task("second", depends_on=[ids["task"]], input={"text": "5040"})
    assert (await crew.now(again["id"]))["input"] == {"text": "5040"}
    policy = {"default_policy": "open", "entries": []}
    ok(await crew.chief.put(f"{crew.intent_path}/acl", json=policy))
    assert ok(await crew.chief.get(crew.intent_path))["state"] == {"note": STATE}
    assert (await crew.now(ids["task"]))["input"] == {"text": INPUT}


async def test_output_can_be_removed(service: RunningService, crew: Crew) -> None:
    ids = await _fill(crew)
    task = await crew.now(ids["task"])
    changed = ok(
        await crew.chief.patch(
            f"{TASKS}/{ids['task']}", json={"output": None}, headers=at(task["version"])
        )
    )
    assert changed.get("output") is None
    assert changed["input"] == {"text": INPUT}


async def test_clear_text_record_is_sealed_at_its_next_write(
    service: RunningService, crew: Crew
) -> None:
    ids = await _fill(crew)
    await _clear_record(service, ids)
    assert (await crew.now(ids["task"]))["input"] == {"text": INPUT}
    assert ok(await crew.chief.get(crew.intent_path))["state"] == {"note": STATE}
    task = await crew.now(ids["task"])
    await crew.chief.patch(
        f"{TASKS}/{ids['task']}", json={"metadata": {"a": 1}}, headers=at(task["version"])
    )
    assert INPUT not in _stored(service)
    assert (await crew.now(ids["task"]))["input"] == {"text": INPUT}


async def test_clear_text_record_is_sealed_by_a_job(service: RunningService, crew: Crew) -> None:
    ids = await _fill(crew)
    task, _ = await _clear_record(service, ids)
    assert await run_everywhere(service.services, SEAL_JOB) == 2
    assert await run_everywhere(service.services, SEAL_JOB, early=True) == 0
    stored = _stored(service)
    assert INPUT not in stored
    assert STATE not in stored
    shown = await crew.now(ids["task"])
    assert (shown["input"], shown["version"]) == ({"text": INPUT}, task.version)


async def test_clear_text_field_beside_sealed_fields_is_newer(
    service: RunningService, crew: Crew
) -> None:
    ids = await _fill(crew)
    stored = await service.services.store.read(TENANT, lambda to: to.tasks.get(ids["task"]))
    assert stored is not None
    beside = msgspec.structs.replace(stored, output={"text": "by an older server"})
    await service.services.store.write(TENANT, lambda to: to.tasks.replace(beside))
    shown = await crew.now(ids["task"])
    assert shown["output"] == {"text": "by an older server"}
    assert shown["input"] == {"text": INPUT}
    changed = await crew.chief.patch(
        f"{TASKS}/{ids['task']}", json={"metadata": {"a": 1}}, headers=at(shown["version"])
    )
    assert ok(changed)["output"] == {"text": "by an older server"}
    assert "by an older server" not in _stored(service)


async def test_forgotten_agent_leaves_no_working_state(service: RunningService, crew: Crew) -> None:
    ids = await _fill(crew)
    before = await service.services.store.read(TENANT, lambda to: to.tasks.get(ids["task"]))
    assert before is not None
    assert before.sealed is not None
    await forget(service.services, TENANT, "chief")
    assert _sealing_keys(service, "tasks") == [""]
    assert _sealing_keys(service, "intents") == [""]
    after = await service.services.store.read(TENANT, lambda to: to.tasks.get(ids["task"]))
    assert after is not None
    assert after.sealed is None
    assert (after.input, after.output) == ({}, None)
    # A copy from before opens with nothing that is left.
    part = before.sealed
    with pytest.raises(KeyUnavailableError):
        await service.services.store.read(
            TENANT,
            lambda to: service.services.cipher.open_bytes(
                to, TENANT, part.key_id, part.content, ""
            ),
        )


async def test_forgotten_agent_leaves_no_clear_text(service: RunningService, crew: Crew) -> None:
    ids = await _fill(crew)
    await _clear_record(service, ids)
    await forget(service.services, TENANT, "chief")
    stored = _stored(service)
    assert INPUT not in stored
    assert STATE not in stored


async def test_data_of_others_stays_when_an_agent_is_forgotten(
    service: RunningService, crew: Crew
) -> None:
    ids = await _fill(crew)
    await forget(service.services, TENANT, "a")
    assert (await crew.now(ids["task"]))["output"] == {"text": OUTPUT}
