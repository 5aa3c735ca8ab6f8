"""A text where a list is due is refused by name, and is never taken letter by letter.

The signatures of all methods of the SDK tell which arguments are lists, so that a new method is
among the cases.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast, get_type_hints

import pytest

import memorywall
import memorywall.sdk
from memorywall import Client, Worker
from memorywall.exceptions import ValidationError
from memorywall.sdk.context_loading import load_context
from memorywall.sdk.facade import AsyncFacade, Facade

_LIST = re.compile(r"(^|\| )([a-z.]+\.)?(Iterable|Sequence|Collection|list)\[")
_TEXT = re.compile(r"(^|\| )str( \||$)")
_OPTIONS = re.compile(r"Unpack\[(\w+)\]")


def _facades() -> Iterator[type]:
    for module in pkgutil.iter_modules(memorywall.sdk.__path__):
        for one in vars(importlib.import_module(f"memorywall.sdk.{module.name}")).values():
            if inspect.isclass(one) and issubclass(one, Facade | AsyncFacade):
                yield one


def _lists(method: Callable[..., Any]) -> list[str]:
    found = []
    for name, parameter in inspect.signature(method).parameters.items():
        hint = str(parameter.annotation)
        if options := _OPTIONS.fullmatch(hint):
            typed = inspect.unwrap(method).__globals__[options[1]]
            hints = {name: str(one) for name, one in get_type_hints(typed).items()}
        else:
            hints = {name: hint}
        found += [
            name for name, one in hints.items() if _LIST.search(one) and not _TEXT.search(one)
        ]
    return found


CASES = {
    f"{cls.__name__}.{name} {argument}": (cls, method, argument)
    for cls in _facades()
    for name, method in inspect.getmembers(cls, inspect.isfunction)
    if not name.startswith("_") or name == "__call__"
    for argument in _lists(method)
}


def test_there_are_such_arguments() -> None:
    assert CASES.keys() >= {
        "MemoryClient.put subjects",
        "AsyncMemoryClient.set derived_from",
        "TaskMemoryClient.put subjects",
        "TaskMemoryClient.set derived_from",
        "Client.remember subjects",
        "KeysClient.create users",
        "AsyncTasksClient.next capabilities",
        "IntentsClient.set_state remove",
    }


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_text_is_no_list_of_letters(case: tuple[type, Callable[..., Any], str]) -> None:
    cls, method, argument = case
    lists = _lists(method)
    given = {
        name: ["x"] if name in lists else "x"
        for name, parameter in inspect.signature(method).parameters.items()
        if parameter.default is parameter.empty
        and parameter.kind is not parameter.VAR_KEYWORD
        and name != "self"
    }
    # A bare object has no connection: the refusal comes before every request.
    with pytest.raises(ValidationError, match=f"`{argument}` must be a list"):
        _finish(method(cls.__new__(cls), **{**given, argument: "ann"}))


def _finish(answer: Any) -> None:
    if inspect.iscoroutine(answer):
        asyncio.run(answer)


@pytest.fixture
def client(tmp_path: Path, place: Path | str) -> Iterator[Client]:
    with memorywall.open(place, agent="billing") as opened:
        yield opened


def test_nothing_is_stored_about_letters(client: Client) -> None:
    """By position, in an element of a batch, and where a list has texts in place of entries."""
    wrong = cast(Any, "ann")
    element = {"namespace": "n", "key": "k", "value": {}, "subjects": "ann"}
    for name, call in (
        ("subjects", lambda: client.memory.put("n", "k", {}, "episodic", subjects=wrong)),
        ("subjects", lambda: client.remember("likes tea", subjects=wrong)),
        ("subjects", lambda: client.memory.batch([element])),
        ("users", lambda: client.call("create_key", agent_id="ada", users="ann")),
        ("derived_from", lambda: client.memory.batch([{**element, "derived_from": "mem_1"}])),
        ("derived_from", lambda: client.memory.put("n", "k", {}, derived_from=cast(Any, ["m"]))),
        ("capabilities", lambda: client.tasks.next(wrong)),
        ("participants", lambda: client.sessions.create(participants=wrong)),
        ("namespaces", lambda: load_context(client, cast(Any, None), ["t"], namespaces=wrong)),
        ("capabilities", lambda: Worker(capabilities="billing")),
    ):
        with pytest.raises(ValidationError, match=f"`?{name}"):
            call()
    assert client.memory.count(agent_id="billing") == 0


def test_one_text_is_one_tag(client: Client) -> None:
    intent = client.intents.create("work")
    task = client.tasks.create(intent.id, "bill")
    client.memory.put("n", "k", {"text": "tea"}, "episodic", tags="vip")
    client.memory.batch(
        [{"namespace": "n", "key": "b", "value": {}, "memory_type": "episodic", "tags": "v"}]
    )
    assert [one.tags for one in client.memory.query(tags="vip")] == [("vip",)]
    assert [one.key for one in load_context(client, task, "vip").episodic] == ["k"]
    assert [one.entry.key for one in client.memory.search("tea", tags_any="vip")] == ["k"]
