"""The two ways to score agree, and what they score stays as it was counted."""

from __future__ import annotations

import random
from array import array
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memorywall.recall import plain_scoring, vector_scoring
from memorywall.recall.candidates import Asked, DatePart, Shares, Term
from memorywall.recall.document import read
from memorywall.recall.links import NOTHING
from memorywall.recall.slice import Slice
from memorywall.recall.terms import Terms
from memorywall.recall.vectors import Vectors
from memorywall.recall.weights import DEFAULT_WEIGHTS
from memorywall.recall.words import COUNT_BITS
from memorywall.records.entry import Entry, Provenance, Scope
from memorywall.records.tier import Tier
from tests.support.embedder import DIMENSIONS, WordEmbedder

TERMS = Terms()
WORDS = ["kitten", "window", "sofa", "tree", "the", "budget", "ada", "refund"]
EMBEDDER = WordEmbedder()


def entry_of(
    number: int, text: str, tier: Tier = Tier.SESSION, session: str = "x", version: int = 1
) -> Entry:
    """An entry, as the store would give it."""
    day = 1 + number % 28
    return Entry(
        tenant="t",
        id=f"mem_{number:05}",
        tier=tier,
        owner="a",
        agent_id="a",
        namespace="n",
        key=f"key-{number % 5}",
        value=b'{"text": "%s", "author": "ada%d"}' % (text.encode(), number % 3),
        size=10,
        scope=Scope(session_id=session),
        tags=("sofa",) if number % 7 == 0 else (),
        version=version,
        created_at=f"2026-02-{day:02}T00:00:00.000Z",
        updated_at=f"2026-02-{day:02}T00:00:00.000Z",
        created_by="a",
        provenance=Provenance(principal="a", kind="agent"),
    )


def empty() -> Slice:
    """A slice with room for vectors."""
    slice_ = Slice("a", 0, DEFAULT_WEIGHTS)
    slice_.vectors = Vectors(slice_.links, DIMENSIONS, DEFAULT_WEIGHTS)
    return slice_


def put(slice_: Slice, entry: Entry, *, vector: bool = True) -> None:
    """Puts an entry and, where wanted, its vector."""
    document, text = read(entry)
    slice_.put(document, text, TERMS)
    if vector:
        (row,) = EMBEDDER.embed([text.meaning])
        slice_.put_vector(entry.id, row.astype("<f2").tobytes())


def some_slice(chance: random.Random) -> Slice:
    """A slice with a history: written, changed, moved and deleted."""
    slice_ = empty()
    held: dict[int, Entry] = {}
    for number in range(chance.randint(1, 120)):
        text = " ".join(chance.choices(WORDS, k=chance.randint(0, 9)))
        asks = "?" if chance.random() < 0.2 else ""
        tier = chance.choice([Tier.SESSION, Tier.SESSION, Tier.SEMANTIC])
        held[number] = entry_of(number, text + asks, tier, chance.choice("xy"))
        put(slice_, held[number], vector=chance.random() < 0.8)
        if chance.random() < 0.2:
            gone = chance.choice(list(held))
            slice_.drop(held.pop(gone).id)
        if held and chance.random() < 0.2:
            old = chance.choice(list(held))
            held[old] = entry_of(old, chance.choice(WORDS), tier, chance.choice("xy"), 2)
            put(slice_, held[old])
    assert slice_.vectors is not None
    slice_.vectors.settle()
    return slice_


def mask_of(slice_: Slice, chance: random.Random) -> bytearray:
    return bytearray(int(alive and chance.random() < 0.6) for alive in slice_.alive)


@pytest.mark.parametrize("seed", range(60))
def test_both_ways_to_score_say_the_same(seed: int) -> None:
    print("seed", seed)
    chance = random.Random(seed)
    slice_ = some_slice(chance)
    readable: bytearray | None = mask_of(slice_, chance)
    if seed % 3 == 0:
        readable = None if slice_.is_whole else slice_.alive
    elif seed % 3 == 1 and readable is not None:
        slice_ = slice_.among(readable)
    wanted = readable
    if seed % 2:
        base = readable or slice_.alive
        wanted = bytearray(int(may and chance.random() < 0.7) for may in base)
    terms = [
        Term(TERMS.of_word(word), chance.uniform(0.1, 5))
        for word in dict.fromkeys([*chance.choices(WORDS, k=3), "key", "absent"])
        if TERMS.of_word(word)
    ]
    dates = [DatePart(("month", 2), 0.3), DatePart(("day", 3), 1.5)] if seed % 5 == 0 else []
    total = slice_.words.total_of(readable)
    size = sum(slice_.alive if readable is None else readable)
    asked = Asked(terms, dates, total / size if size else 0.0, None)
    plain = plain_scoring.score(slice_, asked, readable, wanted)
    quick = vector_scoring.score(slice_, asked, readable, wanted)
    assert quick.best_lexical == pytest.approx(plain.best_lexical, abs=1e-4)
    shares = Shares(
        1 / plain.best_lexical if plain.best_lexical else 0.0, 0.0, chance.choice([None, 0])
    )
    for count in (200, 7):
        one = {found.document: found for found in plain.candidates(shares, count)}
        other = {found.document: found for found in quick.candidates(shares, count)}
        if count == 200:
            assert one.keys() == other.keys()
        # Where two are as good as equal, rounding may choose.
        best, best_too = (sorted(f.score for f in found.values()) for found in (one, other))
        assert best == pytest.approx(best_too, abs=1e-5)
        for document in one.keys() & other.keys():
            assert one[document] == pytest.approx(other[document], abs=1e-5)


def test_what_has_no_words_is_found_by_its_name_either_way() -> None:
    slice_ = empty()
    put(slice_, entry_of(1, ""))
    asked = Asked([Term(TERMS.of_word("key"), 1.0)], [], 0.0, None)
    for way in (plain_scoring, vector_scoring):
        (found,) = way.score(slice_, asked, None, None).candidates(Shares(1.0, 0.0, None), 10)
        assert found.lexical > 0


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "put", "drop"]),
        st.integers(0, 12),
        st.sampled_from(["x", "y", ""]),
        st.lists(st.sampled_from(WORDS), max_size=4),
    ),
    max_size=40,
)


@settings(max_examples=150, deadline=None)
@given(STEPS, st.integers(0, 2**13))
def test_lengths_links_and_meanings_are_what_a_recount_gives(steps: Any, chosen: int) -> None:
    slice_ = empty()
    held: dict[int, Entry] = {}
    for step, (kind, number, session, words) in enumerate(steps):
        if kind == "drop":
            slice_.drop(f"mem_{number:05}")
            held.pop(number, None)
            continue
        tier = Tier.SESSION if session else Tier.SEMANTIC
        held[number] = entry_of(number, " ".join(words), tier, session or "z", step + 1)
        put(slice_, held[number])
    assert slice_.vectors is not None
    slice_.vectors.settle()
    check(slice_, list(held.values()))
    # The same for those of them that may be read.
    some = [one for number, one in held.items() if chosen >> number & 1]
    readable = bytearray(len(slice_.documents))
    for entry in some:
        number = slice_.number(entry.id)
        assert number is not None
        readable[number] = 1
    check(slice_.among(readable), some, readable)
    # And what was put anew in the order of ids is no other than what grew.
    anew = empty()
    for _, entry in sorted(held.items()):
        put(anew, entry)
    assert_same(slice_, anew)


def check(slice_: Slice, held: list[Entry], readable: bytearray | None = None) -> None:
    """Every count against one made of the entries alone."""
    if readable is None:
        assert len(slice_) == len(held)
        assert sum(slice_.alive) == len(held)
    threads: dict[Any, list[Entry]] = {}
    for entry in sorted(held, key=lambda one: one.id):
        threads.setdefault(read(entry)[0].thread or entry.id, []).append(entry)
    total = 0
    counts: Counter[str] = Counter()
    for thread in threads.values():
        lengths = [TERMS.of(read(one)[1].own)[1] for one in thread]
        for place, entry in enumerate(thread):
            number = slice_.number(entry.id)
            assert number is not None
            near = range(max(0, place - 1), min(len(thread), place + 2))
            numbers = {at: slice_.number(thread[at].id) for at in near}
            assert slice_.links.previous[number] == numbers.get(place - 1, NOTHING)
            assert slice_.links.next[number] == numbers.get(place + 1, NOTHING)
            length = sum(lengths[at] for at in near)
            assert slice_.words.lengths[number] == length
            total += length
            counts.update(set(TERMS.of(read(entry)[1].own)[0]))
            assert_meaning(slice_, number, thread, place)
    assert slice_.words.total_of(readable) == total
    for term in map(TERMS.of_word, WORDS):
        if term:
            alive = slice_.alive if readable is None else readable
            assert slice_.words.frequency(term, alive) == counts[term]


def assert_meaning(slice_: Slice, number: int, thread: list[Entry], place: int) -> None:
    """A document is as like a query as the sum of the vectors in its thread is."""
    assert slice_.vectors is not None
    rows = EMBEDDER.embed([read(one)[1].meaning for one in thread])
    near = rows[place].copy()
    if place:
        near += DEFAULT_WEIGHTS.vector_previous * rows[place - 1]
    if place + 1 < len(thread):
        near += DEFAULT_WEIGHTS.vector_next * rows[place + 1]
    length = float(np.linalg.norm(near)) if np.any(rows[place]) else 0.0
    (query,) = EMBEDDER.embed(["kitten by the window"])
    expected = float(near @ query) / length if length else 0.0
    readable = np.frombuffer(slice_.alive, np.bool_)
    found = slice_.vectors.similarities(query, readable)
    # A byte for each dimension is a little coarse.
    assert found[number] == pytest.approx(expected, abs=0.03)


def assert_same(one: Slice, other: Slice) -> None:
    """Two slices hold the same, whatever the numbers of their documents are."""

    def told(slice_: Slice) -> Any:
        def name(number: int) -> str | None:
            document = None if number == NOTHING else slice_.documents[number]
            return None if document is None else document.entry_id

        postings: dict[str, set[tuple[str | None, int]]] = {}
        for term, packed in slice_.words.own.items():
            for posting in packed:
                number, count = posting >> COUNT_BITS, posting & (1 << COUNT_BITS) - 1
                if slice_.alive[number]:
                    postings.setdefault(term, set()).add((name(number), count))
        rows = {}
        for number, document in enumerate(slice_.documents):
            if document is not None:
                links = slice_.links
                rows[document.entry_id] = (
                    document,
                    name(links.previous[number]),
                    name(links.next[number]),
                    slice_.words.lengths[number],
                )
        return rows, postings, slice_.words.total, sorted(slice_.missing)

    assert told(one) == told(other)


def test_a_word_that_is_said_often_is_counted_as_far_as_there_is_room() -> None:
    slice_ = empty()
    put(slice_, entry_of(1, "kitten " * 1_000))
    postings: array[int] = slice_.words.own[TERMS.of_word("kitten")]
    assert [posting & (1 << COUNT_BITS) - 1 for posting in postings] == [(1 << COUNT_BITS) - 1]
    asked = Asked([Term(TERMS.of_word("kitten"), 1.0)], [], 1_000.0, None)
    for way in (plain_scoring, vector_scoring):
        (found,) = way.score(slice_, asked, None, None).candidates(Shares(1.0, 0.0, None), 10)
        assert found.lexical > 1
