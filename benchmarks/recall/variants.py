"""The compared variants: embedders, modes, and the pipeline without each of its signals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from memorywall.recall.weights import Weights

HYBRID = "hybrid"
LEXICAL = "lexical"
DENSE = "dense"
NONE = "none"
LABELS = {NONE: "words only", "static": "static", "local": "MiniLM"}
MODES = {NONE: (LEXICAL,)}
"""Of an embedder; all three where it is not named."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Variant:
    """A way to rank.

    other: the weights that are others than usual
    names_stay: whether names of authors stay in the query
    """

    title: str
    other: Mapping[str, Any] = field(default_factory=dict)
    names_stay: bool = False

    def weights(self, usual: Weights) -> Weights:
        """Returns the weights of a server with the differences of this variant."""
        return replace(usual, **self.other)


def modes_of(embedder: str) -> tuple[str, ...]:
    """The modes that differ under an embedder; the last is the one it is there for."""
    return MODES.get(embedder, (LEXICAL, DENSE, HYBRID))


def label_of(embedder: str) -> str:
    """Returns the display name of an embedder."""
    return LABELS.get(embedder, embedder)


WHOLE = Variant(title="everything")
_NEIGHBOURS = ("previous", "previous_question", "next", "vector_previous", "vector_next")
WITHOUT = (
    Variant(title="without neighbours", other=dict.fromkeys(_NEIGHBOURS, 0.0)),
    Variant(title="without thread", other={"thread": 0.0}),
    Variant(title="without days of notes", other={"day": 0.0}),
    Variant(title="without newer before older", other={"superseded": 1.0}),
    Variant(title="without author", other={"author": 0.0}),
    Variant(title="with names in the query", names_stay=True),
    Variant(title="without date", other={"date": 0.0}),
    Variant(title="without question penalty", other={"question": 1.0}),
    Variant(title="without the factor of assistants", other={"assistant": 1.0}),
    Variant(title="without the factor of programs", other={"code": 1.0}),
    Variant(title="without the walk over the graph", other={"graph": 0.0}),
    Variant(title="without compounds", other={"compound": 0.0}),
    Variant(title="without other names", other={"alias": 0.0}),
    Variant(title="without passages", other={"passage": 0.0}),
    Variant(title="without coverage", other={"coverage": 0.0}),
    Variant(title="without keys, tags and field names", other={"aside": 0.0}),
    Variant(title="without prior", other={"prior": 0.0}),
)
