"""Connections: where the memory of a host is, and its spool, in files that only their user reads.

They keep API keys out of the configuration of hosts, which people share and commit.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from memorywall.records.errors import ConfigurationError
from memorywall.storage.durable_files import replace_durably

if TYPE_CHECKING:
    from memorywall.sdk.client import AsyncClient


class HostConnection(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The memory of a host.

    name: of this connection; the name of the host unless the user has chosen another
    host: the name of its format
    data: a data directory; or else
    url, key: of a server
    agent: the agent to act for; default: that of the key
    user: the person that everything is about; default: nobody
    exclude: folders in and below which hooks neither recall nor keep anything
    """

    name: str
    host: str
    data: str | None = None
    url: str | None = None
    key: str | None = None
    agent: str | None = None
    user: str | None = None
    exclude: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """The folder of its spool, of its socket and of its log."""
        return _folder("XDG_STATE_HOME", ".local/state") / self.name

    @property
    def place(self) -> tuple[str | None, ...]:
        """What decides which memory, and about whom, it is; a new key leaves it the same."""
        return self.data, self.url, self.agent, self.user

    def open(self) -> AsyncClient:
        """Returns a client, not bound to the person. The first request opens a data directory,
        unless another process of this user has it open."""
        if self.data is not None:
            from memorywall.in_process.opening import DEFAULT_AGENT
            from memorywall.in_process.shared_directory import open_shared_directory

            return open_shared_directory(Path(self.data), self.agent or DEFAULT_AGENT)
        from memorywall.sdk.client import AsyncClient

        return AsyncClient(self.url, self.key, agent=self.agent)

    def save(self) -> None:
        """Writes the file of the connection."""
        path = _path_of(self.name)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        content = msgspec.json.format(msgspec.json.encode(self)) + b"\n"
        replace_durably(path, draft_of(path), content)

    def remove(self) -> None:
        """Removes the file of the connection."""
        _path_of(self.name).unlink(missing_ok=True)


def find_connection(name: str) -> HostConnection | None:
    """Returns a connection by its name, None without one. Raises ConfigurationError for a file
    that is damaged."""
    try:
        return msgspec.json.decode(_path_of(name).read_bytes(), type=HostConnection)
    except FileNotFoundError:
        return None
    except ValueError:
        raise ConfigurationError(
            f"the connection {name} is damaged; run `memorywall connect` again"
        ) from None


def known_connection(name: str) -> HostConnection | None:
    """Returns a connection by its name; None without one, and for a damaged file, which the next
    connection of this name replaces."""
    # A name that cannot be one is an error all the same.
    _path_of(name)
    try:
        return find_connection(name)
    except ConfigurationError:
        return None


def require_connection(name: str) -> HostConnection:
    """Returns a connection by its name. Raises ConfigurationError without one."""
    found = find_connection(name)
    if found is None:
        raise ConfigurationError(f"there is no connection {name}; run `memorywall connect` first")
    return found


def draft_of(path: Path) -> Path:
    """Returns the path of what replaces a file, beside it and of this process alone."""
    return path.with_name(f"{path.name}.{os.getpid()}.partial")


def default_data() -> Path:
    """Returns the data directory of people who name none."""
    return _folder("XDG_DATA_HOME", ".local/share")


def _path_of(name: str) -> Path:
    if not name.replace("-", "").replace("_", "").isalnum():
        raise ConfigurationError("`--name` may have letters, digits, - and _ only")
    return _folder("XDG_CONFIG_HOME", ".config") / f"{name}.json"


def _folder(variable: str, default: str) -> Path:
    """Returns the folder of memorywall for a purpose, as the XDG base directories say."""
    named = os.environ.get(variable)
    return (Path(named) if named else Path.home() / default) / "memorywall"
