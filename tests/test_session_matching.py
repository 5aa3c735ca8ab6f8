"""Which session a text continues, over dialogues about sixty matters and forty-eight with
lookalikes; thresholds were chosen on the even ones, so that the odd ones, which are measured here,
are new to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import memorywall
from memorywall.recall.analyzer import STOPWORDS, Analyzer
from memorywall.recall.embedders import open_embedder
from memorywall.sessions.follow_ups import announces_follow_up, has_no_matter, only_open
from memorywall.sessions.known_words import find_known_terms
from memorywall.sessions.matching import (
    Choice,
    SharedWords,
    choose_by_meaning,
    choose_by_words,
    find_shared_words,
)
from memorywall.sessions.meanings import measure_meaning, prepare_comparison
from tests.support.backend import store_of
from tests.support.lookalikes import LOOKALIKES, Lookalike
from tests.support.matters import MATTERS, Matter

_INTERLEAVED = 4
_HELD_OUT = MATTERS[1::2]


class Case(NamedTuple):
    """Sessions of a person, a text, and the index of the session that it continues."""

    sessions: Sequence[Matter]
    text: str
    expected: int | None


def _cases(matters: Sequence[Matter]) -> Iterator[Case]:
    """Returns to one of several matters, and to the only one; and matters that are new."""
    number = len(matters)
    for place, matter in enumerate(matters):
        open_ones = [matters[(place + step) % number] for step in range(_INTERLEAVED)]
        new = matters[(place + _INTERLEAVED) % number]
        yield Case(open_ones, matter.later, 0)
        yield Case([matter], matter.later, 0)
        yield Case(open_ones, new.messages[0], None)
        yield Case(open_ones, new.later, None)
        yield Case([matter], new.messages[0], None)


def _measure(choose: Callable[[Case], Choice], matters: Sequence[Matter]) -> tuple[float, float]:
    """Returns the share of right joins of the continuations, and of false joins of all cases."""
    cases = list(_cases(matters))
    found = [choose(case).index for case in cases]
    continuing = [case.expected is not None for case in cases]
    right = sum(one == 0 for one, is_next in zip(found, continuing, strict=True) if is_next)
    false = sum(
        one is not None and one != case.expected for one, case in zip(found, cases, strict=True)
    )
    return right / sum(continuing), false / len(cases)


@cache
def _analyzer() -> Analyzer:
    return Analyzer()


@cache
def _terms_of(text: str) -> frozenset[str]:
    return frozenset(_analyzer().of(text)[0])


def _words(case: Case) -> list[SharedWords]:
    sessions = [_terms_of("\n".join(one.messages)) for one in case.sessions]
    known = find_known_terms(case.text, _terms_of)
    return find_shared_words(_terms_of(case.text), known, sessions)


def test_sessions_are_matched_by_words() -> None:
    right, false = _measure(lambda case: choose_by_words(_words(case)), _HELD_OUT)
    decoys = [case for kind, case in _lookalike_cases(LOOKALIKES[1::2]) if kind == "decoy"]
    joined = sum(choose_by_words(_words(case)).index is not None for case in decoys) / len(decoys)
    print(f"words: right joins {right:.3f}, false joins {false:.3f}, decoys {joined:.3f}")
    assert right >= 0.75
    assert false <= 0.02
    assert joined <= 0.3


def _lookalike_cases(dialogues: Sequence[Lookalike]) -> Iterator[tuple[str, Case]]:
    """Returns to one of several sessions, and to the only one, in other words; and decoys."""
    number = len(dialogues)
    for place, one in enumerate(dialogues):
        open_ones = [
            Matter((*dialogues[(place + step) % number].messages, ""), "")
            for step in range(_INTERLEAVED)
        ]
        for sessions in (open_ones, open_ones[:1]):
            yield "paraphrase", Case(sessions, one.later, 0)
            yield "decoy", Case(sessions, one.decoy, None)
        yield "new", Case(open_ones[1:], one.later, None)


def _by_meaning(cases: Sequence[Case]) -> list[int | None]:
    """The choices with the embedder `local`."""
    embedder = open_embedder("local")
    assert embedder is not None
    compared = [
        [
            prepare_comparison(case.text, [text for text in one.messages if text], _terms_of)
            for one in case.sessions
        ]
        for case in cases
    ]
    texts = list({text for some in compared for one in some for text in one.texts})
    rows = dict(zip(texts, embedder.embed(texts), strict=True))
    embedder.close()
    return [
        choose_by_meaning(_words(case), [measure_meaning(one, rows) for one in some]).index
        for case, some in zip(cases, compared, strict=True)
    ]


def test_sessions_are_matched_by_meaning() -> None:
    kinds, cases = list[str](), list[Case]()
    for case in _cases(_HELD_OUT[:16]):
        kinds.append("new" if case.expected is None else "same words")
        cases.append(case)
    for kind, case in _lookalike_cases(LOOKALIKES[1::2]):
        kinds.append(kind)
        cases.append(case)
    found = _by_meaning(cases)
    shares = {}
    for kind in ("same words", "paraphrase", "decoy", "new"):
        some = [(one, case) for name, one, case in zip(kinds, found, cases, strict=True)
                if name == kind]  # fmt: skip
        wanted = [one == case.expected if case.expected is not None else one is not None
                  for one, case in some]  # fmt: skip
        shares[kind] = sum(wanted) / len(some)
    false = sum(
        one is not None and one != case.expected for one, case in zip(found, cases, strict=True)
    )
    print("meaning:", {kind: round(one, 3) for kind, one in shares.items()}, false / len(cases))
    assert shares["same words"] >= 0.9
    assert shares["paraphrase"] >= 0.85
    assert shares["decoy"] <= 0.05
    assert false / len(cases) <= 0.02


_FOLLOW_UPS = (
    "thanks!", "Please continue", "ok", "Yes, go on please.", "What about it?",
    "And the other one?", "Can you explain that?", "How long does it take?", "Did it work?",
    "Great, thank you so much!", "Danke, bitte weiter", "Merci !",
)  # fmt: skip
_OPENINGS = ("Thanks! ", "Ok, ", "Please help: ", "Hello again. ")
_ANNOUNCED = (
    "Following up on the billing issue", "As promised, here is the scan",
    "Any news on my request?", "Back to our problem from yesterday",
)  # fmt: skip


def _follow_up(text: str, sessions: Sequence[Matter]) -> int | None:
    """The choice without an embedder, as the operation makes it; every session is open."""
    open_ones = [True for _ in sessions]
    if has_no_matter(text, STOPWORDS):
        return only_open(open_ones)
    choice = choose_by_words(_words(Case(sessions, text, None)))
    if choice.index is None and announces_follow_up(text):
        return only_open(open_ones, choice.scores)
    return choice.index


def test_a_text_without_a_matter_continues_the_only_open_session() -> None:
    for text in (*_FOLLOW_UPS, *_ANNOUNCED):
        assert _follow_up(text, [_HELD_OUT[0]]) == 0, text
    for text in _FOLLOW_UPS:
        assert _follow_up(text, _HELD_OUT[:4]) is None, text
        assert _follow_up(text, []) is None


def test_follow_ups_join_no_new_matter() -> None:
    cases = false = 0
    for place, matter in enumerate(_HELD_OUT):
        new = _HELD_OUT[(place + _INTERLEAVED) % len(_HELD_OUT)]
        for opening in _OPENINGS:
            for text in (new.messages[0], new.later):
                cases += 1
                false += _follow_up(opening + text, [matter]) is not None
        assert not any(has_no_matter(one, STOPWORDS) for one in (*matter.messages, matter.later))
    print(f"follow-ups: false joins {false / cases:.3f}")
    assert false / cases <= 0.02


@pytest.fixture
def place(tmp_path: Path) -> str:
    return store_of(tmp_path) or str(tmp_path / "memory.db")


def test_a_person_s_own_sessions_are_matched_whenever_they_were(place: str) -> None:
    with memorywall.open(place, agent="ada") as client:
        made = {}
        for matter in (MATTERS[0], MATTERS[1], MATTERS[4]):
            session = client.sessions.create("ann")
            session.add_many({"role": "user", "content": text} for text in matter.messages)
            made[matter] = session.id
        for matter, session_id in made.items():
            assert client.sessions.match(matter.later, "ann").session_id == session_id
            # A stranger with the same words has no session.
            assert client.sessions.match(matter.later, "bob").candidates == []
        assert client.sessions.match(MATTERS[9].messages[0], "ann").session_id is None
        client.sessions.get(made[MATTERS[0]]).archive()
        assert client.sessions.match(MATTERS[0].later, "ann").session_id is None


@pytest.mark.parametrize("embedder", ["static", "none"])
def test_a_session_without_a_common_word_is_matched_by_meaning_only(
    place: str, embedder: str
) -> None:
    said = (
        "The kitchen tap drips all night.", "A plumber looked at the sink.",
        "Water runs under the cupboard.", "The pipe below the basin leaks.",
    )  # fmt: skip
    other = ("Our flight to Lisbon was cancelled.", "The airline offers a refund.")
    with memorywall.open(place, agent="ada", embedder=embedder) as client:
        leak = client.sessions.create("ann")
        # With more turns than are embedded, those in the middle are left out.
        leak.add_many({"role": "user", "content": text} for text in said * 3)
        flight = client.sessions.create("ann")
        flight.add_many({"role": "user", "content": text} for text in other)
        found = client.sessions.match("Has anyone repaired leaking pipes and dripping taps?", "ann")
        assert found.method == ("words" if embedder == "none" else "embedding")
        scores = {one.session_id: one.score for one in found.candidates}
        assert scores[leak.id] > scores[flight.id]
        assert found.session_id in {leak.id, None}
        assert client.sessions.match("Bake bread with rye flour.", "ann").session_id is None


def test_follow_ups_continue_the_session_that_is_open(place: str) -> None:
    with memorywall.open(place, agent="ada") as client:
        charge = client.sessions.create("ann")
        charge.add("user", "My card was charged twice for one order.")
        for text in ("Following up on the billing issue", "thanks!", "please continue"):
            found = client.sessions.match(text, "ann")
            assert (found.session_id, found.method) == (charge.id, "follow_up")
            assert found.status == "active"
            assert client.sessions.match(text, "bob").session_id is None
        flight = client.sessions.create("ann")
        flight.add("user", "I want to fly to Lisbon.")
        for text in ("Following up on the billing issue", "thanks!", "What about it?"):
            assert client.sessions.match(text, "ann").session_id is None
        charge.close()
        assert client.sessions.match("thanks!", "ann").session_id == flight.id
        assert client.sessions.match("The order was charged twice", "ann").status == "closed"
        # It says that it follows up, but on the closed session.
        found = client.sessions.match("Following up on the order and other sorts of things", "ann")
        assert found.session_id != flight.id
