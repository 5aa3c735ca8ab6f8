"""New names are stored in NFC, on every surface."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from unicodedata import normalize
from urllib.parse import quote

import httpx
import pytest

from memorywall.records.identifiers import name_forms
from memorywall.records.principal import Permission
from tests.http.checks import BATCH, MEMORY, NAMESPACES, assert_problem, everything, keys_of, make
from tests.support.older_names import accept_as_given, stored_as_given
from tests.support.service import RunningService, draft

pytestmark = pytest.mark.anyio

NFC, NFD = "caf\u00e9", "cafe\u0301"
FORMS = {"composed": NFC, "decomposed": NFD}
NAMED: dict[str, Any] = {"namespace": NFD, "tags": [NFD], "scope": {"task_id": NFD}}
_REQUESTS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "create": ("POST", MEMORY, draft(NFD, **NAMED)),
    "put": ("PUT", MEMORY, draft(NFD, **NAMED)),
    "batch": ("POST", BATCH, {"entries": [draft(NFD, **NAMED)]}),
    "rpc": (
        "POST",
        "/rpc",
        {"jsonrpc": "2.0", "id": 1, "method": "create_entry", "params": draft(NFD, **NAMED)},
    ),
    "bridge": ("PUT", f"/api/v1/agents/ada/memory/{quote(NFD)}/{quote(NFD)}", {"value": 1}),
    "namespace": (
        "PATCH",
        f"{NAMESPACES}/{quote(NFD)}",
        {"permissions": {"allow": [{"agent": NFD, "access": "read"}]}},
    ),
    "group": ("PUT", f"/api/v1/groups/{quote(NFD)}", {"kind": "team"}),
    "claim": ("POST", "/api/v1/claims", {"scope": f"team:{NFD}", "key": NFD}),
    "key": ("POST", "/api/v1/keys", {"agent_id": NFD, "namespaces": [NFD]}),
    "session": ("POST", "/api/v1/sessions", {"participants": [{"agent_id": NFD}]}),
}


@pytest.fixture
async def ada(service: RunningService) -> AsyncIterator[httpx.AsyncClient]:
    async with await service.agent("ada", permissions=tuple(Permission)) as client:
        yield client


@pytest.mark.parametrize("surface", _REQUESTS)
async def test_a_new_name_is_stored_in_nfc(
    service: RunningService, ada: httpx.AsyncClient, surface: str
) -> None:
    method, path, body = _REQUESTS[surface]
    reply = await ada.request(method, path, json=body)
    assert reply.status_code in (200, 201), (surface, reply.text)
    assert NFD not in reply.text
    assert NFC in reply.text or surface == "bridge"
    assert NFD not in repr(await everything(service))


async def test_an_older_agent_and_group_keep_their_form(
    service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One identity: whoever names it in another form means the one that is known."""
    with stored_as_given(monkeypatch):
        key = await service.key(NFD, permissions=tuple(Permission))
        async with service.client(key) as older:
            mine = await make(older, "mine", memory_type="semantic", namespace="n")
            kept = await make(older, "kept", memory_type="episodic")
    async with await service.agent("ada", permissions=tuple(Permission)) as ada:
        for name in FORMS.values():
            as_agent = {b"X-Agent-ID": name.encode()}
            for entry in (mine, kept):
                found = await ada.get(f"{MEMORY}/{entry['id']}", headers=as_agent)
                assert found.status_code == 200, found.text
            summary = await ada.get(
                f"/api/v1/agents/{quote(name)}/memory/summary", headers=as_agent
            )
            assert summary.json()["episodic"]["entry_count"] == 1, summary.text
        gone = await ada.post(f"/api/v1/agents/{quote(NFC)}/forget")
        assert gone.json()["entries"] == {"episodic": 1}, gone.text
        assert gone.json()["api_keys"] == 1


async def test_what_older_versions_accepted_is_read_and_deleted(
    service: RunningService, ada: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "na\ufe0fme"
    with monkeypatch.context() as older:
        accept_as_given(older)
        made = await make(ada, name, namespace=name, tags=[name], subjects=[name])
    refused = await ada.post(MEMORY, json=draft(name))
    assert "`key`" in assert_problem(refused, 422, "VALIDATION_ERROR")["detail"]
    for query in ({"namespace": name}, {"key": name}, {"tags": name}, {"subject": name}):
        assert await keys_of(ada, **query) == [name]
    assert (await ada.get(f"{MEMORY}/{made['id']}")).status_code == 200
    gone = await ada.post(f"/api/v1/subjects/{quote(name)}/forget")
    assert sum(gone.json()["entries"].values()) == 1


def test_every_form_of_a_name_has_the_same_forms() -> None:
    for name in (NFC, NFD, "\u1e69", "s\u0323\u0307", "\u0627\u0653", "\uac00"):
        assert set(name_forms(name)) == {normalize("NFC", name), normalize("NFD", name)}
