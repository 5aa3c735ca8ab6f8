"""Text counts and is found wherever it stands in content parts."""

from __future__ import annotations

from typing import Any

import pytest

from memorywall.kinds.content_parts import (
    PART_TOKENS,
    content_text,
    count_content,
    spoken_text,
)
from memorywall.tokens.estimate import estimate

LONG = "The quick brown fox jumps over the lazy dog. " * 100
SOURCE = {"type": "text", "media_type": "text/plain", "data": LONG}
BASE64 = {"type": "base64", "media_type": "image/png", "data": "A" * 9_000}
DEEP: dict[str, Any] = {"note": LONG}
for _ in range(3_000):
    DEEP = {"content": [DEEP]}


@pytest.mark.parametrize(
    "part",
    [
        {"type": "document", "source": SOURCE, "title": "Foxes"},
        {"type": "document",
         "source": {"type": "content", "content": [{"type": "text", "text": LONG}]}},
        {"type": "search_result", "source": "x", "content": [{"type": "text", "text": LONG}]},
        {"type": "refusal", "refusal": LONG},
        {"type": "input_text", "text": LONG},
        {"type": "of_tomorrow", "inner": {"words": [LONG]}},
        {"type": "of_tomorrow", **DEEP},
    ],
)  # fmt: skip
def test_text_in_every_part_is_counted_and_read(part: dict[str, Any]) -> None:
    assert LONG in spoken_text([part])
    assert LONG in content_text([part])
    assert count_content([part], estimate) >= estimate(LONG)


def test_thinking_is_found_and_not_spoken() -> None:
    part = {"type": "thinking", "thinking": LONG, "signature": "c2ln"}
    assert content_text([part]) == LONG
    assert spoken_text([part]) == ""
    assert count_content([part], estimate) >= estimate(LONG)


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image", "source": BASE64},
        {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
        {"type": "input_image", "image_url": "https://example.org/a.png", "detail": "low"},
        {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}},
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,aGk="}},
    ],
)
def test_a_medium_is_no_text(part: dict[str, Any]) -> None:
    assert content_text([part]) == ""
    assert count_content([part], estimate) == PART_TOKENS


def test_a_medium_beside_text_counts_as_well() -> None:
    parts = [{"type": "image", "source": BASE64}, {"type": "text", "text": "What is it?"}]
    result = {"type": "tool_result", "content": parts}
    assert spoken_text([result]) == "What is it?"
    assert count_content([result], len) == PART_TOKENS + len("What is it?")
    assert count_content(parts, len) == PART_TOKENS + len("What is it?")
    # What no reader sees takes tokens of a window all the same.
    hidden = {"type": "redacted_thinking", "data": LONG}
    assert count_content([hidden], estimate) > estimate(LONG)
