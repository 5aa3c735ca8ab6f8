"""How intents hang together, and how one is changed: the lower half of `client.intents`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from memorywall.sdk import retry
from memorywall.sdk.client_state import ClientState
from memorywall.sdk.effects import Request, RequestGenerator
from memorywall.sdk.retry import call
from memorywall.wire.graph import GraphResponse
from memorywall.wire.work import IntentResponse


class GraphCore:
    """The operations on what is above, below and beside an intent, as scripts for a driver."""

    def __init__(self, state: ClientState) -> None:
        self._state = state

    def get(self, intent_id: str) -> RequestGenerator[IntentResponse]:
        """An intent. Raises ResourceNotFoundError, MemoryAccessError."""
        return call("get_intent", IntentResponse, intent_id=intent_id)

    def children(self, intent_id: str) -> RequestGenerator[Sequence[IntentResponse]]:
        """The intents one step below."""
        return _related(intent_id, "list_children")

    def descendants(self, intent_id: str) -> RequestGenerator[Sequence[IntentResponse]]:
        """All intents below, nearest first."""
        return _related(intent_id, "list_descendants")

    def ancestors(self, intent_id: str) -> RequestGenerator[Sequence[IntentResponse]]:
        """All intents above, nearest first."""
        return _related(intent_id, "list_ancestors")

    def dependencies(self, intent_id: str) -> RequestGenerator[Sequence[IntentResponse]]:
        """The intents this one depends on."""
        return _related(intent_id, "list_dependencies")

    def dependents(self, intent_id: str) -> RequestGenerator[Sequence[IntentResponse]]:
        """The intents that depend on this one."""
        return _related(intent_id, "list_dependents")

    def ready(self, intent_id: str) -> RequestGenerator[Sequence[IntentResponse]]:
        """The intents one step below whose dependencies are all completed."""
        return _related(intent_id, "list_ready_children")

    def blocked(self, intent_id: str) -> RequestGenerator[Sequence[IntentResponse]]:
        """The intents one step below that wait for a dependency."""
        return _related(intent_id, "list_blocked_children")

    def graph(self, intent_id: str) -> RequestGenerator[GraphResponse]:
        """An intent and everything below it, as nodes and edges."""
        return call("get_intent_graph", GraphResponse, intent_id=intent_id)

    def add_dependency(
        self, intent: IntentResponse | str, dependency_id: str, *, version: int | None = None
    ) -> RequestGenerator[IntentResponse]:
        """Lets an intent depend on another.

        intent: as it was read, or its id, which is read first unless `version` is given
        Raises ResourceConflictError when the intent has another version by now.
        """
        return self._change(
            "add_dependency",
            intent,
            version,
            lambda current: dependency_id in current.depends_on,
            {"dependency_id": dependency_id},
        )

    def remove_dependency(
        self, intent: IntentResponse | str, dependency_id: str, *, version: int | None = None
    ) -> RequestGenerator[IntentResponse]:
        """Takes a dependency away; see `add_dependency`."""
        return self._change(
            "remove_dependency",
            intent,
            version,
            lambda current: dependency_id not in current.depends_on,
            dependency_id=dependency_id,
        )

    def _change(
        self,
        operation: str,
        intent: IntentResponse | str,
        version: int | None,
        is_done: Callable[[IntentResponse], bool],
        body: Mapping[str, Any] | None = None,
        **path: str,
    ) -> RequestGenerator[IntentResponse]:
        """Changes an intent at `version`, or at the one it was read with."""
        intent_id = intent if isinstance(intent, str) else intent.id
        if version is None:
            read = (
                intent if isinstance(intent, IntentResponse) else (yield from self.get(intent_id))
            )
            version = read.version
        request = Request(
            operation=operation,
            path={"intent_id": intent_id, **path},
            if_match=version,
            body=body,
        )
        return (
            yield from retry.change(
                request,
                IntentResponse,
                self.get(intent_id),
                lambda current: current.version == version + 1 and is_done(current),
            )
        )


def _related(intent_id: str, operation: str) -> RequestGenerator[Sequence[IntentResponse]]:
    found = yield from call(operation, dict[str, list[IntentResponse]], intent_id=intent_id)
    return next(iter(found.values()), [])
