"""A name is one name, whether its characters are composed (NFC) or decomposed (NFD)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from memorywall.records.principal import Permission
from tests.http.checks import MEMORY, assert_problem, everything, make
from tests.support.older_names import stored_as_given
from tests.support.service import RunningService, draft

pytestmark = pytest.mark.anyio

NFC, NFD = "Jos\u00e9", "Jose\u0301"
FORMS = {"composed": NFC, "decomposed": NFD}
SENSITIVITIES = ("public", "restricted")
OLD: dict[str, dict[str, Any]] = {
    "plain": {"sensitivity": "public"},
    "sealed": {"sensitivity": "restricted"},
    "of a namespace": {"memory_type": "semantic"},
    "sealed in a namespace": {"memory_type": "semantic", "sensitivity": "restricted"},
}


def bound(name: str) -> dict[bytes, bytes]:
    """The headers of a request about a person."""
    return {b"X-Subject": name.encode()}


@pytest.fixture
async def ada(service: RunningService) -> AsyncIterator[httpx.AsyncClient]:
    async with await service.agent("ada", permissions=tuple(Permission)) as client:
        yield client


async def make_old(ada: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The ids of entries about a person as older versions stored them, in NFD."""
    with stored_as_given(monkeypatch):
        made = [
            await ada.post(MEMORY, json=draft(key, namespace="notes", **fields), headers=bound(NFD))
            for key, fields in OLD.items()
        ]
    assert {one.status_code for one in made} == {201}, [one.text for one in made]
    assert {one.json()["subjects"][0] for one in made} == {NFD}
    return {str(one.json()["id"]) for one in made}


async def ids(client: httpx.AsyncClient, name: str | None, **asked: Any) -> set[str]:
    """The entries of a list that is bound to a person."""
    headers = None if name is None else bound(name)
    page = (await client.get(MEMORY, params=asked, headers=headers)).json()
    return {one["id"] for one in page["entries"]}


@pytest.mark.parametrize("form", FORMS)
async def test_a_new_person_is_stored_in_one_form(
    service: RunningService, ada: httpx.AsyncClient, form: str
) -> None:
    made = await make(ada, "k", memory_type="episodic", subjects=[FORMS[form]])
    assert made["subjects"] == [NFC]
    by_header = await ada.post(MEMORY, json=draft("l"), headers=bound(FORMS[form]))
    assert by_header.json()["subjects"] == [NFC]
    for name in FORMS.values():
        assert made["id"] in await ids(ada, name)
        assert made["id"] in await ids(ada, None, subject=name)
    other = NFC if form == "decomposed" else NFD
    gone = await ada.post(f"/api/v1/subjects/{quote(other)}/forget")
    assert gone.status_code == 200, gone.text
    assert sum(gone.json()["entries"].values()) == 2
    assert not (await everything(service)).entries


@pytest.mark.parametrize("form", FORMS)
async def test_what_older_versions_stored_is_found_and_forgotten_in_every_form(
    service: RunningService, ada: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    name = FORMS[form]
    old = await make_old(ada, monkeypatch)
    for place in ("notes", "*"):
        assert await ids(ada, name, namespace=place) == old
    assert await ids(ada, None, namespace="*", subject=name) == old
    for entry_id in old:
        assert (await ada.get(f"{MEMORY}/{entry_id}", headers=bound(name))).status_code == 200
        assert_problem(await ada.get(f"{MEMORY}/{entry_id}", headers=bound("ann")), 404)
    again = await ada.post(MEMORY, json=draft("plain", namespace="notes"), headers=bound(name))
    assert_problem(again, 409)
    gone = await ada.post(f"/api/v1/subjects/{quote(name)}/forget")
    assert gone.status_code == 200, gone.text
    assert sum(gone.json()["entries"].values()) == len(old)
    stored = await everything(service)
    assert not stored.entries
    assert not [one.name for one in stored.namespaces if one.name.startswith("user/")]
    assert not [one for one in stored.events if one.namespace]
