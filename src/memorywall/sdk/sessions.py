"""`client.sessions`: conversations, as request generators."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from memorywall.sdk import retry
from memorywall.sdk.effects import RequestGenerator
from memorywall.sdk.fields import duration, with_durations
from memorywall.sdk.filters import instant, without_absent
from memorywall.sdk.retry import call
from memorywall.sdk.session import DURATIONS, Duration
from memorywall.sdk.values import checked_objects
from memorywall.wire.sessions import (
    MatchResponse,
    SessionListResponse,
    SessionResponse,
)

_PARTICIPANT = '{"agent_id": "bob", "access": "read"}'


class SessionsCore:
    """The operations on sessions, as request generators."""

    def create(
        self,
        subject: str | None = None,
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
        reuse: bool = False,
    ) -> RequestGenerator[SessionResponse]:
        """Creates a session, which belongs to this client's agent.

        subject: the person that the session is held with; default: nobody
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
        continues: the id of the session of the same subject that it continues, with whose summary
            it begins; default: none
        with_state: whether it also begins with the state of that session; default: false
        reuse: whether the agent's newest open session with the subject is returned instead, as it
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
                "subject": subject,
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
        subject: str | None = None,
        agent: str | None = None,
        participating: bool = False,
        metadata: Mapping[str, str | float] | None = None,
        before: str | None = None,
        limit: int | None = None,
    ) -> RequestGenerator[SessionListResponse]:
        """Returns a page of sessions, newest first.

        status: only sessions with this status; `open` stands for `active` and `checkpointed`
        subject: only sessions with this person
        agent: the agent of the sessions; default: this client's own
        participating: whether the sessions of other agents are listed in which this client's agent
            participates; default: false
        metadata: only sessions with these values; default: any
        before: `next` of the page before; default: the first page
        limit: the most sessions of the page; default: 50
        """
        query = {
            "status": status,
            "subject": subject,
            "agent_id": agent,
            "participating": participating or None,
            "metadata": None if metadata is None else msgspec.json.encode(metadata).decode(),
            "before": before,
            "limit": limit,
        }
        return call("list_sessions", SessionListResponse, query=query)

    def match(self, text: str, subject: str | None = None) -> RequestGenerator[MatchResponse]:
        """Finds the session of a person that a new text continues; `session_id` of the result is
        None if it continues none of them.

        subject: the person; default: that of a client made by `for_user`
        Raises RequestError.
        """
        body = without_absent({"text": text, "subject": subject})
        return call("match_session", MatchResponse, body=body)

    def delete(self, session_id: str) -> RequestGenerator[None]:
        """Deletes a session with its turns, summaries and checkpoints."""
        return retry.remove("delete_session", session_id=session_id)
