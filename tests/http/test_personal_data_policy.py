"""The setting `personal_data`: what is stored, shown and found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.http.checks import BATCH, MEMORY
from tests.support.service import RunningService, draft, open_service
from tests.support.stored import places_holding

pytestmark = pytest.mark.anyio

CARD = "4111 1111 1111 1111"
SECRETS = (CARD, "ann@example.com")
VALUE = {"note": f"pay with {CARD}", "more": [{"mail": "ann@example.com"}]}
MASKED = {"note": "pay with [card]", "more": [{"mail": "[email]"}]}


async def _writes(service: RunningService) -> list[dict[str, Any]]:
    """The entries that each way of writing answers with."""
    agent = await service.agent("billing")
    created = await agent.post(
        MEMORY, json=draft("created", value=VALUE), headers={"Idempotency-Key": "one"}
    )
    again = await agent.post(
        MEMORY, json=draft("created", value=VALUE), headers={"Idempotency-Key": "one"}
    )
    assert again.json() == created.json()
    plain = (await agent.post(MEMORY, json=draft("plain"))).json()
    path = f"{MEMORY}/{plain['id']}"
    updated = await agent.patch(path, json={"value": VALUE}, headers={"If-Match": "1"})
    plain = (await agent.post(MEMORY, json=draft("merged"))).json()
    merged = await agent.patch(
        f"{MEMORY}/{plain['id']}",
        content=json.dumps({"value": {**VALUE, "completed": None}}).encode(),
        headers={"If-Match": "1", "Content-Type": "application/merge-patch+json"},
    )
    put = await agent.put(MEMORY, json=draft("put", value=VALUE))
    batch = await agent.post(BATCH, json={"entries": [draft("batch", value=VALUE)]})
    for one in (created, updated, merged, put, batch):
        assert one.is_success, one.text
    shown = [one.json() for one in (created, updated, merged, put)]
    shown += batch.json()["entries"]
    for one in shown:
        assert (await agent.get(f"{MEMORY}/{one['id']}")).json() == one
    return shown


async def test_masked_data_is_nowhere(tmp_path: Path) -> None:
    async with open_service(tmp_path, personal_data="mask") as service:
        for shown in await _writes(service):
            assert shown["value"] == MASKED
            assert shown["tags"] == []
    for secret in SECRETS:
        assert places_holding(tmp_path, secret.encode()) == []


async def test_marked_entries_are_found_by_their_tags(tmp_path: Path) -> None:
    async with open_service(tmp_path, personal_data="mark") as service:
        marked = await _writes(service)
        for shown in marked:
            assert shown["value"] == VALUE
            assert shown["tags"] == ["personal_data:card", "personal_data:email"]
        agent = await service.agent("billing")
        query = {"agent_id": "billing", "tags": "personal_data:card"}
        found = (await agent.get(MEMORY, params=query)).json()["entries"]
        assert {one["id"] for one in found} == {one["id"] for one in marked}
        one = marked[0]
        cleaned = await agent.patch(
            f"{MEMORY}/{one['id']}", json={"value": {}}, headers={"If-Match": "1"}
        )
        assert cleaned.json()["tags"] == []


async def test_data_is_kept_by_default(service: RunningService) -> None:
    for shown in await _writes(service):
        assert (shown["value"], shown["tags"]) == (VALUE, [])
