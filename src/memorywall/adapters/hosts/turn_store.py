"""Stores the turns of hosts in sessions, as request generators for clients of either colour."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from memorywall.adapters.hosts.spool import SpooledTurn
from memorywall.exceptions import (
    ResourceConflictError,
    SessionClosedError,
    SubjectForgottenError,
    ValidationError,
    ValueTooLargeError,
)
from memorywall.sdk.effects import RequestGenerator
from memorywall.sdk.session import SessionCore
from memorywall.sdk.sessions import SessionsCore

REFUSALS = (ResourceConflictError, SubjectForgottenError, ValidationError, ValueTooLargeError)
"""Errors after which the same turn cannot be stored later either."""
_AT_ONCE = 50
_LONGEST_TITLE = 60


def chunks(turns: Iterable[SpooledTurn]) -> Iterator[Sequence[SpooledTurn]]:
    """The turns in their order, in pieces of one session that one request takes."""
    for _, group in groupby(turns, key=lambda turn: turn.session):
        of_session = list(group)
        for start in range(0, len(of_session), _AT_ONCE):
            yield of_session[start : start + _AT_ONCE]


def store_turns(host: str, user: str | None, turns: Sequence[SpooledTurn]) -> RequestGenerator[int]:
    """Stores turns of one session, which is created with the beginning of the first one as its
    title, and returns how many were not there yet.

    host: the name of the host
    user: the person that the session is held with
    Raises the errors of the SDK; nothing is stored then.
    """
    name, number = turns[0].session, 1
    title = " ".join(turns[0].text.split())[:_LONGEST_TITLE]
    added = [
        {"role": one.role, "content": one.text, "client_id": one.client_id, "said_at": one.said_at}
        for one in turns
    ]
    while True:
        info = yield from SessionsCore().create(
            user, title=title, client_id=name, metadata={"host": host}
        )
        try:
            stored = yield from SessionCore(info).add_many(added)
        except SessionClosedError:
            # Somebody has ended the session, and the conversation in the host goes on.
            number += 1
            name = f"{turns[0].session}#{number}"
        else:
            return sum(one.sequence > info.counts.last_sequence for one in stored)
