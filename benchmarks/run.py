"""One run, from the first start of a server to the last figure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from benchmarks import environments, footprint, recipes
from benchmarks.data import shape_of
from benchmarks.generator import Generator
from benchmarks.plan import Borrow, Endpoint, Operation, Reply, Sample, Seed, Shape
from benchmarks.results import ONE_AGENT, RAW, REFERENCE, Results, Setting, size_name
from benchmarks.rounds import Effort, Lane, interleave
from benchmarks.servers import Recipe, Server, Servers
from benchmarks.targets import TARGET_SIZE
from benchmarks.work import measure_work

# Its rates do not depend on how much it holds, and filling it takes hundreds of times as long.
REFERENCE_SHAPE = Shape(agents=32, entries_per_agent=16, vocabulary=38)
REFERENCE_OPERATIONS = (Operation.GET, Operation.PATCH, Operation.CREATE)
SAMPLES = {Operation.QUERY: 200, Operation.BATCH: 3}
SAMPLES_OTHERWISE = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Wishes:
    """What a run is to measure.

    headline: the size of the store behind the main table
    reference: the environment of the reference server, or None to leave it out
    """

    sizes: tuple[int, ...]
    headline: int
    effort: Effort
    cold_starts: int
    reference: Path | None
    installed_size: bool


class Run:
    """Carries one run out; its servers and its load generator belong to the caller."""

    def __init__(
        self, wishes: Wishes, directory: Path, servers: Servers, generator: Generator
    ) -> None:
        self._wishes = wishes
        self._directory = directory
        self._servers = servers
        self._generator = generator
        self._lanes: list[Lane] = []
        self._loaded: dict[str, Server] = {}
        self._notes: list[str] = []

    def results(self) -> Results:
        """Measure everything."""
        wishes = self._wishes
        canned = self._directory / "canned.json"
        canned.write_text("{}")
        recipe_of = {"memorywall": recipes.memorywall(), RAW: recipes.raw(canned)}
        if wishes.reference is not None and self._reference_installed(wishes.reference):
            recipe_of[REFERENCE] = recipes.reference(wishes.reference)
        setting = Setting(
            effort=wishes.effort,
            sizes=wishes.sizes,
            headline=wishes.headline,
            file_system=footprint.file_system(self._directory),
            synced_appends=footprint.synced_appends_per_second(self._directory),
        )
        installed = self._installed_megabytes() if wishes.installed_size else None
        starts = {
            kind: footprint.cold_start(self._servers, recipe, wishes.cold_starts)
            for kind, recipe in recipe_of.items()
        }
        self._open_memorywall(recipe_of["memorywall"])
        matches = self._count_matches()
        self._open_raw(recipe_of[RAW], canned)
        if REFERENCE in recipe_of:
            self._open_reference(recipe_of[REFERENCE])
        measured, created = interleave(self._generator, self._lanes, wishes.effort)
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
            return environments.installed_megabytes()
        except environments.InstallError as error:
            self._notes.append(f"The installed size could not be measured: {error}")
            return None

    def _open_memorywall(self, recipe: Recipe) -> None:
        """One server for every size, all filled, so that sizes can take turns."""
        every = tuple(Operation)
        for size in self._wishes.sizes:
            headline = size == self._wishes.headline
            operations = every if headline else tuple(o for o in every if o is not Operation.BATCH)
            server = self._open(recipe, size_name(size), shape_of(size), operations)
            if headline:
                self._loaded["memorywall"] = server
        if self._wishes.headline == TARGET_SIZE:
            # The hardest reading of the target: the tags of one agent fill the whole index.
            shape = shape_of(TARGET_SIZE, entries_per_agent=TARGET_SIZE)
            self._open(recipe, ONE_AGENT, shape, (Operation.QUERY,))

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
        }

    def _sample(self, stock: str, endpoint: Endpoint, operation: Operation) -> list[Reply]:
        requests = SAMPLES.get(operation, SAMPLES_OTHERWISE)
        return self._generator.sample(
            Sample(stock=stock, endpoint=endpoint, operation=operation, requests=requests)
        )


def _typical(replies: list[Reply]) -> Reply:
    """The reply of median length."""
    return sorted(replies, key=lambda reply: len(reply.body))[len(replies) // 2]
