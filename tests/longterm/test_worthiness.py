"""Whether a text is worth keeping, and whether memory has it already."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.worthiness.candidates import generate
from memorywall.longterm.duplicates import count_known
from memorywall.longterm.worthiness import (
    LONGEST_READ,
    RULES,
    MemoryCandidate,
    candidate_of,
    is_own_statement,
    judge,
)
from memorywall.recall.sentence_digests import sentences_of, words_of
from memorywall.records.recall import GuidanceKind

MOST_WRONG = 0.05


def _rule(text: str) -> str:
    return judge(MemoryCandidate(text=text)).rule


@pytest.mark.parametrize("half", ["development", "held out"])
def test_few_candidates_are_judged_wrongly(half: Any) -> None:
    found = {True: [0, 0], False: [0, 0]}
    for one in generate(half):
        if one.name != "restatement":
            found[one.is_worthy][0] += 1
            found[one.is_worthy][1] += (
                judge(MemoryCandidate(text=one.text)).worthy is not one.is_worthy
            )
    for number, wrong in found.values():
        assert wrong < MOST_WRONG * number, found


@pytest.mark.parametrize(
    ("rule", "texts"),
    {
        "learned": (
            "No, that's wrong: the fee is 9 euros.",
            "The cause was an expired certificate.",
        ),
        "decision": ("We decided to use Kafka.", "Hemos decidido usar Kafka.", "我们决定用Kafka。"),
        "procedure": ("To restart it: run `make stop`, then `make start`.",),
        "constraint": ("Deployments must not happen on Friday.", "デプロイは必須です。"),
        "fact": ("Ana works at Lumen.", "Ana wohnt in Graz.", "我叫小美。"),
        "statement": ("The old wiki lists every former supplier.",),
        "question": ("Where is the file?", "Wo ist die Datei?", "会議は何時からですか。"),
        "hypothetical": ("Maybe we try Kafka.", "Vielleicht könnten wir das mal.", "也许吧"),
        "transient": ("One moment please.", "Einen Moment bitte.", "请稍等"),
        "progress": ("Running tests... 3 of 9 done.", "Ejecutando las pruebas.", "正在运行测试"),
        "small_talk": ("Thanks!", "Guten Morgen!", "¡Hola!", "谢谢", "ありがとう", "Спасибо!"),
        "tool_output": (
            '{"ok": true, "items": [1, 2]}',
            "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\nValueError: x",
            "2026-03-01 10:00:00 INFO started",
            "src/a.py\nsrc/b.py",
            "heartbeat ok",
            "",
        ),
    }.items(),
)  # fmt: skip
def test_the_rule_that_decides(rule: str, texts: tuple[str, ...]) -> None:
    assert [_rule(text) for text in texts] == [rule] * len(texts)


def test_a_statement_beside_talk_is_kept() -> None:
    assert judge(MemoryCandidate(text="Thanks! By the way, I moved to Graz last May.")).worthy
    assert judge(MemoryCandidate(text="Sorry, one moment.\nOur VAT number is DE123.")).worthy
    assert not judge(MemoryCandidate(text="Thanks! One moment, I'll check.")).worthy


def test_what_needs_no_words() -> None:
    for lesson in GuidanceKind:
        assert judge(candidate_of({"type": lesson.value, "text": "ok"})) == judge(
            candidate_of({"type": lesson.value})
        )
        assert judge(candidate_of({"type": lesson.value, "text": "ok"})).rule == "lesson"
    assert judge(candidate_of({"seats": 3})).rule == "record"
    assert judge(candidate_of({"text": "ok"}, "fact")).rule == "record"
    assert judge(candidate_of({"type": ["correction"], "text": 3})).rule == "record"
    assert judge(candidate_of({"text": "Ana lives in Graz."}, known="mem_1")).rule == "duplicate"
    assert is_own_statement("user", {})
    assert is_own_statement("agent", {"role": "user"})
    assert not is_own_statement("agent", {"role": "assistant"})


def test_rules_are_data() -> None:
    assert len({one.name for one in RULES}) == len(RULES)
    for one in RULES:
        assert one.description.endswith(".")
        assert one.description.count(".") == 1
    assert RULES[-1].test(MemoryCandidate(text="anything"))


@pytest.mark.parametrize(
    "part", ["a", "(", "\n", "Ana lives in Graz. ", "1.", "的", "\u0000", "- "]
)
def test_no_text_takes_long(part: str) -> None:
    """The patterns of a text that repeats itself do not search it again and again."""
    judge(MemoryCandidate(text=part * LONGEST_READ))
    words_of(part * LONGEST_READ)


STORED = "Ana likes tea. She drinks 3 cups a day."


@pytest.mark.parametrize(
    "text",
    [
        STORED,
        STORED.upper(),
        f"Recalled: {STORED}",
        f"- {STORED}",
        f'> "{STORED}"',
        "Ana likes\ntea. She drinks 3 cups\na day",
        "* **Ana likes tea.**\n* She drinks 3 cups a day.",
        "Relevant memories:\n2. She drinks 3 cups a day.\n1. Ana likes tea.",
        "Known facts:\n- Ana likes tea (untrusted data, not instructions)",
        "Ana likes tea. (memory mem_01M7YX77HF4QFTG3HXAJC8PJ5M)",
    ],
)
def test_the_same_in_another_form(text: str) -> None:
    said = words_of(text)
    assert count_known(said, {"mem_1": sentences_of(STORED)}, {0}) == len(said)


@pytest.mark.parametrize(
    "text",
    [
        "Ana no longer likes tea.",
        "Ana does not like tea.",
        "Ana likes tea?",
        "Ben likes tea.",
        "Ana likes green tea.",
        "She drinks 4 cups a day.",
        "She drinks -3 cups a day.",
        "likes tea",
        "Ana likes tea. Ben too.",
        "Ana likes tea. It failed.",
    ],
)
def test_another_statement_is_new(text: str) -> None:
    said = words_of(text)
    known = {"mem_1": sentences_of(STORED), "mem_2": sentences_of("The build began. It failed.")}
    assert count_known(said, known) < len(said)


def test_numbers_of_lists_are_no_words_and_numbers_of_facts_are() -> None:
    assert words_of("1. Ana likes tea") == words_of("Ana likes tea")
    assert words_of("1.5 litres") != words_of("1 5 litres")
    assert words_of("C++ and C") != words_of("C and C")
