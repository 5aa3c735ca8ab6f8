"""Dialogues with labels, generated from templates.

A file of templates has matters (`== name`) and the sentences of two pools (`== filler assistant`,
`== filler user`). In a matter, `? name: a | b` gives the values of `{name}`; `U:`, `A:` and `T:`
begin the turns of the user, the assistant and a tool. `<a / b>` is one of the phrasings.
`[[category: text]]` labels a statement that must be kept. `[[old: text]]` is a statement that
`[[correction>0: text]]` corrects; the number counts the old statements of the matter from 0.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from memorywall.summaries import SourceTurn

_ROLES = {"U": "user", "A": "assistant", "T": "tool"}
_LABEL = re.compile(r"\[\[(\w+)(?:>(\d+))?: (.*?)\]\]")
_PHRASINGS = re.compile(r"<([^<>]+)>")
_CHARACTERS = 9_000
"""The least length of a dialogue: more than 2,000 tokens of English."""


@dataclass(frozen=True, slots=True)
class Label:
    """A statement that must be kept.

    role: of the turn that has it
    replaces: the statement that it corrects, if it is a correction
    """

    category: str
    text: str
    role: str
    replaces: str | None = None


@dataclass(frozen=True, slots=True)
class Dialogue:
    """Turns, and the statements in them that must be kept."""

    matter: str
    turns: tuple[SourceTurn, ...]
    labels: tuple[Label, ...]


@dataclass(slots=True)
class Matter:
    """The template of dialogues about one matter."""

    name: str
    values: dict[str, list[str]] = field(default_factory=dict)
    lines: list[tuple[str, str]] = field(default_factory=list)


@dataclass(slots=True)
class Templates:
    """The matters of a file, and its pools of sentences without information."""

    matters: list[Matter] = field(default_factory=list)
    filler: dict[str, list[str]] = field(default_factory=dict)


def read_templates(path: Path) -> Templates:
    """Reads a file of templates."""
    templates = Templates()
    pool: list[str] | None = None
    for line in filter(None, map(str.strip, path.read_text("utf-8").splitlines())):
        if line.startswith("# "):
            continue
        if line.startswith("== filler "):
            pool = templates.filler[line.removeprefix("== filler ")] = []
        elif line.startswith("== "):
            templates.matters.append(Matter(line.removeprefix("== ")))
        elif pool is not None:
            pool.append(line)
        elif line.startswith("? "):
            name, _, values = line.removeprefix("? ").partition(": ")
            templates.matters[-1].values[name] = values.split(" | ")
        else:
            letter, _, text = line.partition(": ")
            templates.matters[-1].lines.append((_ROLES[letter], text))
    return templates


def generate(path: Path, count: int) -> list[Dialogue]:
    """Makes dialogues of the matters of a file in turn; the same for the same file and number."""
    templates = read_templates(path)
    return [
        _fill(templates, templates.matters[number % len(templates.matters)], number)
        for number in range(count)
    ]


def _fill(templates: Templates, matter: Matter, number: int) -> Dialogue:
    random = Random(f"{matter.name}:{number}")
    chosen = {name: random.choice(values) for name, values in matter.values.items()}
    scripted, labels = _scripted(matter, chosen, random)
    pools = {role: _Pool(sentences, random) for role, sentences in templates.filler.items()}
    missing = _CHARACTERS - sum(len(text) for _, text in scripted)
    exchanges: list[list[tuple[str, str]]] = []
    while missing > 0:
        exchange = [
            ("user", pools["user"].draw(1, 2)),
            ("assistant", pools["assistant"].draw(3, 7)),
        ]
        exchanges.append(exchange)
        missing -= sum(len(text) for _, text in exchange)
    after = sorted(random.randrange(1, len(scripted)) for _ in exchanges)
    turns: list[SourceTurn] = []
    for place, one in enumerate(scripted):
        turns.append(SourceTurn(len(turns) + 1, one[0], one[1], trusted=one[0] != "tool"))
        while after and after[0] == place:
            after.pop(0)
            for role, text in exchanges.pop():
                turns.append(SourceTurn(len(turns) + 1, role, text))
    for exchange in exchanges:
        for role, text in exchange:
            turns.append(SourceTurn(len(turns) + 1, role, text))
    return Dialogue(matter.name, tuple(turns), labels)


def _scripted(
    matter: Matter, chosen: dict[str, str], random: Random
) -> tuple[list[tuple[str, str]], tuple[Label, ...]]:
    turns: list[tuple[str, str]] = []
    labels: list[Label] = []
    old: list[str] = []
    for role, line in matter.lines:
        text = _PHRASINGS.sub(lambda match: random.choice(match[1].split(" / ")), line)
        for name, value in chosen.items():
            text = text.replace("{" + name + "}", value)
        for category, number, statement in _LABEL.findall(text):
            if category == "old":
                old.append(statement)
            else:
                replaces = old[int(number)] if number else None
                labels.append(Label(category, statement, role, replaces))
        turns.append((role, _LABEL.sub(lambda match: match[3], text)))
    return turns, tuple(labels)


class _Pool:
    """Draws the sentences of a pool in a random order; each once before any is drawn again."""

    def __init__(self, sentences: list[str], random: Random) -> None:
        self._sentences = sentences
        self._random = random
        self._left: list[str] = []

    def draw(self, least: int, most: int) -> str:
        drawn = []
        for _ in range(self._random.randint(least, most)):
            if not self._left:
                self._left = self._random.sample(self._sentences, len(self._sentences))
            drawn.append(self._left.pop())
        return " ".join(drawn)
