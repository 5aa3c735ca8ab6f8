"""What semantic namespaces are loaded from, and what is said of a file that is wrong."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from memorywall.records.entry import VALUE_LIMIT
from memorywall.workflow import SemanticEntry, SemanticNamespace, read_workflow
from memorywall.workflow.preload import JSON_LIMIT, YAML_LIMIT
from tests.workflow.support import SMALL, WITH_KNOWLEDGE, complaints, problems, read, write

LIMIT = {"key": "limit", "value": {"usd": 10_000, "since": "2025-06-01"}, "tags": ["a", "b"]}
SECRET = {"key": "secret", "value": {}, "sensitivity": "restricted"}
ENTRIES = (
    SemanticEntry(key="limit", value={"usd": 10_000, "since": "2025-06-01"}, tags=("a", "b")),
    SemanticEntry(key="secret", value={}, sensitivity="restricted"),
)
LISTED = json.dumps([LIMIT, SECRET], indent="\t")
LINED = f"{json.dumps(LIMIT)}\r\n\n  {json.dumps(SECRET)}"
INDENTED = """\
- key: limit
  value:
    usd: 10000
    since: 2025-06-01
  tags: [a, b]
- {key: secret, value: {}, sensitivity: restricted}
"""


def namespace(file: Path) -> SemanticNamespace:
    """The one namespace of a workflow."""
    (found,) = read_workflow(file).memory.semantic_namespaces
    return found


def told(folder: Path, name: str, content: str | bytes) -> list[str]:
    """What is said of a file of knowledge with this name and content, without its name."""
    write(folder, content, name)
    lines = problems(write(folder, WITH_KNOWLEDGE))
    assert all(line.startswith(f"{name}:") for line in lines), lines
    return [line.removeprefix(f"{name}:") for line in lines]


@pytest.mark.parametrize("folder", ["", "flow/"])
@pytest.mark.parametrize(
    ("suffix", "content"),
    [("json", LISTED), ("jsonl", LINED), ("yaml", INDENTED), ("yml", INDENTED), ("yaml", "[]")],
)
def test_a_file_with_the_name_of_the_namespace_is_loaded(
    tmp_path: Path, folder: str, suffix: str, content: str
) -> None:
    file = write(tmp_path, content, f"{folder}policies.{suffix}")
    loaded = namespace(write(tmp_path, WITH_KNOWLEDGE))
    assert loaded.file == file
    assert loaded.entries == (() if content == "[]" else ENTRIES)


def test_entries_are_elements_of_a_batch(tmp_path: Path) -> None:
    write(tmp_path, LISTED, "policies.json")
    assert namespace(write(tmp_path, WITH_KNOWLEDGE)).elements() == [
        {
            "namespace": "policies",
            "key": "limit",
            "value": {"usd": 10_000, "since": "2025-06-01"},
            "memory_type": "semantic",
            "tags": ["a", "b"],
            "sensitivity": "internal",
        },
        {
            "namespace": "policies",
            "key": "secret",
            "value": {},
            "memory_type": "semantic",
            "tags": [],
            "sensitivity": "restricted",
        },
    ]


def test_a_namespace_without_a_file_is_only_declared(tmp_path: Path) -> None:
    (tmp_path / "policies.json").mkdir()
    write(tmp_path, LISTED, "elsewhere/policies.json")
    write(tmp_path, LISTED, "policies.txt")
    assert namespace(write(tmp_path, WITH_KNOWLEDGE)) == SemanticNamespace(name="policies")


def test_the_workflow_file_is_not_its_own_knowledge(tmp_path: Path) -> None:
    file = write(tmp_path, WITH_KNOWLEDGE, "policies.yaml")
    assert namespace(file) == SemanticNamespace(name="policies")


@pytest.mark.parametrize("name", ["../policies", "deeper/policies", ".policies"])
def test_a_name_of_several_parts_is_no_path(tmp_path: Path, name: str) -> None:
    write(tmp_path, LISTED, "policies.json")
    write(tmp_path, LISTED, ".policies.json")
    write(tmp_path, LISTED, "in/deeper/policies.json")
    file = write(tmp_path, WITH_KNOWLEDGE.replace("policies", name), "in/flow.yaml")
    assert namespace(file) == SemanticNamespace(name=name)


def test_a_name_too_long_for_a_file_has_none(tmp_path: Path) -> None:
    name = "n" * 256
    file = write(tmp_path, WITH_KNOWLEDGE.replace("policies", name))
    assert namespace(file) == SemanticNamespace(name=name)


def test_from_names_a_file(tmp_path: Path) -> None:
    write(tmp_path, "[]", "deep/rules.yaml")
    file = write(tmp_path, LISTED, "facts/rules.json")
    text = SMALL + "memory: {semantic_namespaces: [{name: deep/rules, from: facts/rules.json}]}\n"
    assert namespace(write(tmp_path, text)) == SemanticNamespace(
        name="deep/rules", file=file, entries=ENTRIES
    )


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("none.json", "there is no such file"),
        ("flow", "must end in .json, .jsonl, .yaml, .yml"),
        ("folder.json", "there is no such file"),
        ("../outside.json", "must be in the folder of the workflow file"),
        ("/etc/outside.json", "must be in the folder of the workflow file"),
        ("link.json", "must be in the folder of the workflow file"),
        ("loop.json", "there is no such file"),
    ],
)
def test_from_must_name_a_file_inside_the_folder(tmp_path: Path, given: str, reason: str) -> None:
    folder = tmp_path / "in"
    (folder / "folder.json").mkdir(parents=True)
    (folder / "link.json").symlink_to(write(tmp_path, LISTED, "outside.json"))
    (folder / "loop.json").symlink_to("loop.json")
    text = SMALL + f"memory: {{semantic_namespaces: [{{name: p, from: {given}}}]}}\n"
    assert complaints(folder, text) == [f"7:48: memory.semantic_namespaces[0].from: {reason}"]


def test_two_files_of_one_name_are_one_too_many(tmp_path: Path) -> None:
    write(tmp_path, LISTED, "policies.json")
    write(tmp_path, LISTED, "flow/policies.json")
    assert complaints(tmp_path, WITH_KNOWLEDGE) == [
        "7:32: memory.semantic_namespaces[0]: 2 files have this namespace's name; name one by"
        " `from`"
    ]


def test_a_file_found_by_its_name_may_not_lead_away(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "policies.json").symlink_to(write(tmp_path, LISTED, "outside.json"))
    assert complaints(folder, WITH_KNOWLEDGE) == [
        "7:32: memory.semantic_namespaces[0]: its file must be in the folder of the workflow file"
    ]


WRONG_JSON = {
    "mapping": ('\n {"key": "a"}', "2:2: must be a list of entries"),
    "nothing": ("", "1:1: must be a list of entries"),
    "unclosed": ('[{"key": "a", "value": {}}', "1:27: is not JSON: Expecting ',' or ']'"),
    "more": ("[] []", "1:4: is not JSON: Extra data"),
    "comma": (
        "[{},\n]",
        "1:2: [0]: the key `key` is missing",
        "1:2: [0]: the key `value` is missing",
        "2:1: is not JSON: Expecting value",
    ),
    "text": ('[\n  "a"]', "2:3: [0]: must be a mapping"),
    "keys": (
        '[{"key": "a", "value": {}},\n {"kee": 1, "value": [], "tags": "a", "sensitivity": "x"}]',
        "2:2: [1]: the key `key` is missing",
        "2:2: [1]: unknown key `kee`; do you mean `key`?",
        "2:2: [1].sensitivity: must be one of `public`, `internal`, `confidential`, `restricted`",
        "2:2: [1].tags: must be a list",
        "2:2: [1].value: must be a mapping",
    ),
    "twice": (
        '[{"key": "a", "value": {"b": 1, "b": 2}}, \n\n\t{"key": "a", "value": {}}]',
        "1:2: [0].value: the key `b` occurs twice",
        "3:2: [1].key: the entry at line 1 has the same key",
    ),
    "several lines": (
        '[\n{"key": "a", "value": {}},\n{"key": "b", "value": {}},\n  {"key": "c"}\n, 7]',
        "4:3: [2]: the key `value` is missing",
        "5:3: [3]: must be a mapping",
    ),
    "numbers": (
        '[{"key": "a", "value": {"b": NaN, "c": -Infinity, "d": 1e999, "e": 1' + "0" * 30 + "}}]",
        "1:2: [0].value.b: is a number that cannot be stored",
        "1:2: [0].value.c: is a number that cannot be stored",
        "1:2: [0].value.d: is a number that cannot be stored",
        "1:2: [0].value.e: is a number that cannot be stored",
    ),
    "surrogates": (
        '[{"key": "\\ud83d\\ude00", "value": {"b": "\\ud83d", "\\ude00": 1}}]',
        "1:2: [0].value: a key contains half a surrogate pair, which is not a character",
        "1:2: [0].value.b: contains half a surrogate pair, which is not a character",
    ),
    "tags": (
        '[{"key": "a", "value": {}, "tags": ["b,c", "d", "d", 3]}]',
        "1:2: [0].tags[0]: must not contain `,`",
        "1:2: [0].tags[2]: occurs twice in this list",
        "1:2: [0].tags[3]: must be text; put it in quotes",
    ),
    "many tags": (
        json.dumps([{"key": "a", "value": {}, "tags": [str(tag) for tag in range(65)]}]),
        "1:2: [0].tags: must have at most 64 elements",
    ),
    "size": (
        json.dumps([{"key": "a", "value": {"b": "c" * VALUE_LIMIT}}]),
        f"1:2: [0].value: has more than {VALUE_LIMIT} bytes as JSON",
    ),
    "deep": (
        '[{"key": "a", "value": ' + '{"b": ' * 70 + "1" + "}" * 70 + "}]",
        "1:2: [0].value" + ".b" * 64 + ": is nested deeper than 64 levels",
    ),
    "deeper": ("[" * 200_000, "1:2: is nested deeper than 64 levels"),
    "bytes": (b'[\n {"key": "\xff"}]', "2:11: is not UTF-8"),
    "too large": (b"[" + b" " * JSON_LIMIT, f"1:1: is larger than {JSON_LIMIT} bytes"),
}


@pytest.mark.parametrize("kind", WRONG_JSON)
def test_a_json_file_that_is_wrong(tmp_path: Path, kind: str) -> None:
    content, *expected = WRONG_JSON[kind]
    assert told(tmp_path, "policies.json", content) == expected


def test_each_line_of_json_lines_is_reported(tmp_path: Path) -> None:
    lines = [
        '{"key": "a", "value": {}}',
        "",
        '{"key": "b" "value": {}}',
        '  {"key": "a", "value": 3}',
        "[" * 200_000,
        '{"key": "c", "value": {}} {}',
        '{"key": "d", "value": {}}',
    ]
    assert told(tmp_path, "policies.jsonl", "\n".join(lines)) == [
        "3:13: is not JSON: Expecting ',' delimiter",
        "4:3: [2].key: the entry at line 1 has the same key",
        "4:3: [2].value: must be a mapping",
        "5:1: is nested deeper than 64 levels",
        "6:27: is not JSON: Extra data",
    ]


def test_a_yaml_file_that_is_wrong(tmp_path: Path) -> None:
    assert told(tmp_path, "policies.yaml", "key: a\n") == ["1:1: must be a list of entries"]
    text = "- key: a\n  value: {b: 1}\n- key: a\n  value: *b\n"
    assert told(tmp_path, "policies.yaml", text) == [
        "4:10: aliases are not allowed; write the value out"
    ]
    text = "- key: a\n  value: {b: 1}\n- key: a\n  value:\n    - 3\n  tag: [x]\n"
    assert told(tmp_path, "policies.yaml", text) == [
        "3:8: [1].key: the entry at line 1 has the same key",
        "5:5: [1].value: must be a mapping",
        "6:3: [1]: unknown key `tag`; do you mean `tags`?",
    ]
    assert told(tmp_path, "policies.yaml", b"#" * (YAML_LIMIT + 1)) == [
        f"1:1: is larger than {YAML_LIMIT} bytes"
    ]


def test_problems_of_all_files_come_at_once_the_workflows_first(tmp_path: Path) -> None:
    write(tmp_path, "{}", "policies.json")
    write(tmp_path, "{}", "actions.yaml")
    text = SMALL + "memory: {semantic_namespaces: [policies, actions]}\nx: 1\n"
    assert problems(write(tmp_path, text)) == [
        "flow.yaml:8:1: unknown key `x`",
        "actions.yaml:1:1: must be a list of entries",
        "policies.json:1:1: must be a list of entries",
    ]


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "policies.json")
    assert namespace(write(tmp_path, WITH_KNOWLEDGE)) == SemanticNamespace(name="policies")


def test_names_are_read_in_the_form_in_which_they_are_stored(tmp_path: Path) -> None:
    """So that a step finds its agent, and a second run the entries of the first."""
    nfc, nfd = "caf\u00e9", "cafe\u0301"
    write(tmp_path, f"- {{key: {nfd}, value: {{}}, tags: [{nfd}]}}\n", f"{nfd}.yaml")
    workflow = read(
        tmp_path,
        f"name: {nfd}\nmemory: {{semantic_namespaces: [{nfd}]}}\nagents: {{{nfd}: {{}}}}\n"
        f"plan: [{{task: {nfd}, agent: {nfc}}}]\n",
    )
    (namespace,) = workflow.memory.semantic_namespaces
    (entry,) = namespace.entries
    names = [workflow.name, namespace.name, entry.key, *entry.tags, *workflow.agents]
    names += [one for step in workflow.plan for one in (step.task, step.agent)]
    assert set(names) == {nfc}
