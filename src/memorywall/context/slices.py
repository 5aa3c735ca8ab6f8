"""The slices of a context that the next one begins with."""

from __future__ import annotations

from collections.abc import Sequence

from memorywall.context.sources import DEMOTED
from memorywall.context.units import Unit


def key_of(unit: Unit) -> tuple[str, int]:
    """Returns the name of a unit in a slice: an item of another version is another one."""
    return unit.first.id, unit.first.version


def kept_units(units: Sequence[Unit], kept: Sequence[tuple[str, int]]) -> list[Unit]:
    """Returns the units that a slice of the previous context had, in its order. A changed source
    stands before the first item that was derived from it. An item that a lesson rejects has left.

    kept: ids and versions of the items of the slice
    """
    places: dict[tuple[str, int], float] = {one: at for at, one in enumerate(kept)}
    by_id = {name: at for at, (name, _) in enumerate(kept)}
    for unit in units:
        derived = [by_id[name] for name in unit.first.beside if name in by_id]
        if unit.first.reason == DEMOTED:
            places.pop(key_of(unit), None)
        elif derived:
            places.setdefault(key_of(unit), min(derived) - 0.5)
    return sorted((unit for unit in units if key_of(unit) in places),
                  key=lambda one: places[key_of(one)])  # fmt: skip
