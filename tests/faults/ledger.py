"""What a client was told, kept beside the server to hold it to its word."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import httpx

Name = tuple[str, str, str]
"""Tier, namespace and key: what an entry of one agent is known by."""


@dataclass(frozen=True)
class Stored:
    """An entry as a client saw it. `entry_id` is empty while only the server knows it."""

    version: int
    value: dict[str, Any]
    tags: tuple[str, ...]
    sensitivity: str
    entry_id: str = ""

    def agrees(self, other: Stored) -> bool:
        """Whether both can be the same entry at the same version."""
        same_id = not (self.entry_id and other.entry_id) or self.entry_id == other.entry_id
        return same_id and (self.version, self.value, self.tags, self.sensitivity) == (
            other.version,
            other.value,
            other.tags,
            other.sensitivity,
        )


State = dict[Name, Stored]


@dataclass(frozen=True)
class Intention:
    """A request that was sent: what is there after it, None for what is gone."""

    method: str
    path: str
    after: dict[Name, Stored | None]
    body: dict[str, Any] | None = None
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def repeatable(self) -> bool:
        return "Idempotency-Key" in self.headers

    def send(self, client: httpx.Client) -> httpx.Response:
        return client.request(self.method, self.path, json=self.body, headers=self.headers)


@dataclass
class Ledger:
    """What one agent knows to be stored, and the one request it has no answer to."""

    known: State = field(default_factory=dict)
    under_way: Intention | None = None
    acknowledged: int = 0

    def acknowledge(self, changes: dict[Name, Stored | None]) -> None:
        """The request under way was answered, and this is what it did."""
        self.known = changed(self.known, changes)
        self.under_way = None
        self.acknowledged += 1

    def judge(self, actual: State) -> str:
        """What is wrong with what is there, or nothing: the request without an answer happened
        wholly or not at all, and everything else is as it was acknowledged."""
        before = difference(self.known, actual)
        if self.under_way is None or not before:
            return before
        after = difference(changed(self.known, self.under_way.after), actual)
        if not after:
            return ""
        return f"without {self.under_way.method}: {before}; with it: {after}"


def changed(state: State, changes: dict[Name, Stored | None]) -> State:
    """The state after the changes."""
    merged: dict[Name, Stored | None] = {**state, **changes}
    return {name: stored for name, stored in merged.items() if stored is not None}


def difference(expected: State, actual: State) -> str:
    """How two states differ, or nothing."""
    lost = sorted(expected.keys() - actual.keys())
    extra = sorted(actual.keys() - expected.keys())
    wrong = [
        f"{name} is {_short(actual[name])}, not {_short(stored)}"
        for name, stored in expected.items()
        if name in actual and not stored.agrees(actual[name])
    ]
    parts = {"lost": lost[:5], "not gone": extra[:5], "torn or old": wrong[:5]}
    return "; ".join(f"{what} {which}" for what, which in parts.items() if which)


def _short(stored: Stored) -> str:
    return f"version {stored.version} {str(stored.value)[:40]} {stored.tags}"


def read_state(client: httpx.Client, agent: str) -> State:
    """Everything the server has of an agent."""
    state: State = {}
    total = 1
    while len(state) < total:
        reply = client.get(
            "/api/v1/memory", params={"agent_id": agent, "limit": 1000, "offset": len(state)}
        )
        assert reply.status_code == 200, reply.text
        page = reply.json()
        total = page["total"]
        assert page["entries"] or len(state) == total, "a page is empty before the end"
        for entry in page["entries"]:
            state[entry["memory_type"], entry["namespace"], entry["key"]] = stored_from(entry)
    return state


def stored_from(entry: dict[str, Any]) -> Stored:
    """What is compared of an entry in a reply."""
    return Stored(
        entry["version"],
        entry["value"],
        tuple(entry["tags"]),
        entry["sensitivity"],
        entry["id"],
    )


class Counter:
    """One entry that all clients count up with If-Match: its value is how often that was done."""

    AGENT = "counter"

    def __init__(self) -> None:
        self._lock = Lock()
        self.entry_id = ""
        self.acknowledged = 0
        self.unknown = 0

    def create(self, client: httpx.Client) -> None:
        made = client.post(
            "/api/v1/memory",
            json={"namespace": "load", "key": "n", "value": {"n": 0}, "memory_type": "working"},
            headers={"X-Agent-ID": self.AGENT},
        )
        assert made.status_code == 201, made.text
        self.entry_id = made.json()["id"]

    def add(self, *, acknowledged: bool) -> None:
        with self._lock:
            if acknowledged:
                self.acknowledged += 1
            else:
                self.unknown += 1

    def judge(self, client: httpx.Client) -> str:
        """What is wrong with the count, or nothing; what was unknown is settled with this."""
        reply = client.get(
            f"/api/v1/memory/{self.entry_id}", headers={"X-Agent-ID": self.AGENT}
        ).json()
        count, version = reply["value"]["n"], reply["version"]
        most = self.acknowledged + self.unknown
        if count != version - 1 or not self.acknowledged <= count <= most:
            return f"counted {count} at version {version}, not {self.acknowledged} to {most}"
        self.acknowledged, self.unknown = count, 0
        return ""
