"""Names that older versions stored are found in every form, and `migrate` renames them to NFC."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any
from unicodedata import normalize
from urllib.parse import quote

import httpx
import pytest
from msgspec.structs import replace

import memorywall.jobs.rename_names as job
from memorywall.assembly import open_inspection, open_vault
from memorywall.jobs.rename_names import RenameReport, rename_names
from memorywall.jobs.verify import verify
from memorywall.records.entry import Provenance
from memorywall.records.principal import Permission
from tests.http.checks import BATCH, MEMORY, NAMESPACES, assert_problem, everything, keys_of, make
from tests.support.older_names import stored_as_given
from tests.support.service import RunningService, draft

pytestmark = pytest.mark.anyio

NFC, NFD = "caf\u00e9", "cafe\u0301"
FORMS = {"composed": NFC, "decomposed": NFD}
NAMED: dict[str, Any] = {"namespace": NFD, "tags": [NFD], "scope": {"task_id": NFD}}


@pytest.fixture
async def ada(service: RunningService) -> AsyncIterator[httpx.AsyncClient]:
    async with await service.agent("ada", permissions=tuple(Permission)) as client:
        yield client


def problems(service: RunningService) -> list[str]:
    """What `verify` finds."""
    settings = service.services.settings
    inspection = open_inspection(settings)
    try:
        return verify(inspection, lambda _: None, open_vault(settings)).problems
    finally:
        inspection.close()


async def rename(
    service: RunningService, progress: Callable[[int], object] = lambda _: None
) -> RenameReport:
    return await rename_names(service.services, "default", progress)


@pytest.fixture
async def old(
    service: RunningService, ada: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any]:
    """The entry of an older version, whose names are in NFD."""
    with stored_as_given(monkeypatch):
        made = await make(ada, NFD, memory_type="semantic", **NAMED)
        await make(ada, "plain")
    assert (made["key"], made["namespace"], made["tags"]) == (NFD, NFD, [NFD])
    return made


@pytest.mark.parametrize("form", FORMS)
async def test_an_older_name_is_found_in_every_form(
    ada: httpx.AsyncClient, old: dict[str, Any], form: str
) -> None:
    name = FORMS[form]
    for query in (
        {"namespace": name},
        {"namespace": f"{name}*"},
        {"key": name},
        {"namespace": name, "key": name},
        {"key_prefix": name},
        {"tags": name},
        {"tags": f"{name},{name}"},
        {"tags_any": f"{name},other"},
        {"scope.task_id": name},
        {"where": f'key = "{name}" and tags contains "{name}" and namespace in ["{name}"]'},
        {"where": f'not key != "{name}"'},
    ):
        assert await keys_of(ada, **query) == [NFD], query
    by_name = await ada.get(f"{MEMORY}/by-name", params={"namespace": name, "key": name})
    assert by_name.json()["entry"]["id"] == old["id"]
    found = await ada.post(f"{MEMORY}/search", json={"query": "completed", "tags": [name]})
    assert [one["entry"]["id"] for one in found.json()["results"]] == [old["id"]], found.text
    again = {**NAMED, "namespace": name, "memory_type": "semantic"}
    assert_problem(await ada.post(MEMORY, json=draft(name, **again)), 409)
    put = await ada.put(MEMORY, json=draft(name, **again), headers={"If-Match": "1"})
    assert (put.status_code, put.json()["id"]) == (200, old["id"]), put.text
    gone = await ada.delete(BATCH, params={"namespace": name, "memory_type": "semantic"})
    assert gone.status_code == 200, gone.text
    assert gone.json()["deleted"] == 1


async def test_names_are_renamed_with_their_history(
    service: RunningService,
    ada: httpx.AsyncClient,
    old: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = f"{MEMORY}/{old['id']}"
    with stored_as_given(monkeypatch):
        await ada.patch(path, json={"value": {"completed": 24}}, headers={"If-Match": "1"})
        sealed = await make(
            ada, NFD, subjects=[NFD], sensitivity="restricted", namespace=f"user/{NFD}/n"
        )
        allow = [{"agent": "grace", "access": "read"}, {"agent": "ada", "access": "admin"}]
        await ada.patch(f"{NAMESPACES}/{quote(NFD)}", json={"permissions": {"allow": allow}})
        await ada.patch(
            f"{NAMESPACES}/{quote('empty' + NFD)}", json={"permissions": {"allow": allow}}
        )
    before = (await ada.get(path)).json()
    assert before["version"] == 2
    monkeypatch.setattr(job, "_AT_ONCE", 1)
    assert await rename(service) == RenameReport(entries=2, namespaces=2)
    after = (await ada.get(path)).json()
    assert after == {
        **before,
        "namespace": NFC,
        "key": NFC,
        "tags": [NFC],
        "scope": {"task_id": NFC},
        "version": 3,
        "updated_at": after["updated_at"],
    }
    first = await ada.get(path, params={"version": 1})
    assert first.status_code == 200, first.text
    assert first.json()["value"] == {"completed": 23}
    shown = (await ada.get(f"{MEMORY}/{sealed['id']}")).json()
    assert (shown["namespace"], shown["subjects"]) == (f"user/{NFC}/n", [NFC])
    found = await everything(service)
    assert not [one for one in found.namespaces if normalize("NFC", one.name) != one.name]
    # The provenance of a value stays what it was.
    named = [replace(one, provenance=Provenance(principal="", kind="")) for one in found.entries]
    assert NFD not in repr(named)
    renamed = [one for one in found.events if one.entry_id == old["id"]][-1]
    assert (renamed.type, renamed.namespace, renamed.previous_version) == ("memory.updated", NFC, 2)
    async with await service.agent("grace") as grace:
        assert await keys_of(grace, namespace=NFD) == [NFC]
        changes = await grace.get(f"{MEMORY}/changes", params={"after": 0, "namespace": NFD})
        for name in FORMS.values():
            assert name in changes.text
    assert problems(service) == []
    assert await rename(service) == RenameReport()
    assert (await everything(service)) == found


async def test_what_collides_stays_as_it_is(
    service: RunningService,
    ada: httpx.AsyncClient,
    old: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with stored_as_given(monkeypatch):
        taken = await make(ada, NFD)
        await make(ada, NFC)
        # The namespace of `old` in NFC is of somebody else.
        async with await service.agent("grace", permissions=tuple(Permission)) as grace:
            await make(grace, "other", memory_type="semantic", namespace=NFC)
    before = await everything(service)
    report = await rename(service)
    assert (report.entries, report.namespaces) == (0, 0)
    assert {one.partition(":")[0] for one in report.problems} == {old["id"], taken["id"]}
    assert await everything(service) == before
    assert problems(service) == []
    # Both are there in both forms, and only one of them is meant by an id.
    assert len(await keys_of(ada, namespace="invoices", key=NFC)) == 2


async def test_a_run_that_is_interrupted_is_completed(
    service: RunningService, ada: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stored_as_given(monkeypatch):
        for number in range(3):
            await make(ada, f"{NFD}{number}")
    monkeypatch.setattr(job, "_AT_ONCE", 1)

    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await rename(service, interrupt)
    looked_at: list[int] = []
    assert await rename(service, looked_at.append) == RenameReport(entries=2)
    assert sum(looked_at) == 3
    assert NFD not in repr((await everything(service)).entries)
