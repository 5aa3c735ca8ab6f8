"""A header of access or of a precondition is sent once."""

from __future__ import annotations

import pytest

from tests.http.checks import MEMORY, assert_problem, everything
from tests.support.service import RunningService, draft

pytestmark = pytest.mark.anyio

SINGLE = {
    "X-Subject": ("ann", "bob"),
    "X-Session-ID": ("one", "two"),
    "X-Said-At": ("2026-02-02T02:40:00Z", "2026-02-02T02:41:00Z"),
    "X-Agent-ID": ("ada", "bob"),
    "X-API-Key": ("one", "two"),
    "Authorization": ("Bearer one", "Bearer two"),
    "If-Match": ("1", "2"),
    "Idempotency-Key": ("one", "two"),
    "Fencing-Token": ("1", "2"),
}


@pytest.mark.parametrize("name", SINGLE)
async def test_a_repeated_header_is_refused(service: RunningService, name: str) -> None:
    ada = await service.agent("ada")
    before = await everything(service)
    for second in SINGLE[name]:
        # The client sends its own key as well.
        headers = [(name, SINGLE[name][0]), (name.lower(), second)]
        for send in (
            ada.post(MEMORY, json=draft("k"), headers=headers),
            ada.get(f"{MEMORY}/mem_absent", headers=headers),
            ada.patch(f"{MEMORY}/mem_absent", json={"tags": []}, headers=headers),
        ):
            refused = assert_problem(await send, 400)
            assert f"`{name}`" in refused["detail"]
        call = {"jsonrpc": "2.0", "id": 1, "method": "whoami", "params": {}}
        replied = (await ada.post("/rpc", json=call, headers=headers)).json()
        assert replied["error"]["data"]["status"] == 400
        assert f"`{name}`" in replied["error"]["data"]["detail"]
    assert await everything(service) == before


async def test_other_headers_may_be_repeated(service: RunningService) -> None:
    ada = await service.agent("ada")
    several = [("Accept", "text/plain"), ("Accept", "application/json"), ("Via", "a"), ("Via", "b")]
    assert (await ada.get(MEMORY, headers=several)).status_code == 200
    assert (await ada.get("/health", headers=[("X-API-Key", "a")] * 2)).status_code == 200
