"""The result of one check."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Level(StrEnum):
    """The severity of a finding. A server works in spite of a warning."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one check.

    check: the name of the check
    text: what was found, in one line, without values and secrets
    advice: what to do; "" for nothing
    """

    check: str
    level: Level
    text: str
    advice: str = ""


def ok(check: str, text: str) -> Finding:
    """A finding that needs nothing."""
    return Finding(check=check, level=Level.OK, text=text)


def warning(check: str, text: str, advice: str) -> Finding:
    """A finding that a server tolerates."""
    return Finding(check=check, level=Level.WARNING, text=text, advice=advice)


def problem(check: str, text: str, advice: str = "") -> Finding:
    """A finding that prevents work or endangers data."""
    return Finding(check=check, level=Level.PROBLEM, text=text, advice=advice)
