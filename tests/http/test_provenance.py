"""Provenance across updates: what keeps, lowers and raises an origin, and what stays derived."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from memorywall.records.principal import DEFAULT_PERMISSIONS, Permission, PrincipalKind
from tests.http.checks import BATCH, MEMORY, NAMESPACES, assert_problem
from tests.support.service import RunningService, draft

pytestmark = pytest.mark.anyio

FACT = {"memory_type": "semantic", "namespace": "facts"}
IMPORTED = {"origin": "import", "source": "https://example.com/page"}
MERGE = "application/merge-patch+json"
CONTEXTS = "/api/v1/context"
Entry = dict[str, Any]


@pytest.fixture
async def ada(service: RunningService) -> AsyncIterator[httpx.AsyncClient]:
    allowed = (*DEFAULT_PERMISSIONS, Permission.ADMIN)
    async with await service.agent("ada", permissions=allowed) as client:
        await _make(client, "first", **FACT)
        opened = {"permissions": {"default": "write"}}
        assert (await client.patch(f"{NAMESPACES}/facts", json=opened)).status_code == 200
        yield client


@pytest.fixture
async def person(service: RunningService) -> AsyncIterator[httpx.AsyncClient]:
    async with await service.agent("paula", kind=PrincipalKind.USER) as client:
        yield client


@pytest.fixture
async def chief(service: RunningService) -> AsyncIterator[httpx.AsyncClient]:
    async with await service.agent("chief", permissions=tuple(Permission)) as client:
        yield client


async def _make(client: httpx.AsyncClient, key: str, **fields: Any) -> Entry:
    response = await client.post(MEMORY, json=draft(key, **fields))
    assert response.status_code == 201, response.text
    made: Entry = response.json()
    return made


async def _patch(client: httpx.AsyncClient, entry: Entry, **change: Any) -> Entry:
    headers = {"If-Match": str(entry["version"])}
    response = await client.patch(f"{MEMORY}/{entry['id']}", json=change, headers=headers)
    assert response.status_code == 200, response.text
    changed: Entry = response.json()
    return changed


def _source(entry: Entry) -> Entry:
    return {"id": entry["id"], "version": entry["version"]}


async def _imported(client: httpx.AsyncClient, **fields: Any) -> Entry:
    """An entry derived from another one, from a page."""
    read = await _make(client, "read", **{**FACT, **fields})
    return await _make(client, "made", derived_from=[_source(read)], **{**FACT, **fields},
                       **IMPORTED)  # fmt: skip


async def _write(client: httpx.AsyncClient, form: str, entry: Entry, change: Entry) -> Entry:
    """Sends an update in one of the forms in which there are updates."""
    version, path = entry["version"], f"{MEMORY}/{entry['id']}"
    headers = {"If-Match": str(version)}
    if form == "patch":
        response = await client.patch(path, json=change, headers=headers)
    elif form == "merge":
        headers["Content-Type"] = MERGE
        response = await client.patch(path, json=change, headers=headers)
    elif form == "put":
        named = {name: entry[name] for name in ("namespace", "key", "memory_type", "value")}
        response = await client.put(MEMORY, json={**named, **change}, headers=headers)
    elif form == "batch":
        element = {"id": entry["id"], "version": version, **change}
        response = await client.post(BATCH, json={"entries": [element]})
        assert response.status_code == 200, response.text
        return dict(response.json()["entries"][0])
    else:
        params = {"entry_id": entry["id"], "if_match": version, **change}
        call = {"jsonrpc": "2.0", "id": 1, "method": "update_entry", "params": params}
        response = await client.post("/rpc", json=call)
        return dict(response.json()["result"])
    assert response.status_code == 200, response.text
    return dict(response.json())


@pytest.mark.parametrize("form", ["patch", "merge", "put", "batch", "rpc"])
@pytest.mark.parametrize(
    "change", [{"pinned": True}, {"tags": ["x"]}, {"priority": "high"}], ids=["pin", "tag", "rank"]
)
@pytest.mark.parametrize("sensitivity", ["internal", "restricted"])
async def test_an_update_of_another_field_keeps_where_the_value_came_from(
    ada: httpx.AsyncClient,
    chief: httpx.AsyncClient,
    form: str,
    change: Entry,
    sensitivity: str,
) -> None:
    made = await _imported(ada, sensitivity=sensitivity)
    changed = await _write(chief, form, made, change)
    assert changed["provenance"] == {**made["provenance"], "principal": "chief"}
    assert changed["provenance"]["origin"] == "import"
    for wanted in ({"origin": "import"}, {"source": IMPORTED["source"]}):
        page = (await ada.get(MEMORY, params=wanted)).json()
        assert [one["id"] for one in page["entries"]] == [made["id"]]


@pytest.mark.parametrize("form", ["patch", "merge", "put", "batch", "rpc"])
async def test_an_agent_that_changes_a_value_does_not_raise_its_origin(
    ada: httpx.AsyncClient, form: str
) -> None:
    made = await _imported(ada)
    changed = await _write(ada, form, made, {"value": {"n": 2}})
    for name in ("origin", "source", "derived_from"):
        assert changed["provenance"][name] == made["provenance"][name]
    named = await _write(ada, form, changed, {"value": {"n": 3}, "origin": "agent"})
    assert named["provenance"]["origin"] == "import"
    other = await _make(ada, "other", **FACT)
    sources = [_source(other)]
    again = await _write(ada, form, named, {"value": {"n": 4}, "derived_from": sources})
    assert again["provenance"]["origin"] == "import"
    assert again["provenance"]["derived_from"] == sources


async def test_sources_and_writers_of_less_trust_lower_an_origin(
    service: RunningService, ada: httpx.AsyncClient, person: httpx.AsyncClient
) -> None:
    made = await _make(person, "k", **FACT)
    assert made["provenance"]["origin"] == "user"
    assert (await _patch(ada, made, tags=["x"]))["provenance"]["origin"] == "user"
    agent = await _patch(ada, {**made, "version": 2}, value={"n": 1})
    assert agent["provenance"]["origin"] == "agent"
    async with await service.agent("tool", kind=PrincipalKind.SERVICE) as tool:
        lower = await _patch(tool, agent, value={"n": 2})
    assert lower["provenance"]["origin"] == "tool"
    page = await _make(ada, "page", **FACT, **IMPORTED)
    lowest = await _patch(ada, lower, tags=[], derived_from=[_source(page)])
    assert lowest["provenance"]["origin"] == "import"
    stated = await _patch(ada, await _make(ada, "own", **FACT), tags=["x"], origin="document")
    assert stated["provenance"]["origin"] == "document"


async def test_a_person_raises_an_origin(ada: httpx.AsyncClient, person: httpx.AsyncClient) -> None:
    made = await _imported(ada)
    pinned = await _patch(person, made, pinned=True)
    assert pinned["provenance"]["origin"] == "import"
    assert pinned["provenance"]["authority"] == "inferred"
    vouched = await _patch(person, pinned, pinned=False, origin="user")
    assert vouched["provenance"]["origin"] == "user"
    assert vouched["provenance"]["authority"] == "human_curated"
    assert vouched["provenance"]["derived_from"] == made["provenance"]["derived_from"]
    rewritten = await _patch(person, await _patch(ada, vouched, value={"n": 1}), value={"n": 2})
    assert rewritten["provenance"]["origin"] == "user"
    page = await _make(ada, "page", **FACT, **IMPORTED)
    sources = [_source(page)]
    from_page = await _patch(person, rewritten, value={"n": 3}, derived_from=sources)
    assert from_page["provenance"]["origin"] == "import"


async def test_a_change_of_a_governed_entry_does_not_raise_its_origin(
    service: RunningService, ada: httpx.AsyncClient, person: httpx.AsyncClient
) -> None:
    tool = await service.agent("tool", kind=PrincipalKind.SERVICE)
    session = (await person.post("/api/v1/sessions", json={})).json()["id"]
    path = f"/api/v1/sessions/{session}"

    async def found() -> tuple[str, str]:
        provenance = (await person.get(f"{MEMORY}/{session}")).json()["provenance"]
        return provenance["origin"], provenance["session"]

    for name in ("ada", "tool"):
        added = await person.put(f"{path}/participants/{name}", json={"access": "read"})
        assert added.status_code == 200, added.text
    assert await found() == ("user", session)
    for name, client in (("tool", tool), ("ada", ada)):
        assert (await client.delete(f"{path}/participants/{name}")).status_code == 204
        assert await found() == ("tool", session), name
    assert (await person.patch(path, json={"title": "x"})).status_code == 200
    assert await found() == ("user", session)


async def test_the_version_that_is_named_gives_its_origin_and_its_subjects(
    ada: httpx.AsyncClient, person: httpx.AsyncClient
) -> None:
    read = await _make(ada, "read", subjects=["eve"], **FACT, **IMPORTED)
    await _patch(person, read, value={"n": 1}, subjects=["bob"])
    made = await _make(ada, "made", derived_from=[_source(read)])
    assert made["provenance"]["origin"] == "import"
    assert sorted(made["subjects"]) == ["bob", "eve"]
    hidden = draft("bound", derived_from=[_source(read)])
    assert_problem(await ada.post(MEMORY, json=hidden, headers={"X-Subject": "bob"}), 422)


async def test_a_writer_that_may_not_read_sees_no_provenance(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    made = await _imported(ada)
    async with await service.agent("blind", permissions=(Permission.WRITE,)) as blind:
        shown = await _patch(blind, made, pinned=True)
    assert shown["provenance"].keys() == {"principal", "kind", "authority", "origin"}
    kept = (await ada.get(f"{MEMORY}/{made['id']}")).json()["provenance"]
    assert kept["source"] == IMPORTED["source"]


async def test_a_derived_entry_keeps_the_subjects_of_its_sources(
    ada: httpx.AsyncClient, chief: httpx.AsyncClient
) -> None:
    source = await _make(ada, "source", subjects=["eve"])
    sealed = await _make(ada, "sealed", subjects=["eve"], sensitivity="restricted")
    forms = ((source, {}), (sealed, {}), (source, {"sensitivity": "restricted"}))
    made = [
        await _make(ada, f"k{number}", derived_from=[_source(read)], **more)
        for number, (read, more) in enumerate(forms)
    ]
    for one in made:
        path, headers = f"{MEMORY}/{one['id']}", {"If-Match": "1"}
        for change in ({"subjects": []}, {"subjects": ["bob"], "value": {}}):
            refused = await ada.patch(path, json=change, headers=headers)
            assert "`subjects`" in assert_problem(refused, 422)["detail"]
        merged = await ada.patch(
            path, json={"subjects": None}, headers={**headers, "Content-Type": MERGE}
        )
        assert "`subjects`" in assert_problem(merged, 422)["detail"]
        refused = await ada.patch(path, json={"tags": [], "derived_from": []}, headers=headers)
        assert "`derived_from`" in assert_problem(refused, 422)["detail"]
    for one, (read, _) in zip(made, forms, strict=True):
        more = await _patch(ada, one, subjects=["bob", "eve"])
        assert more["subjects"] == ["bob", "eve"]
        # A source that is named again brings its subjects.
        again = await _patch(ada, more, subjects=["bob"], derived_from=[_source(read)], value={})
        assert len(again["subjects"]) == 2
    for read in (source, sealed):
        await ada.delete(f"{MEMORY}/{read['id']}")
    gone = (await chief.post("/api/v1/subjects/eve/forget")).json()
    assert gone["entries"] == {"working": 3}
    for one in made:
        assert (await ada.get(f"{MEMORY}/{one['id']}")).status_code == 404


async def test_a_subject_that_is_added_reaches_what_was_derived_before(
    ada: httpx.AsyncClient,
) -> None:
    source = await _make(ada, "source")
    drawn = await _make(ada, "drawn", derived_from=[_source(source)], sensitivity="restricted")
    again = await _make(ada, "again", derived_from=[_source(source)], **FACT)
    farther = await _make(ada, "farther", derived_from=[_source(drawn)])
    await _make(ada, "other")
    source = await _patch(ada, source, subjects=["eve"])
    for one in (drawn, again, farther):
        shown = (await ada.get(f"{MEMORY}/{one['id']}")).json()
        assert (shown["version"], len(shown["subjects"])) == (2, 1)
        assert shown["provenance"] == one["provenance"]
    page = (await ada.get(MEMORY, params={"subject": "eve"})).json()
    assert {one["key"] for one in page["entries"]} == {"source", "drawn", "again", "farther"}
    await _patch(ada, source, subjects=["eve"], tags=["x"])
    assert (await ada.get(f"{MEMORY}/{drawn['id']}")).json()["version"] == 2


async def test_a_write_names_the_context_that_it_answers_from(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    compiled = (await ada.post(CONTEXTS, json={"user": "How much?"})).json()["id"]
    made = await _make(ada, "answer", context_id=compiled)
    assert made["provenance"]["context"] == compiled
    pinned = await _patch(ada, made, pinned=True)
    assert pinned["provenance"]["context"] == compiled
    where = {"where": f'provenance.context = "{compiled}"', "agent_id": "ada"}
    page = (await ada.get(MEMORY, params=where)).json()
    assert [one["id"] for one in page["entries"]] == [made["id"]]
    changed = await _patch(ada, pinned, value={"n": 2})
    assert "context" not in changed["provenance"]
    named = await _patch(ada, changed, value={"n": 3}, context_id=compiled)
    assert named["provenance"]["context"] == compiled
    async with await service.agent("bob") as bob:
        for wrong in (compiled, made["id"], "mem_absent"):
            refused = await bob.post(MEMORY, json=draft("x", context_id=wrong))
            assert "`context_id`" in assert_problem(refused, 422)["detail"]
    path, headers = f"{MEMORY}/{made['id']}", {"If-Match": "4"}
    refused = await ada.patch(path, json={"tags": [], "context_id": made["id"]}, headers=headers)
    assert "`context_id`" in assert_problem(refused, 422)["detail"]
