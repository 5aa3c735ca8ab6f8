"""A background job of a tenant, as it is kept between its runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class ScheduledJob:
    """A background job of a tenant. There is one row for each job that has ever run or been paused.

    due: the instant from which it is to run again; "" at once
    holder: the process that runs it, "" for none
    held_until: the instant at which another process may take it over
    token: fencing token, greater with each time that it is taken
    cursor: how far it has come, in words of its own; "" at the start
    done: how many things the last run has worked on
    error: the type of the error that ended the last run, "" for none
    ran_at: the instant at which the last run ended, None before the first
    """

    tenant: str
    name: str
    due: str = ""
    holder: str = ""
    held_until: str = ""
    token: int = 0
    cursor: str = ""
    done: int = 0
    error: str = ""
    ran_at: str | None = None
    paused: bool = False
