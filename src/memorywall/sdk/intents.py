"""`client.intents`: what agents are after, its log, and who may do what with it, in no colour."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from memorywall.sdk import exchange
from memorywall.sdk.filters import instant, without_absent
from memorywall.sdk.graph import INTENTS, GraphLogic, intent_path
from memorywall.sdk.problems import decode
from memorywall.sdk.shapes import EventPage, IntentPage, read_event
from memorywall.sdk.steps import Request, Script, StreamScript
from memorywall.sdk.streams import follow_events
from memorywall.wire.access import AccessView, GrantView
from memorywall.wire.agents import EventPage as WireEventPage
from memorywall.wire.agents import EventView
from memorywall.wire.leases import LeaseList, LeaseView
from memorywall.wire.work import IntentList, IntentView


class IntentsLogic(GraphLogic):
    """The operations on intents, as scripts for a driver."""

    def create(
        self,
        title: str,
        *,
        description: str = "",
        constraints: Mapping[str, Any] | None = None,
        state: Mapping[str, Any] | None = None,
        parent_intent_id: str | None = None,
        depends_on: Sequence[str] = (),
    ) -> Script[IntentView]:
        """Makes an intent, which this client administers and nobody else sees until it is let in,
        by `grant` or by a task of the intent."""
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
        response = yield from exchange.once(
            Request(method="POST", path=INTENTS, body=exchange.encode(body))
        )
        return decode(response, IntentView)

    def list(
        self, *, status: str | None = None, limit: int | None = None, offset: int = 0
    ) -> Script[IntentPage]:
        """The intents this client may read, newest first; 50 if no limit is given."""
        params = without_absent({"status": status, "limit": limit, "offset": offset or None})
        response = yield from exchange.again(
            Request(method="GET", path=INTENTS, params=_texts(params))
        )
        page = decode(response, IntentList)
        return IntentPage(page.intents, total=page.total, limit=page.limit, offset=page.offset)

    def set_state(
        self,
        intent: IntentView | str,
        changes: Mapping[str, Any] | None = None,
        *,
        remove: Iterable[str] = (),
        version: int | None = None,
    ) -> Script[IntentView]:
        """Sets and removes members at the top of an intent's state, all or none.

        intent: as it was read, or its id, which is read first unless `version` is given
        Raises ResourceConflictError when the intent has another version by now.
        """
        wanted, removed = dict(changes or {}), list(remove)
        patches: list[dict[str, Any]] = [
            {"op": "set", "path": name, "value": value} for name, value in wanted.items()
        ]
        patches.extend({"op": "remove", "path": name} for name in removed)

        def is_done(current: IntentView) -> bool:
            return all(
                name in current.state and exchange.is_same(value, current.state[name])
                for name, value in wanted.items()
            ) and not any(name in current.state for name in removed)

        return (
            yield from self._change(
                "POST", intent, ("state",), version, is_done, {"patches": patches}
            )
        )

    def set_status(
        self,
        intent: IntentView | str,
        status: str,
        *,
        reason: str | None = None,
        version: int | None = None,
    ) -> Script[IntentView]:
        """Sets an intent's status: draft, active, blocked, suspended_awaiting_input, completed or
        abandoned. See `set_state` on `intent` and `version`."""
        body = without_absent({"status": status, "reason": reason})
        return (
            yield from self._change(
                "POST",
                intent,
                ("status",),
                version,
                lambda current: current.status == status,
                body,
            )
        )

    def log(
        self,
        intent_id: str,
        event_type: str,
        payload: Mapping[str, Any] | None = None,
        *,
        trace_id: str | None = None,
        parent_event_id: str | None = None,
    ) -> Script[EventView]:
        """Appends an event of one's own to an intent's log."""
        body = without_absent(
            {
                "event_type": event_type,
                "payload": payload,
                "trace_id": trace_id,
                "parent_event_id": parent_event_id,
            }
        )
        response = yield from exchange.once(
            Request(
                method="POST", path=intent_path(intent_id, "events"), body=exchange.encode(body)
            )
        )
        return read_event(decode(response, EventView))

    def events(
        self,
        intent_id: str,
        after: int = 0,
        limit: int = 100,
        *,
        event_type: str | None = None,
        since: datetime | str | None = None,
    ) -> Script[EventPage]:
        """Events of an intent's log after a sequence number.

        event_type: only of this type; since: only from this moment on
        """
        params = without_absent(
            {
                "after": after,
                "limit": limit,
                "event_type": event_type,
                "since": None if since is None else instant(since),
            }
        )
        response = yield from exchange.again(
            Request(
                method="GET",
                path=intent_path(intent_id, "events"),
                params=_texts(params),
                headers={"Accept": "application/json"},
            )
        )
        page = decode(response, WireEventPage)
        return EventPage(map(read_event, page.events), next=page.next)

    def follow(
        self,
        intent_id: str,
        after: int = 0,
        *,
        patience: float = 30.0,
    ) -> StreamScript[EventView]:
        """Events of an intent's log as they happen, each once and in order, without end.

        Connections that are cut are taken up again as in `client.events.follow`.
        """
        yield from follow_events(intent_path(intent_id, "events"), after, patience)

    def acl(self, intent_id: str) -> Script[AccessView]:
        """Who may do what with an intent."""
        response = yield from exchange.again(
            Request(method="GET", path=intent_path(intent_id, "acl"))
        )
        return decode(response, AccessView)

    def set_acl(
        self,
        intent_id: str,
        *,
        default_policy: str = "closed",
        entries: Iterable[Mapping[str, Any]] = (),
    ) -> Script[AccessView]:
        """Replaces an intent's access list.

        default_policy: "closed" lets nobody in but those listed, "open" everybody of the tenant
        entries: `{"principal_id": ..., "permission": "read" | "write" | "admin"}` for each
        """
        body = {"default_policy": default_policy, "entries": [dict(one) for one in entries]}
        response = yield from exchange.if_unsent(
            Request(method="PUT", path=intent_path(intent_id, "acl"), body=exchange.encode(body))
        )
        return decode(response, AccessView)

    def grant(
        self,
        intent_id: str,
        principal_id: str,
        permission: str = "read",
        *,
        principal_type: str = "agent",
        reason: str | None = None,
        expires_at: datetime | str | None = None,
    ) -> Script[GrantView]:
        """Lets somebody read or write an intent, or administer it."""
        body = without_absent(
            {
                "principal_id": principal_id,
                "principal_type": principal_type,
                "permission": permission,
                "reason": reason,
                "expires_at": None if expires_at is None else instant(expires_at),
            }
        )
        response = yield from exchange.if_unsent(
            Request(
                method="POST",
                path=intent_path(intent_id, "acl", "entries"),
                body=exchange.encode(body),
            )
        )
        return decode(response, GrantView)

    def revoke(self, intent_id: str, grant_id: str) -> Script[None]:
        """Takes a line from an intent's access list."""
        yield from exchange.remove(intent_path(intent_id, "acl", "entries", grant_id))

    def lease(self, intent_id: str, scope: str, duration: int = 300) -> Script[LeaseView]:
        """Takes a scope of an intent for `duration` seconds. Raises HeldError.

        A reply that is lost may leave it taken until that time is over: nobody knows its id then.
        """
        body = {"scope": scope, "duration_seconds": duration}
        response = yield from exchange.if_unsent(
            Request(
                method="POST", path=intent_path(intent_id, "leases"), body=exchange.encode(body)
            )
        )
        return decode(response, LeaseView)

    def leases(self, intent_id: str) -> Script[Sequence[LeaseView]]:
        """What is taken of an intent now, and by whom."""
        response = yield from exchange.again(
            Request(method="GET", path=intent_path(intent_id, "leases"))
        )
        return decode(response, LeaseList).leases

    def renew_lease(self, intent_id: str, lease_id: str, duration: int = 300) -> Script[LeaseView]:
        """Holds a scope `duration` seconds more from now. Raises FencedError when it is over."""
        response = yield from exchange.again(
            Request(
                method="PATCH",
                path=intent_path(intent_id, "leases", lease_id),
                body=exchange.encode({"duration_seconds": duration}),
            )
        )
        return decode(response, LeaseView)

    def release_lease(self, intent_id: str, lease_id: str) -> Script[None]:
        """Gives a scope back."""
        yield from exchange.remove(intent_path(intent_id, "leases", lease_id))


def _texts(params: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in params.items()}
