"""Configuration files of hosts: ours is added and removed, and everything else stays as it was."""

from __future__ import annotations

import json
import os
import stat
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from memorywall.adapters.hosts.connection import HostConnection
from memorywall.adapters.hosts.host_files import (
    FileChange,
    connecting_changes,
    disconnecting_changes,
)
from memorywall.adapters.hosts.host_formats import HostFormat, host_formats
from memorywall.records.errors import ConfigurationError

PROGRAM = ("/opt/my tools/memorywall",)
HOSTS = sorted(host_formats())
OTHER_HOOK = {"command": "echo 'not ours'", "type": "command"}


@pytest.fixture(params=HOSTS)
def host(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A host of a user who has no configuration yet."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for form in host_formats().values():
        if form.home_variable is not None:
            monkeypatch.delenv(form.home_variable, raising=False)
    return request.param, host_formats()[request.param]


def _connect(host: tuple[str, HostFormat], program: Sequence[str] = PROGRAM) -> list[FileChange]:
    name, form = host
    return connecting_changes(form, HostConnection(name=name, host=name), program)


def _disconnect(host: tuple[str, HostFormat]) -> list[FileChange]:
    name, form = host
    return disconnecting_changes(form, HostConnection(name=name, host=name))


def _apply(changes: Sequence[FileChange]) -> None:
    for change in changes:
        change.apply()


def _server(form: HostFormat) -> Any:
    text = form.mcp_file.read_text()
    document = tomllib.loads(text) if form.mcp_file.suffix == ".toml" else json.loads(text)
    for name in form.mcp.at:
        document = document[name]
    return document["memorywall"]


def _hooks(form: HostFormat, event: str) -> list[Any]:
    elements = json.loads(form.hooks_file.read_text())["hooks"][event]
    return [hook for one in elements for hook in (one["hooks"] if form.hooks.is_nested else [one])]


def test_a_new_host_gets_the_server_and_both_hooks_and_gives_them_back(
    host: tuple[str, HostFormat],
) -> None:
    name, form = host
    changes = _connect(host)
    assert not form.folder.exists()
    assert all(change.difference().startswith("--- /dev/null\n") for change in changes)
    _apply(changes)
    assert _server(form)["command"] == PROGRAM[0]
    assert _server(form)["args"] == ["mcp", "--connection", name]
    for event in (form.events.prompt, form.events.reply):
        (hook,) = _hooks(form, event)
        assert hook["command"] == f"'/opt/my tools/memorywall' hook {name}"
    assert {stat.S_IMODE(one.path.stat().st_mode) for one in changes} == {0o600}
    assert _connect(host) == []
    _apply(_disconnect(host))
    assert [path for path in form.folder.parent.rglob("*") if path.is_file()] == []


def test_what_others_have_written_stays(host: tuple[str, HostFormat]) -> None:
    _, form = host
    other = {"hooks": [OTHER_HOOK], "matcher": "x"} if form.hooks.is_nested else OTHER_HOOK
    form.folder.mkdir(parents=True)
    hooks = {
        **form.hooks.constant,
        "größe": 1,
        "hooks": {form.events.reply: [other], "Other": [other]},
    }
    form.hooks_file.write_text(json.dumps(hooks, indent=4, ensure_ascii=False))
    form.hooks_file.chmod(0o644)
    if form.mcp_file.suffix == ".toml":
        text = '# mine\nmodel = "x" # why\n\n[mcp_servers.other]\ncommand = "a"\n\n[z]\nb = [1]\n'
        form.mcp_file.write_text(text)
    else:
        form.mcp_file.write_text('{"a":{"b":[1]},"mcpServers":{"other":{"command":"a"}}}')
    before = [form.mcp_file.read_text(), form.hooks_file.read_text()]
    changes = _connect(host)
    _apply(changes)
    assert _hooks(form, form.events.reply)[0] == OTHER_HOOK
    assert len(_hooks(form, form.events.reply)) == 2
    assert form.mcp_file.read_text().startswith(before[0].rstrip("}\n"))
    assert stat.S_IMODE(form.hooks_file.stat().st_mode) == 0o644
    # Another place of the program replaces what the first one wrote.
    _apply(_connect(host, ["/elsewhere/memorywall"]))
    assert _server(form)["command"] == "/elsewhere/memorywall"
    assert len(_hooks(form, form.events.reply)) == 2
    _apply(_disconnect(host))
    assert [form.mcp_file.read_text(), form.hooks_file.read_text()] == before
    assert _disconnect(host) == []


@pytest.mark.parametrize("text", ["{", '{"hooks": [1]}', "[]", "null", '{"hooks": {"X": 1}, x}'])
def test_a_damaged_file_is_refused_before_anything_is_written(
    host: tuple[str, HostFormat], text: str
) -> None:
    _, form = host
    form.folder.mkdir(parents=True)
    form.hooks_file.write_text(text)
    with pytest.raises(ConfigurationError, match="mend it first"):
        _connect(host)
    assert form.hooks_file.read_text() == text
    assert not form.mcp_file.exists() or form.mcp_file == form.hooks_file


@pytest.mark.parametrize(
    "text",
    ["a = ", "mcp_servers = 1", 'mcp_servers.memorywall = {command = "x"}', "[[mcp_servers]]\na=1"],
)
def test_a_toml_file_that_states_the_server_in_another_way_is_refused(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    host = ("codex", host_formats()["codex"])
    host[1].folder.mkdir()
    host[1].mcp_file.write_text(text)
    with pytest.raises(ConfigurationError, match="mend it first"):
        _connect(host)
    assert host[1].mcp_file.read_text() == text


def test_a_link_stays_a_link_and_a_file_that_changes_meanwhile_is_not_overwritten(
    host: tuple[str, HostFormat], tmp_path: Path
) -> None:
    _, form = host
    target = tmp_path / "dotfiles" / "hooks"
    target.parent.mkdir()
    target.write_text('{"a": 1}')
    form.folder.mkdir(parents=True)
    os.symlink(target, form.hooks_file)
    changes = _connect(host)
    target.write_text('{"a": 2}')
    with pytest.raises(ConfigurationError, match="changed meanwhile"):
        _apply(changes)
    assert target.read_text() == '{"a": 2}'
    _apply(_connect(host))
    assert form.hooks_file.is_symlink()
    assert json.loads(target.read_text())["a"] == 2
    assert "hooks" in json.loads(target.read_text())


def test_the_folder_of_a_host_follows_its_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    form = host_formats()["claude-code"]
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    assert form.mcp_file == tmp_path / ".claude.json"
    assert form.hooks_file == tmp_path / ".claude" / "settings.json"
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "work"))
    assert form.mcp_file == tmp_path / "work" / ".claude.json"
    assert form.hooks_file == tmp_path / "work" / "settings.json"


def test_the_difference_shows_nothing_of_others(host: tuple[str, HostFormat]) -> None:
    """Configurations have keys of other servers, and a compact file is one line."""
    _, form = host
    form.folder.mkdir(parents=True)
    if form.mcp_file.suffix == ".toml":
        form.mcp_file.write_text('[mcp_servers.other.env]\nKEY = "secret-1"\n')
    else:
        form.mcp_file.write_text('{"mcpServers":{"other":{"env":{"KEY":"secret-1"}}}}')
    form.hooks_file.write_text('{"env":{"KEY":"secret-2"},"version":1}')
    changes = _connect(host)
    shown = "".join(change.difference() for change in changes)
    assert "secret" not in shown
    assert "memorywall" in shown
    _apply(changes)
    removed = "".join(change.difference() for change in _disconnect(host))
    assert "secret" not in removed
    assert "memorywall" in removed
