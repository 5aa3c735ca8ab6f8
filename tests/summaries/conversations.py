"""Short conversations for the tests of summaries."""

from __future__ import annotations

from memorywall.summaries import SourceTurn


def count(text: str) -> int:
    """A stand-in for the tokens of a text."""
    return len(text) // 4 + 1


def turns(*said: tuple[str, str]) -> list[SourceTurn]:
    """Turns of roles and texts; those of tools are not trusted."""
    return [
        SourceTurn(place, role, text, trusted=role != "tool")
        for place, (role, text) in enumerate(said, 1)
    ]


REPAIR = turns(
    ("user", "Hello! My Bosch dishwasher leaks since Tuesday and I am really annoyed."),
    ("assistant", "I see. In general it helps to keep the filter clean."),
    ("user", "Thanks. The repair must not cost more than 150 euros."),
    ("tool", "status: technician 4711 is free on 3 May"),
    ("assistant", "I will send the technician on 3 May."),
    ("user", "Sorry, I meant the repair must not cost more than 180 euros."),
    ("user", "If it takes longer than two weeks, I buy a new one."),
    ("assistant", "Booked. The confirmation is QX7T2M."),
    ("user", "I still need to find the invoice."),
)
