"""Conversations of a framework, which it names itself: each is a session of this name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from memorywall.exceptions import ResourceNotFoundError
from memorywall.sdk.effects import RequestGenerator
from memorywall.sdk.session import SessionCore
from memorywall.sdk.sessions import SessionsCore

Result = TypeVar("Result")
Action = Callable[[SessionCore], RequestGenerator[Result]]
_KNOWN_AT_ONCE = 10_000


class SessionKey(NamedTuple):
    """A conversation.

    user: the person that requests about it are bound to; None for those of the client
    """

    name: str
    user: str | None = None


class NamedSessions:
    """Finds and creates the sessions of conversations, as request generators. Remembers which it
    found.

    framework: the name of the framework, which the metadata of its sessions have
    has_users: whether each person may have a conversation of a name, see `SessionKey.user`
    options: further fields of new sessions, see `client.sessions.create`
    """

    def __init__(self, framework: str, *, has_users: bool = False, **options: Any) -> None:
        self._options = options
        self._mark = {"framework": framework}
        self._has_users = has_users
        self._sessions = SessionsCore()
        self._known: dict[SessionKey, SessionCore] = {}

    def read(self, key: SessionKey, action: Action[Result]) -> RequestGenerator[Result | None]:
        """Returns the result of an action on a session; None without the session."""
        if (known := self._known.get(key)) is not None:
            try:
                return (yield from action(known))
            except ResourceNotFoundError:
                # Somebody has deleted the session, and may have begun another.
                self._known.pop(key, None)
        page = yield from self._sessions.list(client_id=key.name)
        if not page.sessions:
            return None
        return (yield from action(self._remember(key, SessionCore(page.sessions[0]))))

    def write(self, key: SessionKey, action: Action[Result]) -> RequestGenerator[Result]:
        """Returns the result of an action on a session, which it creates if there is none."""
        if (known := self._known.get(key)) is not None:
            try:
                return (yield from action(known))
            except ResourceNotFoundError:
                self._known.pop(key, None)
        made = yield from self._sessions.create(
            client_id=key.name, metadata=self._mark, **self._options
        )
        return (yield from action(self._remember(key, SessionCore(made))))

    def all(self) -> RequestGenerator[list[SessionCore]]:
        """Returns the sessions of the framework, newest first."""
        found: list[SessionCore] = []
        before: str | None = None
        while True:
            page = yield from self._sessions.list(metadata=self._mark, before=before)
            found += map(SessionCore, page.sessions)
            if page.next is None:
                return found
            before = page.next

    def named(self, name: str) -> RequestGenerator[list[SessionCore]]:
        """Returns the sessions of a name: with people, that of each."""
        if self._has_users:
            return [one for one in (yield from self.all()) if one.info.client_id == name]
        page = yield from self._sessions.list(client_id=name)
        return [SessionCore(one) for one in page.sessions]

    def delete(self, session: SessionCore) -> RequestGenerator[None]:
        """Deletes a session with all that it contains."""
        gone = [key for key, one in self._known.items() if one.info.id == session.info.id]
        for key in gone:
            self._known.pop(key, None)
        try:
            yield from session.delete()
        except ResourceNotFoundError:
            return

    def _remember(self, key: SessionKey, session: SessionCore) -> SessionCore:
        if len(self._known) >= _KNOWN_AT_ONCE:
            self._known.pop(next(iter(self._known)), None)
        self._known[key] = session
        return session
