"""The nouns the benchmark and its load generator share; all can cross a process boundary."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

HOST = "127.0.0.1"
CONNECTIONS = 32
BATCH_SIZE = 100


class Operation(StrEnum):
    """The measured operations, in order: those that enlarge the store come last."""

    GET = "get"
    QUERY = "query"
    PATCH = "patch"
    CREATE = "create"
    BATCH = "batch"

    @property
    def label(self) -> str:
        """The name a table shows."""
        return _TITLES[self]

    @property
    def unit(self) -> str:
        """Returns the unit of the rate."""
        return "entries/s" if self is Operation.BATCH else "requests/s"

    @property
    def weight(self) -> int:
        """Returns the number of counted units of one request."""
        return BATCH_SIZE if self is Operation.BATCH else 1


_TITLES = {
    Operation.GET: "get by id",
    Operation.QUERY: "query, two tags",
    Operation.PATCH: "PATCH, If-Match",
    Operation.CREATE: "create",
    Operation.BATCH: f"batch of {BATCH_SIZE}",
}


class Dialect(StrEnum):
    """The kind of the server; the two differ in the body of a create and its reply."""

    MEMORYWALL = "memorywall"
    REFERENCE = "reference"


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """The distribution of the entries of a store: the number of agents, and of tags of each.

    Two tags are drawn for every entry, all pairs being equally likely, so a query for one pair
    matches `entries_per_agent / (vocabulary choose 2)` entries of its agent on average.
    """

    agents: int
    entries_per_agent: int
    vocabulary: int

    @property
    def entries(self) -> int:
        """Returns the number of entries of the seeded store."""
        return self.agents * self.entries_per_agent


@dataclass(frozen=True, kw_only=True, slots=True)
class Endpoint:
    """The address of a server and the key for its requests.

    more_ports: those of further processes that serve the same store and share the load
    """

    port: int
    api_key: str
    dialect: Dialect = Dialect.MEMORYWALL
    more_ports: tuple[int, ...] = ()

    @property
    def ports(self) -> tuple[int, ...]:
        """All ports, the connections being spread over them evenly."""
        return self.port, *self.more_ports


@dataclass(frozen=True, kw_only=True, slots=True)
class Seed:
    """Fill a store, and remember what it holds under a name."""

    stock: str
    endpoint: Endpoint
    shape: Shape


@dataclass(frozen=True, kw_only=True, slots=True)
class Borrow:
    """Remember, under a new name, that another server is to be sent what `source` is sent."""

    stock: str
    source: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """Send some requests of one kind, one after the other, and keep the replies."""

    stock: str
    endpoint: Endpoint
    operation: Operation
    requests: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Measure:
    """Send requests of one kind over every connection for some seconds."""

    stock: str
    endpoint: Endpoint
    operation: Operation
    seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Direct:
    """Have PostgreSQL do for some seconds what requests of one kind need of it at the least.

    url: the database of the store behind the stock
    group: how many requests share a transaction
    connections: how many transactions are under way at once
    tenants: over how many tenants, made for this alone, the writing connections are spread
    """

    stock: str
    url: str
    operation: Operation
    group: int
    connections: int
    tenants: int
    seconds: float


Command = Seed | Borrow | Sample | Measure | Direct


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadResult:
    """The result of one measurement. Latencies are in milliseconds."""

    requests: int
    seconds: float
    p50: float
    p99: float
    errors: int = 0
    first_error: str = ""

    @property
    def rate(self) -> float:
        """Requests answered per second."""
        return self.requests / self.seconds if self.seconds else 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """One reply as it came."""

    status: int
    body: bytes
