"""What a history can break, by name."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Breach(StrEnum):
    """Each is something an honest server never shows, however its clients are timed."""

    TORN_READ = "parts of two writes in one value"
    UNWRITTEN_VALUE = "a value that nobody sent"
    MISPLACED_VALUE = "a value at another version or entry than it was written for"
    WRONG_REPLY = "a write was answered with what another one wrote"
    REFUSED_TOOK_EFFECT = "the value of a refused write was stored"
    APPLIED_TWICE = "one write made two versions"
    READ_FROM_FUTURE = "a value was read before it was sent"
    DUPLICATE_VERSION = "one version with two values"
    LOST_UPDATE = "two writes were acknowledged for one and the same version"
    VERSION_GAP = "a version that no acknowledged or unanswered write explains"
    LOST_WRITE = "an acknowledged or seen state was there no more"
    STALE_READ = "an old state was shown after a newer one was"
    WRITE_OUT_OF_ORDER = "a write was sent only after a later version was there"
    DUPLICATE_ENTRY = "two entries of one name at a time"
    DELETED_TWICE = "two deletions of one entry were acknowledged"
    HIDDEN_ENTRY = "an entry was there all the time and was not found"
    REFUSED_WITHOUT_REASON = "a write of the current version was refused for its version"

    OVERLAPPING_CLAIMS = "two holds of one claim at a time"
    DUPLICATE_TOKEN = "two holds with one fencing token"
    TOKEN_WENT_BACK = "a later hold with a smaller fencing token"
    CLAIM_FROM_NOWHERE = "a hold was shown that nobody took"
    STALE_CLAIM_SHOWN = "a hold was shown that was over"
    CLAIM_LOST = "the holder was refused while its hold lasted"
    LAPSED_CLAIM_RENEWED = "a hold was renewed that was over"
    STALE_TOKEN_WRITE = "a write under a token after a greater one was there"
    LAPSED_TOKEN_WRITE = "a write under a token whose hold was over"
    FOREIGN_TOKEN_WRITE = "a write under a token of somebody else"
    UNFENCED_WRITE = "a write without a token while the key was claimed"
    TOKENS_DECREASE = "a later version written under a smaller token"


@dataclass(frozen=True, slots=True)
class Violation:
    """One breach, and where."""

    breach: Breach
    key: str
    detail: str

    def __str__(self) -> str:
        return f"{self.breach.name} at {self.key}: {self.breach} ({self.detail})"


def report(violations: list[Violation], most: int = 10) -> str:
    """The first violations, one a line, for the message of a failing test."""
    lines = [f"{len(violations)} violations"]
    return "\n  ".join(lines + [str(violation) for violation in violations[:most]])
