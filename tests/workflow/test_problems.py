"""Every way in which a workflow file can be wrong is told with its line and column."""

from __future__ import annotations

from pathlib import Path

import pytest

from memorywall.records.errors import ConfigurationError
from memorywall.workflow import WorkflowError, read_workflow
from memorywall.workflow.preload import YAML_LIMIT
from tests.workflow.support import PRINTED, SMALL, complaints, problems, write

COUNT = "must be a whole number from 1 to 1000000"
NAME = "must have 1 to 256 printable characters and no space at either end"


def with_memory(text: str) -> str:
    """The small workflow with this as its seventh line and what follows."""
    return f"{SMALL}memory:\n{text}"


def with_steps(*steps: str) -> str:
    """A workflow with these steps, the first of them at line 4."""
    return "name: n\nagents: {w: {}}\nplan:\n" + "".join(f"  - {{{step}}}\n" for step in steps)


WRONG = {
    "misspelled key": (
        with_memory("  episodic_memory:\n    capcity_per_agent: 5\n"),
        "9:5: memory.episodic_memory: unknown key `capcity_per_agent`;"
        " do you mean `capacity_per_agent`?",
    ),
    "key at the top": (SMALL + "zzz: 1\n", "7:1: unknown key `zzz`"),
    "key of the memory block": (with_memory("  x: 1\n"), "8:3: memory: unknown key `x`"),
    "key of an agent": (
        SMALL.replace("{}", "{capabilites: []}"),
        "3:12: agents.worker: unknown key `capabilites`; do you mean `capabilities`?",
    ),
    "key of an agent's memory": (
        SMALL.replace("{}", "{episodic_memory: {capacity_per_agent: 3}}"),
        "3:30: agents.worker.episodic_memory: unknown key `capacity_per_agent`;"
        " do you mean `capacity`?",
    ),
    "key of a step": (
        SMALL + "    needs: []\n",
        "7:5: plan[0]: unknown key `needs`",
    ),
    "key of a policy": (
        SMALL + "    memory_policy: {max_entry: 3}\n",
        "7:21: plan[0].memory_policy: unknown key `max_entry`; do you mean `max_entries`?",
    ),
    "key of a namespace": (
        with_memory("  semantic_namespaces:\n    - {name: a, form: a.json}\n"),
        "9:7: memory.semantic_namespaces[0]: the key `from` is missing",
        "9:17: memory.semantic_namespaces[0]: unknown key `form`; do you mean `from`?",
    ),
    "unprintable key": (
        SMALL + '"\\e[31m\\n": 1\n',
        "7:1: unknown key `?[31m?`",
    ),
    "long key": (SMALL + "k" * 70 + ": 1\n", f"7:1: unknown key `{'k' * 64}...`"),
    "duplicate key": (
        SMALL + "name: again\n",
        "7:1: the key `name` occurs twice",
    ),
    "duplicate agent": (
        SMALL.replace("plan", "  worker: {}\nplan"),
        "4:3: agents: the key `worker` occurs twice",
    ),
    "duplicate key in an input": (
        SMALL + "    input: {a: {b: 1, b: 2}}\n",
        "7:23: plan[0].input.a: the key `b` occurs twice",
    ),
    "key that is a number": (
        SMALL + "7: x\n",
        "7:1: a key must be text; numbers and such need quotes",
    ),
    "key that is a list": (
        SMALL + "[a, b]: x\n",
        "7:1: a key must be text; numbers and such need quotes",
    ),
    "everything missing": (
        "{}",
        "1:1: the key `agents` is missing",
        "1:1: the key `name` is missing",
        "1:1: the key `plan` is missing",
    ),
    "step without its keys": (
        with_steps("outputs: []"),
        "4:5: plan[0]: the key `agent` is missing",
        "4:5: plan[0]: the key `task` is missing",
    ),
    "list at the top": ("- a\n", "1:1: must be a mapping"),
    "text for a mapping": (
        with_memory("  working_memory: all\n"),
        "8:19: memory.working_memory: must be a mapping",
    ),
    "nothing for a mapping": (
        SMALL.replace(" {}", ""),
        "3:10: agents.worker: must be a mapping",
    ),
    "text for an input": (SMALL + "    input: a\n", "7:12: plan[0].input: must be a mapping"),
    "text for a list": (
        SMALL.replace("{}", "{capabilities: billing}"),
        "3:26: agents.worker.capabilities: must be a list",
    ),
    "mapping for the plan": (
        "name: n\nagents: {w: {}}\nplan: {}\n",
        "3:7: plan: must be a list",
    ),
    "list for a text": (
        SMALL.replace("small", "[small]"),
        "1:7: name: must be text",
    ),
    "number for a text": (
        SMALL + "version: 1.0\n",
        "7:10: version: must be text; put it in quotes",
    ),
    "text for a truth value": (
        with_memory("  working_memory: {archive_on_completion: yes}\n"),
        "8:43: memory.working_memory.archive_on_completion: must be true or false",
    ),
    "text for a number": (
        with_memory('  working_memory: {max_entries_per_task: "5"}\n'),
        f"8:42: memory.working_memory.max_entries_per_task: {COUNT}",
    ),
    "truth value for a number": (
        with_memory("  episodic_memory: {capacity_per_agent: true}\n"),
        f"8:41: memory.episodic_memory.capacity_per_agent: {COUNT}",
    ),
    "number with a point": (
        SMALL + "    memory_policy: {max_entries: 2.0}\n",
        f"7:34: plan[0].memory_policy.max_entries: {COUNT}",
    ),
    "nought": (
        SMALL.replace("{}", "{episodic_memory: {capacity: 0}}"),
        f"3:40: agents.worker.episodic_memory.capacity: {COUNT}",
    ),
    "less than nought": (
        SMALL + "    memory_policy: {max_total_size_kb: -1}\n",
        "7:40: plan[0].memory_policy.max_total_size_kb: must be a whole number from 1 to"
        " 1000000000",
    ),
    "too much": (
        with_memory("  episodic_memory: {capacity_per_agent: 1000001}\n"),
        f"8:41: memory.episodic_memory.capacity_per_agent: {COUNT}",
    ),
    "number beyond every word": (
        SMALL + f"    input: {{a: 1e999, b: {'9' * 30}, c: {'9' * 5000}}}\n",
        "7:16: plan[0].input.a: is a number that cannot be stored",
        "7:26: plan[0].input.b: is a number that cannot be stored",
        "7:61: plan[0].input.c: is a number that cannot be stored",
    ),
    "half a character": (
        SMALL + '    input: {a: "\\ud800", "\\udfff": 1}\n',
        "7:16: plan[0].input.a: contains half a surrogate pair, which is not a character",
        "7:26: plan[0].input: contains half a surrogate pair, which is not a character",
    ),
    "another eviction": (
        with_memory("  episodic_memory: {eviction_policy: fifo}\n"),
        "8:38: memory.episodic_memory.eviction_policy: must be `lru`",
    ),
    "another permission": (
        SMALL.replace("{}", "{permissions: public}"),
        "3:25: agents.worker.permissions: must be one of `private`, `inherit`, `open`",
    ),
    "agent's name": (
        SMALL.replace("worker", "a/b"),
        "3:3: agents: an agent's name must not contain `/`",
        "6:12: plan[0].agent: must not contain `/`",
    ),
    "empty name": (SMALL.replace("small", '""'), f"1:7: name: {NAME}"),
    "name with a line": (SMALL.replace("only", '"a\\nb"'), f"5:11: plan[0].task: {NAME}"),
    "namespace with a star": (
        SMALL.replace("{}", "{episodic_memory: {pinned_namespaces: [a*]}}"),
        "3:50: agents.worker.episodic_memory.pinned_namespaces[0]: must not contain `*`",
    ),
    "namespace of shared state": (
        with_memory("  semantic_namespaces: [shared/global]\n"),
        "8:25: memory.semantic_namespaces[0]: must not begin with `shared/`, which is reserved for"
        " shared state",
    ),
    "namespace that is a number": (
        with_memory("  semantic_namespaces: [7]\n"),
        "8:25: memory.semantic_namespaces[0]: must be text; put it in quotes",
    ),
    "namespace twice": (
        with_memory("  semantic_namespaces: [a, b, a]\n"),
        "8:31: memory.semantic_namespaces[2]: occurs twice in this list",
    ),
    "capability twice": (
        SMALL.replace("{}", "{capabilities: [sql, sql]}"),
        "3:32: agents.worker.capabilities[1]: occurs twice in this list",
    ),
    "function without a module": (
        SMALL.replace("{}", "{function: work}"),
        "3:22: agents.worker.function: must be `module:name`, such as `my_package.billing:work`",
    ),
    "function with a call": (
        SMALL + "    function: os:system('ls')\n",
        "7:15: plan[0].function: must be `module:name`, such as `my_package.billing:work`",
    ),
    "no agents": (
        SMALL.replace("  worker: {}", "  {}"),
        "3:3: agents: must not be empty",
    ),
    "no steps": ("name: n\nagents: {w: {}}\nplan: []\n", "3:7: plan: must not be empty"),
    "unknown agent": (
        PRINTED.replace("agent: data-agent", "agent: date-agent"),
        "29:12: plan[0].agent: no agent has this name; do you mean `data-agent`?",
    ),
    "agent like no other": (
        SMALL.replace("agent: worker", "agent: q"),
        "6:12: plan[0].agent: no agent has this name",
    ),
    "unknown step": (
        PRINTED.replace("[gather-financial-data]", "[gather-finance-data]"),
        "37:18: plan[1].depends_on[0]: no step has this name; do you mean the one at line 28?",
    ),
    "step whose name is misspelled": (
        with_steps("tsk: a, agent: w", "task: b, agent: w, depends_on: [a]"),
        "4:5: plan[0]: the key `task` is missing",
        "4:6: plan[0]: unknown key `tsk`; do you mean `task`?",
    ),
    "unknown parent": (
        SMALL + "    parent: zzz\n",
        "7:13: plan[0].parent: no step has this name",
    ),
    "two steps of one name": (
        with_steps("task: a, agent: w", "task: a, agent: w, depends_on: [a]"),
        "5:12: plan[1].task: the step at line 4 has this name",
    ),
    "step that waits for itself": (
        with_steps("task: a, agent: w, depends_on: [a]"),
        "4:5: plan[0]: waits for itself",
    ),
    "circles": (
        with_steps(
            "task: free, agent: w, depends_on: [a]",
            "task: a, agent: w, depends_on: [b]",
            "task: b, agent: w, depends_on: [c, d]",
            "task: c, agent: w, depends_on: [a]",
            "task: d, agent: w, depends_on: [e]",
            "task: e, agent: w, depends_on: [d]",
        ),
        "5:5: plan[1]: waits for itself by way of the steps at lines 7, 6",
        "8:5: plan[4]: waits for itself by way of the step at line 9",
    ),
    "step that is its own parent": (
        with_steps("task: a, agent: w, parent: a"),
        "4:5: plan[0]: waits for itself; a parent ends after its sub-steps",
    ),
    "part that waits for the whole": (
        with_steps("task: a, agent: w", "task: b, agent: w, parent: a, depends_on: [a]"),
        "4:5: plan[0]: waits for itself by way of the step at line 5; a parent ends after its"
        " sub-steps",
    ),
    "whole that waits for a part": (
        with_steps("task: a, agent: w, depends_on: [b]", "task: b, agent: w, parent: a"),
        "4:5: plan[0]: waits for itself by way of the step at line 5; a parent ends after its"
        " sub-steps",
    ),
    "alias": (
        "name: &n small\n" + SMALL.replace("name: small\n", ""),
        "1:7: anchors are not allowed",
    ),
    "alias without an anchor": (
        SMALL.replace("small", "*n"),
        "1:7: aliases are not allowed; write the value out",
    ),
    "laughs": (
        "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\n",
        "1:4: anchors are not allowed",
    ),
    "tag": (
        SMALL.replace("small", "!!python/object/apply:os.system [ls]"),
        "1:7: tags are not allowed",
    ),
    "tag of nobody": (
        SMALL.replace("small", "!my!tag x"),
        "1:7: is not YAML: found undefined tag handle",
    ),
    "second document": (SMALL + "---\nname: b\n", "7:1: holds a second document"),
    "unclosed list": (
        SMALL + "version: [\n",
        "8:1: is not YAML: expected the node content, but found '<stream end>'",
    ),
    "tab": (
        SMALL + "\tx: 1\n",
        "7:1: is not YAML: found character '\\t' that cannot start any token",
    ),
    "character of no use": (
        SMALL + "version: 'a\x07'\n",
        "7:12: is not YAML: a character is not allowed",
    ),
    "escape beyond Unicode": (
        SMALL + 'version: "\\U00110000"\n',
        "7:13: is not YAML: a number is out of range",
    ),
    "directive beyond sense": (
        f"%YAML {'9' * 5000}.1\n---\n{SMALL}",
        "1:7: is not YAML: a number is out of range",
    ),
    "text after a directive": (
        f"%YAML 1.2\n{SMALL}",
        "2:1: is not YAML: expected '<document start>', but found '<scalar>'",
    ),
    "deep nesting": (
        "[" * 100_000,
        "1:66: is nested deeper than 64 levels",
    ),
    "nothing": ("", "1:1: is empty"),
    "only a comment": ("# later\n", "1:1: is empty"),
    "null": ("null\n", "1:1: must be a mapping"),
    "not UTF-8": (b"name: x\nversion: \xff\n", "2:10: is not UTF-8"),
    "UTF-16": (SMALL.encode("utf-16"), "1:1: is not UTF-8"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_problem_contains_its_position(tmp_path: Path, kind: str) -> None:
    text, *expected = WRONG[kind]
    assert all(isinstance(line, str) for line in expected)
    assert complaints(tmp_path, text) == expected


def test_all_problems_are_reported_at_once_in_order(tmp_path: Path) -> None:
    text = (
        PRINTED.replace("semantic_namespaces", "semantic_namespace")
        .replace("capacity: 200", "capacity: none")
        .replace("plan:", "plans: []\nplan:")
        .replace("[gather-financial-data]", "[process-billing]")
    )
    assert complaints(tmp_path, text) == [
        "5:3: memory: unknown key `semantic_namespace`; do you mean `semantic_namespaces`?",
        f"21:17: agents.billing-agent.episodic_memory.capacity: {COUNT}",
        "27:1: unknown key `plans`; do you mean `plan`?",
        "36:5: plan[1]: waits for itself",
    ]


def test_missing_file_is_reported(tmp_path: Path) -> None:
    assert problems(tmp_path / "none.yaml") == [
        "none.yaml:1:1: cannot be read: No such file or directory"
    ]
    assert problems(tmp_path / "a\0b.yaml") == ["a\0b.yaml:1:1: cannot be read: this is not a path"]


def test_a_file_that_is_too_large(tmp_path: Path) -> None:
    text = SMALL.encode()
    filled = text + b"#" * (YAML_LIMIT - len(text))
    assert read_workflow(write(tmp_path, filled)).name == "small"
    assert complaints(tmp_path, filled + b"#") == [f"1:1: is larger than {YAML_LIMIT} bytes"]


def test_a_plan_has_at_most_a_thousand_steps(tmp_path: Path) -> None:
    steps = [f"task: t{index}, agent: w" for index in range(1_001)]
    assert len(read_workflow(write(tmp_path, with_steps(*steps[:-1]))).plan) == 1_000
    assert complaints(tmp_path, with_steps(*steps)) == [
        "4:3: plan: must have at most 1000 elements"
    ]


def test_all_problems_are_reported(tmp_path: Path) -> None:
    steps = [f"task: t{index}, agent: x{index}" for index in range(900)]
    told = complaints(tmp_path, with_steps(*steps))
    assert len(told) == 900
    assert told[0].startswith("4:")
    assert told[-1].startswith("903:")


def test_the_error_is_one_of_configuration(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as refused:
        read_workflow(write(tmp_path, "{}"))
    assert isinstance(refused.value, WorkflowError)
    assert refused.value.code == "WORKFLOW_INVALID"
    first = refused.value.problems[0]
    assert (first.line, first.column, first.where) == (1, 1, "")
    assert first.file == str(tmp_path / "flow.yaml")
