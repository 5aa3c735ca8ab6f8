"""`memorywall watch`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import memorywall
from memorywall.cli import client_command, watch_command
from tests.cli.shell import Shell, misuse, new_directory


def test_once_prints_the_changes_so_far_and_ends(tmp_path: Path) -> None:
    data = tmp_path / "data"
    new_directory(data, "ada")
    ada = Shell("ada", ("--data", str(data), "--agent", "ada"))
    ada.succeed("set", "facts", "a", '{"secret": "sk-1"}', "--type", "semantic")
    ada.succeed("set", "own", "b", "{}")
    events = ada.json_lines("watch", "--once")
    assert [(one["type"], one["data"]["key"]) for one in events] == [
        ("memory.created", "a"), ("memory.created", "b"),
    ]  # fmt: skip
    assert "sk-1" not in str(events)
    for wanted in (("--namespace", "facts"), ("--type", "semantic"), ("--key-name", "a")):
        assert ada.json_lines("watch", "--once", *wanted) == events[:1]
    assert ada.json_lines("watch", "--once", "--after", str(events[0]["seq"])) == events[1:]
    assert "read the entries again" in ada.refuse("watch", "--once", "--after", "999")
    assert "--after" in misuse("watch", "--after", "-1")


@pytest.mark.parametrize("is_terminal", [True, False], ids=["terminal", "pipe"])
def test_a_watch_prints_lines_until_it_is_interrupted(
    place: Path | str,
    is_terminal: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`events --follow` shows with a process that an interrupted command ends like this."""
    with memorywall.open(place, agent="ada") as client:
        made = client.shared.set("plan", {"n": 1})
        seen: list[dict[str, Any]] = []
        watch = client.memory.watch

        def interrupted(after: int | None, **wanted: Any) -> Iterator[Any]:
            seen.append(wanted)
            for event in watch(after=after, **wanted):
                yield event
                raise KeyboardInterrupt

        @contextmanager
        def opened(**options: Any) -> Iterator[memorywall.Client]:
            yield client

        monkeypatch.setattr(client.memory, "watch", interrupted)
        monkeypatch.setattr(client_command, "open_client", opened)
        monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
        options = ["--after", "0", "--scope", "global"]
        watch_command.command.main(options, standalone_mode=False)
        assert seen[0]["scope"] == "global"
        (line,) = capsys.readouterr().out.splitlines()
        if is_terminal:
            seq, when, *rest = line.split()
            assert (seq.isdigit(), when) == (True, made.created_at)
            assert rest == ["memory.created", "shared", "shared/global/plan", "v1"]
        else:
            assert json.loads(line)["data"]["entry_id"] == made.id
