"""How many functions and files of memorywall a request passes: the length of its way is its cost.

`benchmarks/instructions.py` counts what a request costs; these counts are exact, take no time, and
name what has been added.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import FrameType
from typing import Any

import httpx
import pytest

import memorywall
from memorywall.records.principal import Permission
from tests.support.service import RunningService, draft

SOURCE = str(Path(memorywall.__file__).parent)
MEMORY = "/api/v1/memory"
SESSIONS = "/api/v1/sessions"

MOST = {
    "get": (38, 22),
    "page": (99, 41),
    "create": (128, 49),
    "patch": (135, 48),
    "turn": (208, 65),
    "search": (290, 70),
    "context with search": (560, 115),
}
"""The most functions and files that a request of each kind may pass. Lower them with each change
that shortens a way."""

pytestmark = pytest.mark.anyio


class Passed:
    """Notes the functions of memorywall that are called, in every task of the event loop."""

    def __init__(self) -> None:
        self.functions: set[tuple[str, str]] = set()

    def __enter__(self) -> Passed:
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(SOURCE):
            self.functions.add((code.co_filename, code.co_qualname))

    @property
    def files(self) -> set[str]:
        return {name for name, _ in self.functions}


async def _requests(agent: httpx.AsyncClient) -> dict[str, Callable[[], Awaitable[httpx.Response]]]:
    """Returns one request of each kind."""
    entries = [(await agent.post(MEMORY, json=draft(f"k{n}"))).json() for n in range(8)]
    session = (await agent.post(SESSIONS, json={})).json()["id"]
    numbers = iter(range(100, 1_000))
    versions = iter(range(1, 1_000))

    async def create() -> httpx.Response:
        return await agent.post(MEMORY, json=draft(f"k{next(numbers)}"))

    async def patch() -> httpx.Response:
        path, version = f"{MEMORY}/{entries[1]['id']}", str(next(versions))
        body = {"value": {"n": version}}
        return await agent.patch(path, json=body, headers={"If-Match": version})

    async def turn() -> httpx.Response:
        body = {"role": "user", "content": "My order 17 is late."}
        return await agent.post(f"{SESSIONS}/{session}/turns", json={"turns": [body]})

    return {
        "get": lambda: agent.get(f"{MEMORY}/{entries[0]['id']}"),
        "page": lambda: agent.get(MEMORY, params={"namespace": "invoices", "agent_id": "ada"}),
        "create": create,
        "patch": patch,
        "turn": turn,
        "search": lambda: agent.post(f"{MEMORY}/search", json={"query": "completed 23"}),
        "context with search": lambda: agent.post(
            "/api/v1/context", json={"session_id": session, "window": 4_000, "user": "order?"}
        ),
    }


@pytest.mark.sqlite("the functions of another store are others")
@pytest.mark.parametrize("kind", MOST)
async def test_a_request_passes_few_functions(service: RunningService, kind: str) -> None:
    agent = await service.agent("ada", permissions=list(Permission))
    request = (await _requests(agent))[kind]
    for _ in range(3):
        # The first ones fill caches.
        assert (await request()).is_success
    with Passed() as passed:
        reply = await request()
    assert reply.is_success, reply.text
    functions, files = MOST[kind]
    shown = sorted(f"{Path(file).relative_to(SOURCE)}: {name}" for file, name in passed.functions)
    assert len(passed.functions) <= functions, "\n".join(shown)
    assert len(passed.files) <= files, "\n".join(shown)
