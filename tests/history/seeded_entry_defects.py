"""Bugs of a store, each planted into an honest history as the one thing that is wrong with it.

A plant looks for a place where it fits, changes what some client saw there, and returns the name
of the entry it touched; empty if this history has no such place.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator

import msgspec

from tests.history.anomalies import Breach
from tests.history.record import NEVER, History, Kind, Operation, Outcome, Seen
from tests.history.values import EntryReply, make_value, seen_in, tag_of

Plant = Callable[[History, random.Random], str]

ENTRY_PLANTS: list[tuple[Breach, Plant]] = []
PLANTED = "planted"


def _plants(breach: Breach) -> Callable[[Plant], Plant]:
    def keep(plant: Plant) -> Plant:
        ENTRY_PLANTS.append((breach, plant))
        return plant

    return keep


def _shuffled(history: History, chance: random.Random) -> list[Operation]:
    # Entries under claims are the business of the other plants.
    operations = [operation for operation in history.entries if operation.key.startswith("name")]
    chance.shuffle(operations)
    return operations


def _written(history: History, chance: random.Random) -> Iterator[tuple[Operation, Seen]]:
    """Acknowledged updates and what they made."""
    for operation in _shuffled(history, chance):
        if operation.kind is Kind.UPDATE and operation.outcome is Outcome.OK:
            assert operation.seen is not None
            yield operation, operation.seen


def _read(history: History, chance: random.Random) -> Iterator[tuple[Operation, Seen]]:
    """Reads that showed an entry."""
    for operation in _shuffled(history, chance):
        if operation.kind is Kind.READ and operation.seen is not None:
            yield operation, operation.seen


def _final(history: History, key: str) -> Operation:
    return max(
        (operation for operation in history.entries if operation.key == key),
        key=lambda operation: operation.invoked,
    )


def _showing(history: History, entry: str, version: int) -> list[Operation]:
    """All operations that were shown a version."""
    return [
        operation
        for operation in history.entries
        if operation.seen is not None
        and (operation.seen.entry, operation.seen.version) == (entry, version)
    ]


def _shown(history: History, entry: str, version: int) -> Seen | None:
    showing = _showing(history, entry, version)
    return showing[0].seen if showing else None


def _add(history: History, model: Operation, **changes: object) -> Operation:
    """One more operation, like another one but for some fields."""
    added = copy.copy(model)
    added.process = 8_888
    for name, content in changes.items():
        setattr(added, name, content)
    history.entries.append(added)
    return added


@_plants(Breach.LOST_UPDATE)
def two_writers_replace_one_version(history: History, chance: random.Random) -> str:
    for write, made in _written(history, chance):
        _add(history, write, mark=PLANTED, seen=Seen(made.entry, made.version, PLANTED))
        return write.key
    return ""


@_plants(Breach.LOST_UPDATE)
def a_version_is_forgotten_by_a_kill_and_written_again(
    history: History, chance: random.Random
) -> str:
    for write, made in _written(history, chance):
        _add(
            history,
            write,
            mark=PLANTED,
            seen=Seen(made.entry, made.version, PLANTED),
            invoked=write.returned + 10,
            returned=write.returned + 20,
        )
        return write.key
    return ""


@_plants(Breach.LOST_UPDATE)
def a_deletion_and_a_change_of_one_version_both_succeed(
    history: History, chance: random.Random
) -> str:
    for write, _ in _written(history, chance):
        _add(history, write, kind=Kind.DELETE, mark="", seen=None)
        return write.key
    return ""


@_plants(Breach.LOST_WRITE)
def the_last_acknowledged_version_is_lost_by_a_kill(history: History, chance: random.Random) -> str:
    for write, made in _written(history, chance):
        final = _final(history, write.key)
        before = _shown(history, made.entry, made.version - 1)
        if final.seen != made or before is None:
            continue
        for operation in _showing(history, made.entry, made.version):
            if operation not in (write, final):
                history.entries.remove(operation)
        final.seen = before
        return write.key
    return ""


@_plants(Breach.LOST_WRITE)
def an_entry_is_gone_that_nobody_deleted(history: History, chance: random.Random) -> str:
    for operation, seen in _read(history, chance):
        alive = _final(history, operation.key).seen
        about = [other for other in history.entries if other.entry == seen.entry]
        if alive is None or alive.entry != seen.entry or not operation.entry:
            continue
        if not any(other.kind is Kind.DELETE for other in about):
            operation.seen, operation.absent = None, True
            return operation.key
    return ""


@_plants(Breach.LOST_WRITE)
def a_deleted_entry_comes_back(history: History, chance: random.Random) -> str:
    for deletion in _shuffled(history, chance):
        if deletion.kind is not Kind.DELETE or deletion.outcome is not Outcome.OK:
            continue
        final = _final(history, deletion.key)
        assert deletion.sent_version is not None
        before = _shown(history, deletion.entry, deletion.sent_version)
        later = [
            operation
            for operation in history.entries
            if operation.key == deletion.key and operation.invoked > deletion.returned
        ]
        # The last entry of its name, after which nobody was told that it is not there.
        if before is None or any(other.seen for other in later if other is not final):
            continue
        if final.seen is None:
            for other in later:
                history.entries.remove(other)
            history.entries.append(final)
            final.seen, final.absent = before, False
            return deletion.key
    return ""


@_plants(Breach.VERSION_GAP)
def a_version_is_left_out(history: History, chance: random.Random) -> str:
    for write, made in _written(history, chance):
        follower = _shown(history, made.entry, made.version + 1)
        doubtful = [
            operation
            for operation in history.entries
            if operation.outcome is Outcome.UNKNOWN
            and (operation.entry, operation.sent_version) == (made.entry, made.version - 1)
        ]
        if follower is None or doubtful:
            continue
        for operation in _showing(history, made.entry, made.version):
            history.entries.remove(operation)
        return write.key
    return ""


@_plants(Breach.DUPLICATE_VERSION)
def a_version_is_read_with_two_values(history: History, chance: random.Random) -> str:
    for write, made in _written(history, chance):
        readers = [
            operation
            for operation in _showing(history, made.entry, made.version)
            if operation.kind is Kind.READ
        ]
        if not readers:
            continue
        _add(history, write, mark=PLANTED, seen=None, outcome=Outcome.UNKNOWN, returned=NEVER)
        chance.choice(readers).seen = Seen(made.entry, made.version, PLANTED)
        return write.key
    return ""


@_plants(Breach.STALE_READ)
def a_read_comes_out_of_an_old_snapshot(history: History, chance: random.Random) -> str:
    for write, made in _written(history, chance):
        before = _shown(history, made.entry, made.version - 1)
        alive = _final(history, write.key).seen
        if before is None or alive is None or alive.entry != made.entry:
            continue
        _add(
            history,
            write,
            kind=Kind.READ,
            mark="",
            sent_version=None,
            seen=before,
            invoked=write.returned + 1,
            returned=write.returned + 2,
        )
        return write.key
    return ""


def _tear(history: History, chance: random.Random, tear: Callable[[EntryReply], None]) -> str:
    """Shows a reader what the server sends when it mixes two writes."""
    for operation, seen in _read(history, chance):
        value = make_value(seen.mark)
        reply = EntryReply(
            seen.entry, seen.version, [tag_of(seen.mark)], msgspec.Raw(msgspec.json.encode(value))
        )
        assert seen_in(reply) == seen
        tear(reply)
        operation.seen = seen_in(reply)
        return operation.key
    return ""


@_plants(Breach.TORN_READ)
def a_value_has_pieces_of_two_writes(history: History, chance: random.Random) -> str:
    def mix(reply: EntryReply) -> None:
        value = msgspec.json.decode(reply.value)
        value["pieces"][2:] = make_value("other")["pieces"][2:]
        reply.value = msgspec.Raw(msgspec.json.encode(value))

    return _tear(history, chance, mix)


@_plants(Breach.TORN_READ)
def a_value_is_cut_short(history: History, chance: random.Random) -> str:
    def cut(reply: EntryReply) -> None:
        value = msgspec.json.decode(reply.value)
        value["pieces"][3] = value["pieces"][3][:-1]
        reply.value = msgspec.Raw(msgspec.json.encode(value))

    return _tear(history, chance, cut)


@_plants(Breach.TORN_READ)
def the_tags_are_of_another_write(history: History, chance: random.Random) -> str:
    def retag(reply: EntryReply) -> None:
        reply.tags = ["t64"]

    return _tear(history, chance, retag)


@_plants(Breach.UNWRITTEN_VALUE)
def a_value_comes_from_nowhere(history: History, chance: random.Random) -> str:
    for operation, seen in _read(history, chance):
        operation.seen = Seen(seen.entry, seen.version, PLANTED)
        return operation.key
    return ""


@_plants(Breach.MISPLACED_VALUE)
def a_value_is_read_under_another_name(history: History, chance: random.Random) -> str:
    for operation, seen in _read(history, chance):
        for other, elsewhere in _read(history, chance):
            if other.key != operation.key and elsewhere.version == seen.version:
                operation.seen = Seen(seen.entry, seen.version, elsewhere.mark)
                return operation.key
    return ""


@_plants(Breach.WRONG_REPLY)
def a_write_is_answered_with_another_one(history: History, chance: random.Random) -> str:
    for write, made in _written(history, chance):
        before = _shown(history, made.entry, made.version - 1)
        if before is not None:
            write.seen = Seen(made.entry, made.version, before.mark)
            return write.key
    return ""


@_plants(Breach.REFUSED_TOOK_EFFECT)
def a_refused_write_is_stored(history: History, chance: random.Random) -> str:
    for refused in _shuffled(history, chance):
        if refused.reason != "VERSION_MISMATCH" or not refused.mark:
            continue
        assert refused.sent_version is not None
        for operation in _showing(history, refused.entry, refused.sent_version + 1):
            if operation.kind is Kind.READ and operation.returned > refused.invoked:
                operation.seen = Seen(refused.entry, refused.sent_version + 1, refused.mark)
                return refused.key
    return ""


@_plants(Breach.APPLIED_TWICE)
def an_unanswered_write_is_done_twice(history: History, chance: random.Random) -> str:
    for write, made in _written(history, chance):
        readers = [
            operation
            for operation in _showing(history, made.entry, made.version)
            if operation is not write
        ]
        followers = _showing(history, made.entry, made.version + 1)
        if not readers or len(followers) < 2:
            continue
        write.outcome, write.returned, write.seen = Outcome.UNKNOWN, NEVER, None
        for operation in followers:
            if operation.kind is Kind.UPDATE and operation.outcome is Outcome.OK:
                history.entries.remove(operation)
            operation.seen = Seen(made.entry, made.version + 1, made.mark)
        return write.key
    return ""


@_plants(Breach.READ_FROM_FUTURE)
def a_value_is_read_before_it_is_sent(history: History, chance: random.Random) -> str:
    for write, made in _written(history, chance):
        for operation in _showing(history, made.entry, made.version):
            if operation.kind is Kind.READ and write.invoked > 3:
                operation.invoked, operation.returned = write.invoked - 3, write.invoked - 1
                return write.key
    return ""


@_plants(Breach.REFUSED_WITHOUT_REASON)
def the_current_version_is_refused(history: History, chance: random.Random) -> str:
    for operation in _shuffled(history, chance):
        if operation.reason == "VERSION_MISMATCH":
            assert operation.seen is not None
            operation.sent_version = operation.seen.version
            return operation.key
    return ""


@_plants(Breach.WRITE_OUT_OF_ORDER)
def a_write_lands_behind_its_successor(history: History, chance: random.Random) -> str:
    for write, made in _written(history, chance):
        followers = _showing(history, made.entry, made.version + 1)
        if followers:
            latest = min(operation.returned for operation in followers)
            write.invoked, write.returned = latest + 1, latest + 5
            return write.key
    return ""


@_plants(Breach.DUPLICATE_ENTRY)
def a_name_is_given_to_two_entries(history: History, chance: random.Random) -> str:
    for write, _ in _written(history, chance):
        _add(
            history,
            write,
            kind=Kind.CREATE,
            entry="",
            sent_version=None,
            mark=PLANTED,
            seen=Seen("mem_twin", 1, PLANTED),
            invoked=write.invoked - 3,
            returned=write.invoked - 1,
        )
        return write.key
    return ""


@_plants(Breach.DELETED_TWICE)
def an_entry_is_deleted_twice(history: History, chance: random.Random) -> str:
    for operation in _shuffled(history, chance):
        if operation.kind is Kind.DELETE and operation.outcome is Outcome.OK:
            _add(history, operation)
            return operation.key
    return ""


@_plants(Breach.HIDDEN_ENTRY)
def an_entry_is_not_found_by_its_name(history: History, chance: random.Random) -> str:
    for operation, _ in _read(history, chance):
        final = _final(history, operation.key)
        perhaps_deleted = any(
            other.kind is Kind.DELETE and other.outcome is Outcome.UNKNOWN
            for other in history.entries
            if other.key == operation.key
        )
        if final.seen is not None and not perhaps_deleted:
            final.seen, final.absent = None, True
            return operation.key
    return ""
