"""The object of one conversation: its turns, checkpoints and saved states."""

from __future__ import annotations

import builtins
from base64 import b64encode
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

import msgspec

from memorywall.kinds.sessions import SessionPolicy
from memorywall.records.argument_names import unknown_names
from memorywall.records.errors import (
    ResourceConflictError,
    ValidationError,
)
from memorywall.sdk import retry
from memorywall.sdk.effects import Request, RequestGenerator
from memorywall.sdk.errors import decode
from memorywall.sdk.facade import AsyncFacade, Facade, method
from memorywall.sdk.fields import duration, with_durations
from memorywall.sdk.filters import instant, without_absent
from memorywall.sdk.models import read_event
from memorywall.sdk.retry import call
from memorywall.sdk.values import checked_list, checked_objects
from memorywall.wire.events import EventPageResponse, EventResponse
from memorywall.wire.sessions import ResumeResponse, SessionExport, SessionResponse, TokenResponse
from memorywall.wire.turns import (
    CheckpointListResponse,
    CheckpointResponse,
    SavedStateListResponse,
    SavedStateResponse,
    TurnListResponse,
    TurnRequest,
    TurnResponse,
    TurnsResponse,
)

Duration = timedelta | str | int
DURATIONS = ("retention", "checkpoint_interval")
"""The durations of a policy."""
_EVENT_PAGE = 1_000
_EXPORT_PAGE = 500
_TURN = '{"role": "user", "content": "Hello"}'
_TURN_PAGE = 1_000


class SessionCore:
    """The operations on one session, as request generators.

    info: the session as this client saw it last
    resumed: the checkpoint and the turns of `client.sessions.resume`; None otherwise
    """

    def __init__(self, info: SessionResponse, resumed: ResumeResponse | None = None) -> None:
        self.info = info
        self.resumed = resumed

    def add(
        self,
        /,
        role: Any,
        content: str | builtins.list[Any] | None = None,
        **fields: Any,
    ) -> RequestGenerator[TurnResponse]:
        """Adds a turn at the end of the session.

        role: system, user, assistant or tool; or a whole message, as OpenAI and Anthropic return
            and take it: a dict, or an object of their libraries
        content: text, or content parts as model providers define them; default: that of the message
        fields: further fields of `TurnRequest`, such as `client_id`, `tool_calls` or `trusted`
        Returns the last turn of a message with several results of tools, which are turns each.
        Raises ValidationError, ValueTooLargeError, SessionClosedError, SessionQuarantinedError,
        ResourceNotFoundError, MemoryAccessError, and ResourceConflictError for a `client_id` with
        which this client's agent has added other content.
        """
        known = TurnRequest.__struct_fields__
        if unknown := sorted(fields.keys() - set(known)):
            raise ValidationError(unknown_names("fields", unknown, known))
        given = {"role": role} if isinstance(role, str) else _plain_message(role)
        (message,) = checked_objects("turns", [given], _TURN)
        if content is not None:
            fields["content"] = content
        added = yield from self.add_many([{**message, **fields}])
        return added[-1]

    def add_many(self, turns: Iterable[Any]) -> RequestGenerator[builtins.list[TurnResponse]]:
        """Adds up to 100 turns, all or none; each has the fields of `TurnRequest`, or is a message
        of a provider. Raises the errors of `add`."""
        given = checked_objects("turns", map(_plain_message, checked_list("turns", turns)), _TURN)
        body = {"turns": [with_durations(one, "valid_for") for one in given]}
        path = {"session_id": self.info.id}
        answer = yield from retry.send(Request(operation="add_turns", path=path, body=body))
        added = decode(answer, TurnsResponse, conflict=ResourceConflictError)
        return added.turns

    def turns(
        self,
        *,
        after: int = 0,
        before: int | None = None,
        limit: int | None = None,
        newest_first: bool = False,
        whole: bool = False,
    ) -> RequestGenerator[builtins.list[TurnResponse]]:
        """Returns turns in the order of their sequence.

        after, before: only turns after, and before, this sequence
        limit: the most turns; default: all turns
        newest_first: the reverse order; default: false
        whole: whether parts in attachments stand in their places again; with a `limit` of at most
            10; default: false

        Each request returns up to 1,000 turns.
        """
        turns: list[TurnResponse] = []
        while True:
            wanted = _TURN_PAGE if limit is None else min(_TURN_PAGE, limit - len(turns))
            query = {
                "after": after or None,
                "before_sequence": before,
                "limit": wanted,
                "newest_first": newest_first or None,
                "whole": whole or None,
            }
            found = yield from call(
                "list_turns", TurnListResponse, session_id=self.info.id, query=query
            )
            turns += found.turns
            if len(found.turns) < wanted or len(turns) == limit:
                return turns
            if newest_first:
                before = turns[-1].sequence
            else:
                after = turns[-1].sequence

    def remove_turns(
        self, first: int, *, last: int | None = None
    ) -> RequestGenerator[SessionResponse]:
        """Removes the turns from a sequence on.

        last: the sequence that the last turn must have; default: any
        Raises SessionClosedError, and ResourceConflictError if the last turn is another one.
        """
        request = Request(
            operation="remove_turns",
            path={"session_id": self.info.id},
            query=retry.texts({"first": first, "last": last}),
        )
        answer = yield from retry.send(request)
        return self._saw(decode(answer, SessionResponse, conflict=ResourceConflictError))

    def clear(self) -> RequestGenerator[SessionResponse]:
        """Removes all turns. Raises SessionClosedError."""
        return self.remove_turns(1)

    def checkpoint(
        self,
        *,
        trigger: str = "user_request",
        working: Iterable[Mapping[str, Any]] | None = None,
        state: Mapping[str, Any] | None = None,
    ) -> RequestGenerator[CheckpointResponse]:
        """Makes a checkpoint. Its summary covers up to 200 turns more than that before it.

        trigger: user_request, shutdown, error_recovery, periodic or turn_count
        working: the serialized working memory; default: this agent's working entries of the session
        state: the new state of the session; default: unchanged
        Raises ValueTooLargeError, SessionClosedError.
        """
        if working is not None:
            working = checked_objects("working", working, '{"name": "plan"}')
        body = without_absent({"trigger": trigger, "working": working, "state": state})
        return call("create_checkpoint", CheckpointResponse, session_id=self.info.id, body=body)

    def checkpoints(self) -> RequestGenerator[builtins.list[CheckpointResponse]]:
        """Returns the checkpoints, newest first."""
        found = yield from call("list_checkpoints", CheckpointListResponse, session_id=self.info.id)
        return found.checkpoints

    def put_saved_state(
        self,
        name: str,
        data: bytes,
        *,
        parent: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        if_absent: bool = False,
    ) -> RequestGenerator[SavedStateResponse]:
        """Saves a state of a framework, such as its own checkpoint; one of this name is replaced.

        data: bytes, at most what an attachment takes
        parent: the name of the state that it follows; default: none
        metadata: free JSON; default: empty
        if_absent: whether a state of this name is a ResourceConflictError instead; default: false
        Raises ValidationError, ValueTooLargeError, SessionClosedError, MemoryAccessError.
        """
        if not isinstance(data, bytes):
            raise ValidationError("`data` must be bytes")
        text = b64encode(data).decode()
        request = Request(
            operation="put_saved_state",
            path={"session_id": self.info.id, "name": name},
            body=without_absent({"data": text, "parent": parent, "metadata": metadata}),
            if_none_match="*" if if_absent else None,
        )
        read = self.get_saved_state(name)
        return retry.change(request, SavedStateResponse, read, lambda current: current.data == data)

    def get_saved_state(self, name: str) -> RequestGenerator[SavedStateResponse]:
        """Returns a saved state with its `data`. Raises ResourceNotFoundError."""
        return call("get_saved_state", SavedStateResponse, session_id=self.info.id, name=name)

    def list_saved_states(
        self,
        *,
        after: str | None = None,
        before: str | None = None,
        limit: int | None = None,
        with_data: bool = False,
    ) -> RequestGenerator[SavedStateListResponse]:
        """Returns saved states in the reverse order of their names.

        after, before: only those with names after, and before, this one; default: all
        limit: the most states, up to 100; default: 50
        with_data: whether they have their data; a page then ends after about a MiB of it, and
            `next` of the page tells whether there are more; default: false
        """
        query = {
            "after_name": after,
            "before_name": before,
            "limit": limit,
            "with_data": with_data or None,
        }
        return call(
            "list_saved_states", SavedStateListResponse, session_id=self.info.id, query=query
        )

    def delete_saved_state(self, name: str) -> RequestGenerator[None]:
        """Deletes a saved state."""
        return retry.remove("delete_saved_state", session_id=self.info.id, name=name)

    def resume(
        self, checkpoint: int | None = None, *, replay: int | None = None, reopen: bool = False
    ) -> RequestGenerator[ResumeResponse]:
        """Resumes the session; see `client.sessions.resume`."""
        body = without_absent(
            {"checkpoint": checkpoint, "replay": replay, "reopen": reopen or None}
        )
        self.resumed = yield from call(
            "resume_session", ResumeResponse, session_id=self.info.id, body=body
        )
        self._saw(self.resumed.session)
        return self.resumed

    def fork(
        self, sequence: int | None = None, *, title: str | None = None
    ) -> RequestGenerator[SessionResponse]:
        """Creates a session with copies of the turns, which continues this one.

        sequence: the last copied turn; default: the last turn
        title: the title of the new session; default: that of this one
        """
        body = without_absent({"sequence": sequence, "title": title})
        return call("fork_session", SessionResponse, session_id=self.info.id, body=body)

    def update(
        self, /, *, version: int | None = None, **fields: Any
    ) -> RequestGenerator[SessionResponse]:
        """Replaces `title`, `state`, `metadata`, `token_budget`, `ttl`, `ends_at`, `idle_timeout`
        or fields of `policy`.

        fields: the fields to replace; fields of `policy` that are not given stay. `ttl` counts from
            now; None removes a limit.
        version: the version of the session that is replaced; default: any
        Raises ResourceConflictError if the session has another version, and SessionClosedError for
        a limit of a session that has ended.
        """
        if "policy" in fields:
            fields["policy"] = with_durations(fields["policy"], *DURATIONS)
        fields = with_durations(fields, "ttl", "idle_timeout")
        if fields.get("ends_at") is not None:
            fields["ends_at"] = instant(fields["ends_at"])
        request = Request(
            operation="update_session",
            path={"session_id": self.info.id},
            body=fields,
            if_match=version,
        )
        read = call("get_session", SessionResponse, session_id=self.info.id)

        def is_done(current: SessionResponse) -> bool:
            shown = msgspec.to_builtins(current)
            policy = {**shown.pop("policy"), **fields.get("policy", {})}
            rest = {name: value for name, value in fields.items() if name != "policy"}
            if "ttl" in rest:
                # The end that it has given is not known.
                return False
            return msgspec.convert(policy, SessionPolicy) == current.policy and all(
                retry.is_same(value, shown[name]) for name, value in rest.items()
            )

        info = yield from retry.change(request, SessionResponse, read, is_done)
        return self._saw(info)

    def refresh(self) -> RequestGenerator[SessionResponse]:
        """Reads the session again."""
        info = yield from call("get_session", SessionResponse, session_id=self.info.id)
        return self._saw(info)

    def set_participant(
        self, agent: str, access: str = "append"
    ) -> RequestGenerator[SessionResponse]:
        """Adds an agent to the session, or changes its access, `read` or `append`."""
        info = yield from call(
            "set_session_participant",
            SessionResponse,
            session_id=self.info.id,
            agent_id=agent,
            body={"access": access},
        )
        return self._saw(info)

    def remove_participant(self, agent: str) -> RequestGenerator[None]:
        """Removes an agent from the session, with effect on its next request."""
        return retry.remove("remove_session_participant", session_id=self.info.id, agent_id=agent)

    def close(self, reason: str = "request") -> RequestGenerator[SessionResponse]:
        """Closes the session; it accepts no more turns."""
        info = yield from call(
            "close_session", SessionResponse, session_id=self.info.id, body={"reason": reason}
        )
        return self._saw(info)

    def archive(self) -> RequestGenerator[SessionResponse]:
        """Archives the session; it is deleted when the retention of its policy is over."""
        return self._saw(
            (yield from call("archive_session", SessionResponse, session_id=self.info.id))
        )

    def token(self, ttl: Duration | None = None) -> RequestGenerator[TokenResponse]:
        """Returns a token, which a client sends in place of an API key: `AsyncClient(url, token)`.

        ttl: duration after which it is refused, at most a day; default: an hour

        Requests with the token are inside this session and act for this client's agent, with at
        most the permissions of its key. The token ends with the session and with the key.
        Raises ValidationError, MemoryAccessError, ResourceNotFoundError, SessionClosedError,
        SessionQuarantinedError.
        """
        body = without_absent({"ttl": duration(ttl)})
        return call("issue_session_token", TokenResponse, session_id=self.info.id, body=body)

    def events(self) -> RequestGenerator[builtins.list[EventResponse]]:
        """Returns the events of the session itself: its creation and each change, with `status`,
        `previous_status` and `closed_reason` in their `data`. For the owner of the session."""
        events: builtins.list[EventResponse] = []
        after, reached = -1, 0
        while reached != after:
            after = reached
            query = {"after": after, "limit": _EVENT_PAGE, "entry_id": self.info.id}
            page = yield from call(
                "list_events", EventPageResponse, agent_id=self.info.agent_id, query=query
            )
            events.extend(map(read_event, page.events))
            reached = page.next
        return events

    def export(self) -> RequestGenerator[SessionExport]:
        """Returns the session with all its checkpoints and turns."""
        found: SessionExport | None = None
        after: int | None = 0
        while after is not None:
            query = {"after": after or None, "limit": _EXPORT_PAGE}
            page = yield from call(
                "export_session", SessionExport, session_id=self.info.id, query=query
            )
            if found is None:
                found = page
            else:
                found.turns.extend(page.turns)
            after = page.next
        assert found is not None  # noqa: S101 - there is at least one page
        return msgspec.structs.replace(found, next=None)

    def delete(self) -> RequestGenerator[None]:
        """Deletes the session with its turns, summaries and checkpoints."""
        return retry.remove("delete_session", session_id=self.info.id)

    def _saw(self, info: SessionResponse) -> SessionResponse:
        self.info = info
        return info


def _plain_message(given: Any) -> Any:
    """Returns a message of a provider's library as the dict that it stands for."""
    if isinstance(given, Mapping):
        return {name: _plain_message(one) for name, one in given.items()}
    if isinstance(given, list | tuple):
        return [_plain_message(one) for one in given]
    dump = getattr(given, "model_dump", None)
    return dump(mode="json") if callable(dump) else given


class _SessionProperties:
    """The properties of a session that its two objects share."""

    core: SessionCore

    @property
    def id(self) -> str:
        """The id of the session."""
        return self.core.info.id

    @property
    def info(self) -> SessionResponse:
        """The session as this client saw it last."""
        return self.core.info

    @property
    def resumed(self) -> ResumeResponse | None:
        """The checkpoint and the turns that `resume` returned; None before it."""
        return self.core.resumed

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} {self.info.status}>"


class _SessionMethods:
    add = method(SessionCore.add)
    add_many = method(SessionCore.add_many)
    turns = method(SessionCore.turns)
    remove_turns = method(SessionCore.remove_turns)
    clear = method(SessionCore.clear)
    checkpoint = method(SessionCore.checkpoint)
    checkpoints = method(SessionCore.checkpoints)
    put_saved_state = method(SessionCore.put_saved_state)
    get_saved_state = method(SessionCore.get_saved_state)
    list_saved_states = method(SessionCore.list_saved_states)
    delete_saved_state = method(SessionCore.delete_saved_state)
    resume = method(SessionCore.resume)
    update = method(SessionCore.update)
    refresh = method(SessionCore.refresh)
    set_participant = method(SessionCore.set_participant)
    remove_participant = method(SessionCore.remove_participant)
    close = method(SessionCore.close)
    archive = method(SessionCore.archive)
    token = method(SessionCore.token)
    events = method(SessionCore.events)
    export = method(SessionCore.export)
    delete = method(SessionCore.delete)


class ClientSession(_SessionMethods, _SessionProperties, Facade[SessionCore]):
    """One session: adds, reads and removes turns, and makes checkpoints."""

    def fork(self, sequence: int | None = None, *, title: str | None = None) -> ClientSession:
        made = self.driver.run(self.core.fork(sequence, title=title))
        return ClientSession(SessionCore(made), self.driver)

    fork.__doc__ = SessionCore.fork.__doc__


class AsyncClientSession(_SessionMethods, _SessionProperties, AsyncFacade[SessionCore]):
    """The async variant of `ClientSession`."""

    async def fork(
        self, sequence: int | None = None, *, title: str | None = None
    ) -> AsyncClientSession:
        made = await self.driver.run(self.core.fork(sequence, title=title))
        return AsyncClientSession(SessionCore(made), self.driver)

    fork.__doc__ = SessionCore.fork.__doc__
