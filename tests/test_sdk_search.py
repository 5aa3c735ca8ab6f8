"""`client.memory.search` and `reshape_query`: each test in both colours, near and far."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from memorywall import MemoryEntry
from memorywall.exceptions import (
    MemoryAccessError,
    MemoryConflictError,
    MemoryTransportError,
    MemorywallError,
    TransitionError,
    ValidationError,
)
from memorywall.records.recall import EntryOutcome, GuidanceKind, Mode
from memorywall.records.tier import Tier
from memorywall.sdk.models import ReshapedQuery
from memorywall.sdk.worker_context import TaskContext
from tests.support.workers import Shop, on, shop
from tests.test_sdk_support import (
    Either,
    Faults,
    Faulty,
    World,
    faulty,
    fresh,
    server,
    take,
    world,
)

pytestmark = pytest.mark.anyio
__all__ = ["faulty", "server", "shop", "world"]

TEXT = "The parcel was late."


async def note(client: Either, key: str, text: str = TEXT, **fields: Any) -> MemoryEntry:
    """An episodic entry with a text, in a thread of its own, unless it is said to be another."""
    value = {"text": text, **fields.pop("more", {})}
    fields = {"memory_type": "episodic", **fields}
    made: MemoryEntry = await client.memory.set(
        fields.pop("namespace", f"notes/{key}"), key, value, **fields
    )
    return made


async def test_best_answer_comes_first(world: World) -> None:
    client = world.client(fresh("billing"))
    await note(client, "soup", "Soup is served on Mondays.")
    other = await note(client, "other")
    best = await note(client, "best", "Refund the customer whose parcel was late.", tags=["x"])
    found = await client.memory.search("refund for a late parcel")
    assert [hit.entry for hit in found] == [best, other]
    assert found[0].entry == await client.memory.get("notes/best", "best")
    assert found[0].score > found[1].score > 0
    assert [hit.explain for hit in found] == [None, None]
    assert (found.model, found.pending) == (None, 0)
    assert await client.memory.search("refund for a late parcel", limit=1) == found[:1]
    assert await client.memory.search("nothing of the kind") == []


async def test_results_say_what_the_search_covered_and_hits_are_short(world: World) -> None:
    client = world.client(fresh("billing"))
    nothing = await client.recall("anything at all")
    assert nothing.note.startswith("searched by words only")
    covered = "model=None, pending=0, answered=False"
    assert repr(nothing) == f"SearchResults([], note={nothing.note!r}, {covered})"
    await client.remember("Ana is allergic to peanuts. " * 9)
    found = await client.recall("peanuts")
    shown = repr(found)
    assert "text='Ana is allergic to peanuts." in shown
    assert "'remembered/" in shown
    assert shown.endswith("model=None, pending=0, answered=True)")
    assert len(shown) < 250
    assert "pinned" not in repr(found[0].entry)


async def test_the_origin_and_the_source_of_content_are_conditions(world: World) -> None:
    client = world.client(fresh("billing"))
    uri = "https://example.com/policy"
    best = await note(client, "policy", origin="document", source=uri)
    other = await note(client, "said")
    for wanted in ({"origin": "document"}, {"source": uri}):
        found = await client.memory.search("late parcel", **wanted)
        assert [hit.entry for hit in found] == [best]
    assert len(await client.memory.search("late parcel", namespace=other.namespace)) == 1


async def test_a_score_is_explained(world: World) -> None:
    client = world.client(fresh("billing"))
    await note(client, "best")
    (hit,) = await client.memory.search("was a parcel late?", explain=True)
    shares = hit.explain
    assert set(shares.terms) == {"parcel", "late"}
    assert shares.lexical > 0 == shares.dense
    total = shares.lexical + shares.dense + shares.thread + shares.author + shares.date
    assert hit.score == pytest.approx(total * shares.prior * shares.superseded, abs=1e-4)


async def test_a_long_text_has_a_highlight(world: World) -> None:
    client = world.client(fresh("billing"))
    text = "Soup is served on Mondays. " * 60 + "The zebra was late."
    await note(client, "long", text)
    await note(client, "short", "A zebra.")
    long, short = sorted(await client.memory.search("late zebra"), key=lambda hit: hit.entry.key)
    assert short.highlight is None
    shown = long.highlight
    assert shown.field == "text"
    assert shown.text == text[shown.start : shown.end]
    assert shown.text.endswith("The zebra was late.")


async def test_every_condition_arrives(world: World) -> None:
    agent = fresh("billing")
    client = world.client(agent)
    place = fresh("facts")
    await note(client, "a", tags=["x", "y"], more={"outcome": "success"})
    await note(client, "b", tags="x", scope={"task_id": "t1", "intent_id": "i1"})
    await note(client, "c", scope={"session_id": "s1"}, more={"confidence": 0.5})
    await note(client, "d", namespace=f"{place}/d", memory_type="semantic")
    before = datetime.now(UTC) - timedelta(hours=1)
    for wanted, expected in (
        ({"agent_id": agent}, {"a", "b", "c", "d"}),
        ({"agent_id": agent, "memory_type": Tier.EPISODIC}, {"a", "b", "c"}),
        ({"agent_id": agent, "memory_type": "semantic"}, {"d"}),
        ({"namespace": f"{place}/d"}, {"d"}),
        ({"namespace": f"{place}*"}, {"d"}),
        ({"namespace": place}, set()),
        ({"tags": "x"}, {"a", "b"}),
        ({"tags": ("x", "y")}, {"a"}),
        ({"tags_any": ["y", "z"]}, {"a"}),
        ({"tags_any": "y"}, {"a"}),
        ({"task_id": "t1"}, {"b"}),
        ({"intent_id": "i1"}, {"b"}),
        ({"session_id": "s1"}, {"c"}),
        ({"task_id": "t1", "session_id": "s1"}, set()),
        ({"outcome": "success"}, {"a"}),
        ({"outcome": EntryOutcome.FAILURE}, set()),
        ({"agent_id": agent, "memory_type": "episodic", "min_trust": 0.5}, {"a", "b"}),
        ({"agent_id": agent, "mode": "lexical"}, {"a", "b", "c", "d"}),
        ({"agent_id": agent, "dense_weight": 3}, {"a", "b", "c", "d"}),
        ({"agent_id": agent, "context": "a letter"}, {"a", "b", "c", "d"}),
        ({"agent_id": agent, "mode": Mode.DENSE}, set()),
        ({"agent_id": agent, "as_of": before}, set()),
        ({"agent_id": agent, "as_of": before.isoformat()}, set()),
        ({"agent_id": agent, "as_of": datetime.now(UTC)}, set("abcd")),
    ):
        found = await client.memory.search("late parcel", **wanted)
        assert {hit.entry.key for hit in found} == expected, wanted


async def test_entry_from_a_search_can_be_updated(world: World) -> None:
    agent = fresh("billing")
    made = await note(world.client(agent), "a")
    client = world.client(agent)
    (hit,) = await client.memory.search("parcel", agent_id=agent)
    changed = await client.memory.set("notes/a", "a", {"text": "It came."}, memory_type="episodic")
    assert (hit.entry.version, changed.id, changed.version) == (1, made.id, 2)


async def test_a_search_that_cannot_be_done_is_refused(world: World) -> None:
    client = world.client(fresh("billing"))
    for query in ("", " ", "x" * 2_001):
        with pytest.raises(ValidationError):
            await client.memory.search(query)
        with pytest.raises(ValidationError):
            await client.memory.reshape_query(query)
    for wanted in (
        {"limit": 101},
        {"min_trust": 2},
        {"dense_weight": -1},
        {"mode": "fast"},
        {"as_of": datetime.now()},  # noqa: DTZ005
        {"as_of": datetime.now(UTC) + timedelta(hours=1)},
        {"context": "x" * 2_001},
    ):
        with pytest.raises(ValidationError):
            await client.memory.search("parcel", **wanted)
    with pytest.raises(TypeError):
        await client.memory.search("parcel", key="a")


async def test_a_question_comes_back_with_guidance(world: World) -> None:
    agent = fresh("billing")
    client = world.client(agent)
    question = "Which form is for travel expenses?"
    unchanged = await client.memory.reshape_query(question, agent_id=agent)
    assert (unchanged, unchanged.guidance) == (question, ())
    lesson = {"type": "correction", "wrong_answer": "form 12", "right_answer": "form 31"}
    made = await note(client, "lesson", "Which form for travel expenses?", more=lesson)
    reshaped: ReshapedQuery = await client.memory.reshape_query(
        question, agent_id=agent, namespace="notes/lesson", limit=1
    )
    assert issubclass(ReshapedQuery, str)
    assert reshaped.startswith(question + "\n")
    (guidance,) = reshaped.guidance
    assert (guidance.kind, guidance.entry_id) == (GuidanceKind.CORRECTION, made.id)
    assert "form 31" in guidance.text
    assert guidance.text in reshaped
    assert 0 < guidance.confidence <= 1
    elsewhere = await client.memory.reshape_query(question, namespace=fresh("elsewhere"))
    assert elsewhere == question


async def test_a_rejected_document_does_not_rank_first_after_reshaping(world: World) -> None:
    agent = fresh("billing")
    client = world.client(agent)
    question = "refund period for opened boxes"
    await note(client, "right", "The refund period for opened boxes is 14 days, see returns.")
    await note(client, "wrong", "Old returns handbook of 2019: an opened box, no refund.")
    lesson = {
        "type": "negative_retrieval",
        "rejected_doc": "Old returns handbook of 2019",
        "accepted_doc": "returns",
    }
    await note(client, "lesson", "refund period for opened boxes", more=lesson)
    reshaped = await client.memory.reshape_query(question, agent_id=agent)
    assert "2019" in reshaped
    for mode in ("hybrid", "lexical"):
        found = await client.memory.search(reshaped, agent_id=agent, mode=mode)
        keys = [hit.entry.key for hit in found if hit.entry.key != "lesson"]
        assert keys == ["right", "wrong"]
    # Guidance may make a query longer than a search allows.
    long = type(reshaped)(f"{reshaped}\n- {'x' * 2_000}", guidance=reshaped.guidance)
    assert len(await client.memory.search(long, agent_id=agent)) == 3


async def test_a_search_is_repeated_under_no_key(faulty: Faulty) -> None:
    faults = Faults("unsent", "unheard")
    client = faulty.client(fresh("billing"), faults)
    assert await client.memory.search("parcel", agent_id=fresh("nobody")) == []
    assert [request.method for request in faults.requests] == ["POST"] * 3
    assert not any("Idempotency-Key" in request.headers for request in faults.requests)
    faults.replies = [(200, b'{"results": [{}]}', "POST")]
    with pytest.raises(MemoryTransportError):
        await client.memory.search("parcel")


async def test_the_server_tells_of_what_is_embedded_and_held(world: World) -> None:
    client = world.client(fresh("billing"))
    await note(client, "a")
    assert len(await client.memory.search("parcel", agent_id=client.target._state.agent)) == 1
    ready = await client.ready()
    assert (ready.status, ready.embedding.model, ready.embedding.backlog) == ("ready", None, 0)
    lines = (await client.metrics()).splitlines()
    gauges = dict(line.split() for line in lines if not line.startswith("#"))
    assert float(gauges["memorywall_embedding_backlog"]) == 0
    assert float(gauges["memorywall_recall_shards"]) >= 1
    assert float(gauges["memorywall_recall_entries"]) >= 1
    limits = (await client.capabilities()).limits
    assert (limits.query_characters, limits.search_hits) == (2_000, 100)


async def test_metrics_that_cannot_be_had_are_an_error(faulty: Faulty) -> None:
    faults = Faults()
    faults.replies = [(503, b"", "GET")]
    with pytest.raises(MemorywallError):
        await faulty.client(fresh("billing"), faults).metrics()


def test_a_worker_searches_the_working_memory_of_its_task(shop: Shop) -> None:
    agent = fresh("w")
    first = shop.task(agent)

    def begin(ctx: TaskContext) -> None:
        ctx.memory.set("batch", "first", {"text": TEXT})
        raise ctx.blocked("waits")

    assert on(shop, agent, begin) == 1
    second = shop.task(agent)

    def look(ctx: TaskContext) -> None:
        ctx.memory.set("batch", "second", {"text": TEXT})

        def found(**wanted: Any) -> set[str]:
            return {hit.entry.key for hit in ctx.memory.search("late parcel", **wanted)}

        assert found(memory_type="working") == {"second"}
        assert found(memory_type=Tier.WORKING, task_id=first.id) == {"first"}
        assert found(memory_type="working", agent_id=agent) == {"first", "second"}
        assert found(agent_id=agent) == {"first", "second"}
        assert found(task_id=second.id) == {"second"}
        assert ctx.memory.reshape_query("late parcel", agent_id=agent) == "late parcel"

    assert on(shop, agent, look) == 1


async def test_an_exported_entry_is_the_one_that_is_found(world: World) -> None:
    agent = fresh("billing")
    client = world.client(agent)
    await note(client, "a")
    exported = await take(client.target.memory.export(agent_id=agent))
    found = await client.memory.search("parcel", agent_id=agent)
    assert [hit.entry for hit in found] == exported


async def test_nothing_is_recalled_rather_than_noise(world: World) -> None:
    client = world.client(fresh("billing"))
    await note(client, "zeppelin", "The zeppelin landed at dusk.")
    found = await client.recall("When did the zeppelin land?")
    assert [hit.entry.key for hit in found] == ["zeppelin"]
    assert found.answered
    assert found[0].relevance > 0
    noise = "Which violinist repaired the antique clocks of her cousin beside the zeppelin?"
    silent = await client.recall(noise)
    assert (list(silent), silent.answered, silent.left_out) == ([], False, 1)
    plain = await client.memory.search(noise)
    assert [hit.entry.key for hit in plain] == ["zeppelin"]
    cut = await client.memory.search(noise, min_relevance=0.99)
    assert (list(cut), cut.left_out) == ([], 1)
    assert await client.memory.search(noise, strict=True) == []


async def test_a_memory_supersedes_another_until_it_is_reinstated(world: World) -> None:
    client = world.client(fresh("billing"))
    older = await note(client, "older", "The office is in Graz.")
    newer = await note(client, "newer", "The office is in Linz.")
    changed = await client.memory.supersede(older.id, newer.id)
    assert (changed.state, changed.provenance.superseded_by) == ("superseded", newer.id)
    assert [hit.entry.key for hit in await client.memory.search("office")] == ["newer"]
    with pytest.raises(MemoryConflictError):
        await client.memory.reinstate(older.id, version=older.version)
    back = await client.memory.reinstate(older.id)
    assert (back.state, back.version) == ("live", changed.version + 1)
    assert len(await client.memory.search("office")) == 2


async def test_a_memory_is_corrected_retracted_and_taken_back(world: World) -> None:
    client = world.client(fresh("billing"))
    office = await note(client, "office", "The office is in Graz.")
    trip = await client.remember("Visit the office in Graz.", derived_from=[office])
    made = await client.correct(office.id, "The office is in Linz.", reason="moved")
    assert (made.entry.text, made.withdrawn, made.hidden) == (
        "The office is in Linz.", (trip.id,), 0,
    )  # fmt: skip
    assert (await client.memory.get_by_id(trip.id)).state == "withdrawn"
    assert [hit.entry.key for hit in await client.memory.search("office")] == ["office"]
    for stale in (
        client.undo, partial(client.correct, right="Wels", reason="moved"),
        partial(client.retract, reason="closed"),
    ):  # fmt: skip
        with pytest.raises(MemoryConflictError):
            await stale(office.id, version=office.version)
    undone = await client.undo(office.id, version=made.entry.version)
    assert (undone.entry.text, undone.reinstated) == (office.text, (trip.id,))
    await client.memory.correct(office.id, {"text": "Wels", "floor": 2}, reason="moved")
    assert (await client.memory.get("notes/office", "office"))["floor"] == 2
    made = await client.retract(office.id, reason="closed")
    assert made.entry.state == "withdrawn"
    with pytest.raises(TransitionError):
        await client.memory.retract(office.id, reason="closed")
    assert await client.memory.get("notes/office", "office") is None
    with pytest.raises(MemoryAccessError):
        await client.memory.confirm(office.id)


async def test_a_fact_has_the_same_text_in_every_result(world: World) -> None:
    client, space, ana = world.client(fresh("billing")), fresh("people"), fresh("ana")
    since = {"valid_from": "2026-03-01T00:00:00Z", "attributes": {"floor": 3}}
    fact = {"subject": ana, "relation": "lives_in", "object": "Graz", **since}
    made = await client.memory.set(space, "ana", fact, "semantic", kind="fact", subjects=[ana])
    line = f"{ana} lives in Graz; floor: 3 (since 2026-03-01)"
    assert made.text == line
    assert [hit.text for hit in await client.recall(f"Where does {ana} live?")][:1] == [line]
    profile = await client.profile(ana)
    assert [one.text for one in profile.lines] == [line]


async def test_a_search_asks_for_what_held_at_an_instant(world: World) -> None:
    client = world.client(fresh("billing"))
    await note(client, "old", "The office is in Graz.", more={"valid_until": "2020-06-30"})
    await note(client, "new", "The office is in Linz.", more={"valid_from": "2020-07-01"})
    search = client.memory.search

    def keys(found: Any) -> list[str]:
        return sorted(hit.entry.key for hit in found)

    assert keys(await search("office")) == ["new"]
    assert keys(await search("office", valid_at="any")) == ["new", "old"]
    assert keys(await search("office", valid_at="2020-06-30")) == ["old"]
    assert keys(await search("office", valid_at=datetime(2020, 7, 1, tzinfo=UTC))) == ["new"]
