"""A task that names a session is handed to another agent, who takes part in the session then."""

from __future__ import annotations

from typing import Any

import pytest

from tests.http.checks import assert_problem
from tests.http.test_sessions import Talk, begin
from tests.work.crew import Crew

pytestmark = pytest.mark.anyio


async def assign(crew: Crew, session: str) -> dict[str, Any]:
    """Hands a task that names a session over from the chief to agent B."""
    task = await crew.task(assigned_agent="chief", metadata={"session_id": session})
    return await crew.change(crew.chief, task["id"], assigned_agent="b")


async def participants(talk: Talk) -> dict[str, str]:
    found = (await talk.do("GET"))["participants"]
    return {one["agent_id"]: one.get("access", "append") for one in found}


async def test_the_agent_of_a_handed_over_task_takes_part(crew: Crew) -> None:
    talk = await begin(crew.chief, subject="ann")
    await talk.add("Refund invoice 4711.")
    b = talk.by(crew.b)
    assert_problem(await b.ask("GET"), 404)
    await assign(crew, talk.id)
    assert await participants(talk) == {"b": "append"}
    assert await b.texts() == ["Refund invoice 4711."]
    added = await b.do("POST", "/turns", turns=[{"role": "assistant", "content": "Done."}])
    assert added["turns"][0]["author"] == "b"
    # Who leaves has no access from its next request on; another hand-off lets it in again.
    await b.do("DELETE", "/participants/b")
    assert_problem(await b.ask("GET"), 404)
    await assign(crew, talk.id)
    assert len(await b.texts()) == 2


async def test_a_hand_off_gives_no_more_than_the_owner_has_given(crew: Crew) -> None:
    talk = await begin(crew.chief, participants=[{"agent_id": "b", "access": "read"}])
    await assign(crew, talk.id)
    assert await participants(talk) == {"b": "read"}


async def test_only_who_may_add_turns_lets_others_in(crew: Crew) -> None:
    talk = await begin(crew.a)
    await assign(crew, talk.id)
    assert await participants(talk) == {}
    await talk.do("PUT", "/participants/chief", access="read")
    await assign(crew, talk.id)
    assert set(await participants(talk)) == {"chief"}
    await talk.do("PUT", "/participants/chief", access="append")
    await assign(crew, talk.id)
    assert await participants(talk) == {"chief": "append", "b": "append"}


async def test_a_task_that_names_no_open_session_is_assigned_all_the_same(crew: Crew) -> None:
    talk = await begin(crew.chief)
    await talk.do("POST", "/close", reason="x")
    for session in (talk.id, "absent"):
        assert (await assign(crew, session))["assigned_agent"] == "b"
    assert await participants(talk) == {}
