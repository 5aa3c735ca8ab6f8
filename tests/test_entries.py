"""Entries over HTTP: RFC-0015 sections 1 to 3."""

from __future__ import annotations

import pytest

from tests.support.service import RunningService, draft

pytestmark = pytest.mark.anyio


async def test_an_entry_is_created_read_changed_and_deleted(service: RunningService) -> None:
    agent = await service.agent("billing")
    made = await agent.post("/api/v1/memory", json=draft(tags=["batch", "invoices"]))
    assert made.status_code == 201, made.text
    entry = made.json()
    assert entry["version"] == 1
    assert entry["agent_id"] == "billing"
    path = made.headers["location"]
    assert (await agent.get(path)).json() == entry

    changed = await agent.patch(path, json={"value": {"completed": 24}}, headers={"If-Match": "1"})
    assert changed.status_code == 200, changed.text
    assert changed.json()["version"] == 2
    assert changed.json()["value"] == {"completed": 24}
    assert changed.json()["tags"] == ["batch", "invoices"]

    late = await agent.patch(path, json={"value": {}}, headers={"If-Match": "1"})
    assert late.status_code == 409
    assert late.json()["error"] == "VERSION_MISMATCH"
    assert late.json()["current_version"] == 2
    assert late.json()["current"] == changed.json()

    assert (await agent.delete(path)).status_code == 204
    assert (await agent.get(path)).status_code == 404
