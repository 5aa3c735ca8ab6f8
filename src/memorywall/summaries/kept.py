"""The statements of a summary as they are stored with its text."""

from __future__ import annotations

from collections.abc import Sequence

from memorywall.kinds.sessions import StoredStatement
from memorywall.summaries.carriers import Carriers
from memorywall.summaries.source import Summarized
from memorywall.summaries.statements import Statement


def kept_statements(made: Summarized) -> tuple[StoredStatement, ...]:
    """Returns the statements of a summary as they are stored with its text."""
    kept: list[StoredStatement] = []
    end = 0
    for one in made.statements:
        # A label before it may have the same characters; the statement found is the same text.
        start = made.text.index(one.text, end)
        end = start + len(one.text)
        kept.append(
            StoredStatement(
                start, len(one.text), one.role, one.trusted, one.category, one.tokens, one.carried
            )
        )
    return tuple(kept)


def known_statements(text: str, kept: Sequence[StoredStatement]) -> str | list[Statement]:
    """Returns the statements of a stored summary as they were read; its text without them.

    text: that of the summary
    """
    if not kept:
        return text
    return [
        Statement(
            place=place,
            role=one.role,
            trusted=one.trusted,
            text=text[one.start : one.start + one.length],
            category=one.category,
            carried=Carriers(*one.carried),
            tokens=one.tokens,
        )
        for place, one in enumerate(kept)
    ]
