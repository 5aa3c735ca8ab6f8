"""The windows of known models, as data with the date at which they were read."""

from __future__ import annotations

from importlib import resources

import msgspec


class ModelPreset(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The tokens of a model: a starting point, which `window` and `reserve` of a request replace.

    window: the most tokens of prompt and output together
    reserve: the tokens that are left for the output; at least those that the prompt must not take
    vocabulary: the vocabulary that counts its tokens; None where none is public
    """

    window: int
    reserve: int
    vocabulary: str | None = None


class Presets(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The presets and their date. A model that is not listed needs `window` in the request."""

    date: str
    models: dict[str, ModelPreset]


PRESETS = msgspec.json.decode(
    resources.files(__package__).joinpath("models.json").read_bytes(), type=Presets
)
