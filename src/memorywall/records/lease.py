"""A lease: exclusive ownership for a limited time, identified by a fencing token.

The leases of RFC-0003, the lease on a task, the authority of a coordinator and the claim of a key
of shared state use one mechanism. They differ only in the owned resource.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec


class LeaseKind(StrEnum):
    """The resource of a lease, which defines the meaning of `parent` and `name`.

    INTENT: parent is an intent, name a scope within it
    TASK: parent is an intent, name one of its tasks
    COORDINATOR: parent is an intent, name is empty
    CLAIM: parent is a scope of shared state, name a key in it
    """

    INTENT = "intent"
    TASK = "task"
    COORDINATOR = "coordinator"
    CLAIM = "claim"


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """A lease of `holder` until `expires_at`. A later lease has a greater `token`.

    token: from a counter of the tenant that never decreases; 0 before the lease is acquired
    purpose: a text of the holder
    acquired_at, renewed_at, expires_at: instants in the stored form
    """

    tenant: str
    id: str
    token: int = 0
    kind: LeaseKind
    parent: str
    name: str
    holder: str
    purpose: str | None = None
    acquired_at: str
    renewed_at: str
    expires_at: str

    def is_live(self, now: str) -> bool:
        """Whether the lease has not expired at `now`, an instant in the stored form."""
        return now < self.expires_at
