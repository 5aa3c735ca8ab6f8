"""Measures summaries of labelled dialogues beside an oracle and three simple methods."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.summaries.baselines import BASELINES
from benchmarks.summaries.dialogues import Dialogue, Label
from memorywall.summaries import TokenCounter, summarize
from memorywall.summaries.lines import Line, write_lines

_DIGITS = re.compile(r"\d+(?:[.,:]\d+)*")


@dataclass(slots=True)
class Score:
    """The statements that one method keeps of all dialogues of a half at one budget.

    kept: labels whose text the summary has
    possible: labels that the oracle fits, per dialogue
    share: the mean of kept over possible, at most 1 in a dialogue
    by_category: of the labels of each category, kept and all
    altered: numbers of summaries that are not in their dialogue
    stale: corrected statements that stand in a summary
    over: summaries above their budget
    """

    kept: int = 0
    labels: int = 0
    possible: int = 0
    shares: list[float] = field(default_factory=list)
    by_category: dict[str, list[int]] = field(default_factory=dict)
    altered: int = 0
    stale: int = 0
    over: int = 0

    @property
    def share(self) -> float:
        """The mean share of a dialogue of what the oracle keeps."""
        return sum(self.shares) / len(self.shares)


def measure(dialogues: Sequence[Dialogue], percent: int, count: TokenCounter) -> dict[str, Score]:
    """The scores of the summarizer and of the simple methods at one budget.

    percent: the budget, of the tokens of the dialogue
    """
    scores = {name: Score() for name in ("extractive", *BASELINES)}
    for dialogue in dialogues:
        budget = count(_transcript(dialogue)) * percent // 100
        possible = len(fit(dialogue, budget, count))
        texts = {"extractive": summarize(dialogue.turns, budget, count=count).text}
        texts |= {name: make(dialogue.turns, budget, count) for name, make in BASELINES.items()}
        for name, text in texts.items():
            _add(scores[name], dialogue, text, possible)
            scores[name].over += bool(text) and count(text) > budget
    return scores


def fit(dialogue: Dialogue, budget: int, count: TokenCounter) -> list[Label]:
    """The most labelled statements that an oracle fits into a budget, in the form of summaries.

    The shortest are chosen first: that is the largest number, except that neighbours of one
    speaker share a label of the speaker.
    """
    chosen: list[Label] = []
    order = {label.text: place for place, label in enumerate(dialogue.labels)}
    for label in sorted(dialogue.labels, key=lambda one: len(one.text)):
        more = sorted([*chosen, label], key=lambda one: order[one.text])
        lines = (Line(one.role, one.role != "tool", one.text) for one in more)
        if count(write_lines(lines)) <= budget:
            chosen = more
    return chosen


def _transcript(dialogue: Dialogue) -> str:
    return "\n".join(turn.text for turn in dialogue.turns)


def _add(score: Score, dialogue: Dialogue, text: str, possible: int) -> None:
    kept = [label for label in dialogue.labels if label.text in text]
    score.kept += len(kept)
    score.labels += len(dialogue.labels)
    score.possible += possible
    score.shares.append(min(1.0, len(kept) / possible) if possible else 1.0)
    for label in dialogue.labels:
        counts = score.by_category.setdefault(label.category, [0, 0])
        counts[0] += label in kept
        counts[1] += 1
    known = Counter(_DIGITS.findall(_transcript(dialogue)))
    score.altered += sum(number not in known for number in _DIGITS.findall(text))
    score.stale += sum(
        bool(label.replaces) and str(label.replaces) in text for label in dialogue.labels
    )
