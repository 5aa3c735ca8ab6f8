"""The commands of the memory tool on entries, as request generators. Each file is an entry, whose
earlier versions are kept; a directory is what files have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from memorywall.adapters.anthropic_tool.paths import ROOT, key_of
from memorywall.adapters.large_values import LargeValues, is_unfinished
from memorywall.exceptions import MemoryConflictError, MemorywallError
from memorywall.records.attached_members import attached_of
from memorywall.records.tier import Tier
from memorywall.sdk.client_state import agent_or_own
from memorywall.sdk.effects import RequestGenerator as Script
from memorywall.sdk.memory import MemoryCore
from memorywall.sdk.models import MemoryEntry

_TIER = Tier.SEMANTIC
_PAGE = 1_000
_LEVELS = 2
_WIDTH = 6
_CONTEXT = 2
"""The lines that are shown before and after a replaced one."""
_UNITS = "BKMG"
_NO_PATH = "The path {} does not exist. Please provide a valid path."


class FileError(Exception):
    """A command failed; the message is for the model."""


class MemoryFiles:
    """Runs the commands of the memory tool.

    memory: the memory of a client
    root: the namespace of the files; None for `memories/` and the agent of the client
    """

    def __init__(self, memory: MemoryCore, root: str | None) -> None:
        self._memory = memory
        self._values = LargeValues(memory)
        self._root = root

    def view(self, path: str, view_range: list[int] | None) -> Script[str]:
        """Shows a file with line numbers, or the files and directories two levels deep."""
        key = _key(path)
        entry = (yield from self._find(key)) if key else None
        if entry is not None and (whole := (yield from self._values.read(entry))) is not None:
            return _shown_file(path, _text(whole), view_range)
        files = yield from self._below(key)
        if key and not files:
            raise FileError(_NO_PATH.format(path))
        sizes = {one.key: _size(one) for one in files}
        return _shown_directory(path, key, sizes)

    def create(self, path: str, text: str) -> Script[str]:
        """Creates a file; one that exists is an error."""
        key = _key(path)
        exists = FileError(f"File {path} already exists")
        if not key or (yield from self._below(key, most=1)):
            raise exists
        yield from self._check_parents(key)
        namespace = yield from self._namespace()
        try:
            made = yield from self._values.create(namespace, key, {"text": text}, _TIER)
        except MemoryConflictError:
            raise exists from None
        _refuse_waiting(made)
        return f"File created successfully at: {path}"

    def str_replace(self, path: str, old: str, new: str) -> Script[str]:
        """Replaces a text that occurs once in a file."""

        def change(text: str) -> str:
            places = _places(text, old)
            if not places:
                raise FileError(
                    f"No replacement was performed, old_str `{old}` did not appear verbatim in"
                    f" {path}."
                )
            if len(places) > 1:
                lines = ", ".join(str(text.count("\n", 0, place) + 1) for place in places)
                raise FileError(
                    f"No replacement was performed. Multiple occurrences of old_str `{old}` in"
                    f" lines: {lines}. Please ensure it is unique"
                )
            shown.append(text.count("\n", 0, places[0]))
            return text.replace(old, new)

        shown: list[int] = []
        lines = (yield from self._edit(path, change)).split("\n")
        first = max(0, shown[-1] - _CONTEXT)
        snippet = _numbered(lines[first : shown[-1] + _CONTEXT + 1], first + 1)
        return (
            "The memory file has been edited. Here is the snippet showing the change (with line"
            f" numbers):\n{snippet}"
        )

    def insert(self, path: str, line: int, inserted: str) -> Script[str]:
        """Inserts a text after a line of a file, 0 for its beginning."""

        def change(text: str) -> str:
            lines = text.split("\n")
            if lines[-1] == "":
                lines.pop()
            if not 0 <= line <= len(lines):
                raise FileError(
                    f"Invalid `insert_line` parameter: {line}. It should be within the range"
                    f" [0, {len(lines)}]."
                )
            lines.insert(line, inserted.rstrip("\n"))
            joined = "\n".join(lines)
            return joined if joined.endswith("\n") else f"{joined}\n"

        yield from self._edit(path, change)
        return f"The file {path} has been edited."

    def delete(self, path: str) -> Script[str]:
        """Deletes a file, or a directory with all files in it."""
        key = _key(path)
        if not key:
            raise FileError(f"Cannot delete the {ROOT} directory itself")
        entry = yield from self._find(key)
        found = [entry] if entry is not None else (yield from self._below(key))
        if not found:
            raise FileError(f"The path {path} does not exist")
        for one in found:
            yield from self._memory.delete_by_id(one.id)
        return f"Successfully deleted {path}"

    def rename(self, old_path: str, new_path: str) -> Script[str]:
        """Renames a file, or a directory with all files in it. The files are created anew before
        the old ones are deleted; if one has changed meanwhile, both stay."""
        old, new = _key(old_path), _key(new_path)
        if not old:
            raise FileError(f"Cannot rename the {ROOT} directory itself")
        taken = FileError(f"The destination {new_path} already exists")
        if not new or (yield from self._find(new)) or (yield from self._below(new, most=1)):
            raise taken
        entry = yield from self._find(old)
        found = [entry] if entry is not None else (yield from self._below(old))
        if not found:
            raise FileError(f"The path {old_path} does not exist")
        if f"{new}/".startswith(f"{old}/"):
            raise FileError(f"Cannot move {old_path} into itself")
        yield from self._check_parents(new)
        namespace = yield from self._namespace()
        for one in found:
            key = new + one.key.removeprefix(old)
            if (whole := (yield from self._values.read(one))) is None:
                continue
            try:
                made = yield from self._values.create(namespace, key, whole.value, _TIER)
            except MemoryConflictError:
                raise taken from None
            _refuse_waiting(made)
            yield from self._memory.delete_by_id(one.id, version=one.version)
        return f"Successfully renamed {old_path} to {new_path}"

    def clear(self) -> Script[str]:
        """Deletes all files."""
        for one in (yield from self._below("")):
            yield from self._memory.delete_by_id(one.id)
        return "All memory cleared"

    def _edit(self, path: str, change: Callable[[str], str]) -> Script[str]:
        """Changes the text of a file, and returns the new one. After another write the change is
        made again with the new text."""
        key = _key(path)
        if not key or (yield from self._find(key)) is None:
            if not key or (yield from self._below(key, most=1)):
                raise FileError(f"The path {path} is not a file.")
            raise FileError(_NO_PATH.format(path))
        namespace = yield from self._namespace()
        entry = yield from self._values.update(
            namespace, key, lambda value: {**value, "text": change(str(value["text"]))}, _TIER
        )
        _refuse_waiting(entry)
        return _text(entry)

    def _namespace(self) -> Script[str]:
        if self._root is None:
            self._root = f"memories/{(yield from agent_or_own(self._memory._state, None))}"
        return self._root

    def _find(self, key: str) -> Script[MemoryEntry | None]:
        namespace = yield from self._namespace()
        entry = yield from self._memory.get(namespace, key, _TIER)
        return None if entry is None or is_unfinished(entry) else entry

    def _below(self, key: str, most: int | None = None) -> Script[list[MemoryEntry]]:
        """Returns the files of a directory and of those in it, by name.

        most: the most files; None for all
        """
        namespace = yield from self._namespace()
        found: list[MemoryEntry] = []
        cursor: str | None = "*"
        while cursor is not None and (most is None or len(found) < most):
            page = yield from self._memory.query(
                namespace=namespace,
                memory_type=_TIER,
                key_prefix=f"{key}/" if key else None,
                order_by="key",
                cursor=cursor,
                limit=_PAGE if most is None else most,
            )
            found += [one for one in page if not is_unfinished(one)]
            cursor = page.next_cursor
        return found

    def _check_parents(self, key: str) -> Script[None]:
        """Raises FileError if one of the directories of a file is a file."""
        parts = key.split("/")
        for depth in range(1, len(parts)):
            parent = "/".join(parts[:depth])
            if (yield from self._find(parent)) is not None:
                raise FileError(f"The path {ROOT}/{parent} is not a directory.")


def told(script: Script[str]) -> Script[str]:
    """Raises FileError for what memory refuses, so that the model and the user see it."""
    try:
        return (yield from script)
    except MemorywallError as error:
        raise FileError(f"Memory refused this: {error}") from error


def _key(path: str) -> str:
    try:
        return key_of(path)
    except ValueError as error:
        raise FileError(str(error)) from None


def _refuse_waiting(entry: MemoryEntry) -> None:
    """Raises FileError for a write that a closed tier has not stored yet."""
    if entry.waits:
        raise FileError("The file was not changed: the change waits for the decision of a person.")


def _text(entry: MemoryEntry) -> str:
    return str(entry.value.get("text", ""))


def _size(entry: MemoryEntry) -> int:
    """Returns the bytes of a file."""
    attached = attached_of(entry.value)
    if attached is not None and "text" in attached.members:
        return attached.members["text"].size
    return len(_text(entry).encode())


def _places(text: str, wanted: str) -> list[int]:
    """Returns where a text occurs, overlapping places included."""
    found: list[int] = []
    place = text.find(wanted) if wanted else -1
    while place != -1:
        found.append(place)
        place = text.find(wanted, place + 1)
    return found


def _shown_file(path: str, text: str, view_range: list[int] | None) -> str:
    lines, first = text.split("\n"), 1
    if view_range and len(view_range) == 2:
        first = max(1, view_range[0])
        last = len(lines) if view_range[1] == -1 else view_range[1]
        lines = lines[first - 1 : last]
    return f"Here's the content of {path} with line numbers:\n{_numbered(lines, first)}"


def _numbered(lines: list[str], first: int) -> str:
    return "\n".join(
        f"{str(number).rjust(_WIDTH)}\t{line}" for number, line in enumerate(lines, first)
    )


def _shown_directory(path: str, key: str, sizes: dict[str, int]) -> str:
    """Returns the files and directories below a key, each with its size."""
    shown: dict[tuple[str, ...], int] = {}
    directories: set[tuple[str, ...]] = set()
    for name, size in sizes.items():
        parts = tuple(name.removeprefix(f"{key}/" if key else "").split("/"))
        if any(part.startswith(".") for part in parts[:_LEVELS]):
            continue
        for depth in range(1, min(len(parts), _LEVELS) + 1):
            place = parts[:depth]
            shown[place] = shown.get(place, 0) + size
            if depth < len(parts):
                directories.add(place)
    base = path.rstrip("/")
    lines = [f"{_shown_size(sum(sizes.values()))}\t{path}"]
    for place, size in sorted(shown.items()):
        mark = "/" if place in directories else ""
        lines.append(f"{_shown_size(size)}\t{base}/{'/'.join(place)}{mark}")
    header = f"Here're the files and directories up to {_LEVELS} levels deep in {path}"
    return f"{header}, excluding hidden items:\n" + "\n".join(lines)


def _shown_size(size: int) -> str:
    scaled: Any = size
    for unit in _UNITS:
        if scaled < 1024 or unit == _UNITS[-1]:
            return f"{int(scaled)}{unit}" if scaled == int(scaled) else f"{scaled:.1f}{unit}"
        scaled /= 1024
    raise AssertionError("the last unit returns")
