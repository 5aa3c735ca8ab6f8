"""`client.sessions`: conversations."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping
from datetime import datetime
from types import TracebackType
from typing import Any

import msgspec

from memorywall.records.errors import MemorywallError, ResourceNotFoundError
from memorywall.records.feature_errors import SessionClosedError
from memorywall.sdk import retry
from memorywall.sdk.effects import RequestGenerator
from memorywall.sdk.facade import AsyncFacade, Facade, method, named_options
from memorywall.sdk.fields import duration, with_durations
from memorywall.sdk.filters import instant, without_absent
from memorywall.sdk.retry import call
from memorywall.sdk.session import (
    DURATIONS,
    AsyncClientSession,
    ClientSession,
    Duration,
    SessionCore,
)
from memorywall.sdk.values import checked_objects
from memorywall.wire.sessions import MatchResponse, SessionListResponse, SessionResponse

_PARTICIPANT = '{"agent_id": "bob", "access": "read"}'


class SessionsCore:
    """The operations on sessions, as request generators."""

    def create(
        self,
        user: str | None = None,
        *,
        title: str = "",
        ttl: Duration | None = None,
        ends_at: datetime | str | None = None,
        idle_timeout: Duration | None = None,
        token_budget: int | None = None,
        state: Mapping[str, Any] | None = None,
        policy: Mapping[str, Any] | None = None,
        participants: Mapping[str, str] | Iterable[Mapping[str, str]] | None = None,
        metadata: Mapping[str, str | float] | None = None,
        continues: str | None = None,
        with_state: bool = False,
        client_id: str | None = None,
        reuse: bool = False,
    ) -> RequestGenerator[SessionResponse]:
        """Creates a session, which belongs to this client's agent.

        user: the person that the session is held with; default: nobody
        ttl, ends_at: the hard limit, as a duration (a timedelta, seconds, a text such as "30m", or
            ISO 8601) or as an instant; default: none
        idle_timeout: duration without a turn that closes the session; default: none
        token_budget: the most tokens of the summary and the turns in a context; default: what the
            window leaves
        state: initial state, free JSON; default: empty
        policy: fields of `SessionPolicy` that differ from the defaults
        participants: the access of other agents, `read` or `append`, by their ids, or objects with
            `agent_id` and `access`; default: none
        metadata: texts and numbers by name, at most 16, by which `list` filters; default: none
        continues: the id of the session of the same person that it continues, with whose summary
            it begins; default: none
        with_state: whether it also begins with the state of that session; default: false
        client_id: a name of your choice, unique among this agent's sessions with the person; the
            session that has it already is returned as it is, also one that has ended; default: none
        reuse: whether the agent's newest open session with the person is returned instead, as it
            is, if there is one. If the newest one has ended by its idle timeout, the new one
            continues it. Default: false
        Raises ValidationError, ValueTooLargeError, MemoryAccessError, ResourceNotFoundError.
        """
        others: builtins.list[Any] = []
        if isinstance(participants, Mapping):
            others = [{"agent_id": one, "access": level} for one, level in participants.items()]
        elif participants is not None:
            others = checked_objects("participants", participants, _PARTICIPANT)
        body = without_absent(
            {
                "user": user,
                "title": title,
                "ttl": duration(ttl),
                "ends_at": None if ends_at is None else instant(ends_at),
                "idle_timeout": duration(idle_timeout),
                "token_budget": token_budget,
                "state": state,
                "policy": None if policy is None else with_durations(policy, *DURATIONS),
                "participants": others,
                "metadata": metadata,
                "continues": continues,
                "with_state": with_state or None,
                "client_id": client_id,
                "reuse": reuse or None,
            }
        )
        return call("create_session", SessionResponse, body=body)

    def get(self, session_id: str) -> RequestGenerator[SessionResponse]:
        """Returns a session with its counters. Raises ResourceNotFoundError."""
        return call("get_session", SessionResponse, session_id=session_id)

    def list(
        self,
        *,
        status: str | None = None,
        user: str | None = None,
        agent: str | None = None,
        participating: bool = False,
        metadata: Mapping[str, str | float] | None = None,
        client_id: str | None = None,
        before: str | None = None,
        limit: int | None = None,
    ) -> RequestGenerator[SessionListResponse]:
        """Returns a page of sessions, newest first.

        status: only sessions with this status; `open` stands for `active` and `checkpointed`
        user: only sessions with this person
        agent: the agent of the sessions; default: this client's own
        participating: whether the sessions of other agents are listed in which this client's agent
            participates; default: false
        metadata: only sessions with these values; default: any
        client_id: only this agent's session of this name with `user`, or with nobody without a
            `user`; goes with no other filter; default: any
        before: `next` of the page before; default: the first page
        limit: the most sessions of the page; default: 50
        """
        query = {
            "status": status,
            "user": user,
            "agent_id": agent,
            "participating": participating or None,
            "metadata": None if metadata is None else msgspec.json.encode(metadata).decode(),
            "client_id": client_id,
            "before": before,
            "limit": limit,
        }
        return call("list_sessions", SessionListResponse, query=query)

    def match(self, text: str, user: str | None = None) -> RequestGenerator[MatchResponse]:
        """Finds the session of a person that a new text continues; `session_id` of the result is
        None if it continues none of them.

        user: the person; default: that of a client made by `for_user`
        Raises RequestError.
        """
        body = without_absent({"text": text, "user": user})
        return call("match_session", MatchResponse, body=body)

    def delete(self, session_id: str) -> RequestGenerator[None]:
        """Deletes a session with its turns, summaries and checkpoints."""
        return retry.remove("delete_session", session_id=session_id)


class _SessionsMethods:
    list = method(SessionsCore.list)
    match = method(SessionsCore.match)
    delete = method(SessionsCore.delete)


class SessionsClient(_SessionsMethods, Facade[SessionsCore]):
    """Creates, finds, resumes and deletes sessions."""

    def create(self, user: str | None = None, **fields: Any) -> ClientSession:
        fields = named_options(SessionsCore.create, fields, "sessions.create")
        made = self.driver.run(self.core.create(fields.pop("user", user), **fields))
        return ClientSession(SessionCore(made), self.driver)

    def get(self, session_id: str) -> ClientSession:
        found = self.driver.run(self.core.get(session_id))
        return ClientSession(SessionCore(found), self.driver)

    def resume(
        self,
        session_id: str,
        checkpoint: int | None = None,
        *,
        replay: int | None = None,
        reopen: bool = False,
    ) -> ClientSession:
        """Resumes a session, in any process: `resumed` of the result has the checkpoint, and the
        turns that its summary does not cover.

        checkpoint: the number of the checkpoint; default: the newest one
        replay: the most turns to return; default: 200
        reopen: whether a session that its idle timeout has closed is opened again; default: false
        Raises ResourceNotFoundError, SessionClosedError, SessionQuarantinedError.
        """
        session = self.get(session_id)
        session.resume(checkpoint, replay=replay, reopen=reopen)
        return session

    def use(self, session_id: str) -> UsedSession:
        """Returns a session for a `with` statement, which resumes it and makes a checkpoint at the
        end: with the trigger `shutdown`, or `error_recovery` after an exception. An exception that
        ends the process, such as KeyboardInterrupt, is a shutdown. See `resume`."""
        return UsedSession(self, session_id)

    create.__doc__ = SessionsCore.create.__doc__
    get.__doc__ = SessionsCore.get.__doc__


class AsyncSessionsClient(_SessionsMethods, AsyncFacade[SessionsCore]):
    """The async variant of `SessionsClient`."""

    async def create(self, user: str | None = None, **fields: Any) -> AsyncClientSession:
        fields = named_options(SessionsCore.create, fields, "sessions.create")
        made = await self.driver.run(self.core.create(fields.pop("user", user), **fields))
        return AsyncClientSession(SessionCore(made), self.driver)

    async def get(self, session_id: str) -> AsyncClientSession:
        found = await self.driver.run(self.core.get(session_id))
        return AsyncClientSession(SessionCore(found), self.driver)

    async def resume(
        self,
        session_id: str,
        checkpoint: int | None = None,
        *,
        replay: int | None = None,
        reopen: bool = False,
    ) -> AsyncClientSession:
        session = await self.get(session_id)
        await session.resume(checkpoint, replay=replay, reopen=reopen)
        return session

    def use(self, session_id: str) -> AsyncUsedSession:
        return AsyncUsedSession(self, session_id)

    create.__doc__ = SessionsCore.create.__doc__
    get.__doc__ = SessionsCore.get.__doc__
    resume.__doc__ = SessionsClient.resume.__doc__
    use.__doc__ = SessionsClient.use.__doc__


class UsedSession:
    """A session, open inside a `with` statement; see `client.sessions.use`."""

    def __init__(self, sessions: SessionsClient, session_id: str) -> None:
        self._sessions = sessions
        self._session_id = session_id

    def __enter__(self) -> ClientSession:
        self._session = self._sessions.resume(self._session_id)
        return self._session

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._session.checkpoint(trigger=_trigger(kind))
        except MemorywallError as failure:
            if _counts(failure, kind):
                raise


class AsyncUsedSession:
    """The async variant of `UsedSession`, for `async with`."""

    def __init__(self, sessions: AsyncSessionsClient, session_id: str) -> None:
        self._sessions = sessions
        self._session_id = session_id

    async def __aenter__(self) -> AsyncClientSession:
        self._session = await self._sessions.resume(self._session_id)
        return self._session

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            await self._session.checkpoint(trigger=_trigger(kind))
        except MemorywallError as failure:
            if _counts(failure, kind):
                raise


def _trigger(kind: type[BaseException] | None) -> str:
    """Returns the trigger of the last checkpoint after an exception of this class, or without
    one."""
    return "error_recovery" if kind is not None and issubclass(kind, Exception) else "shutdown"


def _counts(failure: MemorywallError, kind: type[BaseException] | None) -> bool:
    """Whether the error of the last checkpoint is raised: not instead of an exception, and not for
    a session that was closed or deleted meanwhile."""
    return kind is None and not isinstance(failure, SessionClosedError | ResourceNotFoundError)
