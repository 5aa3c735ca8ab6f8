"""What a client remembers of versions: bounded, safe between threads, never too new."""

from __future__ import annotations

import threading
from typing import Any

import msgspec
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from memorywall import Client, MemoryEntry
from memorywall.exceptions import MemoryConflictError
from memorywall.records.tier import Tier
from memorywall.sdk import version_cache
from memorywall.sdk.version_cache import VersionCache
from tests.support.process import ServerProcess
from tests.test_sdk_support import fresh, server

__all__ = ["server"]

NAMES = st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"), st.sampled_from(list(Tier)[:3]))


def entry(namespace: str, key: str, tier: Tier, entry_id: str, version: int) -> MemoryEntry:
    return MemoryEntry(
        id=entry_id,
        agent_id="a",
        namespace=namespace,
        key=key,
        value={},
        memory_type=tier,
        version=version,
    )


class Tracking(RuleBasedStateMachine):
    """The tracker beside a plain list of what it was told, the latest last."""

    SIZE = 4

    def __init__(self) -> None:
        super().__init__()
        self.versions = VersionCache(self.SIZE)
        self.told: list[tuple[tuple[str, str, Tier], str, int | None]] = []

    def _tell(self, name: tuple[str, str, Tier], entry_id: str, version: int | None) -> None:
        self.told = [one for one in self.told if one[0] != name]
        self.told.append((name, entry_id, version))
        self.told = self.told[-self.SIZE :]

    def _held(self, name: tuple[str, str, Tier]) -> tuple[str, int | None] | None:
        return next((one[1:] for one in self.told if one[0] == name), None)

    @rule(name=NAMES, incarnation=st.integers(1, 2), version=st.integers(1, 5))
    def sees(self, name: tuple[str, str, Tier], incarnation: int, version: int) -> None:
        entry_id = f"{name}{incarnation}"
        self.versions.saw(entry(*name, entry_id, version))
        held = self._held(name)
        if held is not None and held[0] == entry_id and held[1] is not None:
            version = max(version, held[1])
        self._tell(name, entry_id, version)

    @rule(name=NAMES, incarnation=st.integers(1, 2), version=st.integers(1, 5))
    def notices(self, name: tuple[str, str, Tier], incarnation: int, version: int) -> None:
        entry_id = f"{name}{incarnation}"
        self.versions.noticed(entry(*name, entry_id, version))
        held = self._held(name)
        if held is None or held[0] != entry_id:
            self._tell(name, entry_id, None)

    @rule(name=NAMES, everywhere=st.booleans())
    def forgets(self, name: tuple[str, str, Tier], everywhere: bool) -> None:
        self.versions.forget(name[0], name[1], None if everywhere else name[2])
        self.told = [
            one
            for one in self.told
            if one[0][:2] != name[:2] or not (everywhere or one[0][2] == name[2])
        ]

    @rule(name=NAMES, incarnation=st.integers(1, 2))
    def forgets_an_id(self, name: tuple[str, str, Tier], incarnation: int) -> None:
        self.versions.forget_id(f"{name}{incarnation}")
        self.told = [one for one in self.told if one[1] != f"{name}{incarnation}"]

    @rule(name=NAMES, tiered=st.booleans())
    def finds(self, name: tuple[str, str, Tier], tiered: bool) -> None:
        known = self.versions.find(name[0], name[1], name[2] if tiered else None)
        candidates = sorted(
            (one for one in self.told if one[0][:2] == name[:2]),
            key=lambda one: list(Tier).index(one[0][2]),
        )
        if tiered:
            candidates = [one for one in candidates if one[0][2] == name[2]]
        if not candidates:
            assert known is None
            return
        expected = candidates[0]
        assert known is not None
        assert (known.id, known.version, known.memory_type) == (
            expected[1],
            expected[2],
            expected[0][2],
        )
        self.told.remove(expected)
        self.told.append(expected)

    @invariant()
    def is_bounded(self) -> None:
        assert len(self.versions) == len(self.told) <= self.SIZE
        assert len(self.versions._names) == len(self.told)


TestTracking = Tracking.TestCase


def test_doubt_holds_until_the_entry_is_seen_again() -> None:
    tracker = VersionCache()
    one = entry("a", "x", Tier.WORKING, "mem_1", 1)
    tracker.saw(one)
    tracker.doubt()
    known = tracker.find("a", "x", None)
    assert known is not None
    assert known.doubtful
    tracker.saw(msgspec.structs.replace(one, version=2))
    known = tracker.find("a", "x", None)
    assert known is not None
    assert (known.doubtful, known.version) == (False, 2)


def test_a_client_that_forgot_conflicts_instead_of_overwriting(
    server: ServerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(version_cache.VersionCache.__init__, "__defaults__", (10,))
    with Client(server.url, server.dev_key, agent=fresh("billing")) as client:
        for number in range(30):
            client.memory.set("n", f"k{number}", {"n": number})
        assert len(client.core._state.versions) == 10
        assert client.memory.set("n", "k29", {"n": -1}).version == 2
        with pytest.raises(MemoryConflictError) as raised:
            client.memory.set("n", "k0", {"n": -1})
        assert (raised.value.current_value, raised.value.current_version) == ({"n": 0}, 1)
        assert len(client.core._state.versions) == 10


def test_threads_leave_the_tracker_whole() -> None:
    tracker = VersionCache(50)
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            for step in range(2_000):
                number = (step * 31 + seed * 17) % 97
                one = entry("n", f"k{number}", Tier.WORKING, f"mem_{number}", step + 1)
                actions: list[Any] = [
                    lambda one=one: tracker.saw(one),
                    lambda one=one: tracker.noticed(one),
                    lambda one=one: tracker.find("n", one.key, None),
                    lambda one=one: tracker.forget_id(one.id),
                    lambda one=one: tracker.forget("n", one.key, None),
                ]
                actions[(step + seed) % len(actions)]()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(tracker) <= 50
    assert {name: known.id for name, (known, _) in tracker._known.items()} == {
        name: entry_id for entry_id, name in tracker._names.items()
    }
