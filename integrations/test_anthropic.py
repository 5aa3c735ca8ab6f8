"""The memory tool of Anthropic's SDK: what its own implementation says, and paths to refuse."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anthropic
import httpx
import httpx2
import pytest
from anthropic.tools import BetaLocalFilesystemMemoryTool, ToolError

import memorywall
from memorywall.adapters.anthropic_tool import AsyncMemorywallTool, MemorywallTool
from memorywall.exceptions import MemoryNotFoundError
from memorywall.records.principal import Permission
from memorywall.sdk.client import AsyncClient
from tests.adapters.networks import Network, connect
from tests.support.service import RunningService

pytestmark = pytest.mark.anyio

LONG = "\n".join(f"line {number}" for number in range(12))
CALLS: list[dict[str, Any]] = [
    {"command": "view", "path": "/memories/absent.md"},
    {"command": "create", "path": "/memories/notes.md", "file_text": "a\nb\nb2\nc\n"},
    {"command": "create", "path": "/memories/notes.md", "file_text": "other"},
    {"command": "create", "path": "/memories/deep/er/still/x.txt", "file_text": "é" * 700},
    {"command": "create", "path": "/memories/deep/long.txt", "file_text": LONG},
    {"command": "create", "path": "/memories/.hidden", "file_text": "h"},
    {"command": "create", "path": "/memories/empty", "file_text": ""},
    {"command": "view", "path": "/memories"},
    {"command": "view", "path": "/memories/deep"},
    {"command": "view", "path": "/memories/notes.md"},
    {"command": "view", "path": "/memories/empty"},
    {"command": "view", "path": "/memories/notes.md", "view_range": [2, 3]},
    {"command": "view", "path": "/memories/notes.md", "view_range": [2, -1]},
    {"command": "view", "path": "/memories/notes.md", "view_range": [0, 99]},
    {"command": "str_replace", "path": "/memories/notes.md", "old_str": "a", "new_str": "A\nA"},
    {"command": "str_replace", "path": "/memories/notes.md", "old_str": "b", "new_str": "B"},
    {"command": "str_replace", "path": "/memories/notes.md", "old_str": "zz", "new_str": "B"},
    {"command": "str_replace", "path": "/memories/absent", "old_str": "a", "new_str": "B"},
    {"command": "str_replace", "path": "/memories/deep", "old_str": "a", "new_str": "B"},
    {"command": "str_replace", "path": "/memories/deep/long.txt", "old_str": "line 6",
     "new_str": ""},
    {"command": "insert", "path": "/memories/notes.md", "insert_line": 0, "insert_text": "first\n"},
    {"command": "insert", "path": "/memories/notes.md", "insert_line": 6, "insert_text": "last"},
    {"command": "insert", "path": "/memories/notes.md", "insert_line": 99, "insert_text": "x"},
    {"command": "insert", "path": "/memories/notes.md", "insert_line": -1, "insert_text": "x"},
    {"command": "insert", "path": "/memories/absent", "insert_line": 0, "insert_text": "x"},
    {"command": "insert", "path": "/memories/empty", "insert_line": 0, "insert_text": "x\ny"},
    {"command": "view", "path": "/memories/notes.md"},
    {"command": "rename", "old_path": "/memories/notes.md", "new_path": "/memories/deep/long.txt"},
    {"command": "rename", "old_path": "/memories/absent", "new_path": "/memories/x"},
    {"command": "rename", "old_path": "/memories/notes.md", "new_path": "/memories/n/notes.md"},
    {"command": "rename", "old_path": "/memories/deep", "new_path": "/memories/moved"},
    {"command": "view", "path": "/memories/moved/er/still/x.txt"},
    {"command": "delete", "path": "/memories/moved/long.txt"},
    {"command": "delete", "path": "/memories/moved"},
    {"command": "delete", "path": "/memories/moved"},
    {"command": "delete", "path": "/memories"},
    {"command": "rename", "old_path": "/memories", "new_path": "/memories/x"},
    {"command": "view", "path": "/memories/n"},
    {"command": "view", "path": "/etc/passwd"},
    {"command": "view", "path": "memories/n"},
]  # fmt: skip
_SIZE = re.compile(r"^[0-9.]+[BKMG]\t(?=.*/$|/memories(/deep|/n)?$)", re.MULTILINE)

TRAVERSALS = [
    "/memories/../etc/passwd", "/memories/..", "/memories/a/../../b", "/memories/a/../b",
    "/memories/./a", "/memories/%2e%2e/etc", "/memories/%2e%2e%2fetc", "/memories/..%2fetc",
    "/memories/%252e%252e%252fetc", "/memories/%25252e%25252e/x", "/memories/..%5cetc",
    "/memories/..\\etc", "/memories\\..\\etc", "/memories/a\\b", "/memories/%c0%ae%c0%ae\\x",
    "/memories/．．/etc", "/memories/‥/etc", "/memories/․․/etc", "/memories/..／etc",
    "/memories/..∕etc", "/memories/..⁄etc", "/memories/a∕b", "/memories/…", "/memories/. ./x/..",
    "/memories/%EF%BC%8E%EF%BC%8E/x", "/memories/a\0b", "/memories/a%00b", "/memories/a\nb",
    "/memories/\u202e../x", "/memories/\u200b../x/", "/memories/~/x", "/memories/ .. /x",
    "/memories/a/..", "/memoriesx/a", "/memories../a", "/etc/passwd", "//memories/a",
    "/proc/self/root/memories/a", "/memories/a/%2e", "file:///memories/a", "", "/", "../memories/a",
    "C:\\memories\\a", "/MEMORIES/a",
]  # fmt: skip


def told(tool: Any, call: dict[str, Any]) -> tuple[str, bool]:
    """What a tool says, and whether that is an error."""
    try:
        return str(tool.call(call)), False
    except ToolError as error:
        return str(error.content), True


def over_http(service: RunningService, key: str) -> AsyncClient:
    transport = httpx.ASGITransport(service.app)
    return AsyncClient("http://memorywall.test", key, transport=transport)


def test_it_says_what_the_tool_of_the_sdk_says(tmp_path: Path) -> None:
    theirs = BetaLocalFilesystemMemoryTool(str(tmp_path / "files"))
    with memorywall.open(tmp_path / "memory.db", agent="ada") as client:
        ours = MemorywallTool(client)
        assert ours.to_dict() == {"type": "memory_20250818", "name": "memory"}
        for call in CALLS:
            # The size of a directory is that of its files here, and not that of its table.
            said, expected = told(ours, call), told(theirs, call)
            assert (_SIZE.sub("", said[0]), said[1]) == (_SIZE.sub("", expected[0]), expected[1])
        assert ours.clear_all_memory() == theirs.clear_all_memory()
        assert told(ours, {"command": "view", "path": "/memories"})[0].endswith("0B\t/memories")


def test_files_keep_their_versions_and_are_found(tmp_path: Path) -> None:
    with memorywall.open(tmp_path / "memory.db", agent="ada") as client:
        tool = MemorywallTool(client)
        path = "/memories/tea.md"
        tool.call({"command": "create", "path": path, "file_text": "She likes green tea."})
        tool.call({"command": "str_replace", "path": path, "old_str": "green", "new_str": "black"})
        entry = client.memory.get("memories/ada", "tea.md", "semantic")
        assert entry is not None
        assert entry.value == {"text": "She likes black tea."}
        versions = [one.value["text"] for one in client.memory.history(entry.id)]
        assert versions == ["She likes black tea.", "She likes green tea."]
        assert client.recall("which tea")[0].entry.id == entry.id


def test_parallel_edits_lose_nothing(tmp_path: Path) -> None:
    with memorywall.open(tmp_path / "memory.db", agent="ada") as client:
        tools = [MemorywallTool(client) for _ in range(4)]
        path = "/memories/log"
        tools[0].call({"command": "create", "path": path, "file_text": ""})

        def add(number: int) -> None:
            call = {
                "command": "insert",
                "path": path,
                "insert_line": 0,
                "insert_text": f"n{number}",
            }
            tools[number % 4].call(call)

        with ThreadPoolExecutor(8) as threads:
            list(threads.map(add, range(40)))
        text = str(tools[0].call({"command": "view", "path": path}))
        assert sorted(re.findall(r"\tn(\d+)", text), key=int) == [str(one) for one in range(40)]


def test_paths_that_lead_elsewhere_are_refused(tmp_path: Path) -> None:
    with memorywall.open(tmp_path / "memory.db", agent="ada") as client:
        tool = MemorywallTool(client)
        tool.call({"command": "create", "path": "/memories/a", "file_text": "x"})
        for path in TRAVERSALS:
            for call in (
                {"command": "view", "path": path},
                {"command": "create", "path": path, "file_text": "x"},
                {"command": "str_replace", "path": path, "old_str": "x", "new_str": "y"},
                {"command": "insert", "path": path, "insert_line": 0, "insert_text": "y"},
                {"command": "delete", "path": path},
                {"command": "rename", "old_path": path, "new_path": "/memories/b"},
                {"command": "rename", "old_path": "/memories/a", "new_path": path},
            ):
                said, is_error = told(tool, call)
                assert is_error, path
                assert "must start with /memories" in said or "would escape" in said
        page = client.memory.query(memory_type="semantic")
        assert [(one.key, one.value) for one in page] == [("a", {"text": "x"})]


def test_names_that_only_look_odd_are_names(tmp_path: Path) -> None:
    with memorywall.open(tmp_path / "memory.db", agent="ada") as client:
        tool = MemorywallTool(client)
        for name in ("100%.md", "a b.md", "col·legi", "..a", "a..b", "ü/日本.md", "v1.2", "a%20b"):
            path = f"/memories/{name}"
            tool.call({"command": "create", "path": path, "file_text": name})
            assert str(tool.call({"command": "view", "path": path})).endswith(f"\t{name}")


async def test_people_and_tenants_see_nothing_of_each_other(service: RunningService) -> None:
    keys = [await service.key("ada"), await service.key("bob"), await service.key("ada", "other")]
    ada, bob, foreign = [over_http(service, key) for key in keys]
    create = {"command": "create", "path": "/memories/me", "file_text": "x"}
    view = {"command": "view", "path": "/memories"}
    for user in ("ann", "bea"):
        own = AsyncMemorywallTool(ada.for_user(user))
        await own.call({**create, "file_text": f"I am {user}"})
    for user in ("ann", "bea"):
        own = AsyncMemorywallTool(ada.for_user(user))
        said = await own.call({"command": "view", "path": "/memories/me"})
        assert str(said).endswith(f"I am {user}")
    for stranger in (AsyncMemorywallTool(one) for one in (ada, bob, foreign)):
        assert str(await stranger.call(view)).endswith("0B\t/memories")
    changes = await ada.memory.changes(0)
    assert {one.actor for one in changes} == {"ada"}
    reader = over_http(service, await service.key("eve", permissions=(Permission.READ,)))
    with pytest.raises(ToolError, match="Memory refused this"):
        await AsyncMemorywallTool(reader).call(create)
    root = await service.key("root", permissions=tuple(Permission))
    await over_http(service, root).forget("ann")
    forgotten = AsyncMemorywallTool(ada.for_user("ann"))
    assert str(await forgotten.call(view)).endswith("0B\t/memories")
    assert "me" in str(await AsyncMemorywallTool(ada.for_user("bea")).call(view))


LONG_FILE = "She likes green tea.\n" + "\n".join(f"line {number} é" for number in range(20_000))
LARGE_CALLS: list[dict[str, Any]] = [
    {"command": "create", "path": "/memories/long.md", "file_text": LONG_FILE},
    {"command": "create", "path": "/memories/long.md", "file_text": LONG_FILE},
    {"command": "create", "path": "/memories/short.md", "file_text": "short"},
    {"command": "view", "path": "/memories/long.md"},
    {"command": "view", "path": "/memories/long.md", "view_range": [19_000, 19_005]},
    {"command": "view", "path": "/memories"},
    {"command": "str_replace", "path": "/memories/long.md", "old_str": "line 15000 é",
     "new_str": "changed"},
    {"command": "insert", "path": "/memories/long.md", "insert_line": 18_000, "insert_text": "new"},
    {"command": "insert", "path": "/memories/short.md", "insert_line": 1,
     "insert_text": "y" * 90_000},
    {"command": "rename", "old_path": "/memories/long.md", "new_path": "/memories/n/moved.md"},
    {"command": "view", "path": "/memories/n/moved.md"},
    {"command": "view", "path": "/memories/n"},
    {"command": "view", "path": "/memories/short.md"},
]  # fmt: skip


def test_files_of_any_size_are_files(tmp_path: Path) -> None:
    theirs = BetaLocalFilesystemMemoryTool(str(tmp_path / "files"))
    with memorywall.open(tmp_path / "memory.db", agent="ada") as client:
        ours = MemorywallTool(client.for_user("ann"))
        for call in LARGE_CALLS:
            said, expected = told(ours, call), told(theirs, call)
            assert (_SIZE.sub("", said[0]), said[1]) == (_SIZE.sub("", expected[0]), expected[1])
        hit = client.for_user("ann").recall("What tea does she like?")[0]
        assert hit.entry.key == "n/moved.md"
        files = client.memory.attachments
        found = {one.key: one.id for one in client.memory.query(about="ann", kind=None)}
        assert {len(files.list(one)) for one in found.values()} == {1}
        shorten = {"command": "create", "path": "/memories/short.md", "file_text": "s"}
        ours.call({"command": "delete", "path": "/memories/short.md"})
        ours.call(shorten)
        too_large = {**shorten, "path": "/memories/huge.md", "file_text": "x" * 17_000_000}
        with pytest.raises(ToolError, match="Memory refused this"):
            ours.call(too_large)
        assert "huge" not in str(ours.call({"command": "view", "path": "/memories"}))
        grow = {"command": "insert", "path": "/memories/short.md", "insert_line": 0}
        with pytest.raises(ToolError, match="Memory refused this"):
            ours.call({**grow, "insert_text": "x" * 17_000_000})
        assert told(ours, {"command": "view", "path": "/memories/short.md"})[0].endswith("\ts")
        entry_id = found["n/moved.md"]
        (attached,) = files.list(entry_id)
        client.forget("ann")
        assert str(ours.call({"command": "view", "path": "/memories"})).endswith("0B\t/memories")
        with pytest.raises(MemoryNotFoundError):
            files.download(entry_id, attached.id)


async def test_faults_are_told_to_the_model(service: RunningService) -> None:
    network = Network(service)
    tool = AsyncMemorywallTool(connect(network, await service.key("ada")))
    path = "/memories/a.md"
    view = {"command": "view", "path": path}
    network.loses_replies = True
    await tool.call({"command": "create", "path": path, "file_text": "one"})
    await tool.call({"command": "str_replace", "path": path, "old_str": "one", "new_str": "two"})
    await tool.call({"command": "insert", "path": path, "insert_line": 1, "insert_text": "three"})
    assert str(await tool.call(view)).endswith("\ttwo\n     2\tthree\n     3\t")
    large = {"command": "create", "path": "/memories/b.md", "file_text": "x" * 90_000}
    await tool.call(large)
    await tool.call({"command": "rename", "old_path": path, "new_path": "/memories/c.md"})
    await tool.call({"command": "delete", "path": "/memories/b.md"})
    assert network.lost >= 9
    assert "c.md" in str(await tool.call({"command": "view", "path": "/memories"}))
    with pytest.raises(ToolError, match="JSON"):
        await tool.call({"command": "create", "path": "/memories/d", "file_text": "\ud800"})
    network.is_away = True
    for call in (
        {"command": "view", "path": "/memories"},
        {"command": "create", "path": "/memories/d", "file_text": "x"},
        large,
        {"command": "delete", "path": "/memories/c.md"},
    ):
        with pytest.raises(ToolError, match="cannot be reached"):
            await tool.call(call)
    with pytest.raises(ToolError, match="cannot be reached"):
        await tool.clear_all_memory()


def test_the_program_of_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = Path(__file__).parent.parent / "docs" / "anthropic-memory-tool.md"
    program = page.read_text(encoding="utf-8").split("```\n")[3]
    create = {"command": "create", "path": "/memories/me", "file_text": "She likes coffee."}
    used = {"type": "tool_use", "id": "t1", "name": "memory", "input": create}
    replies: list[Any] = [(used, "tool_use"), ({"type": "text", "text": "Noted."}, "end_turn")]
    asked: list[Any] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(json.loads(request.content))
        part, reason = replies.pop(0)
        message = {
            "id": "m1", "type": "message", "role": "assistant", "model": "m", "content": [part],
            "stop_reason": reason, "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }  # fmt: skip
        return httpx2.Response(200, json=message)

    transport = httpx2.Client(transport=httpx2.MockTransport(answer))
    client = anthropic.Anthropic(api_key="k", http_client=transport)
    monkeypatch.setattr(anthropic, "Anthropic", lambda: client)
    monkeypatch.chdir(tmp_path)
    exec(program, {"__name__": "__main__"})
    assert "Noted." in capsys.readouterr().out
    (result,) = asked[1]["messages"][-1]["content"]
    assert "File created successfully at: /memories/me" in str(result)
    with memorywall.open("files.db", agent="helper") as opened:
        assert opened.for_user("ann").recall("What does she like?")
        assert opened.memory.query(about="bea", memory_type="semantic").total == 0


def test_a_closed_tier_loses_no_file(tmp_path: Path) -> None:
    with memorywall.open(tmp_path / "memory.db", agent="ada") as client:
        tool = MemorywallTool(client)
        tool.call({"command": "create", "path": "/memories/a", "file_text": "one"})
        client.narrow_tier("semantic", admission="promoted")
        for call in (
            {"command": "create", "path": "/memories/b", "file_text": "two"},
            {"command": "rename", "old_path": "/memories/a", "new_path": "/memories/c"},
        ):
            with pytest.raises(ToolError, match="waits"):
                tool.call(call)
        assert "one" in str(tool.call({"command": "view", "path": "/memories/a"}))
