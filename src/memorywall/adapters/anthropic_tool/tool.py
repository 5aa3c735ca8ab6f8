"""The memory tool of Anthropic's SDK, blocking and asynchronous."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

from anthropic.tools import (
    BetaAbstractMemoryTool,
    BetaAsyncAbstractMemoryTool,
    ToolError,
)

from memorywall.adapters.anthropic_tool.files import FileError, MemoryFiles, told
from memorywall.adapters.client_runner import ClientRunner, both_ways

if TYPE_CHECKING:
    from memorywall.sdk.client import AsyncClient, Client

Command = Any
"""A command of the tool, as the SDK has read it."""


class _ToolCommands:
    """What both tools share: the commands as request generators.

    client: a client of a server or of a store in this process, of either colour. That of
        `client.for_user(user)` keeps the files of this person, and the agent's files of another
        person are not seen.
    root: the namespace of the files; default: `memories/` and the agent of the client
    options: further arguments of the SDK's class, such as `cache_control`
    """

    def __init__(
        self, client: Client | AsyncClient, *, root: str | None = None, **options: Any
    ) -> None:
        super().__init__(**options)
        self.client = client
        self.runner = ClientRunner(client)
        self._files = MemoryFiles(client.memory.core, root)

    def user_of(self, *args: Any, **options: Any) -> None:
        """The client is bound already, or to nobody."""

    def _view(self, command: Command) -> Generator[Any, Any, str]:
        """Shows a file or a directory."""
        return _run(self._files.view(command.path, command.view_range))

    def _create(self, command: Command) -> Generator[Any, Any, str]:
        """Creates a file."""
        return _run(self._files.create(command.path, command.file_text))

    def _str_replace(self, command: Command) -> Generator[Any, Any, str]:
        """Replaces a text in a file."""
        return _run(self._files.str_replace(command.path, command.old_str, command.new_str))

    def _insert(self, command: Command) -> Generator[Any, Any, str]:
        """Inserts lines into a file."""
        return _run(self._files.insert(command.path, command.insert_line, command.insert_text))

    def _delete(self, command: Command) -> Generator[Any, Any, str]:
        """Deletes a file or a directory."""
        return _run(self._files.delete(command.path))

    def _rename(self, command: Command) -> Generator[Any, Any, str]:
        """Renames a file or a directory."""
        return _run(self._files.rename(command.old_path, command.new_path))

    def _clear_all_memory(self) -> Generator[Any, Any, str]:
        """Deletes all files."""
        return _run(self._files.clear())


_both: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    name: both_ways(getattr(_ToolCommands, f"_{name}"))
    for name in (
        "view", "create", "str_replace", "insert", "delete", "rename", "clear_all_memory",
    )
}  # fmt: skip


class MemorywallTool(_ToolCommands, BetaAbstractMemoryTool):
    """The memory tool for `anthropic.Anthropic`: files are entries of memorywall."""

    view = _both["view"][0]
    create = _both["create"][0]
    str_replace = _both["str_replace"][0]
    insert = _both["insert"][0]
    delete = _both["delete"][0]
    rename = _both["rename"][0]
    clear_all_memory = _both["clear_all_memory"][0]


class AsyncMemorywallTool(_ToolCommands, BetaAsyncAbstractMemoryTool):
    """The memory tool for `anthropic.AsyncAnthropic`: files are entries of memorywall."""

    view = _both["view"][1]
    create = _both["create"][1]
    str_replace = _both["str_replace"][1]
    insert = _both["insert"][1]
    delete = _both["delete"][1]
    rename = _both["rename"][1]
    clear_all_memory = _both["clear_all_memory"][1]


def _run(script: Generator[Any, Any, str]) -> Generator[Any, Any, str]:
    """Raises the error that the SDK shows to the model."""
    try:
        return (yield from told(script))
    except FileError as error:
        raise ToolError(str(error)) from error
