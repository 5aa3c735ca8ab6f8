"""Changes of a host's configuration: its MCP server and its hooks are added, replaced or removed.

Everything else in the files stays as it is, and a file that cannot be read is not touched.
"""

from __future__ import annotations

import difflib
import json
import re
import shlex
import stat
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memorywall.adapters.hosts.connection import HostConnection, draft_of
from memorywall.adapters.hosts.host_formats import HooksFile, HostFormat
from memorywall.records.errors import ConfigurationError
from memorywall.storage.durable_files import replace_durably

Table = dict[str, Any]


@dataclass(frozen=True, slots=True)
class FileChange:
    """A change of a file.

    before, after: its text; None for no file
    """

    path: Path
    before: str | None
    after: str | None

    def difference(self) -> str:
        """Returns the difference as `diff -U0` shows it; empty for none. The lines around it are
        not shown, because others may have secrets in them."""
        lines = difflib.unified_diff(
            _lines(self.before),
            _lines(self.after),
            "/dev/null" if self.before is None else str(self.path),
            "/dev/null" if self.after is None else str(self.path),
            n=0,
            lineterm="",
        )
        return "".join(f"{line}\n" for line in lines)

    def apply(self) -> None:
        """Writes the file. Raises ConfigurationError if somebody has changed it meanwhile."""
        # A linked file, as in a repository of dotfiles, stays a link.
        path = self.path.resolve()
        if _read(path) != self.before:
            raise ConfigurationError(f"{self.path} has changed meanwhile; run the command again")
        if self.after is None:
            path.unlink(missing_ok=True)
            return
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        mode = 0o600 if self.before is None else stat.S_IMODE(path.stat().st_mode)
        replace_durably(path, draft_of(path), self.after.encode())
        path.chmod(mode)


def connecting_changes(
    host: HostFormat, connection: HostConnection, program: Sequence[str], *, with_hooks: bool = True
) -> list[FileChange]:
    """Returns the changes that give the host a connection.

    program: the command line of memorywall
    """
    arguments = [*program[1:], "mcp", "--connection", connection.name]
    server = {**host.mcp.entry, "command": program[0], "args": arguments}
    hook = shlex.join([*program, "hook", connection.name])
    entry = {**host.hooks.entry, "command": hook} if with_hooks else None
    return _changes(host, connection, server, entry)


def disconnecting_changes(host: HostFormat, connection: HostConnection) -> list[FileChange]:
    """Returns the changes that take a connection from the host. A file with nothing else goes."""
    return _changes(host, connection, None, None)


def _changes(
    host: HostFormat, connection: HostConnection, server: Table | None, hook: Table | None
) -> list[FileChange]:
    def set_hooks(document: Table) -> None:
        _set_hooks(host, document, connection, hook)

    # A second connection of a host has a server of its own.
    own = "" if connection.name == connection.host else f"-{connection.name}"
    at = (*host.mcp.at, f"memorywall{own}")

    def set_server(document: Table) -> None:
        _set_at(document, at, server)

    if host.mcp_file.suffix == ".toml":
        mcp = _change(host.mcp_file, lambda text: _with_toml_table(text, at, server))
    else:
        mcp = _change(host.mcp_file, lambda text: _with_json(text, {}, set_server))
    hooks = _change(host.hooks_file, lambda text: _with_json(text, host.hooks.constant, set_hooks))
    return [one for one in (mcp, hooks) if one.before != one.after]


def _change(path: Path, edit: Callable[[str], str | None]) -> FileChange:
    before = _read(path)
    try:
        return FileChange(path, before, edit(before or ""))
    except (ValueError, RecursionError, AttributeError, TypeError):
        raise ConfigurationError(
            f"{path} is not as its host writes it, so that nothing is changed; mend it first"
        ) from None


def _lines(text: str | None) -> list[str]:
    """The lines of a text, of JSON those of its indented form: a compact file is one line."""
    try:
        return json.dumps(json.loads(text or ""), indent=2, ensure_ascii=False).splitlines()
    except ValueError:
        return (text or "").splitlines()


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None


def _with_json(text: str, constant: Table, edit: Callable[[Table], None]) -> str | None:
    """Returns a JSON text after an edit, in the form that it has; None if nothing is left.

    constant: what a new document begins with, and what does not count as left
    """
    document: Table = json.loads(text) if text.strip() else {}
    known = json.dumps(document)
    for name, value in constant.items():
        document.setdefault(name, value)
    edit(document)
    if json.dumps(document) == known:
        return text or None
    if document == constant:
        return None
    found = re.search(r"\n([ \t]+)\S", text)
    indent = found[1] if found else 2 if len(known) <= 2 else None
    separators = (",", ":") if indent is None else None
    end = "\n" if not text or text.endswith("\n") else ""
    return json.dumps(document, indent=indent, separators=separators, ensure_ascii=False) + end


def _set_at(document: Table, names: Sequence[str], value: Table | None) -> None:
    """Sets or removes a value, with the tables around it that are missing or become empty."""
    name, *rest = names
    if rest:
        inner = document.setdefault(name, {})
        _set_at(inner, rest, value)
        if inner == {}:
            del document[name]
    elif value is None:
        document.pop(name, None)
    else:
        document[name] = value


def _set_hooks(
    host: HostFormat, document: Table, connection: HostConnection, hook: Table | None
) -> None:
    """Sets or removes the hooks of a connection; those of others stay."""
    hooks = document.setdefault("hooks", {})
    for event in (host.events.prompt, host.events.reply):
        others = [one for one in hooks.get(event, []) if not _is_ours(host.hooks, one, connection)]
        if hook is not None:
            others.append({"hooks": [hook]} if host.hooks.is_nested else hook)
        hooks[event] = others
        if not others:
            del hooks[event]
    if hooks == {}:
        del document["hooks"]


def _is_ours(hooks: HooksFile, element: Table, connection: HostConnection) -> bool:
    """Returns whether an element of a list of hooks runs the hook of a connection alone."""
    commands = element.get("hooks", []) if hooks.is_nested else [element]
    words = [shlex.split(str(one.get("command", ""))) for one in commands]
    return bool(words) and all(one[-2:] == ["hook", connection.name] for one in words)


def _with_toml_table(text: str, at: Sequence[str], table: Table | None) -> str | None:
    """Returns a TOML text with the table of the server at its end, or without it. Comments and
    everything else stay; raises ValueError for a text in which that is not possible."""
    header = f"[{'.'.join(at)}]"
    kept: list[str] = []
    is_inside = False
    for line in text.splitlines(keepends=True):
        begins = line.strip()
        if begins.startswith("["):
            is_inside = begins == header or begins.startswith(f"{header[:-1]}.")
        if not is_inside:
            kept.append(line)
    rest = "".join(kept)
    expected = tomllib.loads(text)
    _set_at(expected, at, None)
    if tomllib.loads(rest) != expected:
        raise ValueError("the table is written in another way")
    if table is None:
        return rest.rstrip("\n") + "\n" if rest.strip() else None
    lines = [header, *(f"{name} = {_toml(value)}" for name, value in table.items())]
    before = rest.rstrip("\n") + "\n\n" if rest.strip() else ""
    return before + "\n".join(lines) + "\n"


def _toml(value: str | list[str]) -> str:
    """A text or texts as TOML, whose basic strings escape as JSON does."""
    return json.dumps(value, ensure_ascii=False)
