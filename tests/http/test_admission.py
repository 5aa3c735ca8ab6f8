"""Rate limits, the share of a tenant, limits of bodies, and CORS."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from memorywall.exceptions import RateLimitedError
from memorywall.records.principal import Principal, PrincipalKind
from memorywall.sdk.client import AsyncClient
from memorywall.sdk.effects import Pause, Request, Response
from memorywall.sdk.http import AsyncDriver
from memorywall.sdk.retry import LONGEST_WAIT, MOST_PAUSES, send
from memorywall.server import app
from memorywall.server.admission import RequestAdmission, TenantQueue, TokenBuckets
from memorywall.settings import Settings
from tests.http.checks import BATCH, EVERY_PERMISSION, MEMORY, assert_problem
from tests.support.asgi import AsgiTransport
from tests.support.service import RunningService, draft, open_service

pytestmark = pytest.mark.anyio


class _Seconds:
    """A clock of seconds that the test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> _Seconds:
    clock = _Seconds()
    monkeypatch.setattr(app, "RequestAdmission", partial(RequestAdmission, clock=clock))
    return clock


def _settings(**given: Any) -> Settings:
    return Settings(sqlite_path=Path("unused"), **given)


def _principal(name: str = "ada", tenant: str = "default", acting: str = "") -> Principal:
    return Principal(
        tenant=tenant,
        id=name,
        kind=PrincipalKind.AGENT,
        permissions=frozenset(),
        acting=acting,
    )


def test_bucket_refills_at_its_rate() -> None:
    clock = _Seconds()
    buckets = TokenBuckets(rate=2.0, burst=1.5, clock=clock)
    for _ in range(3):
        assert buckets.wait("a") == 0
        buckets.take("a")
    assert buckets.wait("a") == pytest.approx(0.5)
    assert buckets.wait("b") == 0
    clock.now += 0.25
    assert buckets.wait("a") == pytest.approx(0.25)
    clock.now += 60
    for _ in range(3):
        buckets.take("a")
    assert buckets.wait("a") > 0, "a bucket holds no more than its burst"


def test_full_buckets_are_dropped_when_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memorywall.server.admission._MOST_BUCKETS", 4)
    clock = _Seconds()
    buckets = TokenBuckets(rate=1.0, burst=2.0, clock=clock)
    for name in "abcd":
        buckets.take(name)
    clock.now += 1
    buckets.take("d")
    buckets.take("e")
    assert sorted(buckets._buckets) == ["d", "e"]


async def test_principal_is_refused_over_its_rate(tmp_path: Path, seconds: _Seconds) -> None:
    async with open_service(tmp_path, principal_rate=0.5, rate_burst=4.0) as service:
        ada, other = await service.agent("ada"), await service.agent("other")
        for _ in range(2):
            assert (await ada.get("/api/v1/agents/me")).status_code == 200
        refused = await ada.post(MEMORY, json=draft())
        document = assert_problem(refused, 429, "RATE_LIMITED")
        assert (refused.headers["retry-after"], document["retry_after"]) == ("2", 2.0)
        assert (await other.get("/api/v1/agents/me")).status_code == 200
        assert (await ada.get("/health")).status_code == 200, "a public operation has no limit"
        answer = await other.post(
            "/rpc", json=[{"jsonrpc": "2.0", "id": 1, "method": "whoami"}] * 2
        )
        first, second = answer.json()
        assert first["result"]["agent_id"] == "other"
        assert (second["error"]["code"], second["error"]["data"]["error"]) == (
            -32029,
            "RATE_LIMITED",
        )
        seconds.now += 1.5
        assert (await ada.get(MEMORY)).headers["retry-after"] == "1"
        seconds.now += 0.5
        assert (await ada.get(MEMORY)).status_code == 200
        text = (await ada.get("/metrics")).text
        labels = 'code="RATE_LIMITED",operation="create_entry"'
        assert f"memorywall_refused_requests_total{{{labels}}} 1.0" in text


async def test_key_that_acts_for_others_has_one_rate(tmp_path: Path, seconds: _Seconds) -> None:
    async with open_service(tmp_path, principal_rate=1.0, rate_burst=2.0) as service:
        key = await service.key("lead", permissions=EVERY_PERMISSION)
        statuses = [
            (await service.client(key, f"worker-{number}").get("/api/v1/agents/me")).status_code
            for number in range(3)
        ]
        assert statuses == [200, 200, 429]


async def test_tenant_has_a_rate_for_all_its_principals(tmp_path: Path, seconds: _Seconds) -> None:
    async with open_service(
        tmp_path, tenant_rate=1.0, principal_rate=10.0, rate_burst=3.0
    ) as service:
        agents = [await service.agent(name, tenant="loud") for name in "abcd"]
        statuses = [(await one.get("/api/v1/agents/me")).status_code for one in agents]
        assert statuses == [200, 200, 200, 429]
        quiet = await service.agent("quiet", tenant="quiet")
        assert (await quiet.get("/api/v1/agents/me")).status_code == 200


def test_refusal_takes_no_token() -> None:
    clock = _Seconds()
    admission = RequestAdmission(
        _settings(principal_rate=1.0, tenant_rate=2.0, rate_burst=1.0), clock
    )
    admission.check_rate(_principal("a"))
    for _ in range(5):
        with pytest.raises(RateLimitedError, match="principal"):
            admission.check_rate(_principal("a"))
    admission.check_rate(_principal("b"))
    with pytest.raises(RateLimitedError, match="tenant") as raised:
        admission.check_rate(_principal("c"))
    assert raised.value.retry_after == pytest.approx(0.5)


async def test_client_waits_as_told_and_repeats(tmp_path: Path, seconds: _Seconds) -> None:
    pauses: list[float] = []

    async def pause(length: float) -> None:
        pauses.append(length)
        seconds.now += length

    async with open_service(tmp_path, principal_rate=2.0, rate_burst=0.5) as service:
        http = httpx.AsyncClient(
            transport=AsgiTransport(service.app),
            base_url="http://memorywall.test",
            headers={"X-API-Key": await service.key("ada")},
        )
        client = AsyncClient.over(AsyncDriver(lambda: http, pause=pause))
        for number in range(3):
            made = await client.memory.set("n", f"k{number}", {}, memory_type="working")
            assert made.version == 1
        assert pauses == [0.5, 0.5]
        # The acquisition of a claim is never repeated blindly, and a refused one may be.
        assert (await client.claims.acquire("k")).fencing_token
        assert pauses == [0.5] * 3
        entries = [entry.key async for entry in client.memory.export()]
        assert sorted(entries) == ["k0", "k1", "k2"]
        await client.aclose()


@pytest.mark.parametrize(
    ("told", "requests", "waited"),
    [
        (0.5, MOST_PAUSES + 1, 0.5 * MOST_PAUSES),
        (20.0, 2, 20.0),
        (LONGEST_WAIT + 1, 1, 0.0),
        (None, MOST_PAUSES + 1, 1.0 * MOST_PAUSES),
        ("soon", MOST_PAUSES + 1, 1.0 * MOST_PAUSES),
    ],
)
def test_waiting_is_bounded(told: object, requests: int, waited: float) -> None:
    body = b'{"error": "RATE_LIMITED"%s}' % (
        b"" if told is None else b', "retry_after": %s' % str(told).encode()
        if isinstance(told, float) else b', "retry_after": "soon"'
    )  # fmt: skip
    for operation in ("get_entry", "create_entry", "acquire_claim"):
        script = send(Request(operation=operation, path={"entry_id": "mem_1"}))
        sent, paused, answer = 0, 0.0, None
        try:
            while True:
                step = script.send(answer)
                if isinstance(step, Pause):
                    paused, answer = paused + step.seconds, None
                else:
                    sent, answer = sent + 1, Response(429, body)
        except StopIteration as end:
            answer = end.value
        assert answer is not None
        assert answer.status == 429
        assert (sent, paused) == (requests, waited), operation


def test_full_memory_is_no_reason_to_repeat() -> None:
    script = send(Request(operation="get_entry", path={"entry_id": "mem_1"}))
    next(script)
    with pytest.raises(StopIteration):
        script.send(Response(429, b'{"error": "CAPACITY_EXCEEDED", "retry_after": 1}'))


async def _enter(admission: RequestAdmission, tenant: str) -> TenantQueue:
    return await admission.enter(tenant)


async def test_more_requests_of_a_tenant_wait_in_order() -> None:
    admission = RequestAdmission(_settings(tenant_concurrency=1))
    first = await _enter(admission, "loud")
    order: list[int] = []

    async def work(number: int) -> None:
        queue = await _enter(admission, "loud")
        order.append(number)
        assert queue.running == 1
        admission.leave(queue)

    tasks = [asyncio.create_task(work(number)) for number in range(4)]
    quiet = await _enter(admission, "quiet")
    admission.leave(quiet)
    await asyncio.sleep(0)
    assert order == []
    tasks[1].cancel()
    await asyncio.sleep(0)
    admission.leave(first)
    # A place that is given to a request which is cancelled at the same time goes to the next one.
    tasks[0].cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert order == [2, 3]
    assert [type(one) for one in results[:2]] == [asyncio.CancelledError] * 2
    assert first.running == 0


async def test_request_is_refused_when_too_many_of_its_tenant_wait() -> None:
    admission = RequestAdmission(_settings(tenant_concurrency=1))
    queue = await _enter(admission, "loud")
    waiting = [asyncio.create_task(_enter(admission, "loud")) for _ in range(8)]
    await asyncio.sleep(0)
    with pytest.raises(RateLimitedError, match="wait") as raised:
        await _enter(admission, "loud")
    assert raised.value.retry_after == 1.0
    admission.leave(queue)
    for task in waiting:
        admission.leave(await task)
    assert queue.running == 0


async def test_tenant_that_floods_does_not_delay_others(tmp_path: Path) -> None:
    done: list[str] = []

    async def create(client: httpx.AsyncClient, key: str, name: str) -> None:
        assert (await client.post(MEMORY, json=draft(key))).status_code == 201
        done.append(name)

    async with open_service(tmp_path, tenant_concurrency=20) as service:
        loud = await service.agent("loud", tenant="loud")
        quiet = await service.agent("quiet", tenant="quiet")
        flood = [asyncio.create_task(create(loud, f"k{number}", "loud")) for number in range(160)]
        await asyncio.sleep(0)
        await create(quiet, "k", "quiet")
        before = done.index("quiet")
        await asyncio.gather(*flood)
    assert before <= 40, "the quiet tenant has waited for the flood"
    assert len(done) == 161


async def test_limits_of_bodies_are_settings(tmp_path: Path) -> None:
    async with open_service(tmp_path, body_limit=300, batch_body_limit=600) as service:
        ada = await service.agent("ada")
        assert (await ada.post(MEMORY, json=draft())).status_code == 201
        large = await ada.post(MEMORY, json=draft("l", value={"x": "y" * 300}))
        assert "300 bytes" in assert_problem(large, 413)["detail"]
        batch = {"entries": [draft(f"k{number}") for number in range(4)]}
        assert (await ada.post(BATCH, json=batch)).status_code == 200
        batch["entries"] *= 4
        assert "600 bytes" in assert_problem(await ada.post(BATCH, json=batch), 413)["detail"]
        rpc = await ada.post("/rpc", content=b"[" + b" " * 600 + b"]")
        assert_problem(rpc, 413)


ORIGIN = "https://app.example"


async def test_listed_origin_may_call_the_server(tmp_path: Path) -> None:
    async with open_service(tmp_path, cors_origins=(ORIGIN,)) as service:
        ada = await service.agent("ada")
        asked = {
            "Origin": ORIGIN,
            "Access-Control-Request-Method": "PATCH",
            "Access-Control-Request-Headers": "x-api-key, if-match, content-type, x-agent-id,"
            " x-said-at",
        }
        allowed = await service.client().options(f"{MEMORY}/mem_1", headers=asked)
        assert allowed.status_code == 200
        assert allowed.headers["access-control-allow-origin"] == ORIGIN
        assert "PATCH" in allowed.headers["access-control-allow-methods"]
        assert "access-control-allow-credentials" not in allowed.headers
        for path, status in ((MEMORY, 200), (f"{MEMORY}/mem_0", 404), ("/nothing", 404)):
            response = await ada.get(path, headers={"Origin": ORIGIN})
            assert response.status_code == status
            assert response.headers["access-control-allow-origin"] == ORIGIN
            assert "X-Request-ID" in response.headers["access-control-expose-headers"]
            assert response.headers["x-request-id"]
        for foreign in ("https://evil.example", "http://app.example", f"{ORIGIN}.evil.example"):
            headers = {**asked, "Origin": foreign}
            refused = await service.client().options(MEMORY, headers=headers)
            assert refused.status_code == 400
            assert "access-control-allow-origin" not in refused.headers
            response = await ada.get(MEMORY, headers={"Origin": foreign})
            assert "access-control-allow-origin" not in response.headers


async def test_no_origin_is_allowed_by_default(service: RunningService) -> None:
    asked = {"Origin": ORIGIN, "Access-Control-Request-Method": "GET"}
    refused = await service.client().options(MEMORY, headers=asked)
    assert_problem(refused, 405)
    response = await service.client().get("/health", headers=asked)
    assert not [name for name in response.headers if name.startswith("access-control")]
