"""Reads in process that are repeated without the operation while nothing is committed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import memorywall
from memorywall import Client
from memorywall.in_process.drivers import InProcessDriver
from memorywall.records.clock import Clock
from memorywall.service.requests.operation_context import OperationCall
from memorywall.service.requests.services import SharedServices
from tests.support.extent import extent

VALUE = {"count": 1, "list": [{"a": "b"}]}
HOUR = 3_600_000
REPETITIONS = extent(5, long=50)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with memorywall.open(tmp_path / "own.db", agent="billing") as opened:
        yield opened


def service_of(client: Client) -> SharedServices:
    driver = client.driver
    assert isinstance(driver, InProcessDriver)
    runner = driver._host.memory.calling_runner
    assert runner is not None
    return runner.service


@pytest.fixture
def ran(client: Client, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """The operations that the client has run, by name."""
    counted: Counter[str] = Counter()
    driver = client.driver
    assert isinstance(driver, InProcessDriver)
    runner = driver._calling
    assert runner is not None
    run = runner.run

    def counting(call: OperationCall) -> Any:
        counted[call.operation.name] += 1
        return run(call)

    monkeypatch.setattr(runner, "run", counting)
    return counted


def runs_of(ran: Counter[str], read: Callable[[], object]) -> int:
    """Returns how often a read ran the operation, of some repetitions."""
    before = ran["find_entry"]
    for _ in range(REPETITIONS):
        read()
    return ran["find_entry"] - before


def test_an_own_entry_is_read_again_only_after_a_commit(client: Client, ran: Counter[str]) -> None:
    made = client.memory.set("n", "k", VALUE, "working")

    def read() -> None:
        assert client.memory.get("n", "k", "working") == made

    # A job may commit in between, but not between all of them.
    assert 1 <= runs_of(ran, read) < REPETITIONS
    client.memory.set("n", "other", VALUE, "working")
    assert 1 <= runs_of(ran, read) < REPETITIONS


def test_a_caller_may_change_what_it_reads(client: Client) -> None:
    client.memory.set("n", "k", VALUE, "working")
    for _ in range(3):
        read = client.memory.get("n", "k", "working")
        assert read is not None
        assert read.value == VALUE
        read.value["list"][0]["a"] = "changed"
        read.value["count"] = 2


def test_writes_of_others_are_seen_at_once(client: Client, tmp_path: Path) -> None:
    with memorywall.open(tmp_path / "own.db", agent="billing") as other:
        for count in range(20):
            other.memory.set("n", "k", {"count": count}, "working")
            for _ in range(2):
                read = client.memory.get("n", "k", "working")
                assert read is not None
                assert read.value == {"count": count}
        other.memory.delete("n", "k", "working")
        assert client.memory.get("n", "k", "working") is None
        assert client.memory.get("n", "k", "working") is None
        other.memory.set("n", "k", {"count": -1}, "working")
        read = client.memory.get("n", "k", "working")
        assert read is not None
        assert read.value == {"count": -1}
        other.forget_agent("billing")
        assert client.memory.get("n", "k", "working") is None


class Later(Clock):
    """A clock that is set forward.

    forward: milliseconds
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.forward = 0

    def now(self) -> int:
        return self._clock.now() + self.forward


def test_an_entry_that_has_expired_is_not_repeated(client: Client) -> None:
    service = service_of(client)
    client.memory.set("n", "k", VALUE, "working", ttl="PT1H")
    assert client.memory.get("n", "k", "working") is not None
    assert client.memory.get("n", "k", "working") is not None
    clock = Later(service.clock)
    object.__setattr__(service, "clock", clock)
    clock.forward = 2 * HOUR
    assert client.memory.get("n", "k", "working") is None


def test_a_repeated_read_is_recorded_as_an_access(client: Client) -> None:
    made = client.memory.set("n", "k", VALUE, "episodic")
    service = service_of(client)
    clock = Later(service.clock)
    object.__setattr__(service, "clock", clock)
    noted = service.usage_tracker._noted
    instants = set()
    for _ in range(3):
        clock.forward += HOUR
        assert client.memory.get("n", "k", "episodic") is not None
        (of_owner,) = noted.values()
        instants.add(of_owner[made.id])
    assert len(instants) == 3


@pytest.mark.parametrize(
    "read",
    [
        # What a look-up in all tiers hides may depend on a lease, which ends without a commit.
        lambda client: client.memory.get("n", "k"),
        lambda client: client.memory.get("facts", "k", "semantic"),
        lambda client: client.memory.get("n", "large", "working"),
        lambda client: client.for_user("ann").memory.get("n", "k", "working"),
        lambda client: client.memory.get("n", "k", "working", version=1),
    ],
)
def test_other_reads_run_each_time(
    client: Client, ran: Counter[str], read: Callable[[Client], object]
) -> None:
    client.memory.set("n", "k", VALUE, "working")
    client.memory.set("n", "large", {"text": "x" * 5_000}, "working")
    client.memory.set("facts", "k", VALUE, "semantic")
    client.for_user("ann").memory.set("n", "k", VALUE, "working")
    assert runs_of(ran, lambda: read(client)) == REPETITIONS


def test_a_closed_client_reads_nothing(client: Client) -> None:
    client.memory.set("n", "k", VALUE, "working")
    assert client.memory.get("n", "k", "working") is not None
    client.close()
    with pytest.raises(RuntimeError, match="closed"):
        client.memory.get("n", "k", "working")
