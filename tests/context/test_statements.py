"""What a compile asks of the store. Each statement is a round trip on PostgreSQL, so their number
must not grow unseen."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.http.test_contexts import compiled, put, talk_of
from tests.http.test_sessions import Talk
from tests.support.backend import is_on_file
from tests.support.service import RunningService
from tests.support.statements import Statements, recorded

pytestmark = pytest.mark.anyio

Patch = pytest.MonkeyPatch


@pytest.fixture
async def ada(service: RunningService) -> httpx.AsyncClient:
    return await service.agent("ada")


async def _begun(ada: httpx.AsyncClient) -> Talk:
    """A session with turns, beside memories that the query finds."""
    talk = await talk_of(ada, 30, subject="ann")
    for number in range(5):
        await put(ada, f"n{number}", f"thing{number} is blue")
    return talk


async def _warm(service: RunningService, patch: Patch, ada: Any, **body: Any) -> Statements:
    """Compiles until everything that is kept is kept; the statements of one more compile."""
    body = {"user": "What of thing3?", "window": 4_000, **body}
    for _ in range(2):
        await compiled(ada, **body)
    with recorded(service, patch) as statements:
        context = await compiled(ada, **body)
    assert {"episodic", "turns"} <= {segment["name"] for segment in context["segments"]}
    return statements


def _check(statements: Statements, *, sqlite: int, postgres: int, transactions: int) -> None:
    expected = sqlite if is_on_file() else postgres
    # A checkpoint of the log beside the test lets the writer read the end of the event log again.
    asked = [one for one in statements.inside if "ORDER BY e.seq DESC" not in one]
    assert len(asked) == expected, "\n".join(" ".join(one.split()) for one in asked)
    # On SQLite the reads of one iteration of the event loop share a transaction.
    assert is_on_file() or statements.transactions == transactions


async def test_a_warm_compile_runs_few_statements(
    service: RunningService, monkeypatch: Patch, ada: httpx.AsyncClient
) -> None:
    talk = await _begun(ada)
    statements = await _warm(service, monkeypatch, ada, session_id=talk.id)
    _check(statements, sqlite=18, postgres=15, transactions=4)


async def test_a_compile_after_a_turn_reads_the_turn_and_its_uses(
    service: RunningService, monkeypatch: Patch, ada: httpx.AsyncClient
) -> None:
    talk = await _begun(ada)
    await _warm(service, monkeypatch, ada, session_id=talk.id)
    await talk.do("POST", "/turns", turns=[{"role": "user", "content": "It is thing4."}])
    with recorded(service, monkeypatch) as statements:
        await compiled(ada, session_id=talk.id, user="What of thing3?", window=4_000)
    _check(statements, sqlite=20, postgres=17, transactions=4)


async def test_a_compile_inside_a_session_with_a_task_and_a_scope(
    service: RunningService, monkeypatch: Patch, ada: httpx.AsyncClient
) -> None:
    talk = await _begun(ada)
    ada.headers["X-Session-ID"] = talk.id
    statements = await _warm(
        service, monkeypatch, ada, session_id=talk.id, task_id="task", shared="team/plans"
    )
    _check(statements, sqlite=27, postgres=22, transactions=5)


async def test_a_compile_without_a_session_or_a_query_reads_lists_only(
    service: RunningService, monkeypatch: Patch, ada: httpx.AsyncClient
) -> None:
    with recorded(service, monkeypatch) as statements:
        await compiled(ada, system="Be brief.", window=4_000, store=False)
    _check(statements, sqlite=3, postgres=2, transactions=1)
