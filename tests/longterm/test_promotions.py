"""Promotions: each outcome, what they store, and that they can be taken back. Each test runs in
both colours, near and far."""

from __future__ import annotations

from typing import Any

import pytest

from memorywall.exceptions import MemoryAccessError, MemoryNotFoundError, RuleError, ValidationError
from tests.test_sdk_support import Either, World, fresh, server, world

pytestmark = pytest.mark.anyio
__all__ = ["server", "world"]

LEAP = "The export job of the billing service fails on leap days; run it a day later."
MANY_WORDS = "Deploy the search cluster with two replicas in Frankfurt, never on a Friday evening."


async def case(client: Either, text: str) -> str:
    """The id of an episodic entry with a text."""
    made = await client.memory.set("cases", fresh("case"), {"text": text}, "episodic")
    return str(made.id)


async def test_what_is_new_is_promoted_once_with_its_provenance(world: World) -> None:
    client, space = world.client(fresh("ada")), fresh("ops")
    entry_id = await case(client, LEAP)
    rehearsed = await client.promotions.promote(entry_id, "semantic", namespace=space, dry_run=True)
    assert (rehearsed.id, rehearsed.decision, rehearsed.dry_run) == (None, "promoted", True)
    assert [one async for one in every(client, space)] == []
    made = await client.promotions.promote(entry_id, "semantic", namespace=space)
    assert (made.decision, made.rule, made.source_tier) == ("promoted", "accepted", "episodic")
    assert await client.promotions.promote(entry_id, "semantic", namespace=space) == made
    (entry,) = [one async for one in every(client, space)]
    assert (entry.id, entry.value) == (made.result, {"text": LEAP})
    provenance = entry.provenance
    assert (provenance.source_tier, provenance.score) == ("episodic", made.score)
    assert [one.id for one in provenance.evidence] == [entry_id]
    assert [one.id for one in provenance.derived_from] == [entry_id]
    assert provenance.promoted_at == made.decided_at
    assert provenance.authority == "agent_learned"
    by_name = {one.name: one for one in made.parts}
    assert by_name["non_obviousness"].value == 1
    # Nothing is known yet of the contexts that contained it, so these do not count.
    assert by_name["correctness_improvement"].value is None
    assert by_name["reusability"].observations == 0
    assert await client.promotions.get(made.id) == made
    assert await client.promotions.list(candidate=entry_id) == [made]


async def every(client: Either, space: str) -> Any:
    page = await client.memory.query(namespace=space, memory_type="semantic")
    for one in page:
        yield one


async def test_what_is_known_is_merged_and_counts_as_evidence(world: World) -> None:
    client, space = world.client(fresh("ada")), fresh("ops")
    first = await client.promotions.promote(await case(client, LEAP), "semantic", namespace=space)
    again = await case(
        client, "Run the export job of the billing service a day later on leap days."
    )
    found = await client.promotions.promote(again, "semantic", namespace=space)
    assert (found.decision, found.rule, found.result) == ("merged", "duplicate", first.result)
    (entry,) = [one async for one in every(client, space)]
    assert again in [one.id for one in entry.provenance.evidence]
    reverted = await client.promotions.revert(found.id)
    assert reverted.decision == "reverted"
    (entry,) = [one async for one in every(client, space)]
    assert again not in [one.id for one in entry.provenance.evidence]


async def test_a_contradiction_supersedes_and_is_taken_back(world: World) -> None:
    client, space = world.client(fresh("ada")), fresh("ops")
    old = await client.promotions.promote(
        await case(client, MANY_WORDS), "semantic", namespace=space
    )
    opposite = MANY_WORDS.replace("never on", "on")
    new = await client.promotions.promote(await case(client, opposite), "semantic", namespace=space)
    assert new.decision == "promoted"
    assert new.superseded == (old.result,)
    assert (await client.memory.get_by_id(old.result)).state == "superseded"
    page = await client.memory.query(namespace=space, memory_type="semantic")
    derived = await client.memory.set(
        space, "plan", {"text": "No Friday deploys."}, "semantic", derived_from=page
    )
    await client.promotions.revert(new.id)
    assert (await client.memory.get_by_id(derived.id)).state == "withdrawn"
    assert (await client.memory.get_by_id(old.result)).state == "live"
    assert (await client.memory.get_by_id(new.result)).state == "withdrawn"
    assert [one.id async for one in every(client, space)] == [old.result]


async def test_a_key_that_is_taken_is_renewed_with_its_history(world: World) -> None:
    client, space = world.client(fresh("ada")), fresh("ops")
    one = await client.promotions.promote(
        await case(client, LEAP), "semantic", namespace=space, key="leap"
    )
    two = await client.promotions.promote(
        await case(client, MANY_WORDS), "semantic", namespace=space, key="leap"
    )
    assert (two.decision, two.result) == ("promoted", one.result)
    entry = await client.memory.get(space, "leap", "semantic")
    assert (entry.value["text"], entry.version) == (MANY_WORDS, 2)
    await client.promotions.revert(two.id)
    with pytest.raises(RuleError, match="taken back"):
        await client.promotions.promote(two.candidate, "semantic", namespace=space, key="leap")
    entry = await client.memory.get(space, "leap", "semantic")
    assert (entry.value["text"], entry.version) == (LEAP, 3)


async def test_what_is_not_promoted_from_a_tier_is_refused(world: World) -> None:
    client, other = world.client(fresh("ada")), world.client(fresh("bob"))
    entry_id = await case(client, LEAP)
    with pytest.raises(ValidationError, match="`namespace` is required"):
        await client.promotions.promote(entry_id, "semantic")
    with pytest.raises(ValidationError, match="`to` must be a tier"):
        await client.promotions.promote(entry_id, "session")
    with pytest.raises(MemoryAccessError):
        await other.promotions.promote(entry_id, "semantic", namespace=fresh("ops"))
    made = await client.promotions.promote(entry_id, "semantic", namespace=fresh("ops"))
    with pytest.raises(MemoryAccessError):
        await other.promotions.revert(made.id)
    with pytest.raises(MemoryNotFoundError):
        await client.promotions.get(entry_id)


async def test_what_was_learned_earlier_does_not_supersede_what_was_learned_later(
    world: World,
) -> None:
    client, space = world.client(fresh("ada")), fresh("ops")
    earlier = await case(client, MANY_WORDS)
    later = await case(client, MANY_WORDS.replace("never on", "on"))
    known = await client.promotions.promote(later, "semantic", namespace=space)
    waits = await client.promotions.promote(earlier, "semantic", namespace=space)
    assert (waits.decision, waits.rule) == ("deferred", "manual_resolution")
    assert (await client.memory.get_by_id(known.result)).state == "live"


async def test_a_question_is_no_knowledge(world: World) -> None:
    client = world.client(fresh("ada"))
    with pytest.raises(RuleError, match="rule `question`"):
        await client.promotions.promote(
            await case(client, "What time is it?"), "semantic", namespace=fresh("ops")
        )


async def test_a_fact_is_about_the_people_that_it_names(world: World) -> None:
    client, person = world.client(fresh("ada")), fresh("ann")
    fact = await client.facts.add(
        "Ann", "lives_in", "Bern", namespace=fresh("f"), subjects=[person]
    )
    assert fact.subjects == (person,)
    for wrong in (["Ann lives_in ?x"], [("?a", "lives_in")]):
        with pytest.raises(ValidationError, match="must have three parts"):
            await client.facts.query(wrong, namespace="f")
