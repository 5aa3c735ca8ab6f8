"""Functions that copy a record into another type, and all those that memorywall has made."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from types import ModuleType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest

import memorywall
from memorywall.records.copier import Copier, copier


class _Place(msgspec.Struct, frozen=True, kw_only=True):
    city: str


class _Person(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    age: int
    place: _Place

    @property
    def is_adult(self) -> bool:
        return self.age >= 18


@dataclass(frozen=True, kw_only=True, slots=True)
class _Shown:
    name: str
    city: str
    is_adult: bool
    years: str
    seen: str
    note: str = "none"


_SHOW = copier(
    _Person,
    _Shown,
    given=["seen"],
    defaults=["note"],
    city="place.city",
    years=lambda one: f"{one.age} years",
)
_ADA = _Person(name="Ada", age=36, place=_Place(city="London"))


def test_fields_come_from_the_source_from_rules_and_from_the_call() -> None:
    wanted = _Shown(name="Ada", city="London", is_adult=True, years="36 years", seen="now")
    assert _SHOW(_ADA, seen="now") == wanted


def test_a_call_may_give_a_field_with_a_default() -> None:
    assert _SHOW(_ADA, seen="now", note="hello").note == "hello"


@pytest.mark.parametrize("given", [{}, {"seen": "now", "name": "Eve"}, {"seen": "now", "nose": 1}])
def test_a_call_must_give_the_fields_that_were_named_and_no_others(given: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        _SHOW(_ADA, **given)


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        ({"seen": "name", "years": "name"}, "city"),
        ({"seen": "name", "years": "name", "city": "town"}, "city"),
        ({"seen": "name", "years": "name", "city": "name", "nose": "name"}, "nose"),
        ({"seen": "name", "years": "name", "given": ["city", "nose"]}, "nose"),
        ({"seen": "name", "years": "name", "defaults": ["city"]}, "city"),
    ],
)
def test_what_cannot_be_copied_is_refused_when_the_function_is_made(
    arguments: dict[str, Any], wrong: str
) -> None:
    arguments = {"defaults": ["note"]} | arguments
    with pytest.raises(TypeError, match=f"_Shown cannot be made from _Person: .*{wrong}"):
        copier(_Person, _Shown, **arguments)


def _modules() -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(memorywall.__path__, "memorywall."):
        parts = found.name.split(".")
        # Adapters copy nothing, and some need frameworks that `make integrations` installs.
        if {"testing", "adapters"}.isdisjoint(parts) and parts[-1] != "__main__":
            yield importlib.import_module(found.name)


def _copiers() -> dict[str, Copier[Any, Any]]:
    """Those that a module has made or imported, by their classes and their module."""
    return {
        f"{module.__name__}: {value.source.__name__} to {value.target.__name__}": value
        for module in _modules()
        for value in vars(module).values()
        if hasattr(value, "copied")
    }


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _type_at(kind: type, path: str) -> Any:
    """The declared type of a field or of a property, or Any where a path goes through a union."""
    for name in path.split("."):
        found = getattr(kind, name, None)
        getter = found.fget if isinstance(found, property) else None
        kind = get_type_hints(getter)["return"] if getter is not None else _hints(kind)[name]
    return kind


def _fits(source: Any, target: Any) -> bool:
    """Whether every value of one declared type is of the other."""
    if target is Any or source == target:
        return True
    if get_origin(source) in (Union, UnionType):
        return all(_fits(one, target) for one in get_args(source))
    if get_origin(target) in (Union, UnionType):
        return any(_fits(source, one) for one in get_args(target))
    if get_origin(source) is Literal and isinstance(target, type):
        return all(isinstance(one, target) for one in get_args(source))
    return isinstance(source, type) and isinstance(target, type) and issubclass(source, target)


def test_every_field_that_is_copied_has_a_type_that_the_target_declares() -> None:
    """The type checker sees the source and the target of a copier, and not their fields."""
    made = _copiers()
    assert len(made) > 20
    wrong = [
        f"{name}: {field}"
        for name, one in made.items()
        for field, path in one.copied.items()
        if not _fits(_type_at(one.source, path), _hints(one.target)[field])
    ]
    assert wrong == []
