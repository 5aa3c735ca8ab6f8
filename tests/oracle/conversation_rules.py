"""The rules of requests inside sessions, written anew from the memory wall (11.3.2, 11.8.2)."""

from __future__ import annotations

from dataclasses import dataclass, field

BOUND_TIERS = ("working", "session")
OPEN_TO_GROUP = "plans"
OPEN_TO_ALL = "facts"


@dataclass(kw_only=True)
class Conversation:
    """A session, with the access of its participants by name."""

    owner: str
    subject: str | None
    participants: dict[str, str] = field(default_factory=dict)
    is_open: bool = True


@dataclass(frozen=True, kw_only=True)
class Note:
    """An entry."""

    tier: str
    owner: str
    namespace: str
    key: str
    session: str | None
    subjects: frozenset[str]


@dataclass
class ConversationWorld:
    """What there is."""

    sessions: dict[str, Conversation] = field(default_factory=dict)
    notes: dict[str, Note] = field(default_factory=dict)
    group: set[str] = field(default_factory=set)

    def status(self, person: str, session: str) -> int:
        """The status of a request inside a session, 200 if it is made."""
        one = self.sessions.get(session)
        if one is None or person not in (one.owner, *one.participants):
            return 404
        return 200 if one.is_open else 409

    def may_write(self, person: str, session: str, tier: str) -> bool:
        """Whether somebody inside a session may write memory of this tier."""
        one = self.sessions[session]
        return (
            person == one.owner or one.participants[person] == "append" or (tier not in BOUND_TIERS)
        )

    def is_within(self, session: str, note: Note) -> bool:
        """Whether an entry is within the boundaries of a session."""
        subject = self.sessions[session].subject
        if not note.subjects <= {subject}:
            return False
        if note.tier in BOUND_TIERS:
            return note.session == session
        return note.session in (None, session)

    def get_status(self, person: str, session: str | None, note: Note) -> int:
        """The status of a get by somebody inside a session, or outside of any."""
        if session is not None and not self.is_within(session, note):
            return 404
        if note.owner == person or note.namespace == OPEN_TO_ALL:
            return 200
        in_class = note.tier == "episodic" and note.namespace == OPEN_TO_GROUP
        if in_class and {person, note.owner} <= self.group:
            return 200
        if session is not None and note.tier == "session":
            return 200 if note.owner == self.sessions[session].owner else 403
        return 403

    def readable(self, person: str, session: str | None) -> set[str]:
        """The ids of what a list shows."""
        return {
            name
            for name, note in self.notes.items()
            if self.get_status(person, session, note) == 200
        }
