"""The requests of a connection for each operation, as bytes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from benchmarks.data import NUMBER_BASE, Source, agent_name, two_tags, value
from benchmarks.load import Conversation
from benchmarks.plan import BATCH_SIZE, CONNECTIONS, Dialect, Endpoint, Operation, Shape

AGENTS_AT_WORK = 10
_ENTRIES = b"/api/v1/memory"
_VERSION = b'"version":'


@dataclass(kw_only=True, slots=True)
class Stock:
    """The state of one store in the load generator: ids, their owners, the versions last seen."""

    shape: Shape
    source: Source
    ids: list[bytes] = field(default_factory=list)
    owners: list[int] = field(default_factory=list)
    versions: dict[int, int] = field(default_factory=dict)

    def borrowed(self) -> Stock:
        """The same entries as a server that only pretends to hold them is asked for."""
        return Stock(shape=self.shape, source=Source(self.shape), ids=self.ids, owners=self.owners)


class Writer:
    """Writes HTTP requests for one server."""

    def __init__(self, endpoint: Endpoint, agents: int) -> None:
        self.dialect = endpoint.dialect
        self.created = (200,) if self.dialect is Dialect.REFERENCE else (201,)
        self._heads = [
            b"Host: 127.0.0.1\r\nX-API-Key: %s\r\nX-Agent-ID: %s\r\n"
            % (endpoint.api_key.encode(), agent_name(agent))
            for agent in range(agents)
        ]

    def read(self, path: bytes, agent: int) -> bytes:
        """A GET."""
        return b"GET %s HTTP/1.1\r\n%s\r\n" % (path, self._heads[agent])

    def write(
        self, method: bytes, path: bytes, agent: int, body: bytes, header: bytes = b""
    ) -> bytes:
        """A request with a JSON body; `header` is one more header line with its line end."""
        return (
            b"%s %s HTTP/1.1\r\n%s%sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
            % (method, path, self._heads[agent], header, len(body), body)
        )

    def owner_field(self, agent: int) -> bytes:
        """The reference server wants the owner in the body; here it follows from the key."""
        if self.dialect is Dialect.REFERENCE:
            return b'"agent_id":"%s",' % agent_name(agent)
        return b""


class _Turn:
    """The common part of the conversations: store, requests, index and random source."""

    def __init__(self, stock: Stock, writer: Writer, place: int) -> None:
        self.stock = stock
        self.writer = writer
        self.place = place
        self.chance = Random(place).random
        self.expected: tuple[int, ...] = (200,)

    def accept_response(self, status: int, body: bytes) -> bool:
        """Expect one status and look no further."""
        return status in self.expected

    def any_agent(self) -> int:
        """One of the agents, each as likely as the others."""
        return int(self.chance() * self.stock.shape.agents)


class Getting(_Turn):
    """Reads entries by id in random order, as their owner."""

    def next_request(self) -> bytes | None:
        stock = self.stock
        index = int(self.chance() * len(stock.ids))
        return self.writer.read(b"%s/%s" % (_ENTRIES, stock.ids[index]), stock.owners[index])


class Querying(_Turn):
    """Asks for the entries of one agent that carry both of two tags."""

    def next_request(self) -> bytes | None:
        agent = self.any_agent()
        path = b"%s?agent_id=%s&memory_type=working&tags=%s,%s&limit=20" % (
            _ENTRIES,
            agent_name(agent),
            *two_tags(self.chance, self.stock.shape.vocabulary),
        )
        return self.writer.read(path, agent)


class Patching(_Turn):
    """Changes values of entries no other connection touches, naming the version last seen."""

    def __init__(self, stock: Stock, writer: Writer, place: int) -> None:
        super().__init__(stock, writer, place)
        self._mine = range(place, len(stock.ids), CONNECTIONS) or range(len(stock.ids))
        self._index = 0

    def next_request(self) -> bytes | None:
        self._index = index = self._mine[int(self.chance() * len(self._mine))]
        return self.writer.write(
            b"PATCH",
            b"%s/%s" % (_ENTRIES, self.stock.ids[index]),
            self.stock.owners[index],
            b'{"value":%s}' % value(int(self.chance() * NUMBER_BASE)),
            b"If-Match: %d\r\n" % self.stock.versions.get(index, 1),
        )

    def accept_response(self, status: int, body: bytes) -> bool:
        """Note the version; a reply without one is not a reply to a PATCH."""
        start = body.find(_VERSION)
        if status != 200 or start < 0:
            return False
        digits = body[start + len(_VERSION) : start + len(_VERSION) + 12]
        self.stock.versions[self._index] = int(digits.replace(b"}", b",").split(b",", 1)[0])
        return True


class Creating(_Turn):
    """Creates entries under keys never used before.

    Ten agents are at work at every size, each over its own connections, so that what differs
    between two sizes is the store.
    """

    def __init__(self, stock: Stock, writer: Writer, place: int) -> None:
        super().__init__(stock, writer, place)
        self.expected = writer.created

    def next_request(self) -> bytes | None:
        agent = self.stock.shape.agents + self.place % AGENTS_AT_WORK
        body = self.stock.source.entry(self.writer.owner_field(agent))
        return self.writer.write(b"POST", _ENTRIES, agent, body)


class Batching(_Turn):
    """Creates a hundred entries of one agent at a time."""

    def __init__(self, stock: Stock, writer: Writer, place: int) -> None:
        super().__init__(stock, writer, place)
        self.expected = (200, 201)

    def next_request(self) -> bytes | None:
        return self.batch(self.any_agent())

    def batch(self, agent: int) -> bytes:
        """A batch for one agent."""
        source = self.stock.source
        body = b'{"entries":[%s]}' % b",".join(source.entry() for _ in range(BATCH_SIZE))
        return self.writer.write(b"POST", b"%s/batch" % _ENTRIES, agent, body)


_TURNS: dict[Operation, Callable[[Stock, Writer, int], Conversation]] = {
    Operation.GET: Getting,
    Operation.QUERY: Querying,
    Operation.PATCH: Patching,
    Operation.CREATE: Creating,
    Operation.BATCH: Batching,
}


def conversations(
    operation: Operation, stock: Stock, endpoint: Endpoint, count: int = CONNECTIONS
) -> list[Conversation]:
    """One conversation of the kind asked for, for every connection."""
    writer = Writer(endpoint, stock.shape.agents + AGENTS_AT_WORK)
    return [_TURNS[operation](stock, writer, place) for place in range(count)]


def ids_of(body: bytes) -> list[bytes]:
    """The ids in the reply to a create or a batch, in order."""
    reply = json.loads(body)
    entries = reply.get("entries", [reply])
    return [entry["id"].encode() for entry in entries]
