"""What a backend owes to recall: vectors, how often entries were used, how far embedding has come.

The third part of `storage/port.py`, whose general rules hold here too. No text is kept here, and
what is kept goes with its entry: `Entries.remove` removes it in the same transaction, and
`Entries.replace` removes the vectors of an entry whose value or sensitivity is another than before.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from memorywall.records.recall import EntryVector


class RecallRepository(Protocol):
    """Kept for each tenant; vectors for each model by itself, so that no two ever mix."""

    async def put_vectors(self, model: str, vectors: Sequence[EntryVector]) -> None:
        """Keeps vectors, in the place of those kept before under this model. One whose entry is not
        there at its version, or is sealed, is passed over."""
        ...

    async def vectors(self, model: str, entry_ids: Collection[str]) -> dict[str, bytes]:
        """The vectors of these entries under a model, as far as they are kept."""
        ...

    async def remove_other_models(self, model: str, limit: int) -> int:
        """Removes up to `limit` vectors of other models, and where embedding under those had come;
        returns how many vectors went."""
        ...

    async def position(self, model: str) -> int:
        """Up to which `seq` of the tenant's log entries have been embedded under a model; 0 where
        that has not begun."""
        ...

    async def take_turn(self, model: str, holder: str, now: str, until: str) -> int | None:
        """Makes `holder` the one who embeds the tenant's entries until an instant, and returns the
        position. None, and nothing changed, while somebody else is."""
        ...

    async def advance(self, model: str, holder: str, position: int) -> bool:
        """Moves the position. False, and nothing changed, when `holder` has not the turn."""
        ...

    async def add_uses(self, uses: Mapping[str, int]) -> None:
        """Adds to how often entries were used. An id that is gone is passed over."""
        ...

    async def uses(self, entry_ids: Collection[str]) -> dict[str, int]:
        """How often these entries were used, without those that never were."""
        ...
