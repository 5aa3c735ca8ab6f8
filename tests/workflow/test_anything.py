"""Whatever stands in a file, it is a workflow or a WorkflowError, and values are not repeated."""

from __future__ import annotations

import copy
import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, assume, event, example, given, settings
from hypothesis import strategies as st

from memorywall.workflow import PlanStep, Workflow, WorkflowError, read_workflow
from memorywall.workflow.order import circles, in_order
from tests.support.extent import examples
from tests.workflow.support import PRINTED, WITH_KNOWLEDGE, write

CANARY = "canary7q"
COMMON = settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
FULL: dict[str, Any] = yaml.safe_load(PRINTED)
FULL["agents"]["data-agent"]["function"] = "module:name"
FULL["plan"][1].update(parent="gather-financial-data", input={"a": [1, {"b": None}]})
FULL["plan"][1].update(depends_on=[], function="module:other")
FULL["memory"]["semantic_namespaces"][2] = {"name": "billing_domain", "from": "policies.json"}
KEYS = sorted(
    {
        "name", "version", "memory", "agents", "plan", "task", "agent", "parent", "depends_on",
        "input", "outputs", "memory_policy", "capacity", "from", "function", "permissions",
        "semantic_namespaces", "working_memory", "max_entries", "x", "", "1", "\ud800", "a\nb",
    }
)  # fmt: skip


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


def outcome(file: Path) -> Workflow | WorkflowError:
    """What reading gives; anything but these two fails the test."""
    try:
        return read_workflow(file)
    except WorkflowError as error:
        refused = error
    lines = refused.detail.split("\n")
    assert refused.problems
    assert lines[1:] == [str(problem) for problem in refused.problems]
    assert all(problem.line >= 1 and problem.column >= 1 for problem in refused.problems)
    refused.detail.encode()
    return refused


# Any text


_FRAGMENTS = [
    *"[]{}:-?,#&*!|>'\"%@`\\\n\t ~<=.0",
    "  ", "- ", ": ", "\n  ", "---\n", "...\n", "? ", "!!int ", "&a ", "*a", "<<: ", "name: ",
    "plan:\n", "agents:", "task: a", "%YAML 1.1\n", "%TAG ! x\n", "|2-\n", ">+\n", '"\\x', '"\\u',
    "\\U0011", "\r\n", "\x85", "\u2028", "\ufeff", "\u00e9", "\U0001f600", "null", "1e9", "0x1f",
]  # fmt: skip
_yaml_like = st.lists(st.sampled_from(_FRAGMENTS), max_size=40).map("".join)


@given(st.one_of(st.binary(max_size=200), st.text().map(str.encode), _yaml_like.map(str.encode)))
@settings(COMMON, max_examples=examples(1_500))
def test_any_text(folder: Path, content: bytes) -> None:
    outcome(write(folder, content))


@given(_yaml_like, st.integers(0, len(PRINTED)), st.integers(0, 10))
@settings(COMMON, max_examples=examples(500))
def test_text_put_into_the_printed_file(folder: Path, text: str, at: int, cut: int) -> None:
    got = outcome(write(folder, PRINTED[:at] + text + PRINTED[at + cut :]))
    event(type(got).__name__)


# Any tree


_leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.integers(),
    st.floats(),
    st.text(max_size=5).map(lambda text: CANARY + text),
    st.sampled_from([CANARY, f"{CANARY}:{CANARY}", f"../{CANARY}.json", f"{CANARY}\ud800"]),
)
_values = st.recursive(
    _leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(KEYS), inner, max_size=3)
    ),
    max_leaves=6,
)


def places(tree: Any) -> list[tuple[Any, Any]]:
    """Every place in the tree: what holds it, and its key or index there."""
    found: list[tuple[Any, Any]] = []
    if isinstance(tree, dict):
        found.extend((tree, key) for key in tree)
    elif isinstance(tree, list):
        found.extend((tree, index) for index in range(len(tree)))
    for holder, key in list(found):
        found.extend(places(holder[key]))
    return found


@st.composite
def changed_trees(draw: st.DrawFn) -> Any:
    """The full workflow with a few things removed, replaced, renamed, added or doubled."""
    tree = copy.deepcopy(FULL)
    for _ in range(draw(st.integers(1, 4))):
        found = places(tree)
        assume(found)
        holder, key = found[draw(st.integers(0, len(found) - 1))]
        change = draw(st.sampled_from(["remove", "replace", "rename", "double", "move"]))
        if change == "remove":
            del holder[key]
        elif change == "replace":
            holder[key] = draw(_values)
        elif change == "move":
            other, place = found[draw(st.integers(0, len(found) - 1))]
            holder[key] = copy.deepcopy(other[place]) if place in keys_of(other) else None
        elif isinstance(holder, dict):
            holder[draw(st.sampled_from(KEYS))] = copy.deepcopy(holder[key])
            if change == "rename":
                holder.pop(key)
        else:
            holder.append(copy.deepcopy(holder[key]))
    return tree


def keys_of(holder: Any) -> Any:
    """The keys or indexes of a mapping or a list."""
    return holder if isinstance(holder, dict) else range(len(holder))


class _Dumper(yaml.SafeDumper):
    """Writes what stands twice twice, for aliases are refused."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def as_yaml(tree: Any) -> str:
    return yaml.dump(tree, Dumper=_Dumper, allow_unicode=False, sort_keys=False)


@pytest.mark.parametrize("dump", [as_yaml, json.dumps])
@given(tree=changed_trees())
@example(tree=FULL)
@settings(COMMON, max_examples=examples(400))
def test_any_tree(folder: Path, dump: Callable[[Any], str], tree: Any) -> None:
    write(folder, "[]", "policies.json")
    got = outcome(write(folder, dump(tree)))
    event(type(got).__name__)
    if tree == FULL:
        assert isinstance(got, Workflow)
    if isinstance(got, WorkflowError):
        assert CANARY not in got.detail


# Any knowledge


_entries = st.lists(
    st.dictionaries(st.sampled_from(["key", "value", "tags", "sensitivity", "x"]), _values),
    max_size=3,
)
_json_like = st.lists(
    st.sampled_from([*'[]{}:,"\\ \n\t0-.eE', '"key"', '"value"', "NaN", "null", "\\ud83d", "{}"]),
    max_size=30,
).map("".join)


@pytest.mark.parametrize("suffix", ["json", "jsonl", "yaml"])
@given(
    st.one_of(
        st.binary(max_size=100),
        _json_like.map(str.encode),
        _yaml_like.map(str.encode),
        _values.map(lambda value: json.dumps(value).encode()),
        _entries.map(lambda entries: json.dumps(entries).encode()),
        _entries.map(lambda entries: "\n".join(map(json.dumps, entries)).encode()),
    )
)
@settings(COMMON, max_examples=examples(400))
def test_any_knowledge(folder: Path, suffix: str, content: bytes) -> None:
    file = write(folder, content, f"knowledge/{suffix}/policies.{suffix}")
    got = outcome(write(file.parent, WITH_KNOWLEDGE))
    if isinstance(got, WorkflowError):
        assert CANARY not in got.detail
    else:
        json.dumps([space.elements() for space in got.memory.semantic_namespaces]).encode()


# Any order


@st.composite
def plans(draw: st.DrawFn) -> list[PlanStep]:
    names = [f"t{index}" for index in range(draw(st.integers(1, 7)))]
    some = st.lists(st.sampled_from(names), max_size=2, unique=True)
    parents = st.one_of(st.none(), st.none(), st.sampled_from(names))
    return [
        PlanStep(task=name, agent="a", depends_on=tuple(draw(some)), parent=draw(parents))
        for name in names
    ]


def without_circles(plan: list[PlanStep]) -> list[PlanStep]:
    """The plan with the links of a step in each circle taken away, until there is none."""
    while found := circles(plan):
        for first, *_ in found:
            plan[first] = PlanStep(task=plan[first].task, agent="a")
            plan = [
                replace(step, parent=None) if step.parent == plan[first].task else step
                for step in plan
            ]
    return plan


def carried_out(plan: list[PlanStep], first: int = 100) -> tuple[list[str], set[str]]:
    """Does one thing after another that can be done with the first steps of a plan: the steps
    begun in order, and those ended."""
    begun: list[str] = []
    ended: set[str] = set()
    while True:
        for step in plan[:first]:
            parts = {part.task for part in plan if part.parent == step.task}
            if step.task not in begun:
                if ended.issuperset(step.depends_on) and step.parent in (None, *begun):
                    begun.append(step.task)
                    break
            elif step.task not in ended and ended.issuperset(parts):
                ended.add(step.task)
                break
        else:
            return begun, ended


@given(plans())
@settings(COMMON, max_examples=examples(1_000))
def test_a_plan_has_a_circle_exactly_when_it_cannot_be_carried_out(plan: list[PlanStep]) -> None:
    _, ended = carried_out(plan)
    found = circles(plan)
    event("circle" if found else "order")
    assert bool(found) == (len(ended) < len(plan))
    named = [index for circle in found for index in circle]
    assert len(named) == len(set(named))
    for circle in found:
        assert circle[0] == min(circle)
        # Nothing but a circle is named: every step of it is one that never ends.
        assert not ended.intersection(plan[index].task for index in circle)


@given(plans().map(without_circles))
@settings(COMMON, max_examples=examples(500))
def test_each_step_follows_its_dependencies(plan: list[PlanStep]) -> None:
    ordered = list(in_order(plan))
    assert sorted(step.task for step in ordered) == sorted(step.task for step in plan)
    for count, step in enumerate(ordered):
        begun, ended = carried_out(ordered, count)
        # With no more than the steps before it, all it depends on ends and its parent begins.
        assert ended.issuperset(step.depends_on)
        assert step.parent in (None, *begun)
    assert list(in_order(ordered)) == ordered
