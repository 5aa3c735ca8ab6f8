"""The two ways to score agree, and what they score stays as it was counted."""

from __future__ import annotations

import random
from array import array
from collections import Counter, defaultdict
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memorywall.recall import numpy_scoring, python_scoring
from memorywall.recall.analyzer import Analyzer
from memorywall.recall.candidates import (
    DatePart,
    QueryTerm,
    ScoreNormalizer,
    ScoringQuery,
    Variant,
)
from memorywall.recall.dates import dates_told, parts_of
from memorywall.recall.document import Standing, read
from memorywall.recall.facet_lists import FacetLists
from memorywall.recall.index_shard import IndexShard
from memorywall.recall.inverted_index import COUNT_BITS
from memorywall.recall.links import NOTHING
from memorywall.recall.parsed_query import ParsedQuery, ShardQuery
from memorywall.recall.prior import Prior
from memorywall.recall.ranking import rank
from memorywall.recall.segment_columns import Lists
from memorywall.recall.stored_vectors import encode
from memorywall.recall.vectors import Vectors
from memorywall.recall.weights import DEFAULT_WEIGHTS
from memorywall.records.entry import Entry, Provenance, Scope
from memorywall.records.tier import Tier
from tests.support.embedder import DIMENSIONS, WordEmbedder

TERMS = Analyzer()
WORDS = ["kitten", "window", "sofa", "tree", "the", "budget", "ada", "refund"]
EMBEDDER = WordEmbedder()
_AUTHORS = ("ada0", "ada1", "ada2", "assistant")
_STANDINGS = (1.0, DEFAULT_WEIGHTS.question, DEFAULT_WEIGHTS.assistant)


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
        value=b'{"text": "%s", "author": "%s"}' % (text.encode(), _AUTHORS[number % 4].encode()),
        size=10,
        scope=Scope(session_id=session),
        tags=("sofa",) if number % 7 == 0 else (),
        version=version,
        created_at=f"2026-02-{day:02}T00:00:00.000Z",
        updated_at=f"2026-02-{day:02}T00:00:00.000Z",
        created_by="a",
        provenance=Provenance(principal="a", kind="agent"),
    )


def empty() -> IndexShard:
    """A slice with recall for vectors."""
    shard = IndexShard("a", 0, DEFAULT_WEIGHTS)
    shard.vectors = Vectors(shard.links, DIMENSIONS, DEFAULT_WEIGHTS)
    return shard


def put(shard: IndexShard, entry: Entry, *, vector: bool = True) -> None:
    """Puts an entry and, where wanted, its vector."""
    document, text = read(entry)
    shard.put(document, text, TERMS)
    if vector:
        (row,) = EMBEDDER.embed([text.meaning])
        shard.put_vector(entry.id, encode(row[None, :])[0])


def some_slice(chance: random.Random) -> IndexShard:
    """A slice with a history: written, changed, moved and deleted."""
    shard = empty()
    held: dict[int, Entry] = {}
    for number in range(chance.randint(1, 120)):
        text = " ".join(chance.choices(WORDS, k=chance.randint(0, 9)))
        asks = "?" if chance.random() < 0.2 else ""
        tier = chance.choice([Tier.SESSION, Tier.SESSION, Tier.SEMANTIC])
        held[number] = entry_of(number, text + asks, tier, chance.choice("xy"))
        put(shard, held[number], vector=chance.random() < 0.8)
        if chance.random() < 0.2:
            gone = chance.choice(list(held))
            shard.drop(held.pop(gone).id)
        if held and chance.random() < 0.2:
            old = chance.choice(list(held))
            held[old] = entry_of(old, chance.choice(WORDS), tier, chance.choice("xy"), 2)
            put(shard, held[old])
    assert shard.vectors is not None
    shard.vectors.settle()
    return shard


def mask_of(shard: IndexShard, chance: random.Random) -> bytearray:
    return bytearray(int(alive and chance.random() < 0.6) for alive in shard.alive)


@pytest.mark.parametrize("seed", range(60))
def test_both_ways_to_score_say_the_same(seed: int) -> None:
    print("seed", seed)
    chance = random.Random(seed)
    shard = some_slice(chance)
    readable: bytearray | None = mask_of(shard, chance)
    if seed % 3 == 0:
        readable = None if shard.is_whole else shard.alive
    elif seed % 3 == 1 and readable is not None:
        shard = shard.among(readable)
    wanted = readable
    if seed % 2:
        base = readable or shard.alive
        wanted = bytearray(int(may and chance.random() < 0.7) for may in base)
    terms = [
        QueryTerm(
            TERMS.of_word(word),
            chance.uniform(0.1, 5),
            tuple(
                Variant(TERMS.of_word(other), chance.uniform(0.1, 1))
                for other in chance.choices([*WORDS, "key", "nowhere"], k=chance.randint(0, 2))
            ),
        )
        for word in dict.fromkeys([*chance.choices(WORDS, k=3), "key", "absent"])
        if TERMS.of_word(word)
    ]
    dates = [DatePart(("month", 2), 0.3), DatePart(("day", 3), 1.5)] if seed % 5 == 0 else []
    total = shard.words.total_of(readable)
    size = sum(shard.alive if readable is None else readable)
    for number in range(0, len(shard.standings), 2):
        shard.standings[number] = Standing.ASSISTANT
    assistant = _STANDINGS[Standing.ASSISTANT] if seed % 4 else 1.0
    asked = ScoringQuery(terms, dates, total / size if size else 0.0, None, assistant)
    plain = python_scoring.score(shard, asked, readable, wanted)
    quick = numpy_scoring.score(shard, asked, readable, wanted)
    assert quick.best_lexical == pytest.approx(plain.best_lexical, abs=1e-4)
    shares = ScoreNormalizer(
        1 / plain.best_lexical if plain.best_lexical else 0.0,
        0.0,
        chance.choice([None, 0]),
        _STANDINGS,
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


def test_entry_without_words_is_found_by_its_name() -> None:
    shard = empty()
    put(shard, entry_of(1, ""))
    asked = ScoringQuery([QueryTerm(TERMS.of_word("key"), 1.0)], [], 0.0, None)
    for way in (python_scoring, numpy_scoring):
        (found,) = way.score(shard, asked, None, None).candidates(
            ScoreNormalizer(1.0, 0.0, None, _STANDINGS), 10
        )
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
def test_lengths_links_and_vectors_equal_a_recount(steps: Any, chosen: int) -> None:
    shard = empty()
    held: dict[int, Entry] = {}
    for step, (kind, number, session, words) in enumerate(steps):
        if kind == "drop":
            shard.drop(f"mem_{number:05}")
            held.pop(number, None)
            continue
        tier = Tier.SESSION if session else Tier.SEMANTIC
        held[number] = entry_of(number, " ".join(words), tier, session or "z", step + 1)
        put(shard, held[number])
    assert shard.vectors is not None
    shard.vectors.settle()
    check(shard, list(held.values()))
    # The same for those of them that may be read.
    some = [one for number, one in held.items() if chosen >> number & 1]
    readable = bytearray(len(shard.documents))
    for entry in some:
        number = shard.number(entry.id)
        assert number is not None
        readable[number] = 1
    check(shard.among(readable), some, readable)
    # And what was put anew in the order of ids is no other than what grew.
    anew = empty()
    for _, entry in sorted(held.items()):
        put(anew, entry)
    assert_same(shard, anew)


def test_a_date_and_its_parts_have_the_documents_of_that_day() -> None:
    chance, said = random.Random(5), ["kitten", "yesterday, kitten", "kitten this month"]
    shard, expected = empty(), defaultdict[Any, set[int]](set)
    for number in range(150):
        day = f"{2024 + number % 3}-{1 + number % 12:02}-{chance.randrange(1, 29):02}"
        entry = entry_of(number, chance.choice(said))
        put(shard, msgspec.structs.replace(entry, created_at=f"{day}T00:00:00.000Z"))
        document = shard.documents[number]
        assert document is not None
        for place in {*parts_of(document.day), *dates_told(read(entry)[1].own, document.day)}:
            expected[place].add(number)
    absorbed = FacetLists()
    absorbed.absorb(Lists.of(shard.places.lists))
    shard.drop("mem_00007")
    readable = mask_of(shard, chance)
    kinds = {"date": range(738_885, 739_983), "year": range(2023, 2028), "month": range(14)}
    for kind, values in {**kinds, "day": range(33), "weekday": range(8)}.items():
        for value in values:
            there, place = expected[kind, value], (kind, value)
            assert sorted(shard.at(place)) == sorted(absorbed.at(place)) == sorted(there), place
            assert shard.frequency(place, shard.alive) == len(there - {7})
            assert shard.frequency(place, readable) == sum(readable[one] for one in there)


def check(shard: IndexShard, held: list[Entry], readable: bytearray | None = None) -> None:
    """Every count against one made of the entries alone."""
    if readable is None:
        assert len(shard) == len(held)
        assert sum(shard.alive) == len(held)
    threads: dict[Any, list[Entry]] = {}
    for entry in sorted(held, key=lambda one: one.id):
        threads.setdefault(read(entry)[0].thread or entry.id, []).append(entry)
    total = 0
    counts: Counter[str] = Counter()
    for thread in threads.values():
        lengths = [TERMS.of(read(one)[1].own)[1] for one in thread]
        for place, entry in enumerate(thread):
            number = shard.number(entry.id)
            assert number is not None
            near = range(max(0, place - 1), min(len(thread), place + 2))
            numbers = {at: shard.number(thread[at].id) for at in near}
            assert shard.links.previous[number] == numbers.get(place - 1, NOTHING)
            assert shard.links.next[number] == numbers.get(place + 1, NOTHING)
            length = sum(lengths[at] for at in near)
            assert shard.words.lengths[number] == length
            total += length
            counts.update(set(TERMS.of(read(entry)[1].own)[0]))
            assert_meaning(shard, number, thread, place)
    assert shard.words.total_of(readable) == total
    for term in map(TERMS.of_word, WORDS):
        if term:
            alive = shard.alive if readable is None else readable
            assert shard.words.frequency(term, alive) == counts[term]


def assert_meaning(shard: IndexShard, number: int, thread: list[Entry], place: int) -> None:
    """A document is as like a query as the sum of the vectors in its thread is."""
    assert shard.vectors is not None
    rows = EMBEDDER.embed([read(one)[1].meaning for one in thread])
    near = rows[place].copy()
    if place:
        near += DEFAULT_WEIGHTS.vector_previous * rows[place - 1]
    if place + 1 < len(thread):
        near += DEFAULT_WEIGHTS.vector_next * rows[place + 1]
    length = float(np.linalg.norm(near)) if np.any(rows[place]) else 0.0
    (query,) = EMBEDDER.embed(["kitten by the window"])
    expected = float(near @ query) / length if length else 0.0
    readable = np.frombuffer(shard.alive, np.bool_)
    found = shard.vectors.similarities(query, readable)
    # A byte for each dimension is a little coarse.
    assert found[number] == pytest.approx(expected, abs=0.03)


def assert_same(one: IndexShard, other: IndexShard) -> None:
    """Two slices hold the same, whatever the numbers of their documents are."""

    def told(shard: IndexShard) -> Any:
        def name(number: int) -> str | None:
            document = None if number == NOTHING else shard.documents[number]
            return None if document is None else document.entry_id

        postings: dict[str, set[tuple[str | None, int]]] = {}
        for term, packed in shard.words.own.items():
            for posting in packed:
                number, count = posting >> COUNT_BITS, posting & (1 << COUNT_BITS) - 1
                if shard.alive[number]:
                    postings.setdefault(term, set()).add((name(number), count))
        rows = {}
        for number, document in enumerate(shard.documents):
            if document is not None:
                links = shard.links
                rows[document.entry_id] = (
                    document,
                    name(links.previous[number]),
                    name(links.next[number]),
                    shard.words.lengths[number],
                )
        return rows, postings, shard.words.total, sorted(shard.missing)

    assert told(one) == told(other)


def test_a_word_that_is_said_often_is_counted_as_far_as_there_is_room() -> None:
    shard = empty()
    put(shard, entry_of(1, "kitten " * 1_000))
    postings: array[int] = shard.words.own[TERMS.of_word("kitten")]
    assert [posting & (1 << COUNT_BITS) - 1 for posting in postings] == [(1 << COUNT_BITS) - 1]
    asked = ScoringQuery([QueryTerm(TERMS.of_word("kitten"), 1.0)], [], 1_000.0, None)
    for way in (python_scoring, numpy_scoring):
        (found,) = way.score(shard, asked, None, None).candidates(
            ScoreNormalizer(1.0, 0.0, None, _STANDINGS), 10
        )
        assert found.lexical > 1


def test_meaning_weighs_more_where_most_readable_documents_are_programs() -> None:
    shard = empty()
    texts = ["kitten window", "sofa", *["for (i = 0; i < n; i++) { kitten(); }"] * 3]
    for number, text in enumerate(texts):
        put(shard, entry_of(number, text, Tier.SEMANTIC))
    assert shard.vectors is not None
    shard.vectors.settle()
    parsed = ParsedQuery(
        terms=(("kitten", TERMS.of_word("kitten")),), vector=EMBEDDER.embed(["kitten"])[0]
    )

    def highest(readable: bytearray | None, *, is_weighted: bool = False) -> float:
        part = ShardQuery(shard=shard, readable=readable, wanted=None)
        ranked = rank(
            [part],
            replace(parsed, is_weighted=is_weighted),
            Prior(0, DEFAULT_WEIGHTS),
            numpy_scoring.score,
            DEFAULT_WEIGHTS,
            TERMS,
        )
        return max(one.candidate.dense for one in ranked)

    prose = parsed.dense / (1 + parsed.dense)
    dense = parsed.dense * DEFAULT_WEIGHTS.code
    code = dense / (1 + dense)
    assert highest(None) == pytest.approx(code)
    # Programs that may not be read change nothing.
    assert highest(bytearray([1, 1, 1, 0, 0])) == pytest.approx(prose)
    assert highest(bytearray([1, 1, 1, 1, 1])) == pytest.approx(code)
    # A weight that the caller has chosen stays.
    assert highest(None, is_weighted=True) == pytest.approx(prose)
    for number in (2, 3):
        shard.drop(entry_of(number, "").id)
    shard.vectors.settle()
    assert highest(shard.alive) == pytest.approx(prose)
