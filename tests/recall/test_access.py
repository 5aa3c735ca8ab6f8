"""A model of the access rules against search, with the access that work gives."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from memorywall import assembly
from memorywall.records.entry import Entry
from memorywall.records.filter import EntryFilter
from memorywall.records.principal import Permission, Principal, PrincipalKind
from memorywall.records.recall import Mode
from memorywall.records.tier import Tier
from memorywall.service.entries.matches import find_matches
from memorywall.service.runner.operation_runner import run_read
from tests.recall.recall_service import RecallService, agent, told
from tests.recall.test_noninterference import OwnIds
from tests.support.embedder import WordEmbedder
from tests.support.extent import extent
from tests.support.service import RunningService, open_service
from tests.work.crew import TASKS, Crew, crew_of, ok

pytestmark = pytest.mark.anyio

OWNED = (Tier.WORKING, Tier.SESSION, Tier.EPISODIC)
SHARED = (Tier.SEMANTIC, Tier.PROCEDURAL)
CHIEF, A, B, OUTSIDER = agent("chief"), agent("a"), agent("b"), agent("outsider")
EVERYBODY = [CHIEF, A, B, OUTSIDER]
LEVELS = ["none", "read", "write", "admin"]


class Scene:
    """A crew, a recall over the same service, and all written entries.

    The chief coordinates an intent. `a` has taken up a task of it, `b` was given one and has not
    taken it up, and a second one of `b` inherits from the first of `a`. The outsider is named in
    the intent's access list where `is_named`.
    """

    def __init__(
        self,
        crew: Crew,
        recall: RecallService,
        tasks: dict[str, str],
        token: int,
        *,
        is_named: bool,
    ) -> None:
        self.crew = crew
        self.worker = replace(A, fencing_token=token)
        self.recall = recall
        self.tasks = tasks
        self.is_named = is_named
        self.namespaces: dict[str, tuple[str, dict[str, str]]] = {}
        self.written: list[Entry] = []

    def may_read(self, who: Principal, entry: Entry) -> bool:
        """The rules once more, in the words of this scene."""
        if entry.tier in SHARED:
            default, grants = self.namespaces[entry.namespace]
            return grants.get(who.id, default) != "none"
        if entry.agent_id == who.id:
            return True
        if entry.tier is Tier.EPISODIC:
            return who is CHIEF and entry.agent_id == "a"
        if entry.tier is not Tier.WORKING:
            return False
        scope = entry.scope
        if scope.task_id in self.tasks.values():
            assigned = "a" if scope.task_id == self.tasks["taken"] else "b"
            inherits = scope.task_id == self.tasks["taken"] and who is B
            return who is CHIEF or who.id == assigned or inherits or self._is_named(who)
        return scope.intent_id is not None and self._is_named(who)

    def _is_named(self, who: Principal) -> bool:
        return self.is_named and who is OUTSIDER


async def stage(
    service: RunningService, *, is_named: bool = True, embedder: WordEmbedder | None = None
) -> Scene:
    """The scene, with nothing written."""
    crew = await crew_of(service)
    await crew.coordinate()
    _, taken = await crew.working("a", name="taken")
    given = await crew.task("given", assigned_agent="b")
    below = await crew.task(
        "below",
        parent_task_id=taken.task["id"],
        assigned_agent="b",
        memory_policy={"inherit_from_parent": True},
    )
    if is_named:
        line = {"principal_id": "outsider", "permission": "read"}
        ok(await crew.chief.post(f"{crew.intent_path}/acl/entries", json=line), 201)
    tasks = {"taken": taken.task["id"], "given": given["id"], "below": below["id"]}
    recall = RecallService(service.services, service.clock, embedder)
    return Scene(crew, recall, tasks, taken.token, is_named=is_named)


@pytest.fixture
async def scene(service: RunningService) -> AsyncIterator[Scene]:
    made = await stage(service)
    yield made
    made.recall.close()


async def fill(scene: Scene, chance: random.Random, count: int) -> None:
    """Entries of everybody, everywhere, bound to all kinds of things."""
    recall = scene.recall
    for name in ("red", "green", "blue"):
        default = chance.choice(LEVELS)
        grants = {one.id: chance.choice(LEVELS) for one in EVERYBODY if chance.random() < 0.5}
        founder = chance.choice(EVERYBODY)
        grants[founder.id] = "admin"
        await recall.open_namespace(founder, name, default, **grants)
        scene.namespaces[name] = (default, grants)
    intent = scene.crew.intent["id"]
    scopes = {
        "a": [{}, {"task_id": scene.tasks["taken"]}, {"intent_id": intent}],
        "b": [{}, {"task_id": scene.tasks["given"]}, {"task_id": scene.tasks["below"]}],
        "chief": [{}, {"intent_id": intent}],
        "outsider": [{}, {"task_id": "no-task-of-ours"}],
    }
    for number in range(count):
        who, tier = chance.choice(EVERYBODY), chance.choice(OWNED + SHARED)
        place = chance.choice(["red", "green", "blue"])
        if tier in SHARED:
            default, grants = scene.namespaces[place]
            if grants.get(who.id, default) not in ("write", "admin"):
                continue
        scope = chance.choice(scopes[who.id]) if tier is Tier.WORKING else {}
        if scope.get("task_id") == scene.tasks["taken"]:
            who = scene.worker
        word = chance.choice(["kitten", "window", "kitten window"])
        fields: dict[str, Any] = {"key": f"e{number}", "scope": scope}
        scene.written.append(await recall.write(who, f"{word} {number}", tier, place, **fields))
        recall.clock.advance(1)


@pytest.mark.parametrize("embedded", [False, True])
@pytest.mark.parametrize("seed", range(6))
async def test_search_finds_only_readable_entries(
    service: RunningService, seed: int, embedded: bool
) -> None:
    print("seed", seed)
    scene = await stage(
        service, is_named=bool(seed % 2), embedder=WordEmbedder() if embedded else None
    )
    recall, chance = scene.recall, random.Random(seed)
    await fill(scene, chance, 90)
    if embedded:
        await recall.embed()
    for who in EVERYBODY:
        expected = {one.id for one in scene.written if scene.may_read(who, one)}
        everything = EntryFilter(tenant=who.tenant, limit=1_000)
        listed = await run_read(recall.services, who, partial(find_matches, wanted=everything))
        assert {one.id for one in listed.entries} == expected, "the model of this test is wrong"
        assert 0 < len(expected) < len(scene.written)
        for mode in [Mode.HYBRID, Mode.LEXICAL] + [Mode.DENSE] * embedded:
            found = await recall.ids(who, "kitten or a window", limit=100, mode=mode)
            assert len(found) == len(set(found))
            assert set(found) == expected, (who.id, mode)
        one_word = await recall.ids(who, "kitten", limit=100, mode=Mode.LEXICAL, tiers=SHARED)
        has_it = {one.id for one in scene.written if b"kitten" in one.value and one.tier in SHARED}
        assert set(one_word) == expected & has_it
        for entry in scene.written:
            assert await recall.can_get(who, entry) == (entry.id in expected)
    recall.close()


async def test_access_through_work_ends_with_the_work(scene: Scene) -> None:
    recall, crew = scene.recall, scene.crew
    bound = await recall.write(
        scene.worker, "the kitten at work", Tier.WORKING, scope={"task_id": scene.tasks["taken"]}
    )
    lived = await recall.write(A, "the kitten lived", Tier.EPISODIC)
    assert set(await recall.ids(CHIEF, "kitten")) == {bound.id, lived.id}
    assert await recall.ids(B, "kitten") == [bound.id]
    # What inherits is the task that is below, and that is over.
    ok(
        await crew.chief.patch(
            f"{TASKS}/{scene.tasks['below']}",
            json={"status": "cancelled"},
            headers={"If-Match": str((await crew.now(scene.tasks["below"]))["version"])},
        )
    )
    assert await recall.ids(B, "kitten") == []
    # The coordinator has been silent for too long.
    recall.clock.advance(24 * 3600)
    assert await recall.ids(CHIEF, "kitten") == []


async def test_revoked_permission_takes_effect_at_once(scene: Scene) -> None:
    recall = scene.recall
    await recall.open_namespace(A, "red", "read", a="admin")
    entry = await recall.write(A, "kitten", Tier.SEMANTIC, "red")
    for default, found in [("read", [entry.id]), ("none", []), ("write", [entry.id])]:
        await recall.open_namespace(A, "red", default, a="admin")
        assert await recall.ids(B, "kitten") == found
    await recall.open_namespace(A, "red", "write", a="admin", b="none")
    assert await recall.ids(B, "kitten") == []


async def test_a_key_that_may_not_read_finds_nothing(scene: Scene) -> None:
    await scene.recall.write(A, "kitten")
    writer = Principal(
        tenant=A.tenant,
        id=A.id,
        kind=PrincipalKind.AGENT,
        permissions=frozenset({Permission.WRITE}),
    )
    assert await scene.recall.ids(writer, "kitten") == []


@asynccontextmanager
async def opened_scene(directory: Path, embedder: WordEmbedder | None) -> AsyncIterator[Scene]:
    async with open_service(directory) as service:
        scene = await stage(service, embedder=embedder)
        try:
            yield scene
        finally:
            scene.recall.close()


@pytest.mark.parametrize("embedded", [False, True])
@pytest.mark.parametrize("seed", range(extent(1, long=3)))
async def test_unreadable_neighbour_has_no_influence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, embedded: bool
) -> None:
    """Of working memory a task opens some entries only; those beside them in the same thread say
    nothing: not by their words, their lengths or their meaning, and not by being there."""
    print("seed", seed)
    monkeypatch.setattr(assembly, "IdSource", OwnIds)
    embedder = WordEmbedder() if embedded else None
    said = []
    for crowded in (False, True):
        async with opened_scene(tmp_path / str(crowded), embedder) as scene:
            recall, chance = scene.recall, random.Random(seed)
            ids = recall.services.ids
            assert isinstance(ids, OwnIds)
            beside = random.Random(f"beside {seed}")
            for number in range(40):
                if crowded and beside.random() < 0.7:
                    ids.is_ours = False
                    length = beside.randint(1, 40)
                    hidden = {"text": "kitten window refund " * length, "author": "Kitten"}
                    await recall.write(A, hidden, Tier.WORKING, key=f"hidden {number}")
                    ids.is_ours = True
                text = " ".join(chance.choices(["kitten", "window", "sofa", "tree"], k=5))
                scope = {"task_id": scene.tasks["taken"]}
                asks = "?" if chance.random() < 0.3 else ""
                own: dict[str, Any] = {"key": f"e{number}", "scope": scope}
                await recall.write(scene.worker, text + asks, Tier.WORKING, **own)
                recall.clock.advance(1)
            if embedded:
                await recall.embed()
            said.append(
                [
                    told(await recall.search(who, query, explain=True, limit=limit, mode=mode))
                    for who in (CHIEF, B, OUTSIDER)
                    for query in ("kitten window", "refund of the kitten", "tree", "refund")
                    for limit in (5, 100)
                    for mode in (Mode.HYBRID, Mode.LEXICAL)
                ]
            )
            # Beside each other they do help.
            found = await recall.search(CHIEF, "kitten", explain=True, limit=100, mode=Mode.LEXICAL)
            assert any(b"kitten" not in hit.entry.value for hit in found.hits)
            assert await recall.ids(CHIEF, "refund", mode=Mode.LEXICAL) == []
    assert said[0] == said[1]
