"""Cues find what their patterns find, though most patterns are not searched."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memorywall.summaries import carriers, cues
from memorywall.summaries.cue import Cue
from tests.summaries.conversations import REPAIR
from tests.support.extent import extent

pytestmark = pytest.mark.sqlite("a summary uses no store")

_CUES = {
    name: (cue, re.compile("|".join(cue._alternatives)))
    for module in (cues, carriers)
    for name, cue in vars(module).items()
    if isinstance(cue, Cue)
}
_WORDS = sorted(
    {
        word
        for _, pattern in _CUES.values()
        for word in re.findall(r"[^\W\d_]+(?:'[^\W\d_]+)?", re.sub(r"\\.", " ", pattern.pattern))
    }
)
_SIGNS = ["", " ", ", ", ". ", "? ", " 7 ", "'", "-", ":", "ed ", "s ", "\n", "不", "لا "]
_TEXTS = st.lists(
    st.tuples(st.sampled_from(_WORDS), st.sampled_from(_SIGNS)).map("".join), max_size=12
).map("".join)


@settings(max_examples=extent(120, long=5_000))
@given(_TEXTS)
def test_a_cue_finds_what_its_patterns_find(text: str):
    for name, (cue, pattern) in _CUES.items():
        assert cue.search(text) == bool(pattern.search(text)), name
        found = [match[0] for match in cue.find(text)]
        assert found == [match[0] for match in pattern.finditer(text)], name
        assert cue.fullmatch(text) == bool(pattern.fullmatch(text)), name


def test_cues_are_found_in_a_conversation():
    texts = [turn.text.lower() for turn in REPAIR]
    found = {name for name, (cue, _) in _CUES.items() if any(map(cue.search, texts))}
    assert {"CORRECTION", "CONSTRAINT"} <= found


def test_a_pattern_without_literals_is_always_searched():
    cue = Cue(r"\w\d|[^\w\s]{2}", r"a(?:b|c)?")
    assert [text for text in ("x1", "!!", "a", "x y") if cue.search(text)] == ["x1", "!!", "a"]
    assert [match[0] for match in cue.find("ab !! x1")] == ["ab", "!!", "x1"]
