"""What every write of an entry does: it redacts each text and derives from each value once, touches
the texts of a governed kind only, and gives the entry the lifetime of its kind."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import httpx
import msgspec
import pytest

from memorywall.kinds.registry import register_kind
from memorywall.kinds.spec import KindSpec
from memorywall.records.entry import Entry, Scope
from memorywall.records.principal import Principal, PrincipalKind
from memorywall.records.tier import Tier
from memorywall.redaction import personal_data
from memorywall.service.entries import kind_rules
from memorywall.service.entries.governed_entries import make_governed_entry
from memorywall.service.entries.writes import create_new_entry
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.runner.operation_runner import run_write
from memorywall.settings import DEFAULT_TENANT
from tests.http.checks import BATCH, MEMORY, assert_problem
from tests.http.test_sessions import begin
from tests.support.service import RunningService, draft, open_service
from tests.work.crew import TASKS, crew_of, ok, under

pytestmark = pytest.mark.anyio

CARD = "4111 1111 1111 1111"
UNMARKED = ("checkpoint", "context")
"""What is masked, but has no place for a mark."""
Send = Callable[[httpx.AsyncClient], Awaitable[httpx.Response]]


# Once


class Calls:
    """Counts what is redacted and derived, wherever it is called from.

    texts: how often each text that begins with `paid` was searched for personal data
    versions: how often the fields of each version of an entry were derived
    """

    def __init__(self) -> None:
        self.texts: Counter[str] = Counter()
        self.versions: Counter[tuple[str, int]] = Counter()

    def note(self, frame: FrameType, event: str, argument: Any) -> None:
        if event != "call":
            return
        if frame.f_code is personal_data.mask.__code__:
            text = frame.f_locals["text"]
            if text.startswith("paid"):
                # The rest of a text is another one once it has been masked.
                self.texts[text.partition(":")[0]] += 1
        elif frame.f_code is kind_rules.derived_from_value.__code__:
            entry = frame.f_locals["entry"]
            self.versions[entry.id, entry.version] += 1


@contextmanager
def counted() -> Iterator[Calls]:
    calls = Calls()
    sys.setprofile(calls.note)
    try:
        yield calls
    finally:
        sys.setprofile(None)


def _paid(name: str) -> str:
    return f"paid {name}: with {CARD}"


@pytest.fixture(params=["mask", "mark"])
async def masking(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[RunningService]:
    async with open_service(tmp_path, personal_data=request.param) as service:
        yield service


async def _requests(service: RunningService) -> dict[str, tuple[Send, list[str]]]:
    """Returns a request of every way of writing text, and the names of its texts."""
    crew = await crew_of(service)
    task, taken = await crew.working()
    working, headers = f"{TASKS}/{task['id']}/working", under(taken.token)
    talk = await begin(crew.a)
    old = [ok(await crew.a.post(MEMORY, json=draft(f"old-{n}")), 201) for n in range(3)]
    call = {"id": "c", "name": "pay", "arguments": {"a": _paid("argument")}}

    def value(name: str) -> dict[str, Any]:
        return {"a": _paid(name), "b": [_paid(f"{name} too")]}

    def change(number: int, **fields: Any) -> Send:
        path, match = f"{MEMORY}/{old[number]['id']}", {"If-Match": "1"}
        return lambda client: client.patch(path, json=fields, headers=match)

    def post(path: str, **body: Any) -> Send:
        return lambda client: client.post(path, json=body, headers=headers)

    return {
        "POST": (post(MEMORY, **draft("new", value=value("post"))), ["post", "post too"]),
        "PATCH": (change(0, value=value("patch")), ["patch", "patch too"]),
        "PUT": (
            lambda client: client.put(
                MEMORY, json=draft("old-1", value=value("put")), headers={"If-Match": "1"}
            ),
            ["put", "put too"],
        ),
        "batch": (
            post(
                BATCH,
                entries=[
                    draft("batch", value=value("batch")),
                    {"id": old[2]["id"], "version": 1, "value": {"a": _paid("element")}},
                ],
            ),
            ["batch", "batch too", "element"],
        ),
        "turn": (
            post(
                f"{talk.path}/turns",
                turns=[
                    {"role": "user", "content": _paid("first")},
                    {"role": "assistant", "content": _paid("second"), "tool_calls": [call]},
                ],
            ),
            ["first", "second", "argument"],
        ),
        "step": (post(f"{working}/steps", goal=_paid("goal")), ["goal"]),
        "item": (
            lambda client: client.put(
                f"{working}/items/x", json={"content": _paid("item")}, headers=headers
            ),
            ["item"],
        ),
        "checkpoint": (
            post(
                f"{talk.path}/checkpoints",
                working=[{"a": _paid("working")}],
                state={"a": _paid("state")},
            ),
            ["working", "state"],
        ),
        "context": (
            post("/api/v1/context", session_id=talk.id, user=_paid("question")),
            ["question"],
        ),
    }


async def test_each_write_redacts_and_derives_once(masking: RunningService) -> None:
    requests = await _requests(masking)
    agent = await masking.agent("a")
    is_masked = masking.services.settings.personal_data == "mask"
    for name, (send, texts) in requests.items():
        with counted() as calls:
            reply = await send(agent)
        assert reply.is_success, (name, reply.text)
        found = {text: calls.texts[f"paid {text}"] for text in texts}
        times = 1 if is_masked or name not in UNMARKED else 0
        assert found == dict.fromkeys(texts, times), name
        assert set(calls.versions.values()) == {1}, (name, calls.versions)


# What a kind says


class Receipt(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the server stores of a payment."""

    text: str
    payment_id: str
    digest: str
    content: bytes


RECEIPT = KindSpec(
    name="receipt",
    schema=Receipt,
    description="A receipt.",
    tier=Tier.EPISODIC,
    operations=("pay",),
    texts=("text",),
    lifetime="PT1H",
)
NUMBER = "4111111111111111"


@pytest.fixture
def receipt() -> Iterator[None]:
    with register_kind(RECEIPT):
        yield


async def _make_receipt(service: RunningService) -> Entry:
    value = Receipt(
        text=_paid("receipt"), payment_id=NUMBER, digest=CARD, content=NUMBER.encode() * 3
    )

    async def make(context: OperationContext) -> Entry:
        context.decide_by_row()
        entry = make_governed_entry(
            context, RECEIPT, value, owner="a", namespace="n", key=NUMBER, scope=Scope()
        )
        return await create_new_entry(context, entry)

    principal = Principal(
        tenant=DEFAULT_TENANT, id="a", kind=PrincipalKind.AGENT, permissions=frozenset()
    )
    return await run_write(service.services, principal, make)


async def test_only_the_texts_of_a_governed_kind_are_redacted(
    masking: RunningService, receipt: None
) -> None:
    """Its ids, digests and bytes stay, also where they look like the number of a card."""
    entry = await _make_receipt(masking)
    agent = await masking.agent("a")
    shown = ok(await agent.get(f"{MEMORY}/{entry.id}"))
    is_masked = masking.services.settings.personal_data == "mask"
    assert shown["value"] == {
        "text": _paid("receipt").replace(CARD, "[card]") if is_masked else _paid("receipt"),
        "payment_id": NUMBER,
        "digest": CARD,
        "content": msgspec.to_builtins(NUMBER.encode() * 3),
    }
    assert shown["key"] == NUMBER
    assert shown["tags"] == ([] if is_masked else ["personal_data:card"])


async def test_an_entry_expires_after_the_lifetime_of_its_kind(
    service: RunningService, receipt: None
) -> None:
    entry = await _make_receipt(service)
    agent = await service.agent("a")
    path = f"{MEMORY}/{entry.id}"
    service.clock.advance(3_599)
    assert ok(await agent.get(path))["expires_at"] == entry.expires_at
    service.clock.advance(1)
    assert_problem(await agent.get(path), 404, "ENTRY_NOT_FOUND")
