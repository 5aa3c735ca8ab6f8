"""Whether a text is worth keeping, as it is said on the wire."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

DUPLICATE: Final = "duplicate"
"""The rule about a text that is stored already."""


class WorthinessMode(StrEnum):
    """What a tenant does with texts that are not worth keeping.

    OFF: nothing is judged
    MARK: they are stored, and the reply says so
    REFUSE: they are refused, but for what a person said
    """

    OFF = "off"
    MARK = "mark"
    REFUSE = "refuse"


class Verdict(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Whether a text is worth keeping, and the rule that decided. `refused` is true if it was not
    stored for that reason."""

    worthy: bool
    rule: str
    refused: bool = False
