"""Fixtures of these tests."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from integrations.recipes import run_recipe, write_files
from integrations.scripted_model import ScriptedModel, scripted_model
from tests.support.service import RunningService, open_service

# No framework tells its maker about these tests. Some read this while they are imported.
os.environ |= {
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "OTEL_SDK_DISABLED": "true",
}


@pytest.fixture
def anyio_backend() -> str:
    """Asynchronous tests run on asyncio."""
    return "asyncio"


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[RunningService]:
    """A whole memorywall in this process."""
    async with open_service(tmp_path) as opened:
        yield opened


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedModel]:
    """A model that the SDKs of the providers find by their environment variables."""
    with scripted_model() as opened:
        for name, value in opened.environment.items():
            monkeypatch.setenv(name, value)
        yield opened


@pytest.fixture
def recipe(
    tmp_path: Path, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], dict[str, Any]]:
    """Runs a recipe by the name of its page, in an empty current directory, with the commands of
    this environment."""
    commands = str(Path(sys.executable).parent)
    monkeypatch.setenv("PATH", os.pathsep.join([commands, os.environ["PATH"]]))
    monkeypatch.chdir(tmp_path)
    programs = tmp_path / "programs"
    programs.mkdir()
    return lambda name: run_recipe(name, programs)


@pytest.fixture
def recipe_files(tmp_path: Path) -> Callable[[str], Path]:
    """Saves the files of a recipe, by the name of its page, in an empty directory."""

    def save(name: str) -> Path:
        write_files(name, tmp_path / "saved")
        return tmp_path / "saved"

    return save
