"""Clients that call the operation runner in this process, from threads of their own."""

from __future__ import annotations

import enum
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import memorywall
from memorywall import Client
from memorywall.exceptions import (
    MemoryAccessError,
    MemoryNotFoundError,
    MemoryTransportError,
    RequestError,
    UnavailableError,
    ValidationError,
)
from memorywall.in_process.calls import read_as_json
from memorywall.in_process.drivers import InProcessDriver
from memorywall.records.entry import Provenance, Scope
from memorywall.records.principal import PrincipalKind
from memorywall.records.tier import Tier
from memorywall.records.worthiness import Verdict
from memorywall.sdk.effects import Request
from memorywall.sdk.executors import UNBOUND
from memorywall.sdk.models import MemoryEntry, from_wire
from memorywall.sdk.retry import encode
from memorywall.server.request_decoder import decode_json
from memorywall.service.encryption.keyed_store import KeyedStore
from memorywall.storage.port import Transaction
from memorywall.storage.sqlite.store import CallingThreadStore
from memorywall.storage.sqlite.writer import WriterBusyError
from memorywall.wire.entries import EntryResponse, EvictedEntry, EvictionWarning

PATIENCE = 20.0
START = "2026-01-01T00:00:00.000Z"


@pytest.fixture
def client(tmp_path: Path, place: Path | str) -> Iterator[Client]:
    with memorywall.open(place, agent="billing") as opened:
        yield opened


@pytest.fixture
def file_client(tmp_path: Path) -> Iterator[Client]:
    """A client of a file, whatever the other tests are run on."""
    with memorywall.open(tmp_path / "own.db", agent="billing") as opened:
        yield opened


def driver_of(client: Client) -> InProcessDriver:
    driver = client.driver
    assert isinstance(driver, InProcessDriver)
    return driver


def store_of(client: Client) -> CallingThreadStore:
    runner = driver_of(client)._host.memory.calling_runner
    assert runner is not None
    keyed = runner.service.store
    assert isinstance(keyed, KeyedStore)
    assert isinstance(keyed.unkeyed, CallingThreadStore)
    return keyed.unkeyed


def in_threads(*functions: Any) -> None:
    """Runs functions at once and raises the first error of any."""
    errors: list[BaseException] = []

    def run(function: Any) -> None:
        try:
            function()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(one,), daemon=True) for one in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()
    if errors:
        raise errors[0]


async def nothing(transaction: Transaction) -> int:
    return 1


def test_each_thread_reads_its_own_writes(client: Client) -> None:
    def work(name: str) -> None:
        for number in range(30):
            made = client.memory.set(name, f"k{number}", {"n": number})
            assert client.memory.get(name, f"k{number}") == made
            assert client.memory.query(namespace=name, memory_type="working").total == number + 1
            # A search runs on the loop, and sees what was committed in this thread all the same.
            if number % 10 == 0:
                found = client.memory.search(name, memory_type="working", mode="lexical")
                assert isinstance(found, list)

    in_threads(*(lambda name=f"n{one}": work(name) for one in range(4)))
    events = client.events.list(limit=1_000)
    assert [event.type for event in events] == ["memory.created"] * 120
    numbers = [event.seq for event in events]
    assert numbers == sorted(set(numbers))
    assert len({event.data.entry_id for event in events}) == 120


def test_files_of_entries_are_kept_in_process(client: Client) -> None:
    entry = client.memory.set("reports", "q3", {"pages": 2})
    content = bytes(range(256)) * 2_000
    made = client.memory.attachments.upload(entry.id, "q3.bin", content)
    assert made.entry_id == entry.id
    assert client.memory.attachments.download(entry.id, made.id) == content
    assert client.memory.attachments.list(entry.id) == [made]
    about = client.memory.set("people", "ann", {}, subjects=["ann"])
    client.memory.attachments.upload(about.id, "ann.bin", b"content")
    bound = client.for_user("bob")
    with pytest.raises(MemoryNotFoundError):
        bound.memory.attachments.list(about.id)
    assert len(client.for_user("ann").memory.attachments.list(about.id)) == 1
    client.memory.delete_by_id(entry.id)
    with pytest.raises(MemoryNotFoundError):
        client.memory.attachments.list(entry.id)


def test_a_held_claim_covers_the_files_of_its_key(client: Client) -> None:
    with client.claims.hold("ticket", ttl=30):
        entry = client.shared.set("ticket", {"n": 1})
        made = client.memory.attachments.upload(entry.id, "log", b"content")
        client.memory.attachments.delete(entry.id, made.id)
    assert client.memory.attachments.list(entry.id) == []


def test_writes_of_the_loop_and_of_threads_take_turns(client: Client) -> None:
    driver = driver_of(client)
    memory = driver._host.memory

    def over_the_loop() -> None:
        for number in range(40):
            body = {"namespace": "loop", "key": f"k{number}", "value": {}, "memory_type": "working"}
            request = Request(operation="create_entry", body=body)
            call = driver._caller.call(request, driver._host.settings, UNBOUND)
            driver._host.call(lambda call=call: memory.runner.run(call))

    def here() -> None:
        for number in range(40):
            client.memory.set("thread", f"k{number}", {})

    in_threads(over_the_loop, here, over_the_loop_in_turn(client))
    total = client.memory.query(memory_type="working", limit=1).total
    assert total == 120
    assert [event.seq for event in client.events.list(limit=200)] == list(range(1, 121))


def over_the_loop_in_turn(client: Client) -> Any:
    """Batches, which are long and share no commit."""

    def work() -> None:
        for number in range(4):
            client.memory.batch(
                {"namespace": f"batch{number}", "key": f"k{one}", "value": {}} for one in range(10)
            )

    return work


def test_write_joins_the_queue_when_the_writer_is_busy(file_client: Client) -> None:
    store = store_of(file_client)
    entered, leave = threading.Event(), threading.Event()

    async def slow(transaction: Transaction) -> int:
        entered.set()
        assert leave.wait(PATIENCE)
        return 2

    results: list[int] = []

    def hold() -> None:
        results.append(store._writer.write_here("default", slow))

    def meanwhile() -> None:
        assert entered.wait(PATIENCE)
        with pytest.raises(WriterBusyError):
            store._writer.write_here("default", nothing)
        # What is asked of the store in that moment waits for the loop, and the loop for the turn.
        waiting = threading.Thread(target=lambda: file_client.memory.set("n", "k", {}), daemon=True)
        waiting.start()
        assert file_client.memory.get("n", "k") is None
        leave.set()
        waiting.join(PATIENCE)
        assert not waiting.is_alive()

    in_threads(hold, meanwhile)
    assert results == [2]
    assert file_client.memory.get("n", "k") is not None


def test_interrupted_write_is_rolled_back_and_the_next_one_succeeds(file_client: Client) -> None:
    store = store_of(file_client)

    async def interrupted(transaction: Transaction) -> None:
        await transaction.identities.ensure_principal(
            "ghost", PrincipalKind.AGENT, "2026-01-01T00:00:00.000Z"
        )
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store._writer.write_here("default", interrupted)
    # As if a signal had come before even that could be undone, and in the midst of a read.
    store._writer._connection.execute("BEGIN IMMEDIATE")
    store._reader.use(lambda connection: connection.execute("BEGIN"))
    assert file_client.memory.set("n", "k", {"n": 1}).version == 1
    assert file_client.memory.get("n", "k") is not None


def test_a_store_that_is_closed_reads_and_writes_nothing(file_client: Client) -> None:
    store = store_of(file_client)
    other = Client.over(driver_of(file_client).for_agent("other"), agent="other")
    file_client.close()
    with pytest.raises(UnavailableError, match="closed"):
        other.memory.get("n", "k")
    with pytest.raises((UnavailableError, MemoryTransportError)):
        other.memory.set("n", "k", {})
    with pytest.raises(MemoryTransportError, match="closed"):
        other.memory.search("word")
    with pytest.raises(UnavailableError):
        store._writer.write_here("default", nothing)


def test_agent_sees_only_its_own_memory(client: Client) -> None:
    client.memory.set("n", "k", {"n": 1})
    other = Client.over(driver_of(client).for_agent("other"), agent="other")
    assert other.memory.get("n", "k") is None
    assert "tenant.admin" in client.whoami().permissions
    assert "tenant.admin" not in other.whoami().permissions
    with pytest.raises(ValidationError, match="X-Agent-ID"):
        Client.over(driver_of(client).for_agent("a\nb"), agent="a\nb").memory.get("n", "k")


def test_requests_are_bound_to_a_person(client: Client) -> None:
    ada, bob = client.for_user("ada"), client.for_user("bob")
    made = ada.memory.set("notes", "k", {"n": 1})
    assert (made.subjects, made.namespace) == (("ada",), "user/ada/notes")
    assert ada.memory.get("notes", "k") == made
    assert bob.memory.get("notes", "k") is None
    assert [entry.id for entry in ada.memory.query(memory_type="working")] == [made.id]
    assert list(bob.memory.query(memory_type="working")) == []
    with pytest.raises(MemoryAccessError):
        ada.intents.create("work")


def test_what_is_given_is_copied(client: Client) -> None:
    body = {"nested": [{"n": 1}]}
    made = client.intents.create("work", state=body)
    body["nested"][0]["n"] = 2
    assert made.state == {"nested": [{"n": 1}]}
    made.state["nested"].append(3)
    assert client.intents.get(made.id).state == {"nested": [{"n": 1}]}


def test_an_entry_is_what_its_json_text_is_read_as() -> None:
    names = {field.name for field in msgspec.structs.fields(MemoryEntry)}
    assert names == {field.name for field in msgspec.structs.fields(EntryResponse)}
    given: dict[str, Any] = {
        "id": "mem_1", "agent_id": "a", "namespace": "n", "key": "k",
        "value": msgspec.Raw(b'{"n":[1,null]}'), "memory_type": Tier.SESSION, "version": 3,
        "scope": Scope(task_id="t"), "tags": ("x",), "ttl": "session", "expires_at": "e",
        "pinned": True, "priority": "high", "sensitivity": "restricted", "created_at": "c",
        "updated_at": "u", "created_by": "b", "curated_by": "d", "kind": "fact",
        "kind_version": 2, "status": "open", "state": "cold", "subjects": ("s",),
        "provenance": Provenance(principal="p", kind="agent", authority="w", score=0.5),
        "warnings": (EvictionWarning(detail="d", entries=(EvictedEntry(id="i", key="k"),)),),
        "worthiness": Verdict(worthy=False, rule="small_talk", refused=True),
    }  # fmt: skip
    response = EntryResponse(**given)
    assert from_wire(response, MemoryEntry) == msgspec.json.decode(
        msgspec.json.encode(response), type=MemoryEntry
    )
    entry = from_wire(response, MemoryEntry)
    assert all(getattr(entry, name) not in (None, (), "") for name in names)


class Colour(enum.StrEnum):
    RED = "red"


class Text(str):
    pass


_SCALARS: list[Any] = [
    None, True, False, 0, -1, 2**63 - 1, 2**63, -(2**70), 1.5, -0.0, 1e300, "", "a", "é", "\u2028",
    "\x00", "👍", Colour.RED, Text("t"), Tier.WORKING,
]  # fmt: skip


def _invent(chance: random.Random, depth: int = 0) -> Any:
    kind = chance.randrange(6 if depth < 4 else 3)
    if kind < 3:
        return chance.choice(_SCALARS)
    several = [_invent(chance, depth + 1) for _ in range(chance.randrange(4))]
    if kind == 3:
        return several
    if kind == 4:
        return tuple(several)
    names: list[Any] = ["a", "b", "é", "x" * 40, 1, None, Colour.RED]
    return {chance.choice(names): one for one in several}


def test_a_body_is_read_as_from_its_json_text() -> None:
    seed = random.randrange(2**32)
    print("seed", seed)
    chance = random.Random(seed)
    for _ in range(2_000):
        body = {"value": _invent(chance)}
        try:
            expected = decode_json(encode(body))
        except RequestError as error:
            # The same name twice, once it is text.
            with pytest.raises(RequestError, match=str(error)):
                read_as_json(body)
            continue
        read = read_as_json(body)
        assert encode(read) == encode(expected)
        assert _kinds(read) == _kinds(expected)


def _kinds(node: Any) -> Any:
    """The types of everything in it."""
    if isinstance(node, dict):
        return {name: _kinds(one) for name, one in node.items()}
    return [_kinds(one) for one in node] if isinstance(node, list) else type(node)


@pytest.mark.parametrize(
    ("body", "refusal"),
    [
        ({"value": float("nan")}, ValidationError),
        ({"value": "\ud800"}, ValidationError),
        ({"\ud800": 1}, ValidationError),
        ({"value": {1, 2}}, ValidationError),
        ({"value": b"bytes"}, ValidationError),
        ({"value": {1: 1, "1": 2}}, RequestError),
    ],
)
def test_value_without_a_json_form_is_refused(body: Any, refusal: type[Exception]) -> None:
    with pytest.raises(refusal):
        read_as_json(body)


def test_too_deep_nesting_is_refused() -> None:
    deep: Any = 1
    for _ in range(100):
        deep = [deep]
    assert read_as_json(deep) == deep
    with pytest.raises(RequestError, match="deeper"):
        read_as_json([deep])
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(ValidationError, match="endless"):
        read_as_json(endless)


def test_operations_are_refused_as_over_http(client: Client) -> None:
    driver = driver_of(client)
    for request, status in (
        (Request(operation="query_entries", query={"nothing": "1"}), 400),
        (Request(operation="query_entries", query={"limit": "0"}), 400),
        (Request(operation="whoami", query={"limit": "1"}), 400),
        (Request(operation="update_entry", path={"entry_id": "x"}, body={}), 428),
        (Request(operation="update_entry", path={"entry_id": "x"}, body={}, if_match=-1), 428),
        (Request(operation="delete_entry", path={"entry_id": "x"}, fencing_token=-1), 400),
        (Request(operation="create_entry", body={"key": "k"}), 422),
        (Request(operation="create_entry", body=None), 422),
        (Request(operation="create_intent", body={"title": "t" * 1024 * 1024}), 413),
        (Request(operation="get_entry", path={"entry_id": "x"}), 404),
    ):
        response = driver.send(request)
        assert response.status == status, request
        assert response.error is not None


def test_a_defect_is_named_no_further(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(call: object) -> None:
        raise LookupError("secret")

    monkeypatch.setattr(driver_of(client), "_run", broken)
    response = driver_of(client).send(Request(operation="whoami"))
    assert response.status == 500
    assert "secret" not in str(response.error)


def test_a_name_is_one_name_in_every_form(client: Client) -> None:
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    entry = client.memory.put(decomposed, decomposed, {}, "episodic", tags=[decomposed])
    assert (entry.namespace, entry.key, entry.tags) == (composed, composed, (composed,))
    for name in (composed, decomposed):
        assert client.memory.get(name, name).id == entry.id
        assert client.memory.put(name, name, {"again": name}, "episodic").id == entry.id
    client.memory.delete(decomposed, decomposed)
