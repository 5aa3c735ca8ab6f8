"""Clients that write without pause until the server is gone, each keeping a ledger."""

from __future__ import annotations

import itertools
import random
import time
from threading import Event, Thread
from typing import Any

import httpx

from tests.faults.ledger import (
    Counter,
    Intention,
    Ledger,
    Name,
    Stored,
    read_state,
    stored_from,
)
from tests.support.process import START_LIMIT, open_client

MEMORY = "/api/v1/memory"
_MOST_ENTRIES = 120
_FILLINGS = (0, 0, 20, 300, 2_000, 9_000)
_TIERS = ("working", "session", "episodic", "semantic")


class Worker:
    """One agent that creates, changes and deletes its own entries, one request at a time."""

    def __init__(self, agent: str, seed: int, counter: Counter, *, clean_end: bool) -> None:
        self.agent = agent
        self.ledger = Ledger()
        self.problem = ""
        self._random = random.Random(seed)
        self._counter = counter
        self._clean_end = clean_end
        self._numbers = itertools.count()
        self._steps = {
            self._create: 5,
            self._patch: 5,
            self._delete: 2,
            self._batch: 2,
            self._delete_matching: 1,
        }

    def run(self, client: httpx.Client, stop: Event) -> None:
        """Writes until told to stop, until the server is gone, or until it misbehaves."""
        try:
            while not stop.is_set() and not self.problem:
                if self._random.random() < 0.15:
                    self._count_up(client)
                else:
                    self._step(client)
        except httpx.TransportError as error:
            # What was sent has no answer; the ledger holds it.
            if self._clean_end and "complete message body" in str(error):
                self.problem = f"a reply was cut: {error}"

    def settle(self, client: httpx.Client) -> str:
        """Compares the ledger with what is there, after which nothing is unknown any more."""
        actual = read_state(client, self.agent)
        problem = self.ledger.judge(actual)
        unanswered, self.ledger.under_way = self.ledger.under_way, None
        self.ledger.known = actual
        if problem or unanswered is None or not unanswered.repeatable:
            return problem
        # The same Idempotency-Key may be sent again, and then it is done, once.
        reply = unanswered.send(client)
        if reply.status_code not in (200, 201):
            return f"the repetition was answered with {reply.status_code} {reply.text[:200]}"
        self.ledger.under_way = unanswered
        self._acknowledge(unanswered, reply)
        return self.ledger.judge(read_state(client, self.agent))

    def _step(self, client: httpx.Client) -> None:
        steps = list(self._steps)
        [make] = self._random.choices(steps, weights=list(self._steps.values()))
        if not self.ledger.known:
            make = self._create
        elif len(self.ledger.known) > _MOST_ENTRIES:
            make = self._delete
        intention = make()
        self.ledger.under_way = intention
        reply = intention.send(client)
        if _is_stopping(reply):
            # Refused before anything was done.
            self.ledger.under_way = None
        elif not reply.is_success:
            self.problem = f"{intention.method} was answered {reply.status_code} {reply.text[:300]}"
        else:
            self._acknowledge(intention, reply)

    def _acknowledge(self, intention: Intention, reply: httpx.Response) -> None:
        body = reply.json() if reply.content else {}
        shown = body.get("entries", [body] if "memory_type" in body else [])
        answered: dict[Name, Stored | None] = {
            (entry["memory_type"], entry["namespace"], entry["key"]): stored_from(entry)
            for entry in shown
        }
        for name, stored in intention.after.items():
            told = answered.get(name)
            if stored is not None and (told is None or not stored.agrees(told)):
                self.problem = f"{intention.method} {name} was acknowledged as {told}"
        self.ledger.acknowledge({**intention.after, **answered})

    def _value(self, version: int) -> dict[str, Any]:
        filling = self._random.choice("abcdef") * self._random.choice(_FILLINGS)
        return {"of": self.agent, "version": version, "filling": filling}

    def _draft(self) -> tuple[Name, Stored]:
        tier = self._random.choice(_TIERS)
        namespace = f"facts.{self.agent}" if tier == "semantic" else "load"
        sensitivity = self._random.choice(("internal", "internal", "confidential"))
        tags = (f"group-{self._random.randrange(12)}", self.agent)
        name = (tier, namespace, f"key-{next(self._numbers)}")
        return name, Stored(1, self._value(1), tags, sensitivity)

    def _once(self) -> dict[str, str]:
        if self._random.random() < 0.5:
            return {}
        return {"Idempotency-Key": f"{self.agent}-{next(self._numbers)}"}

    def _create(self) -> Intention:
        name, stored = self._draft()
        return Intention("POST", MEMORY, {name: stored}, _body(name, stored), self._once())

    def _change(self, name: Name) -> tuple[Stored, dict[str, Any]]:
        old = self.ledger.known[name]
        version = old.version + 1
        tags = (f"group-{self._random.randrange(12)}", self.agent)
        new = Stored(version, self._value(version), tags, old.sensitivity, old.entry_id)
        return new, {"value": new.value, "tags": list(new.tags)}

    def _patch(self) -> Intention:
        name = self._random.choice(list(self.ledger.known))
        new, body = self._change(name)
        headers = {"If-Match": str(new.version - 1)}
        return Intention("PATCH", f"{MEMORY}/{new.entry_id}", {name: new}, body, headers)

    def _delete(self) -> Intention:
        name = self._random.choice(list(self.ledger.known))
        return Intention("DELETE", f"{MEMORY}/{self.ledger.known[name].entry_id}", {name: None})

    def _batch(self) -> Intention:
        after: dict[Name, Stored | None] = {}
        elements = []
        for _ in range(self._random.randint(1, 6)):
            name, stored = self._draft()
            after[name] = stored
            elements.append(_body(name, stored))
        most = min(4, len(self.ledger.known))
        for name in self._random.sample(list(self.ledger.known), most):
            new, body = self._change(name)
            after[name] = new
            elements.append({"id": new.entry_id, "version": new.version - 1, **body})
        return Intention("POST", f"{MEMORY}/batch", after, {"entries": elements}, self._once())

    def _delete_matching(self) -> Intention:
        group = f"group-{self._random.randrange(12)}"
        after: dict[Name, Stored | None] = {
            name: None for name, stored in self.ledger.known.items() if group in stored.tags
        }
        return Intention("DELETE", f"{MEMORY}/batch?agent_id={self.agent}&tags={group}", after)

    def _count_up(self, client: httpx.Client) -> None:
        path = f"{MEMORY}/{self._counter.entry_id}"
        version = client.get(path, headers={"X-Agent-ID": Counter.AGENT}).json()["version"]
        answered = False
        try:
            reply = client.patch(
                path,
                json={"value": {"n": version}},
                headers={"X-Agent-ID": Counter.AGENT, "If-Match": str(version)},
            )
            answered = True
        finally:
            if not answered:
                self._counter.add(acknowledged=False)
        if reply.status_code == 200:
            self._counter.add(acknowledged=True)
        elif reply.status_code != 409 and not _is_stopping(reply):
            self.problem = f"counting was answered {reply.status_code} {reply.text[:300]}"


def _is_stopping(reply: httpx.Response) -> bool:
    return reply.status_code == 503 and "shutting down" in reply.text


def _body(name: Name, stored: Stored) -> dict[str, Any]:
    tier, namespace, key = name
    return {
        "memory_type": tier,
        "namespace": namespace,
        "key": key,
        "value": stored.value,
        "tags": list(stored.tags),
        "sensitivity": stored.sensitivity,
    }


class Load:
    """Several workers at once. `key` must be allowed to act for others.

    clean_end: the server will stop by itself, so that no reply may be cut in two
    """

    def __init__(self, seed: int, key: str, workers: int = 6, *, clean_end: bool = False) -> None:
        self._key = key
        self.counter = Counter()
        self.workers = [
            Worker(f"load-{number}", seed + number, self.counter, clean_end=clean_end)
            for number in range(workers)
        ]
        self._stop = Event()
        self._threads: list[Thread] = []

    @property
    def acknowledged(self) -> int:
        """How many writes were acknowledged so far."""
        return sum(worker.ledger.acknowledged for worker in self.workers)

    def start(self, url: str) -> None:
        """Begins to write to the server at `url`."""
        if not self.counter.entry_id:
            with self._client(url, Counter.AGENT) as client:
                self.counter.create(client)
        self._stop.clear()
        self._threads = [
            Thread(target=self._run, args=(worker, url), daemon=True) for worker in self.workers
        ]
        for thread in self._threads:
            thread.start()

    def wait_for(self, count: int) -> None:
        """Returns when more than `count` writes were acknowledged."""
        deadline = time.monotonic() + START_LIMIT
        while self.acknowledged <= count:
            assert time.monotonic() < deadline, "the load does not get on"
            time.sleep(0.02)

    def stop(self) -> None:
        """Ends the load, if the end of the server has not done so; no request may hang."""
        self._stop.set()
        for thread in self._threads:
            thread.join(30)
            assert not thread.is_alive(), "a request neither succeeded nor failed"
        problems = [worker.problem for worker in self.workers if worker.problem]
        assert not problems, problems

    def settle(self, url: str) -> None:
        """Holds the server to everything it has acknowledged."""
        for worker in self.workers:
            with self._client(url, worker.agent) as client:
                problem = worker.settle(client)
            assert not problem, f"{worker.agent}: {problem}"
        with self._client(url, Counter.AGENT) as client:
            assert not (problem := self.counter.judge(client)), problem

    def _run(self, worker: Worker, url: str) -> None:
        with self._client(url, worker.agent) as client:
            worker.run(client, self._stop)

    def _client(self, url: str, agent: str) -> httpx.Client:
        return open_client(url, {"X-API-Key": self._key, "X-Agent-ID": agent}, timeout=20)
