"""Checks a history of claims: one holder at a time, tokens that only grow, no stale writes.

When a claim ends is the server's to say, so there are two bounds: `held_until`, up to which it
surely lasted, and `lapsed_by`, at which it was surely over. Nothing is held against the server that
happens in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tests.history.anomalies import Breach, Violation
from tests.history.evidence import describe
from tests.history.record import NEVER, ClaimOperation, History, Kind, Operation, Outcome


@dataclass(slots=True)
class Hold:
    """An acquisition that was acknowledged, and what became of it.

    sure: the stretches of time in which it was surely held
    over_by: when it was surely over
    """

    acquired: ClaimOperation
    token: int
    sure: list[tuple[int, int]] = field(default_factory=list)
    over_by: int = NEVER

    def covers(self, begun: int, ended: int) -> bool:
        """Whether it was surely held during the whole of an operation."""
        return any(start <= begun and ended <= end for start, end in self.sure)


class _Claim:
    """All that is known of one claim."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.operations: list[ClaimOperation] = []
        self.writes: list[Operation] = []
        self.shown: dict[str, dict[int, Operation]] = {}
        self.holds: dict[int, Hold] = {}
        self.every_hold: dict[int, Hold] = {}
        self.violations: list[Violation] = []
        self.greatest: list[tuple[int, int]] = []

    def blame(self, breach: Breach, detail: str) -> None:
        self.violations.append(Violation(breach, self.key, detail))

    def covering(self, begun: int, ended: int) -> Hold | None:
        """The hold that surely lasted during the whole of an operation."""
        for hold in self.holds.values():
            if hold.covers(begun, ended):
                return hold
        return None


def check_claims(history: History) -> list[Violation]:
    """Every violation in what clients saw of claims and of the entries that claims guard."""
    violations = _check_tokens(history.claims)
    for claim in _claims_of(history):
        _check_overlap(claim)
        _check_shown(claim)
        _check_holders(claim)
        _check_writes(claim)
        _check_versions(claim)
        violations += claim.violations
    return violations


def holds_of(history: History) -> dict[str, list[Hold]]:
    """The holds of each claim."""
    return {claim.key: list(claim.holds.values()) for claim in _claims_of(history)}


def _claims_of(history: History) -> list[_Claim]:
    claims: dict[str, _Claim] = {}
    for asked in sorted(history.claims, key=lambda operation: operation.invoked):
        claims.setdefault(asked.key, _Claim(asked.key)).operations.append(asked)
    writers = {write.mark: write for write in history.entries if write.mark}
    for operation in history.entries:
        if operation.key in claims:
            _sort_in(claims[operation.key], operation, writers)
    every: dict[int, Hold] = {}
    for claim in claims.values():
        _gather_holds(claim)
        claim.every_hold = every
        every.update(claim.holds)
    return list(claims.values())


def _sort_in(claim: _Claim, operation: Operation, writers: Mapping[str, Operation]) -> None:
    """Keeps what an operation on the guarded entry tells."""
    if operation.kind is not Kind.READ:
        claim.writes.append(operation)
    seen = operation.seen
    if seen is not None and seen.whole and seen.mark in writers:
        claim.shown.setdefault(seen.entry, {})[seen.version] = writers[seen.mark]


def _acquired(operations: Iterable[ClaimOperation]) -> list[ClaimOperation]:
    return [
        operation
        for operation in operations
        if operation.kind is Kind.ACQUIRE and operation.outcome is Outcome.OK
    ]


def _check_tokens(operations: list[ClaimOperation]) -> list[Violation]:
    """All claims of a tenant draw from one counter: unique, and growing in real time."""
    violations: list[Violation] = []
    by_token: dict[int, ClaimOperation] = {}
    acquired = _acquired(operations)
    for operation in acquired:
        token = _token(operation)
        if token in by_token:
            detail = f"{tell(by_token[token])}; {tell(operation)}"
            violations.append(Violation(Breach.DUPLICATE_TOKEN, operation.key, detail))
        by_token[token] = operation
    returned = sorted(acquired, key=lambda operation: operation.returned)
    number, greatest = 0, 0
    for operation in sorted(acquired, key=lambda operation: operation.invoked):
        while number < len(returned) and returned[number].returned < operation.invoked:
            greatest = max(greatest, _token(returned[number]))
            number += 1
        if _token(operation) < greatest:
            detail = f"{greatest} was given before {tell(operation)}"
            violations.append(Violation(Breach.TOKEN_WENT_BACK, operation.key, detail))
    return violations


def _gather_holds(claim: _Claim) -> None:
    """When each acquisition was surely held, and when it was surely over."""
    for operation in _acquired(claim.operations):
        hold = Hold(operation, _token(operation), over_by=operation.lapsed_by)
        hold.sure.append((operation.returned, operation.held_until))
        claim.holds[hold.token] = hold
        for later in claim.operations:
            if later.token != hold.token or later.kind is Kind.ACQUIRE:
                continue
            if later.outcome is Outcome.REFUSED:
                continue
            if later.kind is Kind.RELEASE:
                _cut(hold, later.invoked)
                if later.outcome is Outcome.OK:
                    hold.over_by = min(hold.over_by, later.returned)
                break
            _prolong(claim, hold, later)


def _prolong(claim: _Claim, hold: Hold, renewal: ClaimOperation) -> None:
    # A renewal may also shorten what is left.
    _cut(hold, max(renewal.invoked, renewal.held_until))
    late = renewal.invoked > hold.over_by
    if renewal.outcome is Outcome.OK:
        if late:
            claim.blame(Breach.LAPSED_CLAIM_RENEWED, tell(renewal))
        hold.sure.append((renewal.returned, renewal.held_until))
        hold.over_by = renewal.lapsed_by
    elif not late:
        hold.over_by = NEVER


def _cut(hold: Hold, moment: int) -> None:
    hold.sure = [(start, min(end, moment)) for start, end in hold.sure if start < moment]


def _check_overlap(claim: _Claim) -> None:
    stretches = sorted(
        (start, end, token)
        for token, hold in claim.holds.items()
        for start, end in hold.sure
        if start < end
    )
    # The stretches of one hold may overlap each other, so the one that reaches furthest is kept.
    furthest = (-1, -1)
    for start, end, token in stretches:
        if start < furthest[0] and token != furthest[1]:
            first, second = claim.holds[furthest[1]], claim.holds[token]
            detail = f"{tell(first.acquired)}; {tell(second.acquired)}"
            claim.blame(Breach.OVERLAPPING_CLAIMS, detail)
        furthest = max(furthest, (end, token))
    for operation in _acquired(claim.operations):
        holder = claim.covering(operation.invoked, operation.returned)
        if holder is not None and holder.token != operation.token:
            detail = f"{tell(operation)} while {tell(holder.acquired)} lasted"
            claim.blame(Breach.OVERLAPPING_CLAIMS, detail)


def _check_shown(claim: _Claim) -> None:
    """A refusal shows the hold in the way: it has a taker, and was not over already."""
    unanswered: dict[str, list[ClaimOperation]] = {}
    strangers: dict[str, set[int]] = {}
    for operation in claim.operations:
        if operation.kind is Kind.ACQUIRE and operation.outcome is Outcome.UNKNOWN:
            unanswered.setdefault(operation.agent, []).append(operation)
    for operation in claim.operations:
        token = operation.shown_token
        if token is None:
            continue
        hold = claim.holds.get(token)
        if hold is None:
            strangers.setdefault(operation.shown_holder, set()).add(token)
            taken = unanswered.get(operation.shown_holder, [])
            if not any(acquire.invoked < operation.returned for acquire in taken):
                claim.blame(Breach.CLAIM_FROM_NOWHERE, tell(operation))
        elif hold.acquired.agent != operation.shown_holder:
            claim.blame(Breach.CLAIM_FROM_NOWHERE, tell(operation))
        elif hold.over_by < operation.invoked:
            claim.blame(Breach.STALE_CLAIM_SHOWN, tell(operation))
        if _is_superseded(claim, token, operation.invoked):
            claim.blame(Breach.STALE_CLAIM_SHOWN, tell(operation))
    for agent, tokens in strangers.items():
        if len(tokens) > len(unanswered.get(agent, [])):
            detail = f"{agent} was shown to hold {sorted(tokens)}"
            claim.blame(Breach.CLAIM_FROM_NOWHERE, detail)


def _check_holders(claim: _Claim) -> None:
    """While a hold surely lasts its holder is refused nothing for it."""
    for operation in claim.operations:
        if operation.outcome is Outcome.REFUSED and operation.kind is not Kind.ACQUIRE:
            hold = claim.holds.get(operation.token or 0)
            if hold is not None and hold.covers(operation.invoked, operation.returned):
                claim.blame(Breach.CLAIM_LOST, tell(operation))
    for write in claim.writes:
        if write.reason == "FENCED":
            hold = claim.holds.get(write.token or 0)
            if hold is None or hold.acquired.agent != write.agent:
                continue
            if hold.covers(write.invoked, write.returned):
                claim.blame(Breach.CLAIM_LOST, describe(write))


def _check_writes(claim: _Claim) -> None:
    """Acknowledged writes of a guarded entry. Under the token of another claim its holder may write
    what is not claimed, as it may without one."""
    for write in claim.writes:
        if write.outcome is not Outcome.OK:
            continue
        guard = claim.covering(write.invoked, write.returned)
        if guard is not None and write.token not in claim.holds:
            detail = f"{describe(write)} while {tell(guard.acquired)} lasted"
            claim.blame(Breach.UNFENCED_WRITE, detail)
        if write.token is None:
            continue
        hold = claim.every_hold.get(write.token)
        if hold is None or hold.acquired.agent != write.agent:
            claim.blame(Breach.FOREIGN_TOKEN_WRITE, describe(write))
        elif hold.over_by < write.invoked:
            claim.blame(Breach.LAPSED_TOKEN_WRITE, describe(write))
        if write.token in claim.holds and _is_superseded(claim, write.token, write.invoked):
            claim.blame(Breach.STALE_TOKEN_WRITE, describe(write))


def _check_versions(claim: _Claim) -> None:
    """Later versions of a guarded entry, answered or only seen, have no smaller tokens."""
    for writes in claim.shown.values():
        greatest = 0
        for _, write in sorted(writes.items()):
            if write.token not in claim.holds:
                continue
            if write.token < greatest:
                claim.blame(Breach.TOKENS_DECREASE, f"{greatest} before {describe(write)}")
            greatest = max(greatest, write.token)


def _is_superseded(claim: _Claim, token: int, moment: int) -> bool:
    """Whether a greater token was there, by an answer that came before `moment`."""
    if not claim.greatest:
        claim.greatest = _greatest_by_time(claim)
    low, high = 0, len(claim.greatest)
    while low < high:
        middle = (low + high) // 2
        if claim.greatest[middle][0] < moment:
            low = middle + 1
        else:
            high = middle
    return low > 0 and claim.greatest[low - 1][1] > token


def _greatest_by_time(claim: _Claim) -> list[tuple[int, int]]:
    """The greatest token that was known to be there at each moment."""
    known = [(hold.acquired.returned, token) for token, hold in claim.holds.items()]
    known += [
        (operation.returned, operation.shown_token)
        for operation in claim.operations
        if operation.shown_token is not None
    ]
    known += [
        (write.returned, write.token)
        for write in claim.writes
        if write.outcome is Outcome.OK and write.token in claim.holds
    ]
    known.sort()
    greatest: list[tuple[int, int]] = []
    for moment, token in known:
        if not greatest or token > greatest[-1][1]:
            greatest.append((moment, token))
    return greatest


def _token(operation: ClaimOperation) -> int:
    assert operation.token is not None, "an acquisition that succeeded has a token"
    return operation.token


def tell(operation: ClaimOperation) -> str:
    """An operation in one line."""
    parts = [
        f"{operation.agent}/{operation.process} {operation.kind}",
        f"token {operation.token}" if operation.token is not None else "",
        f"shown {operation.shown_token} of {operation.shown_holder}"
        if operation.shown_token is not None
        else "",
        operation.reason or operation.outcome.value,
        f"at {operation.invoked}..{operation.returned}, held until {operation.held_until}",
    ]
    return " ".join(part for part in parts if part)
