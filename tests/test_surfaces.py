"""Every operation of the table has a route, a method of the SDK, a JSON-RPC method and a command;
what lacks one stands here with the reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec
import pytest

import memorywall
from memorywall.cli.call_command import OperationCommand, command
from memorywall.exceptions import RequestError
from memorywall.sdk.effects import Request
from memorywall.server.app import route_table
from memorywall.wire.json_rpc import METHODS
from memorywall.wire.operations import OPERATIONS, Operation
from memorywall.wire.parameters import RESERVED
from tests.cli.shell import misuse, new_directory, refuse, succeed

NOT_JSON = {
    "export_entries": "answers JSON Lines; `memorywall export`, `client.memory.export`",
    "subscribe_intent": "answers without end; `memorywall intents log --follow`, `intents.follow`",
    "upload_attachment": "takes bytes; `client.attachments.upload`",
    "download_attachment": "answers bytes; `client.attachments.download`",
    "upload_entry_attachment": "takes bytes; `client.memory.attachments.upload`",
    "download_entry_attachment": "answers bytes; `client.memory.attachments.download`",
    "metrics": "answers the text of Prometheus; `client.metrics`",
}
each = pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)


def test_invalid_json_is_reported() -> None:
    assert set(NOT_JSON) == {one.name for one in OPERATIONS if not one.is_json}


def test_every_operation_has_a_route() -> None:
    for number, operation in enumerate(OPERATIONS):
        path = {name: f"<{name}>" for name in operation.path_parameters}
        found: dict[str, str] = {}
        raw = operation.path.replace(":path", "")
        for name, text in path.items():
            raw = raw.replace(f"{{{name}}}", text)
        methods = route_table().find(raw, found)
        assert methods is not None, operation.name
        assert methods[operation.method] == number, operation.name
        assert found == path, operation.name


@each
def test_every_operation_has_a_json_rpc_method(operation: Operation) -> None:
    assert (operation.name in METHODS) == (operation.name not in NOT_JSON)


@each
def test_every_operation_has_a_command(operation: Operation) -> None:
    """`memorywall call`, whose options are its parameters, each once."""
    if operation.name in NOT_JSON:
        with pytest.raises(click.UsageError, match="no operation"):
            command.main(["call", operation.name], standalone_mode=False)
        return
    made = OperationCommand(operation)
    names = [option for one in made.params for option in one.opts if option.startswith("--")]
    assert len(names) == len(set(names))
    wanted = set(operation.path_parameters)
    for kind in (operation.query, operation.body):
        wanted |= {one.encode_name for one in msgspec.structs.fields(kind)} if kind else set()
    reached = {name for name, _ in made.fields.values()}
    assert reached - set(RESERVED) == wanted
    assert ("if_match" in reached) == (operation.if_match != "none")
    assert made.help == f"{operation.summary} ({operation.method} {operation.path})"


def test_an_operation_is_called_by_its_name(place: Path | str) -> None:
    with memorywall.open(place, agent="billing") as client:
        draft: dict[str, Any] = {"namespace": "n", "key": "k", "memory_type": "working"}
        made = client.call("create_entry", value={"n": 1}, **draft)
        assert (made["version"], made["value"]) == (1, {"n": 1})
        entry = client.memory.get("n", "k")
        assert entry is not None
        assert entry.id == made["id"]
        changed = client.call("update_entry", entry_id=made["id"], if_match=1, value={})
        assert changed["version"] == 2
        page = client.call("query_entries", agent_id="billing", pinned=False, limit=5)
        assert page["total"] == 1
        assert client.call("delete_entry", entry_id=made["id"]) is None
        for name in (*NOT_JSON, "nothing"):
            with pytest.raises(RequestError, match="no operation"):
                client.call(name)
        with pytest.raises(RequestError, match="entry_id"):
            client.call("get_entry")
        with pytest.raises(RequestError, match="colour"):
            client.call("query_entries", colour="red")


def test_an_operation_is_called_at_the_command_line(tmp_path: Path) -> None:
    new_directory(tmp_path / "data", "billing")
    own = ("--data", str(tmp_path / "data"), "--agent", "billing")
    draft = ("--namespace", "n", "--key-name", "k", "--memory-type", "working")
    text = succeed("call", "create_entry", *own, *draft, "--value", '{"n": 1}', "--pinned", "true")
    made = msgspec.json.decode(text)
    assert (made["key"], made["value"], made["pinned"]) == ("k", {"n": 1}, True)
    found = succeed("call", "find_entry", "--namespace", "n", "--key-name", "k", *own)
    assert msgspec.json.decode(found)["entry"] == made
    change = ("--entry-id", made["id"], "--value", "{}")
    succeed("call", "update_entry", *change, "--if-match", "1", *own)
    assert "version" in refuse("call", "update_entry", *change, "--if-match", "1", *own)
    assert succeed("call", "delete_entry", "--entry-id", made["id"], *own) == "null\n"
    assert "JSON" in misuse("call", "create_entry", *own, *draft, "--value", "{")
    assert "nothing" in misuse("call", "nothing")
    assert "--entry-id" in succeed("call", "get_entry", "--help")


def test_a_request_goes_where_the_table_says() -> None:
    request = Request(operation="get_entry", path={"entry_id": "a/b"}, query={"version": "2"})
    assert (request.method, request.target) == ("GET", "/api/v1/memory/a%2Fb?version=2")
