"""Relations between intents, and updates of an intent: the base class of `client.intents`."""

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
    """The operations on related intents, as request generators."""

    def __init__(self, state: ClientState) -> None:
        self._state = state

    def get(self, intent_id: str) -> RequestGenerator[IntentResponse]:
        """Returns an intent. Raises ResourceNotFoundError, MemoryAccessError."""
        return call("get_intent", IntentResponse, intent_id=intent_id)

    def children(self, intent_id: str) -> RequestGenerator[Sequence[IntentResponse]]:
        """Returns the direct children of an intent."""
        return _related(intent_id, "list_children")

    def descendants(self, intent_id: str) -> RequestGenerator[Sequence[IntentResponse]]:
        """Returns all descendants of an intent, nearest first."""
        return _related(intent_id, "list_descendants")

    def ancestors(self, intent_id: str) -> RequestGenerator[Sequence[IntentResponse]]:
        """Returns all ancestors of an intent, nearest first."""
        return _related(intent_id, "list_ancestors")

    def dependencies(self, intent_id: str) -> RequestGenerator[Sequence[IntentResponse]]:
        """Returns the intents that an intent depends on."""
        return _related(intent_id, "list_dependencies")

    def dependents(self, intent_id: str) -> RequestGenerator[Sequence[IntentResponse]]:
        """Returns the intents that depend on an intent."""
        return _related(intent_id, "list_dependents")

    def ready(self, intent_id: str) -> RequestGenerator[Sequence[IntentResponse]]:
        """Returns the children whose dependencies are all completed."""
        return _related(intent_id, "list_ready_children")

    def blocked(self, intent_id: str) -> RequestGenerator[Sequence[IntentResponse]]:
        """Returns the children with an open dependency."""
        return _related(intent_id, "list_blocked_children")

    def graph(self, intent_id: str) -> RequestGenerator[GraphResponse]:
        """Returns an intent and all its descendants as nodes and edges."""
        return call("get_intent_graph", GraphResponse, intent_id=intent_id)

    def add_dependency(
        self, intent: IntentResponse | str, dependency_id: str, *, version: int | None = None
    ) -> RequestGenerator[IntentResponse]:
        """Adds a dependency on another intent.

        intent: the intent as it was read, or its id, which is read first unless `version` is given

        Raises ResourceConflictError if the intent has another version.
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
        """Removes a dependency; see `add_dependency`."""
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
        """Updates an intent at `version`, or at the version that was read."""
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
