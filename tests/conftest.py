"""Fixtures every test may use."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from secrets import randbits

import pytest

from memorywall.settings import DATABASE_NAME, STORE_ENVIRONMENT
from tests.support.backend import choose, drop_all, give_back, own_database, store_of
from tests.support.extent import CHAOS, use_profile
from tests.support.postgres_wire import Wire
from tests.support.service import RunningService, open_service

_MEMORY = Path("/dev/shm")
_MEMORY_NEEDED = 4 << 30
_ON_POSTGRES = 3
"""The most cases of a test on PostgreSQL."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--store",
        choices=["sqlite", "postgres"],
        default="sqlite",
        help="What the servers of the tests keep their memory in.",
    )


def pytest_configure(config: pytest.Config) -> None:
    choose(config.getoption("--store"))
    use_profile()
    # Workers must name a test alike, and a name may hold a set, whose order depends on this.
    os.environ.setdefault("PYTHONHASHSEED", str(randbits(32)))
    _let_children_be_interrupted()
    _let_bytecode_be_written()
    _keep_files_in_memory()


def _let_bytecode_be_written() -> None:
    """The tests start hundreds of interpreters, and starting one takes four times as long when it
    compiles every module that it imports."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False


def _keep_files_in_memory() -> None:
    """Each commit waits for the disk, which somebody else may keep busy. Few tests are about that,
    and those say where their files lie."""
    if not _MEMORY.is_dir() or not os.access(_MEMORY, os.W_OK):
        return
    space = os.statvfs(_MEMORY)
    if space.f_bavail * space.f_frsize >= _MEMORY_NEEDED and not space.f_flag & os.ST_NOEXEC:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))


def _let_children_be_interrupted() -> None:
    """A program that is started in a shell's background ignores SIGINT, and so would the servers
    that tests start and interrupt. Only an ignored signal is inherited over `exec`, a handler is
    not; so this process goes on as it was and its children do what they do in the foreground."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda number, frame: None)


def pytest_report_header() -> str:
    return f"PYTHONHASHSEED of workers and servers: {os.environ['PYTHONHASHSEED']}"


def pytest_unconfigure() -> None:
    drop_all()


def pytest_collection_finish() -> None:
    """What was collected lasts as long as the process: the garbage collector need not look at it
    again in each test."""
    gc.collect()
    gc.freeze()


def _leave_cases_to_the_long_version(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keeps some cases of a test with many; `make chaos` runs all of them.

    Of a test that is marked `sampled(n)` these are the first n. On PostgreSQL, where a case takes
    ten times as long, they are at most three of any other test, from the first to the last; all of
    them run on SQLite.
    """
    if CHAOS:
        return
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    on_postgres = config.getoption("--store") == "postgres"
    kept: set[pytest.Item] = set()
    for some in cases.values():
        mark = some[0].get_closest_marker("sampled")
        if mark is not None:
            kept.update(some[: mark.args[0]])
        elif on_postgres and len(some) > _ON_POSTGRES:
            last = len(some) - 1
            kept.update(some[last * n // (_ON_POSTGRES - 1)] for n in range(_ON_POSTGRES))
        else:
            kept.update(some)
    if left_out := [item for item in items if item not in kept]:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item in kept]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out, on PostgreSQL, what is marked as SQLite's; `test_backends.py` lists it."""
    _leave_cases_to_the_long_version(config, items)
    left_out = []
    for item in items:
        if (mark := item.get_closest_marker("sqlite")) is not None:
            if not mark.args:
                raise pytest.UsageError(f"{item.nodeid} does not say why it is SQLite's alone")
            left_out.append(item)
    if config.getoption("--store") == "postgres" and left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item.get_closest_marker("sqlite") is None]


@pytest.fixture(autouse=True)
def store_of_this_test(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """With `--store postgres`, databases of its own for each test, and no file by mistake."""
    monkeypatch.delenv(STORE_ENVIRONMENT, raising=False)
    if request.config.getoption("--store") == "sqlite":
        yield
        return
    directory: Path = request.getfixturevalue("tmp_path")
    yield
    give_back(directory)
    assert list(directory.rglob(DATABASE_NAME)) == [], "a test has used SQLite"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[RunningService]:
    """A whole memorywall in this process."""
    async with open_service(tmp_path) as opened:
        yield opened


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path | str:
    """What `memorywall.open` is given: a file, or the URL of a database."""
    store = store_of(tmp_path)
    if store is not None:
        # The key-encryption key lies in the data directory of whoever names none.
        monkeypatch.chdir(tmp_path)
    return store or tmp_path / DATABASE_NAME


@pytest.fixture
def database() -> Iterator[str]:
    """An empty memorywall on PostgreSQL."""
    with own_database() as url:
        yield url


@pytest.fixture
async def wire(database: str) -> AsyncIterator[Wire]:
    """The way to it."""
    async with Wire.to(database) as wire:
        yield wire
