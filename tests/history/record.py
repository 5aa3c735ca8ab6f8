"""A history: what concurrent clients asked, when, and what they were told.

Times are those of one clock that all clients share (`time.monotonic_ns` of one machine). What an
operation did, it did at some moment between `invoked` and `returned`; where no reply came the
outcome is unknown, and that moment may lie anywhere after `invoked`, or nowhere.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

NEVER = sys.maxsize


class Kind(StrEnum):
    """What was asked for."""

    CREATE = "create"
    READ = "read"
    UPDATE = "update"
    DELETE = "delete"
    ACQUIRE = "acquire"
    RENEW = "renew"
    RELEASE = "release"


class Outcome(StrEnum):
    """What the client knows of it. Until a reply comes it knows nothing."""

    OK = "ok"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Seen:
    """An entry as a reply showed it.

    entry: its id; a name that is deleted and created again gets another one
    mark: which write its value is from
    whole: whether all parts of the value are of that one write
    """

    entry: str
    version: int
    mark: str
    whole: bool = True


@dataclass(slots=True, kw_only=True, eq=False)
class Operation:
    """One request about an entry and the reply to it.

    key: the name of the entry, whichever id it has
    entry: the id that was asked for; empty for a create and for a read by name
    mark: the mark of the value sent
    token: the fencing token sent
    seen: what the reply showed, be it in a refusal
    absent: the reply said that there is no such entry
    """

    process: int
    agent: str
    kind: Kind
    key: str
    invoked: int
    returned: int = NEVER
    outcome: Outcome = Outcome.UNKNOWN
    entry: str = ""
    sent_version: int | None = None
    mark: str = ""
    token: int | None = None
    seen: Seen | None = None
    absent: bool = False
    reason: str = ""


@dataclass(slots=True, kw_only=True, eq=False)
class ClaimOperation:
    """One request about a claim and the reply to it.

    token: of the claim that was renewed, released or, where it succeeded, acquired
    shown_token, shown_holder: the claim that stood in the way
    held_until: if it succeeded the claim was surely held up to this moment
    lapsed_by: if it succeeded the claim was surely over at this moment, if not renewed since
    """

    process: int
    agent: str
    kind: Kind
    key: str
    invoked: int
    returned: int = NEVER
    outcome: Outcome = Outcome.UNKNOWN
    token: int | None = None
    shown_token: int | None = None
    shown_holder: str = ""
    held_until: int = 0
    lapsed_by: int = NEVER
    reason: str = ""


@dataclass(slots=True)
class History:
    """Everything all clients recorded, in no particular order."""

    entries: list[Operation] = field(default_factory=list)
    claims: list[ClaimOperation] = field(default_factory=list)

    def counts(self) -> str:
        """How many operations of each kind ended how, for people."""
        tally: dict[tuple[str, str], int] = {}
        operations: itertools.chain[Operation | ClaimOperation] = itertools.chain(
            self.entries, self.claims
        )
        for operation in operations:
            ended = operation.reason or operation.outcome.value
            tally[operation.kind, ended] = tally.get((operation.kind, ended), 0) + 1
        return ", ".join(f"{kind} {ended}: {count}" for (kind, ended), count in tally.items())


class Recorder:
    """Writes a history while it happens. An operation that is begun and never ended is unknown."""

    def __init__(self, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self.history = History()
        self.now = clock
        self._marks = itertools.count(1)

    def new_mark(self, process: int) -> str:
        """A mark that no other write of this history has."""
        return f"{process}-{next(self._marks)}"

    def begin(
        self,
        process: int,
        agent: str,
        kind: Kind,
        key: str,
        *,
        entry: str = "",
        sent_version: int | None = None,
        mark: str = "",
        token: int | None = None,
    ) -> Operation:
        """To be called right before the request is sent."""
        operation = Operation(
            process=process,
            agent=agent,
            kind=kind,
            key=key,
            invoked=0,
            entry=entry,
            sent_version=sent_version,
            mark=mark,
            token=token,
        )
        self.history.entries.append(operation)
        operation.invoked = self.now()
        return operation

    def begin_claim(
        self, process: int, agent: str, kind: Kind, key: str, *, token: int | None = None
    ) -> ClaimOperation:
        """To be called right before the request is sent."""
        operation = ClaimOperation(
            process=process, agent=agent, kind=kind, key=key, invoked=0, token=token
        )
        self.history.claims.append(operation)
        operation.invoked = self.now()
        return operation
