"""A lease: exclusive, held for a while, known by a fencing token.

One mechanism stands behind the leases of RFC-0003, a task's lease, a coordinator's authority and
the claims of shared memory: they differ in what they are over, not in how they work.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec


class LeaseKind(StrEnum):
    """What a lease is over; says what `place` and `name` mean.

    INTENT: place is an intent, name a scope within it
    TASK: place is an intent, name one of its tasks
    COORDINATOR: place is an intent, name is empty
    CLAIM: place is a scope of shared memory, name a key in it
    """

    INTENT = "intent"
    TASK = "task"
    COORDINATOR = "coordinator"
    CLAIM = "claim"


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody holds until `expires_at`; whoever comes after gets a greater `token`.

    token: from a counter of the tenant that never goes back; 0 before it is taken
    purpose: what for, in the holder's words
    """

    tenant: str
    id: str
    token: int = 0
    kind: LeaseKind
    place: str
    name: str
    holder: str
    purpose: str | None = None
    acquired_at: str
    renewed_at: str
    expires_at: str

    def is_live(self, now: str) -> bool:
        """Whether it still holds at `now`."""
        return now < self.expires_at
