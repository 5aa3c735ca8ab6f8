"""Keys that may do less than somebody could: what they are answered shows no more than they may.

Single cases of what the state machine compares at large, kept because the way to them is long.
"""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from memorywall.records.principal import Permission, PrincipalKind
from tests.support.service import RunningService, draft

pytestmark = pytest.mark.anyio

MEMORY = "/api/v1/memory"
BATCH = "/api/v1/memory/batch"
PLANS = "/api/v1/memory/namespaces/plans"
SECRET = "the stored value"
EVERYTHING = tuple(Permission)


async def made(agent: httpx.AsyncClient, **fields: Any) -> str:
    """The id of a new entry with the secret in it."""
    reply = await agent.post(MEMORY, json=draft(value={"text": SECRET}, **fields))
    assert reply.status_code == 201, reply.text
    return str(reply.json()["id"])


async def test_update_returns_no_value_to_a_write_only_key(service: RunningService) -> None:
    """RFC-0015 sections 6.4 and 9.1: to write is not to read."""
    bob = await service.agent("bob")
    blind = await service.agent("bob", permissions=[Permission.WRITE])
    entry = await made(bob)
    assert (await blind.get(f"{MEMORY}/{entry}")).status_code == 403
    changed = await blind.patch(
        f"{MEMORY}/{entry}", json={"tags": ["seen"]}, headers={"If-Match": "1"}
    )
    assert changed.status_code == 200
    assert SECRET not in changed.text


async def test_batch_returns_no_values_to_a_write_only_key(service: RunningService) -> None:
    bob = await service.agent("bob")
    blind = await service.agent("bob", permissions=[Permission.WRITE])
    entry = await made(bob)
    element = {"id": entry, "version": 1, "tags": ["seen"]}
    changed = await blind.post(BATCH, json={"entries": [element]})
    assert changed.status_code == 200
    assert SECRET not in changed.text


async def test_acting_for_an_agent_leaves_the_tenants_permissions_behind(
    service: RunningService,
) -> None:
    """What acts for another is that agent: it administers no more than the agent may."""
    founder = await service.agent("founder", permissions=EVERYTHING)
    await made(founder, memory_type="semantic", namespace="plans")
    closing = {"permissions": {"default": "none"}}
    assert (await founder.patch(PLANS, json=closing)).status_code == 200
    chief = await service.key("chief", kind=PrincipalKind.SERVICE, permissions=EVERYTHING)
    as_ada = service.client(chief, agent="ada")
    opening = {"permissions": {"default": "write"}}
    assert (await as_ada.patch(PLANS, json=opening)).status_code == 403
    assert (await as_ada.get(f"{MEMORY}/namespaces")).json()["namespaces"] == []
    assert (await as_ada.get(PLANS)).status_code == 403


async def test_a_repetition_shows_nothing_once_the_namespace_is_closed(
    service: RunningService,
) -> None:
    """RFC-0015 section 9.1: a namespace's permissions hold for every operation, repeated or not."""
    founder = await service.agent("founder", permissions=EVERYTHING)
    curator = await service.agent("curator")
    entry = await made(founder, memory_type="semantic", namespace="plans")
    grant = {"agent": "curator", "access": "write"}
    opened = {"permissions": {"allow": [{"agent": "founder", "access": "admin"}, grant]}}
    assert (await founder.patch(PLANS, json=opened)).status_code == 200
    body = {"entries": [{"id": entry, "version": 1, "tags": ["checked"]}]}
    once = {"Idempotency-Key": "first"}
    first = await curator.post(BATCH, json=body, headers=once)
    assert SECRET in first.text
    closed = {
        "permissions": {"default": "none", "allow": [{"agent": "founder", "access": "admin"}]}
    }
    assert (await founder.patch(PLANS, json=closed)).status_code == 200
    assert (await curator.get(f"{MEMORY}/{entry}")).status_code == 403
    again = await curator.post(BATCH, json=body, headers=once)
    assert SECRET not in again.text
    assert again.status_code == 403


@pytest.mark.parametrize("permissions", [[], [Permission.READ], [Permission.WRITE]])
async def test_a_repetition_under_another_key_shows_what_that_key_may_see(
    service: RunningService, permissions: list[Permission]
) -> None:
    """First replies are kept by principal; what may be seen and done is said by the key."""
    bob = await service.agent("bob")
    entry = await made(bob)
    body = {"entries": [{"id": entry, "version": 1, "tags": ["checked"]}]}
    once = {"Idempotency-Key": "first"}
    assert SECRET in (await bob.post(BATCH, json=body, headers=once)).text
    narrow = await service.agent("bob", permissions=permissions)
    again = await narrow.post(BATCH, json=body, headers=once)
    assert Permission.READ in permissions or SECRET not in again.text
    if Permission.WRITE not in permissions:
        assert again.status_code == 403
