"""Authority: who gives which, what confirms it, and what earlier versions stored."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from memorywall.recall.document import LEARNED, VERIFIED, trust_of
from memorywall.records.decision import Verb
from memorywall.records.principal import Permission, PrincipalKind
from memorywall.service.access.targets import load_authorized_entry
from memorywall.service.entries.writes import replace_entry
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.runner.operation_runner import run_write
from tests.http.checks import MEMORY, NAMESPACES, assert_problem, everything, make
from tests.http.test_states import ADA
from tests.support.service import RunningService

pytestmark = pytest.mark.anyio

Entry = dict[str, Any]
FACT = {"memory_type": "semantic", "namespace": "facts"}


async def _client(service: RunningService, name: str, kind: str) -> httpx.AsyncClient:
    return await service.agent(name, kind=PrincipalKind(kind), permissions=tuple(Permission))


async def _confirm(client: httpx.AsyncClient, entry: Entry) -> httpx.Response:
    headers = {"If-Match": str(entry["version"])}
    return await client.put(f"{MEMORY}/{entry['id']}/confirmation", headers=headers)


async def _share(client: httpx.AsyncClient, *admins: str) -> None:
    allow = [{"agent": name, "access": "admin"} for name in ("ada", *admins)]
    permissions = {"default": "write", "allow": allow}
    reply = await client.patch(f"{NAMESPACES}/facts", json={"permissions": permissions})
    assert reply.status_code == 200, reply.text


async def _patch(client: httpx.AsyncClient, entry: Entry, **change: Any) -> Entry:
    headers = {"If-Match": str(entry["version"])}
    reply = await client.patch(f"{MEMORY}/{entry['id']}", json=change, headers=headers)
    assert reply.status_code == 200, reply.text
    return dict(reply.json())


def _authority(entry: Entry) -> tuple[str, str | None]:
    provenance = entry["provenance"]
    return provenance["authority"], provenance.get("verified_by")


@pytest.mark.parametrize(
    ("kind", "plain", "derived"),
    [
        ("agent", "agent_learned", "inferred"),
        ("service", "agent_learned", "inferred"),
        ("user", "human_curated", "human_curated"),
    ],
)
async def test_writers_give_the_authority_of_their_kind(
    service: RunningService, kind: str, plain: str, derived: str
) -> None:
    writer = await _client(service, "ada", kind)
    first = await make(writer, "first", **FACT)
    sources = [{"id": first["id"], "version": 1}]
    second = await make(writer, "second", derived_from=sources, **FACT)
    assert (_authority(first), _authority(second)) == ((plain, None), (derived, None))
    third = await make(writer, "third", **FACT)
    third = await _patch(writer, third, pinned=True, derived_from=sources)
    assert _authority(third) == (derived, None)
    assert _authority(await _patch(writer, third, value={"n": 1})) == (derived, None)


async def test_a_person_confirms_until_the_value_changes(service: RunningService) -> None:
    ada, paula = await _client(service, "ada", "agent"), await _client(service, "paula", "user")
    fact = await make(ada, "fact", **FACT)
    await _share(ada)
    reply = await _confirm(paula, fact)
    assert reply.status_code == 200, reply.text
    confirmed = reply.json()
    assert _authority(confirmed) == ("verified", "paula")
    assert (confirmed["value"], reply.headers["etag"]) == (fact["value"], '"2"')
    page = (await ada.get(MEMORY, params={"namespace": "facts"})).json()["entries"]
    assert _authority(page[0]) == ("verified", "paula")
    tagged = await _patch(ada, confirmed, tags=["x"])
    assert _authority(tagged) == ("verified", "paula")
    assert _authority(await _patch(ada, tagged, value={"n": 2})) == ("agent_learned", None)
    own = await make(paula, "own", **FACT)
    # Nothing has more authority than what a person wrote.
    assert _authority((await _confirm(paula, own)).json()) == ("human_curated", "paula")


async def test_only_people_and_the_validator_of_the_namespace_confirm(
    service: RunningService,
) -> None:
    ada, bob = await _client(service, "ada", "agent"), await _client(service, "bob", "agent")
    tests, other = await _client(service, "ci", "service"), await _client(service, "x", "service")
    fact, own = await make(ada, "fact", **FACT), None
    await _share(ada, "bob", "ci")
    own = await make(tests, "own", **FACT)
    before = await everything(service)
    for client, entry in ((ada, fact), (bob, fact), (other, fact), (tests, own)):
        assert_problem(await _confirm(client, entry), 403, "ACCESS_DENIED")
    paula = await service.agent("paula", kind=PrincipalKind.USER, permissions=(Permission.READ,))
    assert_problem(await _confirm(paula, fact), 403, "ACCESS_DENIED")
    assert_problem(await _confirm(tests, {**fact, "version": 9}), 409, "VERSION_MISMATCH")
    missing = await tests.put(f"{MEMORY}/{fact['id']}/confirmation")
    assert_problem(missing, 428)
    assert await everything(service) == before
    assert _authority((await _confirm(tests, fact)).json()) == ("verified", "ci")
    await ada.post(f"{MEMORY}/{own['id']}/retract", json={"reason": "wrong"})
    person = await _client(service, "pia", "user")
    assert_problem(await _confirm(person, {**own, "version": 2}), 409, "INVALID_TRANSITION")


async def test_the_word_of_an_agent_of_earlier_versions_is_read_as_learned(
    service: RunningService,
) -> None:
    ada = await _client(service, "ada", "agent")
    fact = await make(ada, "fact", **FACT, value={"text": "zebra"})

    async def write_as_before(context: OperationContext) -> Any:
        entry = await load_authorized_entry(context, Verb.UPDATE, fact["id"])
        provenance = replace(entry.provenance, authority="verified")
        new = replace(entry, provenance=provenance, version=2)
        return await replace_entry(context, entry, new)

    await run_write(service.services, ADA, write_as_before)
    (stored,) = (await everything(service)).entries
    assert stored.provenance.authority == "verified"
    assert trust_of(stored, {}) == LEARNED
    assert trust_of(
        replace(stored, provenance=replace(stored.provenance, verified_by="p")), {}
    ) == (VERIFIED)
    shown = [(await ada.get(f"{MEMORY}/{fact['id']}")).json()]
    for query in ({"namespace": "facts"}, {"namespace": "facts", "order_by": "updated"}):
        shown += (await ada.get(MEMORY, params=query)).json()["entries"]
    found = (await ada.post(f"{MEMORY}/search", json={"query": "zebra"})).json()["results"]
    shown += [one["entry"] for one in found]
    shown += (await ada.get(f"{MEMORY}/{fact['id']}/history")).json()["versions"][:1]
    assert [_authority(one) for one in shown] == [("agent_learned", None)] * 5
    (still,) = (await everything(service)).entries
    assert still == stored


@pytest.mark.parametrize("sensitivity", ["internal", "restricted"])
async def test_shadows_say_what_a_person_curated_and_what_conflicts(
    service: RunningService, sensitivity: str
) -> None:
    ada, paula = await _client(service, "ada", "agent"), await _client(service, "paula", "user")
    name = {"namespace": "facts", "sensitivity": sensitivity}
    own = await make(ada, "k", memory_type="episodic", value={"a": 1, "b": 2}, **name)
    same = await make(ada, "k", memory_type="procedural", value={"b": 2, "a": 1}, **name)
    await _share(ada)
    curated = await make(paula, "k", memory_type="semantic", value={"a": 2}, **name)
    asked = {"namespace": "facts", "key": "k"}
    reply = await ada.get(f"{MEMORY}/by-name", params=asked)
    found = reply.json()
    assert found["entry"]["id"] == own["id"]
    assert found["shadows"] == [
        {
            "id": curated["id"], "memory_type": "semantic", "version": 1,
            "authority": "human_curated", "conflicts": True,
        },
        {
            "id": same["id"], "memory_type": "procedural", "version": 1,
            "authority": "agent_learned", "conflicts": False,
        },
    ]  # fmt: skip
    # The entity tag changes with what is said of the shadows.
    await _patch(paula, curated, value={"a": 1, "b": 2})
    kept = {"If-None-Match": reply.headers["etag"]}
    again = await ada.get(f"{MEMORY}/by-name", params=asked, headers=kept)
    assert again.status_code == 200
    assert [one["conflicts"] for one in again.json()["shadows"]] == [False, False]
