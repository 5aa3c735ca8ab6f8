"""`client.sessions` and the objects of sessions, sync and async."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from memorywall.records.errors import MemorywallError, ResourceNotFoundError
from memorywall.records.feature_errors import SessionClosedError
from memorywall.sdk.facade import AsyncFacade, Facade, awaiting, blocking
from memorywall.sdk.session import SessionCore
from memorywall.sdk.sessions import SessionsCore
from memorywall.wire.sessions import ResumeResponse, SessionListResponse, SessionResponse


class _Described:
    """The properties of a session that its two objects share."""

    _core: SessionCore

    @property
    def id(self) -> str:
        """The id of the session."""
        return self._core.info.id

    @property
    def info(self) -> SessionResponse:
        """The session as this client saw it last."""
        return self._core.info

    @property
    def resumed(self) -> ResumeResponse | None:
        """The checkpoint and the turns that `resume` returned; None before it."""
        return self._core.resumed

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} {self.info.status}>"


class ClientSession(_Described, Facade[SessionCore]):
    """One session: adds, reads and removes turns, and makes checkpoints."""

    add = blocking(SessionCore.add)
    add_many = blocking(SessionCore.add_many)
    turns = blocking(SessionCore.turns)
    remove_turns = blocking(SessionCore.remove_turns)
    clear = blocking(SessionCore.clear)
    checkpoint = blocking(SessionCore.checkpoint)
    checkpoints = blocking(SessionCore.checkpoints)
    put_saved_state = blocking(SessionCore.put_saved_state)
    get_saved_state = blocking(SessionCore.get_saved_state)
    list_saved_states = blocking(SessionCore.list_saved_states)
    delete_saved_state = blocking(SessionCore.delete_saved_state)
    resume = blocking(SessionCore.resume)
    update = blocking(SessionCore.update)
    refresh = blocking(SessionCore.refresh)
    set_participant = blocking(SessionCore.set_participant)
    remove_participant = blocking(SessionCore.remove_participant)
    close = blocking(SessionCore.close)
    archive = blocking(SessionCore.archive)
    token = blocking(SessionCore.token)
    events = blocking(SessionCore.events)
    export = blocking(SessionCore.export)
    delete = blocking(SessionCore.delete)

    def fork(self, sequence: int | None = None, *, title: str | None = None) -> ClientSession:
        made = self._executor.run(self._core.fork(sequence, title=title))
        return ClientSession(SessionCore(made), self._executor)

    fork.__doc__ = SessionCore.fork.__doc__


class AsyncClientSession(_Described, AsyncFacade[SessionCore]):
    """The async variant of `ClientSession`."""

    add = awaiting(SessionCore.add)
    add_many = awaiting(SessionCore.add_many)
    turns = awaiting(SessionCore.turns)
    remove_turns = awaiting(SessionCore.remove_turns)
    clear = awaiting(SessionCore.clear)
    checkpoint = awaiting(SessionCore.checkpoint)
    checkpoints = awaiting(SessionCore.checkpoints)
    put_saved_state = awaiting(SessionCore.put_saved_state)
    get_saved_state = awaiting(SessionCore.get_saved_state)
    list_saved_states = awaiting(SessionCore.list_saved_states)
    delete_saved_state = awaiting(SessionCore.delete_saved_state)
    resume = awaiting(SessionCore.resume)
    update = awaiting(SessionCore.update)
    refresh = awaiting(SessionCore.refresh)
    set_participant = awaiting(SessionCore.set_participant)
    remove_participant = awaiting(SessionCore.remove_participant)
    close = awaiting(SessionCore.close)
    archive = awaiting(SessionCore.archive)
    token = awaiting(SessionCore.token)
    events = awaiting(SessionCore.events)
    export = awaiting(SessionCore.export)
    delete = awaiting(SessionCore.delete)

    async def fork(
        self, sequence: int | None = None, *, title: str | None = None
    ) -> AsyncClientSession:
        made = await self._executor.run(self._core.fork(sequence, title=title))
        return AsyncClientSession(SessionCore(made), self._executor)

    fork.__doc__ = SessionCore.fork.__doc__


class SessionsClient(Facade[SessionsCore]):
    """Creates, finds, resumes and deletes sessions."""

    match = blocking(SessionsCore.match)
    delete = blocking(SessionsCore.delete)

    def create(self, subject: str | None = None, **fields: Any) -> ClientSession:
        made = self._executor.run(self._core.create(subject, **fields))
        return ClientSession(SessionCore(made), self._executor)

    def get(self, session_id: str) -> ClientSession:
        found = self._executor.run(self._core.get(session_id))
        return ClientSession(SessionCore(found), self._executor)

    def list(self, **wanted: Any) -> SessionListResponse:
        return self._executor.run(self._core.list(**wanted))

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
    list.__doc__ = SessionsCore.list.__doc__


class AsyncSessionsClient(AsyncFacade[SessionsCore]):
    """The async variant of `SessionsClient`."""

    match = awaiting(SessionsCore.match)
    delete = awaiting(SessionsCore.delete)

    async def create(self, subject: str | None = None, **fields: Any) -> AsyncClientSession:
        made = await self._executor.run(self._core.create(subject, **fields))
        return AsyncClientSession(SessionCore(made), self._executor)

    async def get(self, session_id: str) -> AsyncClientSession:
        found = await self._executor.run(self._core.get(session_id))
        return AsyncClientSession(SessionCore(found), self._executor)

    async def list(self, **wanted: Any) -> SessionListResponse:
        return await self._executor.run(self._core.list(**wanted))

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
    list.__doc__ = SessionsCore.list.__doc__
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
