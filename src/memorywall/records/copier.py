"""Functions that copy a record into another type, such as an entry into its wire form."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from typing import Any, Protocol, TypeVar, cast

From = TypeVar("From")
To = TypeVar("To")
_From = TypeVar("_From", contravariant=True)
_To = TypeVar("_To", covariant=True)


class Copier(Protocol[_From, _To]):
    """Makes a record from a source and from the fields that the call gives.

    copied: the name or the path in the source of each field that is copied
    """

    source: type
    target: type
    copied: dict[str, str]

    def __call__(self, source: _From, /, **given: Any) -> _To:
        """The new record. Raises TypeError for a missing or unknown field."""
        ...


def copier(
    source: type[From],
    target: type[To],
    /,
    *,
    given: Collection[str] = (),
    defaults: Collection[str] = (),
    **rules: str | Callable[[From], Any],
) -> Copier[From, To]:
    """Returns the function that makes a target with the fields of a source of the same names.

    source, target: a msgspec struct or a dataclass each; a property of the source is a field too
    given: the fields that each call gives; default: none
    defaults: the fields that have the default of the target unless a call gives them; default: none
    rules: for other fields, the source's name or path, such as "scope.task_id", or a function of
        the source

    The source text of the function is generated once, like that of a dataclass: a loop over the
    fields would take several times as long. Raises TypeError for a field of the target without a
    value, for an unknown field, and for a default that the target does not have.
    """
    names = _fields(target)
    unknown = {*given, *defaults, *rules}.difference(names)
    absent = set(defaults).difference(_with_default(target)) if defaults else set[str]()
    computed: dict[str, Any] = {"_target": target}
    copied: dict[str, str] = {}
    arguments = []
    for name in names:
        rule = rules.get(name, name)
        if name in given:
            arguments.append(f"{name}={name}")
        elif callable(rule):
            computed[f"_{name}"] = rule
            arguments.append(f"{name}=_{name}(_source)")
        elif name not in defaults:
            if not _has(source, rule.partition(".")[0]):
                absent.add(name)
            copied[name] = rule
            arguments.append(f"{name}=_source.{rule}")
    if unknown or absent:
        wrong = ", ".join(sorted(unknown | absent))
        raise TypeError(f"{target.__name__} cannot be made from {source.__name__}: {wrong}")
    parameters = ", ".join(["_source", "/", *(["*", *given] if given else [])])
    if defaults:
        parameters, arguments = f"{parameters}, **_given", [*arguments, "**_given"]
    text = f"def copy({parameters}):\n    return _target({', '.join(arguments)})"
    exec(text, computed)  # noqa: S102
    made = computed["copy"]
    made.source, made.target, made.copied = source, target, copied
    return cast(Copier[From, To], made)


def _fields(kind: type) -> tuple[str, ...]:
    if hasattr(kind, "__struct_fields__"):
        names: tuple[str, ...] = kind.__struct_fields__
        return names
    return tuple(inspect.signature(kind).parameters)


def _with_default(kind: type) -> set[str]:
    parameters = inspect.signature(kind).parameters.values()
    return {one.name for one in parameters if one.default is not inspect.Parameter.empty}


def _has(kind: type, name: str) -> bool:
    return hasattr(kind, name) or name in _fields(kind)
