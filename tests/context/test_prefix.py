"""How often the turns of a context move in a long session, which ends the prefix of a prompt."""

from __future__ import annotations

from pathlib import Path

import memorywall

_EXCHANGES, _WINDOW = 24, 1_500


def count_moves(place: Path, every: int | None) -> int:
    """Returns how many summaries the contexts of a session show, one after another.

    every: the exchanges after which the session has a summary of all turns; None for never
    """
    shown: list[str] = []
    with memorywall.open(place, agent="ada") as client:
        session = client.sessions.create("ann", policy={"checkpoint_turns": 0})
        for number in range(_EXCHANGES):
            session.add("user", f"Question {number}: {'please look at the order again ' * 8}")
            context = client.context(session.id, window=_WINDOW)
            shown += [
                item.id
                for segment in context.segments
                if segment.name == "summary"
                for item in segment.items
                if item.id not in shown
            ]
            session.add("assistant", f"Answer {number}: {'it is still on its way to you ' * 8}")
            if every is not None and number % every == every - 1:
                session.checkpoint()
    return len(shown)


def test_a_summary_that_ends_early_makes_turns_move_no_more_often(tmp_path: Path) -> None:
    moves = count_moves(tmp_path / "without.db", None)
    assert moves > 3
    assert count_moves(tmp_path / "with.db", 2) <= moves
