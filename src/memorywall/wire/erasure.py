"""Requests and responses of the erasure of agents and people, and their operations."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from memorywall.records.principal import Permission
from memorywall.wire.events import LONGEST_WAIT
from memorywall.wire.operation import Operation
from memorywall.wire.operation_group import OperationGroup


class ForgetQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The longest time that an erasure waits for the files."""

    wait: Annotated[
        int,
        Meta(
            ge=0,
            le=LONGEST_WAIT,
            description="Seconds to wait until the bytes of the deleted data have left the files.",
        ),
    ] = 0


class ForgetResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The counts of a subject's erasure.

    `entries` are the deleted entries by tier, `derived` how many of them were derived from other
    entries. `versions` are deleted earlier versions of entries that remain, because they are about
    others now. `events` are erased contents of events about such versions and about entries that
    were deleted or archived before. `receipt` is the id of the event that records the erasure, null
    if nothing was left to erase. `subject_digest` replaces the subject in the event. Neither
    reveals erased data. `bytes_left_in_files` tells whether bytes of what was deleted are still in
    the files, where no request finds them; they leave within `erasure_deadline`, and the same
    request, with `wait`, tells when. `in_ledger` tells whether the suppression ledger records the
    erasure, so that a restore of an older backup repeats it.
    """

    entries: dict[str, int]
    derived: int
    versions: int
    events: int
    namespaces: int
    api_keys: int
    receipt: str | None
    subject_digest: str
    bytes_left_in_files: bool
    in_ledger: bool


class ForgetAgentResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The counts of an agent's erasure.

    `entries` are the deleted entries by tier, `stored_replies` the stored responses of the agent.
    `limits` is 1 if the agent had limits of its own, `groups` the number of groups that it has
    left. `data_keys` are destroyed. `bytes_left_in_files` and `in_ledger` are as in
    `ForgetResponse`.
    """

    entries: dict[str, int]
    stored_replies: int
    limits: int
    groups: int
    api_keys: int
    data_keys: int
    bytes_left_in_files: bool
    in_ledger: bool


_ERASURE = OperationGroup(name="Erasure", write=Permission.TENANT_ADMIN, not_found=())

ERASURE_OPERATIONS: tuple[Operation, ...] = (
    _ERASURE(
        "forget_subject",
        "POST /subjects/{subject}/forget",
        "Erase everything about a person, with what was derived from it.",
        query=ForgetQuery,
        reply=ForgetResponse,
    ),
    _ERASURE(
        "forget_agent",
        "POST /agents/{agent_id}/forget",
        "Erase everything that only an agent owns, revoke its keys and destroy its data keys.",
        query=ForgetQuery,
        reply=ForgetAgentResponse,
    ),
)
