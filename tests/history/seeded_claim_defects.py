"""Bugs of claims and fencing, each planted into an honest history, as in `entry_plants`."""

from __future__ import annotations

import copy
import itertools
import random
from collections.abc import Callable, Iterator

from tests.history.anomalies import Breach
from tests.history.claims import Hold, holds_of
from tests.history.record import ClaimOperation, History, Kind, Operation, Outcome, Seen
from tests.history.seeded_entry_defects import Plant

CLAIM_PLANTS: list[tuple[Breach, Plant]] = []
_TERM = 400


def _plants(breach: Breach) -> Callable[[Plant], Plant]:
    def keep(plant: Plant) -> Plant:
        CLAIM_PLANTS.append((breach, plant))
        return plant

    return keep


def _holds(history: History, chance: random.Random) -> Iterator[tuple[str, list[Hold]]]:
    """The holds of each claim, the earliest first: tokens tell, for requests may overtake."""
    found = list(holds_of(history).items())
    chance.shuffle(found)
    for key, holds in found:
        yield key, sorted(holds, key=lambda hold: hold.token)


def _shuffled(history: History, chance: random.Random) -> list[ClaimOperation]:
    operations = list(history.claims)
    chance.shuffle(operations)
    return operations


def _writes(history: History, chance: random.Random, hold: Hold) -> list[Operation]:
    """Acknowledged writes under a hold's token."""
    operations = [
        operation
        for operation in history.entries
        if operation.key == hold.acquired.key
        and operation.token == hold.token
        and operation.outcome is Outcome.OK
    ]
    chance.shuffle(operations)
    return operations


@_plants(Breach.OVERLAPPING_CLAIMS)
def a_claim_is_given_while_it_is_held(history: History, chance: random.Random) -> str:
    for key, holds in _holds(history, chance):
        for hold in holds:
            for start, end in hold.sure:
                if end - start < 8:
                    continue
                second = copy.copy(hold.acquired)
                second.agent, second.token = "somebody-else", 5_000
                second.invoked, second.returned = start + 1, start + 3
                second.held_until, second.lapsed_by = start + _TERM, start + 3 + _TERM
                history.claims.append(second)
                return key
    return ""


@_plants(Breach.OVERLAPPING_CLAIMS)
def a_claim_is_given_before_it_has_run_out(history: History, chance: random.Random) -> str:
    for key, holds in _holds(history, chance):
        for hold, following in itertools.pairwise(holds):
            last = max((end for _, end in hold.sure), default=0)
            gained = following.acquired
            released = any(
                operation.kind is Kind.RELEASE and operation.token == hold.token
                for operation in history.claims
            )
            if not released and last > hold.acquired.returned + 50:
                gained.invoked, gained.returned = last - 45, last - 30
                return key
    return ""


@_plants(Breach.DUPLICATE_TOKEN)
def a_token_is_given_twice(history: History, chance: random.Random) -> str:
    for key, holds in _holds(history, chance):
        if len(holds) > 1:
            first, second = chance.sample(holds, 2)
            second.acquired.token = first.token
            return key
    return ""


@_plants(Breach.TOKEN_WENT_BACK)
def the_counter_of_tokens_goes_back(history: History, chance: random.Random) -> str:
    """As it would after a kill if it were not stored with the claim."""
    for key, holds in _holds(history, chance):
        if len(holds) > 1:
            holds[-1].acquired.token = 0
            return key
    return ""


@_plants(Breach.STALE_TOKEN_WRITE)
def a_late_writer_is_let_through(history: History, chance: random.Random) -> str:
    for key, holds in _holds(history, chance):
        for hold, following in itertools.pairwise(holds):
            if following.token < hold.token:
                continue
            for write in _writes(history, chance, following):
                write.token, write.agent = hold.token, hold.acquired.agent
                return key
    return ""


@_plants(Breach.LAPSED_TOKEN_WRITE)
def a_token_outlives_its_hold(history: History, chance: random.Random) -> str:
    """Nobody has taken the claim since, so only the clock tells."""
    for write in history.entries:
        if write.reason != "FENCED" or write.token is None or write.sent_version is None:
            continue
        for key, holds in _holds(history, chance):
            for hold in holds:
                if hold.token == write.token and hold.over_by < write.invoked:
                    write.outcome, write.reason = Outcome.OK, ""
                    write.seen = Seen(write.entry, write.sent_version + 1, write.mark)
                    return key
    return ""


@_plants(Breach.FOREIGN_TOKEN_WRITE)
def a_token_serves_another_agent(history: History, chance: random.Random) -> str:
    for key, holds in _holds(history, chance):
        for hold in holds:
            for write in _writes(history, chance, hold):
                write.agent = "somebody-else"
                return key
    return ""


@_plants(Breach.UNFENCED_WRITE)
def a_write_without_token_is_let_through(history: History, chance: random.Random) -> str:
    for key, holds in _holds(history, chance):
        for hold in holds:
            for write in _writes(history, chance, hold):
                if hold.covers(write.invoked, write.returned):
                    write.token, write.agent = None, "somebody-else"
                    return key
    return ""


@_plants(Breach.CLAIM_LOST)
def a_renewal_finds_the_claim_gone(history: History, chance: random.Random) -> str:
    """As after a kill, if the claim had not been stored when it was acknowledged."""
    for key, holds in _holds(history, chance):
        for hold in holds:
            for operation in history.claims:
                until = hold.acquired.held_until
                renewed = operation.kind is Kind.RENEW and operation.outcome is Outcome.OK
                if renewed and operation.token == hold.token and operation.returned < until:
                    operation.outcome, operation.reason = Outcome.REFUSED, "FENCED"
                    return key
    return ""


@_plants(Breach.CLAIM_LOST)
def a_holder_is_fenced_off(history: History, chance: random.Random) -> str:
    for key, holds in _holds(history, chance):
        for hold in holds:
            for write in _writes(history, chance, hold):
                if hold.covers(write.invoked, write.returned):
                    write.outcome, write.reason, write.seen = Outcome.REFUSED, "FENCED", None
                    return key
    return ""


@_plants(Breach.CLAIM_FROM_NOWHERE)
def a_hold_is_shown_that_nobody_took(history: History, chance: random.Random) -> str:
    for operation in _shuffled(history, chance):
        if operation.shown_token is not None:
            operation.shown_token, operation.shown_holder = 5_000, "nobody"
            return operation.key
    return ""


@_plants(Breach.STALE_CLAIM_SHOWN)
def an_old_hold_is_shown(history: History, chance: random.Random) -> str:
    for key, holds in _holds(history, chance):
        for operation in _shuffled(history, chance):
            if operation.key != key or operation.shown_token is None:
                continue
            if len(holds) > 1 and operation.invoked > holds[1].acquired.returned:
                operation.shown_token = holds[0].token
                operation.shown_holder = holds[0].acquired.agent
                return key
    return ""


@_plants(Breach.STALE_CLAIM_SHOWN)
def a_claim_is_held_for_ever(history: History, chance: random.Random) -> str:
    """Its holder is gone, its time is over, and still nobody else gets it."""
    for key, holds in _holds(history, chance):
        last = holds[-1]
        if last.over_by < 10**9:
            refused = copy.copy(last.acquired)
            refused.agent, refused.outcome = "somebody-else", Outcome.REFUSED
            refused.reason, refused.token = "LEASE_HELD", None
            refused.shown_token, refused.shown_holder = last.token, last.acquired.agent
            refused.invoked, refused.returned = last.over_by + 1, last.over_by + 3
            history.claims.append(refused)
            return key
    return ""


@_plants(Breach.LAPSED_CLAIM_RENEWED)
def a_hold_is_renewed_that_was_over(history: History, chance: random.Random) -> str:
    for operation in _shuffled(history, chance):
        if operation.kind is not Kind.RENEW or operation.outcome is not Outcome.REFUSED:
            continue
        for key, holds in _holds(history, chance):
            for hold in holds:
                if hold.token == operation.token and hold.over_by < operation.invoked:
                    operation.outcome, operation.reason = Outcome.OK, ""
                    operation.lapsed_by = operation.returned + _TERM
                    return key
    return ""


@_plants(Breach.TOKENS_DECREASE)
def versions_are_written_out_of_turn(history: History, chance: random.Random) -> str:
    for key, holds in _holds(history, chance):
        for hold, following in itertools.pairwise(holds):
            if following.token < hold.token:
                continue
            for earlier in _writes(history, chance, hold):
                for later in _writes(history, chance, following):
                    assert earlier.seen is not None
                    assert later.seen is not None
                    if earlier.seen.entry == later.seen.entry:
                        earlier.token, later.token = later.token, earlier.token
                        return key
    return ""
