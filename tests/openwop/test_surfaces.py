"""The SDK and the command line of OpenWOP."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import memorywall
from memorywall.exceptions import MemoryNotFoundError, MemorywallError, ValidationError
from memorywall.sdk.client import AsyncClient, Client
from tests.cli.shell import refuse, succeed
from tests.cli.shell import run as run_command
from tests.openwop.host import workflow
from tests.support.asgi import AsgiTransport
from tests.support.service import RunningService


def _use(client: Client) -> None:
    assert client.openwop.discover()["memory"]["supported"]
    assert client.openwop.install("hello", workflow()).version == 1
    run = client.openwop.run("hello", {"a": 1})
    assert (run.status, run.variables) == ("completed", {"a": 1})
    assert client.openwop.get(run.run_id) == run
    events = client.openwop.events(run.run_id)
    assert [one.sequence for one in events] == list(range(5))
    assert client.openwop.events(run.run_id, 3) == events[4:]
    fork = client.openwop.fork(run.run_id)
    assert (fork.status, fork.variables) == ("completed", {"a": 1})
    (entry,) = client.openwop.list("runs/hello", tag="source:session")
    assert client.openwop.read("runs/hello", entry.id) == entry
    assert client.openwop.read("runs/other", entry.id) is None
    assert client.openwop.list("../x") == []
    memory = client.openwop.memory(run.run_id)
    client.openwop.run("hello")
    (later, _) = client.openwop.list("runs/hello")
    # The run sees what it has written, and nothing that is later; so do its replays.
    again = client.openwop.fork(fork.run_id)
    for view in (memory, *(client.openwop.memory(one.run_id) for one in (fork, again))):
        assert view.list("runs/hello") == view.list("runs/hello", limit=1) == [entry]
        assert view.list("runs/hello", tag="other") == view.list("../x") == []
        assert view.get("runs/hello", entry.id) == entry
        assert view.get("runs/hello", later.id) is None
    with pytest.raises(MemoryNotFoundError):
        client.openwop.memory("nothing").list("runs/hello")
    with pytest.raises(MemorywallError) as refused:
        client.openwop.fork(run.run_id, 5)
    assert refused.value.code == "INVALID_FROM_SEQ"
    with pytest.raises(ValidationError):
        client.openwop.install("a..b", workflow())


def test_the_client_of_a_store_in_this_process(place: Path | str) -> None:
    with memorywall.open(place) as client:
        _use(client)


@pytest.mark.anyio
async def test_the_client_of_a_server(service: RunningService) -> None:
    key = await service.key("ada")
    async with AsyncClient("http://a", key, transport=AsgiTransport(service.app)) as client:
        await client.openwop.install("hello", workflow())
        run = await client.openwop.run("hello")
        assert (await client.openwop.fork(run.run_id)).variables == run.variables
        with pytest.raises(MemorywallError) as refused:
            await client.openwop.fork(run.run_id, 5)
        assert refused.value.code == "INVALID_FROM_SEQ"
        assert await client.openwop.read("runs/a b", "mem_1") is None
        memory = client.openwop.memory(run.run_id)
        (entry,) = await memory.list("runs/hello")
        assert await memory.get("runs/hello", entry.id) == entry


def test_the_command_line(tmp_path: Path) -> None:
    data = ("--data", str(tmp_path / "data"), "--agent", "ada")
    succeed("init", *data[:2])
    shown = succeed("openwop", "describe", *data)
    assert "memory.compaction" in shown
    assert "not built yet" in shown
    file = tmp_path / "hello.json"
    file.write_text(json.dumps(workflow()))
    run = json.loads(succeed("openwop", "run", str(file), "--inputs", '{"a": 1}', *data))
    assert (run["status"], run["variables"]) == ("completed", {"a": 1})
    with memorywall.open(tmp_path / "data", agent="bob") as client:
        for place in ("runs/refused", "runs-of/ada"):
            client.memory.set(f"openwop/{place}", "a", {}, "semantic")
    failed = run_command("openwop", "run", str(file.rename(tmp_path / "refused.json")), *data)
    assert failed.returncode == 1
    assert json.loads(failed.stdout)["error"]["code"] == "forbidden"
    unknown = file.with_name("unknown.json")
    unknown.write_text(json.dumps(workflow()))
    assert "--inputs" in refuse("openwop", "run", str(unknown), "--inputs", "1", *data)
    with memorywall.open(tmp_path / "data", agent="ada") as client:
        files = client.memory.query(kind="workspace_file")
        assert "workflows/unknown.json" not in [one.key for one in files]
        assert files
    for content in ("[]", "[" * 100_000):
        file.write_text(content)
        assert "JSON object" in refuse("openwop", "run", str(file), *data)


def test_the_seams_are_refused_on_a_public_address(tmp_path: Path) -> None:
    text = refuse(
        "serve", "--data", str(tmp_path), "--host", "0.0.0.0", "--allow-remote",
        "--openwop-test-seams",
    )  # fmt: skip
    assert "--openwop-test-seams" in text
