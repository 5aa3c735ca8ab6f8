"""Episodes: made of tasks, sessions and runs of workers, or written by a client."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

import memorywall
from memorywall import Worker
from memorywall.exceptions import ValidationError
from memorywall.kinds.episodes import EPISODE, Episode, line_of_episode, plain_text
from memorywall.kinds.registry import KindError, check
from memorywall.kinds.sessions import Session, ToolCall, Turn
from memorywall.longterm.episodes import episode_of_session
from memorywall.records.principal import Permission
from memorywall.records.tier import Tier
from tests.http.checks import MEMORY, assert_problem
from tests.http.test_sessions import begin
from tests.support.service import RunningService, open_service
from tests.work.crew import Crew, crew_of, ok

pytestmark = pytest.mark.anyio

EPISODES = {"kind": "episode", "memory_type": "episodic"}
WHOLE = {
    "trigger": {"text": "Refund order 5", "type": "system_event"},
    "context": {"task": "refund", "knowledge": ["mem_1"], "summary": "The order came broken.",
                "conditions": {"attempt": 2, "shop": "north"}},
    "actions": [{"tool": "pay", "input": {"order": 5}, "output": [1], "ms": 12.5, "tokens": 40},
                {"tool": "mail", "error": "no address"}],
    "outcome": {"status": "failure", "artifacts": ["receipt 7"], "side_effects": ["money moved"],
                "error": "no address", "correction": "Ask for the address first."},
    "evaluation": {"correctness": 0.5, "efficiency": {"calls": 2.0}, "human_rating": -0.5,
                   "automated": {"unit": "passed"}, "failure_class": "tool_error"},
    "metadata": {"timestamp": "2026-02-01T00:00:00Z", "duration_ms": 12.5, "agent_version": "1",
                 "model_version": "m-2", "token_cost": 40, "session_id": "s-1", "task_id": "t-1"},
}  # fmt: skip


async def stored(client: httpx.AsyncClient, agent: str = "a", **conditions: str) -> list[Any]:
    found = ok(await client.get(MEMORY, params={**EPISODES, "agent_id": agent, **conditions}))
    entries: list[Any] = found["entries"]
    return entries


async def test_a_client_writes_an_episode_with_all_fields(service: RunningService) -> None:
    ada = await service.agent("a")
    draft = {"namespace": "work", "key": "five", "memory_type": "episodic", "kind": "episode"}
    made = ok(await ada.post(MEMORY, json={**draft, "value": WHOLE}), 201)
    normal = {**WHOLE, "metadata": {**WHOLE["metadata"], "timestamp": "2026-02-01T00:00:00.000Z"}}
    assert made["value"] == normal
    assert made["status"] == "correction", "a correction counts before the status"
    assert made["expires_at"].startswith("2026-05-03"), "90 days"
    assert await stored(
        ada, status="correction", where='value.metadata.timestamp < "2026-02-02T00:00:00Z"'
    )
    assert not await stored(ada, status="failure")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"trigger": ""}, "value.trigger"),
        ({"outcome": {"status": "done"}}, "value.outcome.status"),
        ({"evaluation": {"correctness": 1.5}}, "value.evaluation.correctness"),
        ({"evaluation": {"failure_class": "bad luck"}}, "value.evaluation.failure_class"),
        ({"actions": [{"input": 1}]}, "value.actions"),
        ({"mood": 1}, "value.mood"),
        ({"metadata": {"timestamp": "yesterday"}}, "value.metadata.timestamp"),
    ],
)
def test_what_is_no_episode_is_refused_by_its_field(change: dict[str, Any], field: str) -> None:
    with pytest.raises(KindError, match=field.replace(".", r"\.")):
        check("episode", Tier.EPISODIC, {**WHOLE, **change})


def test_trigger_conditions_and_outcome_are_embedded_and_nothing_else() -> None:
    episode = check("episode", Tier.EPISODIC, WHOLE)
    text = EPISODE.text(episode) or ""
    for said in ("Refund order 5", "shop: north", "no address", "receipt 7", "Ask for the"):
        assert said in text
    for unsaid in ("pay", "came broken", "mem_1", "m-2"):
        assert unsaid not in text
    assert line_of_episode(episode) == (
        "Asked: Refund order 5; Given: attempt: 2; shop: north; Done: pay, mail (error: no"
        " address); Outcome: failure; no address; Ask for the address first.; money moved;"
        " receipt 7; correctness 0.5"
    )
    deep: Any = []
    for _ in range(5_000):
        deep = [deep]
    assert plain_text({"deep": deep}) == "deep: …"


@pytest.fixture
async def crew(service: RunningService) -> Crew:
    return await crew_of(service)


async def end(crew: Crew, status: str = "completed", **fields: Any) -> Any:
    task, taken = await crew.working(input={"order": 5})
    return await crew.change(crew.a, task["id"], token=taken.token, status=status, **fields)


async def test_a_task_is_an_episode_if_its_agent_says_so(crew: Crew) -> None:
    await end(crew, output={"paid": 5})
    await end(crew, "failed", error="no money")
    assert await stored(crew.a) == [], "the record of a task is sealed, and stays so"
    task = await end(
        crew, output={"paid": 5},
        episode={"actions": [{"tool": "pay"}], "evaluation": {"correctness": 1},
                 "token_cost": 9, "subjects": ["ann"]},
    )  # fmt: skip
    (entry,) = await stored(crew.a)
    assert entry["agent_id"] == "a"
    assert entry["subjects"] == ["ann"]
    assert entry["provenance"]["task"] == task["id"]
    assert entry["scope"] == {}, "it outlasts its task"
    value = entry["value"]
    assert value["trigger"] == {"text": "pay"}
    assert value["outcome"] == {"status": "success", "artifacts": [{"paid": 5}]}
    assert value["metadata"]["task_id"] == task["id"]
    assert value["metadata"]["token_cost"] == 9
    task = await end(crew, "failed", error="no money", episode={"trigger": "pay order 6"})
    newest, _ = await stored(crew.a)
    assert newest["status"] == "failure"
    assert newest["value"]["outcome"]["error"] == "no money"
    assert newest["value"]["trigger"] == {"text": "pay order 6"}


async def test_a_report_belongs_to_the_end_and_a_bad_one_changes_nothing(crew: Crew) -> None:
    task, taken = await crew.working()
    report = {"evaluation": {"correctness": 1}}
    for fields, status in (
        ({"blocked_reason": "x", "episode": report}, 422),
        ({"status": "completed", "episode": {"evaluation": {"correctness": 2}}}, 422),
        ({"status": "completed", "episode": {"subjects": ["a/b"]}}, 422),
        ({"status": "completed", "episode": {"side_effects": ["x" * 70_000]}}, 413),
    ):
        reply = await crew.try_change(crew.a, task["id"], taken.token, **fields)
        assert_problem(reply, status)
        assert "episode" in reply.text or "subjects" in reply.text
    assert (await crew.now(task["id"]))["status"] == "running"
    assert await stored(crew.a) == []


async def test_a_task_of_a_session_is_about_its_person(crew: Crew) -> None:
    talk = await begin(crew.a, subject="ann", policy={"personal_data": "mask"})
    task = await crew.task(assigned_agent="a", metadata={"session_id": talk.id})
    taken = await crew.take(crew.a, task["id"], 600)
    report = {"trigger": "Write to ann@example.com"}
    await crew.change(crew.a, task["id"], token=taken.token, status="completed", episode=report)
    (entry,) = await stored(crew.a)
    assert entry["subjects"] == ["ann"]
    assert "ann@example.com" not in str(entry), "the session masks personal data"
    assert entry["provenance"]["session"] == talk.id
    assert entry["value"]["metadata"]["session_id"] == talk.id


async def test_a_task_that_names_a_session_of_others_tells_nothing_of_it(crew: Crew) -> None:
    talk = await begin(crew.b, subject="ann")
    task = await crew.task(assigned_agent="a", metadata={"session_id": talk.id})
    taken = await crew.take(crew.a, task["id"], 600)
    report = {"trigger": "x"}
    await crew.change(crew.a, task["id"], token=taken.token, status="completed", episode=report)
    (entry,) = await stored(crew.a)
    assert "subjects" not in entry
    assert "session_id" not in entry["value"]["metadata"]


@pytest.mark.parametrize(("setting", "number"), [("failed", 1), ("all", 2)])
async def test_the_setting_keeps_more_episodes(tmp_path: Path, setting: str, number: int) -> None:
    async with open_service(tmp_path, task_episodes=setting) as service:
        crew = await crew_of(service)
        await end(crew, output={"paid": 5})
        await end(crew, "failed", error="no money")
        assert len(await stored(crew.a)) == number


async def test_a_task_ends_though_its_agent_has_no_room(crew: Crew) -> None:
    admin = await crew.service.agent("boss", permissions=tuple(Permission))
    reply = await admin.put("/api/v1/agents/a/memory/limits", json={
        "episodic_capacity": 1, "pinned_namespaces": ["kept"],
    })  # fmt: skip
    ok(reply)
    draft = {"namespace": "kept", "key": "k", "memory_type": "episodic", "value": {"n": 1}}
    ok(await crew.a.post(MEMORY, json=draft), 201)
    task = await end(crew, episode={"evaluation": {"correctness": 1}})
    assert task["status"] == "completed"
    assert await stored(crew.a) == []


def _turn(number: int, role: Any, content: str, **fields: Any) -> Turn:
    return Turn(sequence=number, role=role, content=content, author="ada", tokens=5, **fields)


def test_a_session_is_an_episode_of_what_was_asked_done_and_said() -> None:
    call = ToolCall(id="c1", name="lookup", arguments={"order": 5})
    turns = [
        _turn(1, "system", "Be kind."),
        _turn(2, "user", "Where is my order 5?"),
        _turn(3, "assistant", "", tool_calls=(call, ToolCall(id="c2", name="mail"))),
        _turn(4, "tool", "shipped", tool_call_id="c1"),
        _turn(5, "tool", "no address", tool_call_id="c2", is_error=True),
        _turn(6, "assistant", "It was shipped."),
    ]
    session = Session(agent_id="ada", metadata={"channel": "mail"})
    begun, ended = "2026-02-01T00:00:00.000Z", "2026-02-01T00:00:02.000Z"

    def made(some: list[Turn]) -> Episode | None:
        return episode_of_session(
            session, some, session_id="s-1", begun_at=begun, ended_at=ended, summary="A question."
        )

    episode = made(turns)
    assert episode is not None
    assert episode.asked == "Where is my order 5?"
    assert [(one.tool, one.output, one.error) for one in episode.actions] == [
        ("lookup", "shipped", None), ("mail", None, "no address"),
    ]  # fmt: skip
    assert episode.outcome.status == "success"
    assert episode.outcome.artifacts == ("It was shipped.",)
    assert episode.context.conditions == {"channel": "mail"}
    assert (episode.metadata.duration_ms, episode.metadata.token_cost) == (2_000, 30)
    failed = made(turns[:5])
    assert failed is not None
    assert (failed.outcome.status, failed.outcome.error) == ("failure", "no address")
    assert made(turns[:1]) is None


def test_a_run_of_a_worker_is_an_episode_if_it_records_something(place: Path | str) -> None:
    @Worker()
    def pay(ctx: Any) -> dict[str, Any]:
        if ctx.task.name != "quiet":
            ctx.episode.action("lookup", input={"order": 5}, output="x" * 5_000, ms=3)
            ctx.episode.note(trigger="pay order 5", context={"conditions": {"shop": "north"}})
        if ctx.task.name == "broken":
            ctx.episode.evaluate(correctness=0, failure_class="timeout")
            raise TimeoutError("slow")
        with pytest.raises(ValidationError, match="colour"):
            ctx.episode.note(colour="red")
        return {"paid": 5}

    with memorywall.open(place, agent="ada") as client:
        intent = client.intents.create("Pay")
        for name in ("quiet", "good", "broken"):
            client.tasks.create(intent.id, name, assigned_agent="ada", max_attempts=1)
        for _ in range(3):
            assert pay.run_once(client)
        found = client.memory.query(kind="episode", memory_type="episodic", agent_id="ada")
        broken, good = (one.value for one in found)
        assert good["outcome"]["status"] == "success"
        assert good["actions"][0]["output"] == "x" * 500 + "…"
        assert broken["evaluation"] == {"correctness": 0.0, "failure_class": "timeout"}
        assert broken["outcome"]["error"].startswith("TimeoutError")


def test_a_run_of_an_asynchronous_worker_is_an_episode(place: Path | str) -> None:
    async def run() -> None:
        @Worker()
        async def pay(ctx: Any) -> None:
            ctx.episode.action("pay")

        async with memorywall.open_async(place, agent="ada") as client:
            intent = await client.intents.create("Pay")
            await client.tasks.create(intent.id, "pay", assigned_agent="ada")
            assert await pay.run_once(client)
            (one,) = await client.memory.query(
                kind="episode", memory_type="episodic", agent_id="ada"
            )
            assert one.value["actions"] == [{"tool": "pay"}]

    asyncio.run(run())
