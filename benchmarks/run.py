"""One run, from the first start of a server to the last figure."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

import apsw

from benchmarks import environments, footprint, recipes
from benchmarks.data import shape_of
from benchmarks.database import Database
from benchmarks.generator import Generator
from benchmarks.installed_size import installed_sizes
from benchmarks.plan import Borrow, Endpoint, Operation, Reply, Sample, Seed, Shape
from benchmarks.results import (
    ONE_AGENT,
    RAW,
    REFERENCE,
    TWO_SERVERS,
    Results,
    Setting,
    size_name,
)
from benchmarks.rounds import DirectLane, Effort, Lane, interleave
from benchmarks.servers import Recipe, Server, Servers
from benchmarks.targets import TARGET_SIZE, Store
from benchmarks.work import measure_work

# Its rates do not depend on how much it holds, and filling it takes hundreds of times as long.
REFERENCE_SHAPE = Shape(agents=32, entries_per_agent=16, vocabulary=38)
REFERENCE_OPERATIONS = (Operation.GET, Operation.PATCH, Operation.CREATE)
SAMPLES = {Operation.QUERY: 200, Operation.BATCH: 3}
SAMPLES_OTHERWISE = 20
SHARED_OPERATIONS = (Operation.GET, Operation.CREATE)
"""The operations that are also measured with two servers on one database."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Wishes:
    """The extent of a run.

    store: what the server keeps its entries in
    headline: the size of the store behind the main table
    reference: the environment of the reference server, or None to leave it out
    """

    store: Store
    sizes: tuple[int, ...]
    headline: int
    effort: Effort
    cold_starts: int
    reference: Path | None
    installed_size: bool


class Run:
    """Carries one run out; its servers and its load generator belong to the caller."""

    def __init__(
        self,
        wishes: Wishes,
        directory: Path,
        servers: Servers,
        generator: Generator,
        database: Database | None,
    ) -> None:
        self._wishes = wishes
        self._directory = directory
        self._servers = servers
        self._generator = generator
        self._database = database
        self._lanes: list[Lane] = []
        self._direct: list[DirectLane] = []
        self._loaded: dict[str, Server] = {}
        self._notes: list[str] = []

    def results(self) -> Results:
        """Measure everything."""
        wishes = self._wishes
        canned = self._directory / "canned.json"
        canned.write_text("{}")
        recipe_of = {"memorywall": self._memorywall(), RAW: recipes.raw(canned)}
        if wishes.reference is not None and self._reference_installed(wishes.reference):
            recipe_of[REFERENCE] = recipes.reference(wishes.reference)
        setting = self._setting()
        installed = self._installed_megabytes() if wishes.installed_size else None
        starts = {
            kind: footprint.cold_start(self._servers, recipe, wishes.cold_starts)
            for kind, recipe in recipe_of.items()
        }
        self._open_memorywall()
        matches = self._count_matches()
        self._open_raw(recipe_of[RAW], canned)
        if REFERENCE in recipe_of:
            self._open_reference(recipe_of[REFERENCE])
        lanes: list[Lane | DirectLane] = [*self._lanes, *self._direct]
        measured, created = interleave(self._generator, lanes, wishes.effort)
        work = measure_work(self._servers, recipe_of["memorywall"])
        return Results(
            setting=setting,
            measured=measured,
            starts=starts,
            loaded_megabytes={
                kind: footprint.resident_megabytes(server.process.pid)
                for kind, server in self._loaded.items()
            },
            matches=matches,
            created=created,
            work=work,
            direct=self._direct,
            installed_megabytes=installed,
            notes=self._notes,
        )

    def _reference_installed(self, environment: Path) -> bool:
        try:
            environments.install_reference(environment)
        except environments.InstallError as error:
            self._notes.append(f"The reference server could not be installed: {error}")
            return False
        return True

    def _installed_megabytes(self) -> float | None:
        try:
            return sum(installed_sizes().values())
        except environments.InstallError as error:
            self._notes.append(f"The installed size could not be measured: {error}")
            return None

    def _memorywall(self) -> Recipe:
        """A server for a store of its own."""
        return recipes.memorywall(self._database.create if self._database else None)

    def _setting(self) -> Setting:
        wishes = self._wishes
        database = self._database
        directory = database.directory if database else self._directory
        return Setting(
            store=wishes.store,
            store_version=database.version if database else apsw.sqlite_lib_version(),
            effort=wishes.effort,
            sizes=wishes.sizes,
            headline=wishes.headline,
            file_system=footprint.file_system(directory),
            synced_appends=footprint.synced_appends_per_second(directory),
        )

    def _open_memorywall(self) -> None:
        """One server for every size, all filled, so that sizes can take turns."""
        every = tuple(Operation)
        for size in self._wishes.sizes:
            if size == self._wishes.headline:
                self._open_headline(every)
            else:
                operations = tuple(one for one in every if one is not Operation.BATCH)
                self._open(self._memorywall(), size_name(size), shape_of(size), operations)
        if self._wishes.headline == TARGET_SIZE:
            # The hardest reading of the target: the tags of one agent fill the whole index.
            shape = shape_of(TARGET_SIZE, entries_per_agent=TARGET_SIZE)
            self._open(self._memorywall(), ONE_AGENT, shape, (Operation.QUERY,))

    def _open_headline(self, operations: tuple[Operation, ...]) -> None:
        """The server behind the main table; on PostgreSQL also what is measured on its database."""
        size = self._wishes.headline
        name, shape = size_name(size), shape_of(size)
        if self._database is None:
            self._loaded["memorywall"] = self._open(self._memorywall(), name, shape, operations)
            return
        url = self._database.create()
        first = self._open(recipes.memorywall(lambda: url), name, shape, operations)
        self._loaded["memorywall"] = first
        another = self._servers.start(recipes.another_memorywall(first.directory, url)).endpoint()
        both = replace(self._lanes[-1].endpoint, more_ports=another.ports)
        self._lanes.append(
            Lane(name=TWO_SERVERS, stock=name, endpoint=both, operations=SHARED_OPERATIONS)
        )
        self._direct = direct_lanes(name, url)

    def _open_reference(self, recipe: Recipe) -> None:
        self._loaded[REFERENCE] = self._open(
            recipe, REFERENCE, REFERENCE_SHAPE, REFERENCE_OPERATIONS
        )

    def _open(
        self, recipe: Recipe, name: str, shape: Shape, operations: tuple[Operation, ...]
    ) -> Server:
        server = self._servers.start(recipe)
        endpoint = server.endpoint()
        self._generator.tell(Seed(stock=name, endpoint=endpoint, shape=shape))
        self._lanes.append(Lane(name=name, stock=name, endpoint=endpoint, operations=operations))
        return server

    def _open_raw(self, recipe: Recipe, canned: Path) -> None:
        """The raw application repeats what the headline server just replied."""
        headline = size_name(self._wishes.headline)
        (endpoint,) = (lane.endpoint for lane in self._lanes if lane.name == headline)
        replies = {
            operation: _typical(self._sample(headline, endpoint, operation))
            for operation in Operation
        }
        canned.write_text(
            json.dumps(
                {
                    operation.value: (reply.status, reply.body.decode())
                    for operation, reply in replies.items()
                }
            )
        )
        server = self._servers.start(recipe)
        self._generator.tell(Borrow(stock=RAW, source=headline))
        self._lanes.append(
            Lane(name=RAW, stock=RAW, endpoint=server.endpoint(), operations=tuple(Operation))
        )
        self._loaded[RAW] = server

    def _count_matches(self) -> dict[str, list[int]]:
        return {
            lane.name: [
                json.loads(reply.body)["total"]
                for reply in self._sample(lane.stock, lane.endpoint, Operation.QUERY)
            ]
            for lane in self._lanes
            if Operation.QUERY in lane.operations
        }

    def _sample(self, stock: str, endpoint: Endpoint, operation: Operation) -> list[Reply]:
        requests = SAMPLES.get(operation, SAMPLES_OTHERWISE)
        return self._generator.sample(
            Sample(stock=stock, endpoint=endpoint, operation=operation, requests=requests)
        )


def direct_lanes(stock: str, url: str) -> list[DirectLane]:
    """Returns the lanes that use the database without a server: with sequential requests, and in
    groups as a server under load forms them."""

    def lane(
        name: str, operation: Operation, group: int = 1, connections: int = 1, tenants: int = 1
    ) -> DirectLane:
        return DirectLane(
            name=name,
            stock=stock,
            url=url,
            operation=operation,
            group=group,
            connections=connections,
            tenants=tenants,
        )

    return [
        lane("1 at a time", Operation.GET),
        lane("1 at a time, 3 connections", Operation.GET, connections=3),
        lane("16 in a transaction", Operation.GET, 16),
        lane("16 in a transaction, 3 connections", Operation.GET, 16, 3),
        lane("1 at a time", Operation.QUERY),
        lane("1 at a time, 3 connections", Operation.QUERY, connections=3),
        lane("16 in a transaction, 3 connections", Operation.QUERY, 16, 3),
        lane("1 at a time", Operation.CREATE),
        lane("1 at a time, 10 connections, 1 tenant", Operation.CREATE, 1, 10),
        lane("1 at a time, 10 connections, 10 tenants", Operation.CREATE, 1, 10, 10),
        lane("64 in a transaction", Operation.CREATE, 64),
        lane("1 at a time", Operation.BATCH),
        lane("16 in a transaction", Operation.BATCH, 16),
    ]


def _typical(replies: list[Reply]) -> Reply:
    """The reply of median length."""
    return sorted(replies, key=lambda reply: len(reply.body))[len(replies) // 2]
