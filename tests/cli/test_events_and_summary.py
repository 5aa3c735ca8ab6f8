"""events, with and without --follow, and summary."""

from __future__ import annotations

import json
import queue
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.cli.shell import Shell, columns, environment
from tests.support.programs import start_program

LIMIT = 30.0


def test_events_tell_what_happened_in_order_without_values(anywhere: Shell) -> None:
    anywhere.succeed("set", "invoices", "progress", '{"secret": "sk-1"}', "--tag", "batch")
    entry = anywhere.json("set", "invoices", "progress", '{"secret": "sk-2"}')
    anywhere.succeed("delete", entry["id"])
    table = anywhere.succeed("events")
    assert columns(table) == [
        "seq", "when", "type", "tier", "namespace", "key", "version", "actor",
    ]  # fmt: skip
    rows = [line.split() for line in table.splitlines()[2:]]
    assert [row[2] for row in rows] == ["memory.created", "memory.updated", "memory.deleted"]
    assert [row[6] for row in rows] == ["1", "2", "2"]
    assert {row[7] for row in rows} == {anywhere.agent}

    events = anywhere.json_lines("events", "--json")
    assert [event["type"] for event in events] == [row[2] for row in rows]
    assert {event["data"]["entry_id"] for event in events} == {entry["id"]}
    assert [event["data"].get("previous_version") for event in events] == [None, 1, None]
    assert "sk-" not in table + json.dumps(events)

    first = events[0]["seq"]
    later = anywhere.json_lines("events", "--json", "--after", str(first), "--limit", "1")
    assert [event["seq"] for event in later] == [events[1]["seq"]]


def test_no_events_are_an_empty_table(agent: Shell) -> None:
    assert len(agent.succeed("events").splitlines()) == 2
    assert agent.json_lines("events", "--json") == []


class Following:
    """A running `memorywall events --follow`, whose lines come as they are printed."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)

    def line(self) -> str:
        """The next line; fails when none comes."""
        return self._lines.get(timeout=LIMIT)


@contextmanager
def _following(agent: Shell, *options: str) -> Iterator[Following]:
    process = start_program(
        "events",
        *agent.where,
        "--follow",
        *options,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        env=environment(),
    )
    try:
        yield Following(process)
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("as_json", [False, True], ids=["people", "programs"])
def test_follow_shows_events_as_they_happen_until_interrupted(agent: Shell, as_json: bool) -> None:
    agent.succeed("set", "n", "before", "{}")
    with _following(agent, *(["--json"] if as_json else [])) as following:
        assert "before" in following.line()
        # What comes now is seen although it happens after the stream was opened.
        made = agent.json("set", "n", "while", "{}")
        line = following.line()
        if as_json:
            event: dict[str, Any] = json.loads(line)
            assert event["type"] == "memory.created"
            assert event["data"]["entry_id"] == made["id"]
        else:
            seq, when, kind, tier, name, version = line.split()
            assert seq.isdigit()
            assert when == made["created_at"]
            assert (kind, tier, name, version) == ("memory.created", "working", "n/while", "v1")
        following.process.send_signal(signal.SIGINT)
        assert following.process.wait(LIMIT) == 0
        assert following.process.stderr is not None
        assert following.process.stderr.read() == ""


def test_follow_resumes_after_a_number(agent: Shell) -> None:
    agent.succeed("set", "n", "k", "{}")
    agent.succeed("set", "n", "k", '{"a": 1}')
    first, second = agent.json_lines("events", "--json")
    with _following(agent, "--json", "--after", str(first["seq"])) as following:
        assert json.loads(following.line()) == second


def test_summary_counts_entries_of_an_agent(anywhere: Shell) -> None:
    anywhere.succeed("set", "w", "a", "{}", "--task", "task_1")
    anywhere.succeed("set", "e", "b", "{}", "--type", "episodic", "--pinned")
    namespace = f"facts-{anywhere.agent}"
    anywhere.succeed("set", namespace, "c", "{}", "--type", "semantic")

    summary = anywhere.json("summary")
    assert summary["agent_id"] == anywhere.agent
    assert summary["working"] == {
        "entry_count": 1,
        "total_size_kb": 1,
        "tasks_with_memory": ["task_1"],
    }
    assert (summary["episodic"]["entry_count"], summary["episodic"]["pinned_count"]) == (1, 1)
    assert summary["episodic"]["capacity"] == 1000
    assert namespace in summary["semantic_namespaces_accessible"]

    text = anywhere.succeed("summary")
    assert "1 of 1000 entries, 1 pinned, 1 KB" in text
    assert "task_1" in text
    assert namespace in text
    assert text.splitlines()[0].split() == ["agent", anywhere.agent]
