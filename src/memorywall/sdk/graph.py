"""How intents hang together, and how one is changed: the lower half of `client.intents`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from memorywall.sdk import exchange
from memorywall.sdk.problems import decode
from memorywall.sdk.session import Session
from memorywall.sdk.steps import Request, Script, part
from memorywall.wire.graph import GraphView
from memorywall.wire.work import IntentView

INTENTS = "/api/v1/intents"


class GraphLogic:
    """The operations on what is above, below and beside an intent, as scripts for a driver."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def get(self, intent_id: str) -> Script[IntentView]:
        """An intent. Raises ResourceNotFoundError, MemoryAccessError."""
        response = yield from exchange.again(Request(method="GET", path=intent_path(intent_id)))
        return decode(response, IntentView)

    def children(self, intent_id: str) -> Script[Sequence[IntentView]]:
        """The intents one step below."""
        return (yield from _related(intent_id, "children"))

    def descendants(self, intent_id: str) -> Script[Sequence[IntentView]]:
        """All intents below, nearest first."""
        return (yield from _related(intent_id, "descendants"))

    def ancestors(self, intent_id: str) -> Script[Sequence[IntentView]]:
        """All intents above, nearest first."""
        return (yield from _related(intent_id, "ancestors"))

    def dependencies(self, intent_id: str) -> Script[Sequence[IntentView]]:
        """The intents this one depends on."""
        return (yield from _related(intent_id, "dependencies"))

    def dependents(self, intent_id: str) -> Script[Sequence[IntentView]]:
        """The intents that depend on this one."""
        return (yield from _related(intent_id, "dependents"))

    def ready(self, intent_id: str) -> Script[Sequence[IntentView]]:
        """The intents one step below whose dependencies are all completed."""
        return (yield from _related(intent_id, "ready"))

    def blocked(self, intent_id: str) -> Script[Sequence[IntentView]]:
        """The intents one step below that wait for a dependency."""
        return (yield from _related(intent_id, "blocked"))

    def graph(self, intent_id: str) -> Script[GraphView]:
        """An intent and everything below it, as nodes and edges."""
        response = yield from exchange.again(
            Request(method="GET", path=intent_path(intent_id, "graph"))
        )
        return decode(response, GraphView)

    def add_dependency(
        self, intent: IntentView | str, dependency_id: str, *, version: int | None = None
    ) -> Script[IntentView]:
        """Lets an intent depend on another.

        intent: as it was read, or its id, which is read first unless `version` is given
        Raises ResourceConflictError when the intent has another version by now.
        """
        return (
            yield from self._change(
                "POST",
                intent,
                ("dependencies",),
                version,
                lambda current: dependency_id in current.depends_on,
                {"dependency_id": dependency_id},
            )
        )

    def remove_dependency(
        self, intent: IntentView | str, dependency_id: str, *, version: int | None = None
    ) -> Script[IntentView]:
        """Takes a dependency away; see `add_dependency`."""
        return (
            yield from self._change(
                "DELETE",
                intent,
                ("dependencies", dependency_id),
                version,
                lambda current: dependency_id not in current.depends_on,
            )
        )

    def _change(
        self,
        method: str,
        intent: IntentView | str,
        where: tuple[str, ...],
        version: int | None,
        is_done: Callable[[IntentView], bool],
        body: Mapping[str, Any] | None = None,
    ) -> Script[IntentView]:
        """Changes an intent at `version`, or at the one it was read with."""
        intent_id = intent if isinstance(intent, str) else intent.id
        if version is None:
            read = intent if isinstance(intent, IntentView) else (yield from self.get(intent_id))
            version = read.version
        request = Request(
            method=method,
            path=intent_path(intent_id, *where),
            headers={"If-Match": str(version)},
            body=None if body is None else exchange.encode(body),
        )
        return (
            yield from exchange.change(
                request,
                IntentView,
                intent_path(intent_id),
                lambda current: current.version == version + 1 and is_done(current),
            )
        )


def intent_path(intent_id: str, *parts: str) -> str:
    """The path of an intent, or of what belongs to it."""
    return "/".join((INTENTS, part(intent_id), *map(part, parts)))


def _related(intent_id: str, name: str) -> Script[Sequence[IntentView]]:
    response = yield from exchange.again(Request(method="GET", path=intent_path(intent_id, name)))
    found = decode(response, dict[str, list[IntentView]])
    return found.get(name, [])
