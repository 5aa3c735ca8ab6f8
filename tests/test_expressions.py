"""The language of conditions: parser, printer, evaluation and bounds."""

from __future__ import annotations

import re
import time
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memorywall.expressions.entry_fields import ENTRY_FIELDS
from memorywall.expressions.evaluate import evaluate, fields_of
from memorywall.expressions.parser import DEEPEST, LONGEST_LIST, MOST_STEPS, MOST_TESTS, parse
from memorywall.expressions.printer import print_condition, show_position
from memorywall.expressions.tokens import LONGEST_TEXT
from memorywall.records.feature_errors import ExpressionError
from memorywall_testing.conditions import random_condition, random_value
from tests.support.extent import examples

RECORD: dict[str, Any] = {
    "key": "a",
    "tags": ["vip", "eu"],
    "pinned": True,
    "version": 3,
    "priority": "normal",
    "created_at": "2026-02-02T02:40:00.000Z",
    "scope.task_id": None,
    "value": {
        "customer": {"tier": "gold", "first name": "Ada", "age": 36, "note": None},
        "items": [{"price": 1.5}, {"price": 20}],
        "ok": False,
    },
}


def _holds(text: str) -> bool:
    return evaluate(parse(text, ENTRY_FIELDS), RECORD.get)


@pytest.mark.parametrize(
    "text",
    [
        'value.customer.tier = "gold"',
        'value.customer."first name" = "Ada"',
        ["value.items[1].price > value.x", "value.items[1].price > 1.5"][1],
        "value.customer.age >= 36 and value.customer.age <= 36.0",
        'value.customer.tier > "Gold" and value.customer.tier < "golden"',
        'key in ["b", "a"] and not key in ["b"]',
        'tags contains "vip" and value.customer.tier contains "ol"',
        "exists value.customer and not exists value.customer.note and not exists value.a.b[3]",
        "value.customer.note = null and value.missing = null and value.ok != null",
        "value.ok = false and value.ok != true and pinned = true",
        'priority >= "normal" and priority < "high" and not priority = "low"',
        'created_at >= "2026-02-02T03:40:00+01:00" and created_at < "2026-02-02T02:40:01Z"',
        "scope.task_id = null",
        "version in [1, 3]",
        'not key in [] and not priority > "high" and not memory_type < "working"',
        # Comparisons of different types are false, and so is a comparison with an object.
        'not value.customer.age = "36" and not value.customer.age != "36"',
        "not value.customer = 1 and not value.customer != 1 and value.customer != null",
        "not value.missing < 1 and not value.missing >= 1 and not value.missing != 1",
        "not tags[0] contains 1 and not value.customer contains 1 and not pinned = 1",
        # `and` binds more tightly than `or`.
        'key = "a" or key = "b" and key = "c"',
        'not (key = "b" or key = "c") and (key = "b" or key = "a")',
    ],
)
def test_condition_holds(text: str) -> None:
    assert _holds(text)
    assert not _holds(f"not ({text})")


@pytest.mark.parametrize(
    ("text", "line", "column", "problem"),
    [
        ("", 1, 1, "name of a field"),
        ("value.a =", 1, 10, "expected a string"),
        ("value.a\n  = = 1", 2, 5, "expected a string"),
        ("colour = 1", 1, 1, "unknown field; the fields are `agent_id`"),
        ("key.a = 1", 1, 1, "no members"),
        ("not = 1", 1, 5, "name of a field"),
        ('key = "a', 1, 7, "no end"),
        ('key = "\\x"', 1, 7, "not valid"),
        ('key = "\\u0000"', 1, 7, "NUL"),
        ('key = "\ud800"', 1, 7, "not valid"),
        ("key = 'a'", 1, 7, "unexpected"),
        ("key = 1 2", 1, 9, "expected `and`"),
        ('priority = "urgent"', 1, 12, '"low", "normal", "high"'),
        ('created_at > "yesterday"', 1, 14, "RFC 3339"),
        ("value.a < true", 1, 11, "have an order"),
        ("value.a in [,", 1, 13, "expected a string"),
        ("value.a in [1", 1, 14, "expected `]`"),
        ("value.a = 9007199254740992", 1, 11, "an integer lies"),
        (f"value.a = {'9' * 3000}", 1, 11, "an integer lies"),
        ("value.a = 1e999", 1, 11, "too large"),
        ("value[-1] = 1", 1, 7, "index"),
        ("value[70000] = 1", 1, 7, "at most"),
        ("(key = 1", 1, 9, "expected `)`"),
        (f"{'(' * (DEEPEST + 1)}key = 1", 1, DEEPEST + 2, "levels"),
        (f"{'not ' * (DEEPEST + 1)}key = 1", 1, 4 * DEEPEST + 5, "levels"),
        ("key = 1" + " or key = 1" * MOST_TESTS, 1, 11 * MOST_TESTS + 1, "comparisons"),
        (f"key in [{'1,' * LONGEST_LIST}1]", 1, 2 * LONGEST_LIST + 9, "values"),
        (f"value{'.a' * (MOST_STEPS + 1)} = 1", 1, 1, "steps"),
        ("x" * (LONGEST_TEXT + 1), 1, LONGEST_TEXT + 1, "characters"),
    ],
)
def test_error_names_problem_and_position(text: str, line: int, column: int, problem: str) -> None:
    with pytest.raises(ExpressionError, match=re.escape(problem)) as raised:
        parse(text, ENTRY_FIELDS)
    error = raised.value
    assert (error.line, error.column) == (line, column)
    assert f"column {column}" in error.detail
    shown = show_position(text, error).split("\n")
    assert shown[0] == text.split("\n")[line - 1]
    assert shown[1] == " " * (column - 1) + "^"


@settings(max_examples=examples(2_000))
@given(st.integers(0, 2**64))
def test_printed_tree_parses_to_the_same_tree(seed: int) -> None:
    tree = random_condition(Random(seed))
    normal = parse(print_condition(tree), ENTRY_FIELDS)
    assert parse(print_condition(normal), ENTRY_FIELDS) == normal
    assert fields_of(normal) == fields_of(tree)
    record = {"value": random_value(Random(seed + 1)), "priority": "low", "memory_type": "session"}
    if not {"priority", "memory_type"} & fields_of(tree):
        # Only the parser knows the order of the words of a field, which becomes a list of words.
        assert normal == tree
        assert evaluate(normal, record.get) == evaluate(tree, record.get)


_WORDS = "and or not in exists contains true null value key tags . [ ] ( ) , = != < >= 0 1.5e3"
_PIECES = st.sampled_from([*_WORDS.split(), '"a"', '"', "\\", "\n", "\ud800"])
_TEXT = st.text('aZ_-09.eE+"\\/unul()[]=!<>, \t\n\r\0\x7f\u00fc\u2028\U0001f9d1\ud800', max_size=60)


@settings(max_examples=examples(5_000))
@given(st.one_of(_TEXT, st.lists(_PIECES, max_size=40).map(" ".join)))
def test_any_text_is_a_condition_or_an_error_with_a_position(text: str) -> None:
    try:
        tree = parse(text, ENTRY_FIELDS)
    except ExpressionError as error:
        line, caret = show_position(text, error).split("\n")
        assert 1 <= len(caret) <= len(line) + 1
    else:
        assert evaluate(tree, RECORD.get) in (True, False)
        assert parse(print_condition(tree), ENTRY_FIELDS) == tree


@pytest.mark.parametrize("piece", ["(", "not ", '"', "a.", "[", "1", "key=1 or ", '"\\', "- "])
def test_longest_text_takes_little_time(piece: str) -> None:
    text = (piece * LONGEST_TEXT)[:LONGEST_TEXT]
    started = time.process_time()
    with pytest.raises(ExpressionError):
        parse(text, ENTRY_FIELDS)
    assert time.process_time() - started < 1
