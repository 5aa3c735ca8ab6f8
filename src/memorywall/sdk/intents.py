"""`client.intents`: intents, their logs, access lists and leases."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from memorywall.sdk import retry
from memorywall.sdk.client_state import ClientState
from memorywall.sdk.effects import Request, RequestGenerator, StreamGenerator
from memorywall.sdk.facade import AsyncFacade, Facade, method, stream_method
from memorywall.sdk.filters import instant, without_absent
from memorywall.sdk.models import EventPage, IntentListing, read_event
from memorywall.sdk.retry import call
from memorywall.sdk.streams import follow_events
from memorywall.wire.events import EventPageResponse as WireEventPage
from memorywall.wire.events import EventResponse
from memorywall.wire.graph import GraphResponse
from memorywall.wire.intents import (
    AccessResponse,
    GrantResponse,
    IntentListResponse,
    IntentResponse,
)
from memorywall.wire.leases import LeaseListResponse, LeaseResponse


class IntentsCore:
    """The operations on intents, as request generators."""

    def __init__(self, state: ClientState) -> None:
        self._state = state

    def create(
        self,
        title: str,
        *,
        description: str = "",
        constraints: Mapping[str, Any] | None = None,
        state: Mapping[str, Any] | None = None,
        parent_intent_id: str | None = None,
        depends_on: Sequence[str] = (),
    ) -> RequestGenerator[IntentResponse]:
        """Creates an intent, which this client administers. Other agents get access by `grant` or
        by a task of the intent."""
        body = without_absent(
            {
                "title": title,
                "description": description,
                "constraints": constraints,
                "state": state,
                "parent_intent_id": parent_intent_id,
                "depends_on": list(depends_on),
            }
        )
        return call("create_intent", IntentResponse, body=body)

    def list(
        self, *, status: str | None = None, limit: int | None = None, offset: int = 0
    ) -> RequestGenerator[IntentListing]:
        """Returns the intents that this client may read, newest first; 50 by default."""
        query = {"status": status, "limit": limit, "offset": offset or None}
        page = yield from call("list_intents", IntentListResponse, query=query)
        return IntentListing(page.intents, total=page.total, limit=page.limit, offset=page.offset)

    def set_state(
        self,
        intent: IntentResponse | str,
        changes: Mapping[str, Any] | None = None,
        *,
        remove: Iterable[str] = (),
        version: int | None = None,
    ) -> RequestGenerator[IntentResponse]:
        """Sets and removes top-level members of an intent's state, all or none.

        intent: the intent as it was read, or its id, which is read first unless `version` is given

        Raises ResourceConflictError if the intent has another version.
        """
        wanted, removed = dict(changes or {}), list(remove)
        patches: list[dict[str, Any]] = [
            {"op": "set", "path": name, "value": value} for name, value in wanted.items()
        ]
        patches.extend({"op": "remove", "path": name} for name in removed)

        def is_done(current: IntentResponse) -> bool:
            return all(
                name in current.state and retry.is_same(value, current.state[name])
                for name, value in wanted.items()
            ) and not any(name in current.state for name in removed)

        return self._change("patch_intent_state", intent, version, is_done, {"patches": patches})

    def set_status(
        self,
        intent: IntentResponse | str,
        status: str,
        *,
        reason: str | None = None,
        version: int | None = None,
    ) -> RequestGenerator[IntentResponse]:
        """Sets an intent's status: draft, active, blocked, suspended_awaiting_input, completed or
        abandoned. See `set_state` about `intent` and `version`."""
        body = without_absent({"status": status, "reason": reason})
        return self._change(
            "set_intent_status", intent, version, lambda current: current.status == status, body
        )

    def log(
        self,
        intent_id: str,
        event_type: str,
        payload: Mapping[str, Any] | None = None,
        *,
        trace_id: str | None = None,
        parent_event_id: str | None = None,
    ) -> RequestGenerator[EventResponse]:
        """Appends a custom event to an intent's log."""
        body = without_absent(
            {
                "event_type": event_type,
                "payload": payload,
                "trace_id": trace_id,
                "parent_event_id": parent_event_id,
            }
        )
        event = yield from call("log_intent_event", EventResponse, intent_id=intent_id, body=body)
        return read_event(event)

    def events(
        self,
        intent_id: str,
        after: int = 0,
        limit: int = 100,
        *,
        event_type: str | None = None,
        since: datetime | str | None = None,
    ) -> RequestGenerator[EventPage]:
        """Returns events of an intent's log after a sequence number.

        event_type: only events of this type; since: only events from this instant on
        """
        query = {
            "after": after,
            "limit": limit,
            "event_type": event_type,
            "since": None if since is None else instant(since),
        }
        page = yield from call(
            "list_intent_events", WireEventPage, intent_id=intent_id, query=query
        )
        return EventPage(map(read_event, page.events), next=page.next)

    def follow(
        self,
        intent_id: str,
        after: int = 0,
        *,
        patience: float = 30.0,
    ) -> StreamGenerator[EventResponse]:
        """Iterates over events of an intent's log as they occur, each once and in order, without
        end.

        Broken connections are resumed as in `client.events.follow`.
        """
        yield from follow_events("list_intent_events", {"intent_id": intent_id}, after, patience)

    def acl(self, intent_id: str) -> RequestGenerator[AccessResponse]:
        """Returns an intent's access list."""
        return call("get_access", AccessResponse, intent_id=intent_id)

    def set_acl(
        self,
        intent_id: str,
        *,
        default_policy: str = "closed",
        entries: Iterable[Mapping[str, Any]] = (),
    ) -> RequestGenerator[AccessResponse]:
        """Replaces an intent's access list.

        default_policy: "closed" gives access to listed principals only, "open" to all of the tenant
        entries: `{"principal_id": ..., "permission": "read" | "write" | "admin"}` for each
            principal, or for each group as "group:" and its name
        """
        body = {"default_policy": default_policy, "entries": [dict(one) for one in entries]}
        return call("set_access", AccessResponse, intent_id=intent_id, body=body)

    def grant(
        self,
        intent_id: str,
        principal_id: str,
        permission: str = "read",
        *,
        principal_type: str = "agent",
        reason: str | None = None,
        expires_at: datetime | str | None = None,
    ) -> RequestGenerator[GrantResponse]:
        """Adds an entry to an intent's access list, for a principal or for "group:" and the name of
        a group."""
        body = without_absent(
            {
                "principal_id": principal_id,
                "principal_type": principal_type,
                "permission": permission,
                "reason": reason,
                "expires_at": None if expires_at is None else instant(expires_at),
            }
        )
        return call("grant_access", GrantResponse, intent_id=intent_id, body=body)

    def revoke(self, intent_id: str, grant_id: str) -> RequestGenerator[None]:
        """Removes an entry from an intent's access list."""
        return retry.remove("revoke_access", intent_id=intent_id, grant_id=grant_id)

    def lease(
        self, intent_id: str, scope: str, duration: int = 300
    ) -> RequestGenerator[LeaseResponse]:
        """Acquires a lease on a scope of an intent for `duration` seconds. Raises LeaseHeldError.

        If the response is lost, the scope may stay leased until the lease expires, because no
        client knows the lease id.
        """
        body = {"scope": scope, "duration_seconds": duration}
        return call("acquire_lease", LeaseResponse, intent_id=intent_id, body=body)

    def leases(self, intent_id: str) -> RequestGenerator[Sequence[LeaseResponse]]:
        """Returns the live leases on scopes of an intent."""
        return (yield from call("list_leases", LeaseListResponse, intent_id=intent_id)).leases

    def renew_lease(
        self, intent_id: str, lease_id: str, duration: int = 300
    ) -> RequestGenerator[LeaseResponse]:
        """Renews a lease for `duration` seconds from now. Raises FencedError if it is over."""
        body = {"duration_seconds": duration}
        return call("renew_lease", LeaseResponse, intent_id=intent_id, lease_id=lease_id, body=body)

    def release_lease(self, intent_id: str, lease_id: str) -> RequestGenerator[None]:
        """Releases a lease on a scope."""
        return retry.remove("release_lease", intent_id=intent_id, lease_id=lease_id)

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


class _IntentsMethods:
    create = method(IntentsCore.create)
    get = method(IntentsCore.get)
    list = method(IntentsCore.list)
    set_state = method(IntentsCore.set_state)
    set_status = method(IntentsCore.set_status)
    log = method(IntentsCore.log)
    events = method(IntentsCore.events)
    follow = stream_method(IntentsCore.follow)
    acl = method(IntentsCore.acl)
    set_acl = method(IntentsCore.set_acl)
    grant = method(IntentsCore.grant)
    revoke = method(IntentsCore.revoke)
    lease = method(IntentsCore.lease)
    leases = method(IntentsCore.leases)
    renew_lease = method(IntentsCore.renew_lease)
    release_lease = method(IntentsCore.release_lease)
    children = method(IntentsCore.children)
    descendants = method(IntentsCore.descendants)
    ancestors = method(IntentsCore.ancestors)
    dependencies = method(IntentsCore.dependencies)
    dependents = method(IntentsCore.dependents)
    ready = method(IntentsCore.ready)
    blocked = method(IntentsCore.blocked)
    graph = method(IntentsCore.graph)
    add_dependency = method(IntentsCore.add_dependency)
    remove_dependency = method(IntentsCore.remove_dependency)


class IntentsClient(_IntentsMethods, Facade[IntentsCore]):
    """Creates, changes and follows intents, and controls access to them."""


class AsyncIntentsClient(_IntentsMethods, AsyncFacade[IntentsCore]):
    """Creates, changes and follows intents, and controls access to them."""
