"""Candidates for memory, labelled as worth keeping or junk, made from templates.

The templates were written before any rule. They are divided into two halves by a seed: rules may be
tuned on the development half only.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

Half = Literal["development", "held out"]
HALVES: tuple[Half, ...] = ("development", "held out")
TEMPLATES = Path(__file__).with_name("templates.txt")
SENTENCES = TEMPLATES.with_name("sentences.txt")
_SLOT = re.compile(r"\{(\w+)\}")
_SECTION = re.compile(r"\[(\w+) (\w+)\]")
RESTATED_SHARE = 0.1
"""The share of the junk that restates an earlier candidate."""


class Template(NamedTuple):
    """A text with slots.

    name: the class, such as `preference` or `greeting`
    """

    is_worthy: bool
    name: str
    text: str


class LabelledText(NamedTuple):
    """A labelled text.

    name: the class of its template, or `restatement`
    template: the text of its template
    """

    text: str
    is_worthy: bool
    name: str
    template: str


def generate(half: Half, number: int = 2_000, seed: int = 1) -> list[LabelledText]:
    """Returns candidates in the order in which they arrive; a tenth is worth keeping.

    half: the half of the templates
    number: how many candidates
    seed: of the division of the templates and of all choices
    """
    templates, slots = _read(TEMPLATES)
    chosen = _divide(templates, seed)[HALVES.index(half)]
    rng = random.Random(f"{seed} {half}")
    worthy = [one for one in chosen if one.is_worthy]
    junk = [one for one in chosen if not one.is_worthy]
    wanted = number // 10
    kept: list[LabelledText] = []
    seen: set[str] = set()
    for place in range(wanted * 20):
        if len(kept) == wanted:
            break
        template = worthy[place % len(worthy)]
        made = _fill(template, slots, rng)
        # The same text again would be a restatement.
        if made.text not in seen:
            seen.add(made.text)
            kept.append(made)
    restated = int((number - wanted) * RESTATED_SHARE)
    noise = [
        _fill(junk[place % len(junk)], slots, rng) for place in range(number - wanted - restated)
    ]
    mixed = kept + noise
    rng.shuffle(mixed)
    return _with_restatements(mixed, restated, rng)


def written_by_hand() -> dict[str, list[LabelledText]]:
    """The sentences that were written by hand, by the name of their section."""
    found: dict[str, list[LabelledText]] = {}
    section = ""
    for line in SENTENCES.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif line[:2] in {"+ ", "- "}:
            text = line[2:].replace("\\n", "\n")
            found.setdefault(section, []).append(LabelledText(text, line[0] == "+", section, ""))
    return found


def _with_restatements(
    mixed: list[LabelledText], number: int, rng: random.Random
) -> list[LabelledText]:
    """Inserts texts that say again what a worthy candidate before them says."""
    worthy = [place for place, one in enumerate(mixed) if one.is_worthy]
    after: dict[int, list[LabelledText]] = {}
    for _ in range(number):
        place = rng.choice(worthy)
        later = rng.randrange(place, len(mixed))
        other = mixed[rng.choice([one for one in worthy if one <= later])].text
        after.setdefault(later, []).append(
            LabelledText(_restate(mixed[place].text, other, rng), False, "restatement", "")
        )
    result: list[LabelledText] = []
    for place, one in enumerate(mixed):
        result += [one, *after.get(place, ())]
    return result


def _restate(text: str, other: str, rng: random.Random) -> str:
    return rng.choice(
        (
            text,
            f"Recalled: {text}",
            f"- {text}",
            f'"{text}"',
            text.upper() if text.isascii() else text,
            f"{text}\n{other}",
            f"Relevant memories:\n1. {other}\n2. {text}",
            f"> {text}",
            f"* **{text}**",
            f"- [2026-03-01] {text} (memory mem_01ABC)",
        )
    )


def _fill(template: Template, slots: dict[str, list[str]], rng: random.Random) -> LabelledText:
    def choose(match: re.Match[str]) -> str:
        name = match[1]
        if name == "n":
            return str(rng.randint(2, 90))
        if name == "d2":
            return f"{rng.randint(1, 28):02}"
        if name in {"port", "account"}:
            return str(rng.randint(1_000, 9_999) if name == "port" else rng.randint(10_000, 99_999))
        return rng.choice(slots[name])

    text = _SLOT.sub(choose, template.text).replace("\\n", "\n").replace("\\t", "\t")
    return LabelledText(text, template.is_worthy, template.name, template.text)


def _divide(templates: Sequence[Template], seed: int) -> tuple[list[Template], list[Template]]:
    """Divides the templates of each class into two halves."""
    rng = random.Random(seed)
    halves: tuple[list[Template], list[Template]] = ([], [])
    for name in dict.fromkeys(one.name for one in templates):
        members = [one for one in templates if one.name == name]
        rng.shuffle(members)
        for place, one in enumerate(members):
            halves[place % 2].append(one)
    return halves


def _read(path: Path) -> tuple[list[Template], dict[str, list[str]]]:
    """Returns the templates and the words of the slots."""
    templates: list[Template] = []
    slots: dict[str, list[str]] = {}
    label = name = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        # A template may begin with "[" or "#"; sections are alone on their line.
        section = _SECTION.fullmatch(line)
        if section is not None:
            label, name = section[1], section[2]
        elif label == "slot" and line:
            slots[name] = line.split("|")
        elif label and line:
            templates.append(Template(label == "worthy", name, line))
    return templates, slots
