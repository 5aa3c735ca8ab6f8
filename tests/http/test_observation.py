"""Ids of requests, the access log and the metrics of requests."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from memorywall.jobs.expire_entries import EXPIRE_JOB
from memorywall.jobs.job_runner import run_everywhere
from memorywall.server.access_log import ACCESS_LOGGER
from memorywall.server.exchange import Exchange
from memorywall.server.request_ids import RequestIds
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.request_statistics import BOUNDS, OperationStatistics
from tests.http.checks import EVERY_PERMISSION, MARKER, MEMORY, NAMESPACES, assert_problem, make
from tests.support.asgi import AsgiTransport
from tests.support.rounds import sweep
from tests.support.service import RunningService, draft, open_service

pytestmark = pytest.mark.anyio

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = "00f067aa0ba902b7"
TRACEPARENT = f"00-{TRACE}-{SPAN}-01"


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[RunningService]:
    async with open_service(tmp_path, access_log=True) as opened:
        yield opened


class _Lines(logging.Handler):
    """What is written to the access log."""

    def __init__(self, service: RunningService) -> None:
        super().__init__()
        self._service = service
        self._texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self._texts.append(record.getMessage())

    @property
    def text(self) -> str:
        assert self._service.app.access_log is not None
        self._service.app.access_log.flush()
        return "\n".join(self._texts)

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text.splitlines()]


@pytest.fixture
def log(service: RunningService) -> Iterator[_Lines]:
    logger = logging.getLogger(ACCESS_LOGGER)
    handler, before = _Lines(service), logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield handler
    logger.setLevel(before)
    logger.removeHandler(handler)


@pytest.mark.parametrize("given", ["a", "Abc-09._:/+=@~", "x" * 128])
async def test_request_id_of_the_client_is_returned(service: RunningService, given: str) -> None:
    response = await service.client().get("/health", headers={"X-Request-ID": given})
    assert response.headers["x-request-id"] == given


@pytest.mark.parametrize("given", ["", "x" * 129, "a b", 'a"b', "a\\b", "é", None])
async def test_new_request_id_replaces_an_invalid_one(
    service: RunningService, given: str | None
) -> None:
    headers = {} if given is None else {b"X-Request-ID": given.encode()}
    client = httpx.AsyncClient(
        transport=AsgiTransport(service.app), base_url="http://memorywall.test"
    )
    first, second = [await client.get("/health", headers=headers) for _ in "12"]
    ids = [one.headers["x-request-id"] for one in (first, second)]
    assert all(re.fullmatch(r"req-[0-9a-f]{16}-[0-9a-f]+", one) for one in ids)
    assert ids[0] != ids[1]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/docs", 200),
        ("GET", "/metrics", 200),
        ("GET", f"{MEMORY}/export", 200),
        ("GET", "/nothing", 404),
        ("BREW", MEMORY, 405),
        ("GET", f"{MEMORY}/mem_0", 404),
        ("POST", MEMORY, 400),
        ("GET", f"{MEMORY}?colour=red", 400),
    ],
)
async def test_every_reply_and_problem_has_the_request_id(
    service: RunningService, method: str, path: str, status: int
) -> None:
    agent = await service.agent("ada")
    response = await agent.request(method, path, headers={"X-Request-ID": "mine"})
    assert (response.status_code, response.headers["x-request-id"]) == (status, "mine")
    if status >= 400:
        assert assert_problem(response, status)["request_id"] == "mine"


async def test_reply_continues_the_trace_of_the_client(
    service: RunningService, log: _Lines
) -> None:
    response = await service.client().get("/health", headers={"traceparent": TRACEPARENT})
    version, trace, span, flags = response.headers["traceparent"].split("-")
    assert (version, trace, flags) == ("00", TRACE, "01")
    assert re.fullmatch("[0-9a-f]{16}", span)
    assert span != SPAN
    (line,) = log.lines
    assert (line["trace_id"], line["parent_id"], line["span_id"]) == (TRACE, SPAN, span)


@pytest.mark.parametrize(
    ("given", "is_valid"),
    [
        (TRACEPARENT, True),
        (f"cc-{TRACE}-{SPAN}-00-what-may-come", True),
        (f"00-{TRACE}-{SPAN}-01-more", False),
        (f"ff-{TRACE}-{SPAN}-01", False),
        (f"00-{'0' * 32}-{SPAN}-01", False),
        (f"00-{TRACE}-{'0' * 16}-01", False),
        (TRACEPARENT.upper(), False),
        (f"00-{TRACE}-{SPAN}", False),
        ("", False),
    ],
)
def test_traceparent_is_read_as_trace_context_says(given: str, is_valid: bool) -> None:
    ids = RequestIds(random_bytes=lambda count: b"\1" * count)
    trace = ids.read_trace(given.encode())
    assert (trace is not None) == is_valid
    if trace is not None:
        assert (trace.trace_id, trace.parent_id, trace.span_id) == (TRACE, SPAN, "01" * 8)


async def test_failure_is_logged_with_the_request_id(
    service: RunningService, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError(MARKER)

    agent = await service.agent("ada")
    monkeypatch.setattr(service.services.store, "read", fail)
    response = await agent.get(f"{MEMORY}/mem_1", headers={"X-Request-ID": "broken"})
    assert assert_problem(response, 500)["request_id"] == "broken"
    (record,) = [one for one in caplog.records if one.name == "memorywall.server"]
    assert vars(record)["request_id"] == "broken"


async def test_request_is_logged_as_one_line(service: RunningService, log: _Lines) -> None:
    agent = await service.agent("ada", tenant="acme")
    made = await agent.post(MEMORY, json=draft(), headers={"X-Request-ID": "mine"})
    (line,) = log.lines
    assert re.fullmatch(r"2026-02-02T02:40:00\.000Z", line.pop("time"))
    assert line.pop("ms") > 0
    assert line == {
        "level": "info",
        "logger": "memorywall.access",
        "message": "request",
        "request_id": "mine",
        "operation": "create_entry",
        "tenant": "acme",
        "principal": "ada",
        "status": 201,
        "bytes": len(made.content),
    }


async def test_access_log_has_no_name_value_or_key(service: RunningService, log: _Lines) -> None:
    agent = await service.agent("ada")
    key = agent.headers["x-api-key"]
    await agent.post(MEMORY, json=draft(MARKER, value={MARKER: MARKER}, tags=[MARKER]))
    await agent.get(MEMORY, params={"namespace": MARKER})
    await agent.get(f"{NAMESPACES}/{MARKER}")
    await agent.get(f"/{MARKER}")
    await agent.post(MEMORY, content=MARKER, headers={"X-Subject": MARKER, "User-Agent": MARKER})
    await service.client(f"{key}x{MARKER}").get(MEMORY)
    assert [line["status"] for line in log.lines] == [201, 200, 404, 404, 400, 401]
    assert [line["operation"] for line in log.lines][2:4] == ["get_namespace", None]
    assert log.lines[-1]["principal"] is None
    assert MARKER not in log.text
    assert key not in log.text
    assert key.partition(".")[2] not in log.text


async def test_access_log_names_both_principals_of_act_as(
    service: RunningService, log: _Lines
) -> None:
    key = await service.key("lead", permissions=EVERY_PERMISSION)
    await service.client(key, "worker").get("/api/v1/agents/me")
    assert [(line["principal"], line["acting"]) for line in log.lines] == [("worker", "lead")]


async def test_json_rpc_is_one_line_with_its_calls(service: RunningService, log: _Lines) -> None:
    agent = await service.agent("ada")
    calls = [
        {"jsonrpc": "2.0", "id": number, "method": name, "params": {"entry_id": MARKER}}
        for number, name in enumerate(("whoami", "get_entry", "nothing"))
    ]
    calls[0].pop("params")
    assert (await agent.post("/rpc", json=calls)).status_code == 200
    (line,) = log.lines
    assert (line["operation"], line["calls"]) == ("rpc", ["whoami", "get_entry"])
    assert line["principal"] == "ada"
    text = (await agent.get("/metrics")).text
    for operation, status in (("rpc", 200), ("whoami", 200), ("get_entry", 404)):
        labels = f'operation="{operation}",status="{status}"'
        assert f"memorywall_requests_total{{{labels}}} 1.0" in text


async def test_no_line_is_written_when_the_access_log_is_off(tmp_path: Path) -> None:
    async with open_service(tmp_path / "off") as service:
        assert service.app.access_log is None
        assert (await service.client().get("/health")).headers["x-request-id"]


async def test_metrics_count_requests_by_operation(service: RunningService) -> None:
    agent = await service.agent("secretive", tenant="hidden")
    made = await make(agent)
    for _ in range(3):
        await agent.get(f"{MEMORY}/{made['id']}")
    await agent.get(f"{MEMORY}/mem_0")
    text = (await agent.get("/metrics")).text
    assert 'memorywall_requests_total{operation="get_entry",status="200"} 3.0' in text
    assert 'memorywall_requests_total{operation="get_entry",status="404"} 1.0' in text
    name = "memorywall_request_duration_seconds"
    assert f'{name}_count{{operation="get_entry"}} 4.0' in text
    assert f'{name}_bucket{{le="+Inf",operation="get_entry"}} 4.0' in text
    assert 'memorywall_requests_in_flight{operation="get_entry"} 0.0' in text
    # The scrape itself is in flight.
    assert 'memorywall_requests_in_flight{operation="metrics"} 1.0' in text
    for word in ("secretive", "hidden", "default", "invoices"):
        assert word not in text


async def test_metrics_tell_the_last_run_and_the_errors_of_each_job(
    service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = await service.agent("ada")
    assert "memorywall_job_last_run_timestamp_seconds{" not in (await agent.get("/metrics")).text
    await sweep(service.services)
    began = service.services.clock.now() / 1000

    async def fail(context: OperationContext) -> bool:
        raise ArithmeticError

    service.clock.advance(60)
    await run_everywhere(service.services, replace(EXPIRE_JOB, is_needed=fail), early=True)
    await agent.post(MEMORY, json=draft("passing", ttl="duration:PT1M"))
    families = text_string_to_metric_families((await agent.get("/metrics")).text)
    told = {
        (one.name, one.labels["job"]): one.value
        for family in families
        for one in family.samples
        if one.name.startswith("memorywall_job_")
    }
    assert told == {
        ("memorywall_job_last_run_timestamp_seconds", "expire"): began,
        ("memorywall_job_last_run_timestamp_seconds", "prune"): began,
        ("memorywall_job_errors_total", "expire"): 1,
        ("memorywall_job_errors_total", "prune"): 0,
    }
    service.clock.advance(60)
    assert await sweep(service.services) == 1
    name = 'memorywall_job_last_run_timestamp_seconds{job="expire"}'
    (line,) = (one for one in (await agent.get("/metrics")).text.splitlines() if name in one)
    assert float(line.split()[1]) == began + 120


async def test_stream_is_in_flight_until_it_ends(service: RunningService) -> None:
    agent = await service.agent("ada")
    statistics = service.services.requests.of("list_events")
    headers = {"Accept": "text/event-stream", "X-API-Key": agent.headers["x-api-key"]}
    streaming = httpx.AsyncClient(
        transport=AsgiTransport(service.app), base_url="http://memorywall.test"
    )
    async with streaming.stream("GET", "/api/v1/agents/ada/events", headers=headers) as stream:
        assert stream.headers["x-request-id"]
        assert (statistics.in_flight, statistics.statuses) == (1, {})
    assert (statistics.in_flight, statistics.statuses) == (0, {200: 1})


def test_latency_is_the_time_until_the_reply_begins() -> None:
    instants = iter([10.0, 10.004])
    statistics = OperationStatistics()

    async def send(_: object) -> None:
        return None

    ids = RequestIds()
    exchange = Exchange({"headers": []}, send, ids, lambda: next(instants))
    exchange.begin("get_entry", statistics)
    exchange.send({"type": "http.response.start", "status": 200, "headers": []}).close()  # type: ignore[attr-defined]
    exchange.send({"type": "http.response.body", "body": b"abc"}).close()  # type: ignore[attr-defined]
    exchange.finish()
    assert (statistics.in_flight, exchange.size) == (0, 3)
    assert statistics.seconds == pytest.approx(0.004)
    counts = dict(zip(BOUNDS, statistics.cumulative(), strict=False))
    assert (counts[0.0025], counts[0.005], counts[10.0]) == (0, 1, 1)


@contextmanager
def _measured(statistics: OperationStatistics, status: int) -> Iterator[None]:
    with statistics.measure() as measured:
        yield
        measured.status = status


def test_request_that_is_cancelled_counts_as_left() -> None:
    statistics = OperationStatistics()
    with _measured(statistics, 200):
        assert statistics.in_flight == 1
    with pytest.raises(KeyboardInterrupt), _measured(statistics, 200):
        raise KeyboardInterrupt
    assert (statistics.in_flight, statistics.statuses) == (0, {200: 1, 499: 1})
