"""`python -m benchmarks.recall.changing_facts FILE`: writes a data set of facts that change.

Each fact has one to four later values, each told by a dated note of its own in other words. A
question asks for the present value. With `--validity` each note but the last also says until when
it held. What is told about one thing resembles what is told about another.
"""

from __future__ import annotations

import argparse
import json
import random
from datetime import date, timedelta
from pathlib import Path
from typing import Any, NamedTuple

_SEED = 28
_FACTS = 200
_FIRST_DAY = date(2025, 1, 6)
_PEOPLE = (
    "Amara Okafor", "Bruno Keller", "Chiara Rossi", "Dmitri Volkov", "Elif Demir", "Farid Haddad",
    "Greta Lindqvist", "Hana Sato", "Ivo Petrov", "Jonas Weber", "Kemi Adeyemi", "Lucia Moreno",
    "Mateus Silva", "Nadia Rahman", "Oskar Nowak", "Priya Nair", "Quentin Leroy", "Rosa Jimenez",
    "Sven Olsen", "Tomas Novak",
)  # fmt: skip
_SERVICES = (
    "billing service", "checkout page", "image resizer", "nightly export", "login gateway",
    "search index", "mail sender", "report builder", "price feed", "audit trail",
)  # fmt: skip


class _Relation(NamedTuple):
    """A matter: whom it is about, the sentences that state a value, the questions for it, and the
    values."""

    things: tuple[str, ...]
    statements: tuple[str, ...]
    questions: tuple[str, ...]
    values: tuple[str, ...]


_RELATIONS = (
    _Relation(
        _PEOPLE,
        ("{t} lives in {v}.", "{t} has moved to {v}.", "The new home of {t} is in {v}.",
         "Since last week {t} rents a flat in {v}."),
        ("Where does {t} live?", "In which city is the home of {t}?"),
        ("Graz", "Porto", "Leeds", "Turin", "Malmo", "Ghent", "Krakow", "Lyon"),
    ),
    _Relation(
        _PEOPLE,
        ("{t} works as {v}.", "{t} took a job as {v}.", "The present position of {t} is {v}.",
         "{t} started as {v} on Monday."),
        ("What is the job of {t}?", "What does {t} do for a living?"),
        ("a nurse", "a welder", "a translator", "a pastry chef", "a bus driver", "an auditor",
         "a gardener", "a tax adviser"),
    ),
    _Relation(
        _PEOPLE,
        ("{t} drives {v}.", "{t} bought {v}.", "{t} now owns {v}.", "The car of {t} is {v}."),
        ("Which car does {t} have?", "What does {t} drive?"),
        ("a grey Skoda", "a red Fiat", "a blue Volvo", "an old Saab", "an electric Renault",
         "a white Toyota"),
    ),
    _Relation(
        _PEOPLE,
        ("{t} is on a {v} diet.", "{t} eats {v} only.", "The doctor put {t} on {v} food.",
         "For meals of {t}: {v}."),
        ("What may {t} eat?", "Which diet does {t} follow?"),
        ("vegan", "gluten-free", "low-salt", "lactose-free", "vegetarian", "low-sugar"),
    ),
    _Relation(
        _PEOPLE,
        ("{t} prefers to be reached by {v}.", "Contact {t} by {v}.", "{t} answers to {v} now.",
         "The best way to reach {t} is {v}."),
        ("How do I reach {t}?", "How does {t} want to be contacted?"),
        ("telephone", "e-mail", "text message", "letter", "video call", "fax"),
    ),
    _Relation(
        _PEOPLE,
        ("{t} plays {v} on Thursdays.", "The sport of {t} is {v}.", "{t} took up {v}.",
         "{t} trains {v} with a club."),
        ("Which sport does {t} do?", "What does {t} play?"),
        ("tennis", "handball", "badminton", "hockey", "squash", "volleyball"),
    ),
    _Relation(
        _PEOPLE,
        ("{t} belongs to the {v} team.", "{t} was moved to {v}.", "{t} joined the {v} group.",
         "The department of {t} is {v}."),
        ("Which team is {t} in?", "What is the department of {t}?"),
        ("payments", "logistics", "support", "research", "legal", "marketing"),
    ),
    _Relation(
        _PEOPLE,
        ("{t} drinks {v} at breakfast.", "For breakfast {t} wants {v}.",
         "{t} changed to {v} in the morning.", "The morning drink of {t} is {v}."),
        ("What does {t} drink in the morning?", "What does {t} want to drink at breakfast?"),
        ("black coffee", "green tea", "cocoa", "orange juice", "oat milk", "peppermint tea"),
    ),
    _Relation(
        _SERVICES,
        ("{v} maintains the {t}.", "The owner of the {t} is {v}.", "The {t} went over to {v}.",
         "{v} has taken responsibility for the {t}."),
        ("Who maintains the {t}?", "Who is responsible for the {t}?"),
        _PEOPLE,
    ),
    _Relation(
        _SERVICES,
        ("The {t} runs on {v}.", "We moved the {t} to {v}.", "{v} hosts the {t} now.",
         "The {t} is deployed on {v}."),
        ("Where does the {t} run?", "What is the {t} deployed on?"),
        ("Nomad", "a single virtual machine", "Kubernetes", "Heroku", "bare metal", "Fargate"),
    ),
    _Relation(
        _SERVICES,
        ("The {t} times out after {v}.", "The limit of the {t} is {v}.",
         "We set the timeout of the {t} to {v}.", "Requests to the {t} may take {v}."),
        ("What is the timeout of the {t}?", "How long may a request to the {t} take?"),
        ("5 seconds", "12 seconds", "30 seconds", "45 seconds", "90 seconds", "2 minutes"),
    ),
    _Relation(
        _SERVICES,
        ("The {t} is released on {v}.", "Releases of the {t} go out on {v}.",
         "The release day of the {t} is {v}.", "We ship the {t} every {v}."),
        ("On which day is the {t} released?", "When does the {t} ship?"),
        ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Sunday"),
    ),
)  # fmt: skip


def main() -> None:
    """Writes the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, help="the JSON file to write")
    parser.add_argument("--validity", action="store_true", help="notes say until when they held")
    options = parser.parse_args()
    options.file.write_text(json.dumps(world(validity=options.validity)))


def world(*, validity: bool) -> dict[str, Any]:
    """Returns the data set."""
    chance = random.Random(_SEED)
    matters = [(one, thing) for one in _RELATIONS for thing in one.things]
    chance.shuffle(matters)
    messages, questions = [], []
    for number, (relation, thing) in enumerate(matters[:_FACTS]):
        values = chance.sample(relation.values, 1 + chance.randint(1, 4))
        days = sorted(chance.sample(range(600), len(values)))
        told = chance.sample(relation.statements * 2, len(values))
        for place, (value, day, text) in enumerate(zip(values, days, told, strict=True)):
            note = {
                "id": f"f{number}-{place}",
                "session": None,
                "author": None,
                "date": _instant(day),
                "text": text.format(t=thing, v=value),
            }
            if validity and place + 1 < len(values):
                note["valid_until"] = _instant(days[place + 1])
            messages.append(note)
        question = chance.choice(relation.questions).format(t=thing)
        last = f"f{number}-{len(values) - 1}"
        questions.append({"question": question, "evidence": [last], "category": "present value"})
    chance.shuffle(messages)
    collection = {"id": "world", "messages": messages, "questions": questions}
    name = "changing facts, with validity" if validity else "changing facts"
    return {"name": name, "unit": "message", "conversations": [collection]}


def _instant(day: int) -> str:
    return f"{_FIRST_DAY + timedelta(days=day)}T00:00:00Z"


if __name__ == "__main__":
    main()
