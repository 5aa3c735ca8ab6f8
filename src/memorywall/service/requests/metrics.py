"""Metrics in Prometheus' text format.

Requests are counted in plain counters, which a collector reads at each scrape: labelled metrics in
the path of a request would cost more than the count itself. No label names a principal, a tenant or
anything that a client has chosen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector

from memorywall.records.tier import Tier
from memorywall.service.requests.request_statistics import (
    BOUNDS,
    ContextTokens,
    FullTiers,
    LoopStatistics,
    OperationStatistics,
)
from memorywall.wire.results import HttpResponse

METRICS_MEDIA = CONTENT_TYPE_PLAIN_0_0_4.encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurements:
    """The measurements of one scrape.

    backlog: the number of changes in all logs that are not embedded yet
    index: the numbers of index shards and entries in memory, and their bytes
    full_tiers: the writes to nearly full tiers since the start, and what they have evicted
    verdicts: the number of verdicts about texts since the start, by rule
    refusals: the number of refused requests since the start, by (operation, error code)
    requests: the requests since the start, by operation
    context_tokens: the tokens of entries in contexts with feedback since the start
    loop: the callbacks of the event loop since the start
    jobs: the background jobs that ran, as `JobRuns.measure` returns them
    """

    backlog: int
    index: Mapping[str, int]
    full_tiers: FullTiers
    verdicts: Mapping[str, int]
    refusals: Mapping[tuple[str, str], int]
    requests: Sequence[tuple[str, OperationStatistics]]
    context_tokens: ContextTokens
    loop: LoopStatistics
    jobs: Sequence[tuple[str, float | None, int]]


class _MeasurementsCollector(Collector):
    def __init__(self, measured: Measurements) -> None:
        self._measured = measured

    def collect(self) -> Iterator[Metric]:
        index = self._measured.index
        yield GaugeMetricFamily(
            "memorywall_embedding_backlog",
            "Changes to memory that embedding has yet to look at.",
            value=self._measured.backlog,
        )
        yield GaugeMetricFamily(
            "memorywall_recall_shards",
            "Index shards that are in memory to be searched.",
            value=index["shards"],
        )
        yield GaugeMetricFamily(
            "memorywall_recall_bytes",
            "Bytes that the index shards in memory take.",
            value=index["bytes"],
        )
        yield GaugeMetricFamily(
            "memorywall_recall_entries",
            "Entries in the index shards in memory.",
            value=index["entries"],
        )
        refused = CounterMetricFamily(
            "memorywall_refused_requests",
            "Requests refused for lack of a key or of access, a stale lease or a rate limit.",
            labels=("operation", "code"),
        )
        for (operation, code), count in sorted(self._measured.refusals.items()):
            refused.add_metric((operation, code), count)
        yield refused
        judged = CounterMetricFamily(
            "memorywall_worthiness_verdicts",
            "Texts judged before they were stored, by the rule that decided.",
            labels=("rule",),
        )
        for rule, count in sorted(self._measured.verdicts.items()):
            judged.add_metric((rule,), count)
        yield judged
        yield CounterMetricFamily(
            "memorywall_context_tokens",
            "Tokens of entries in contexts with feedback.",
            value=self._measured.context_tokens.shown,
        )
        yield CounterMetricFamily(
            "memorywall_context_used_tokens",
            "Tokens of entries that feedback on contexts names as used.",
            value=self._measured.context_tokens.used,
        )
        yield GaugeMetricFamily(
            "memorywall_loop_longest_callback_seconds",
            "The most processor time that one callback of the event loop has used.",
            value=self._measured.loop.longest,
        )
        yield CounterMetricFamily(
            "memorywall_loop_held",
            "Callbacks of the event loop that used more than 20 ms of processor time.",
            value=self._measured.loop.held,
        )
        yield from _tier_families(self._measured.full_tiers)
        yield from _request_families(self._measured.requests)
        yield from _job_families(self._measured.jobs)


def _tier_families(full: FullTiers) -> Iterator[Metric]:
    nearly = CounterMetricFamily(
        "memorywall_nearly_full_writes",
        "Writes that found at least 90 % of a capacity of a tier in use.",
        labels=("memory_type",),
    )
    evicted = CounterMetricFamily(
        "memorywall_evicted_entries",
        "Entries that writes to full tiers have evicted.",
        labels=("memory_type",),
    )
    for family, counts in ((nearly, full.writes), (evicted, full.evicted)):
        for tier in Tier:
            family.add_metric((tier.value,), counts[tier])
    yield from (nearly, evicted)


def _request_families(requests: Sequence[tuple[str, OperationStatistics]]) -> Iterator[Metric]:
    ended = CounterMetricFamily(
        "memorywall_requests",
        "Ended requests since the start.",
        labels=("operation", "status"),
    )
    latency = HistogramMetricFamily(
        "memorywall_request_duration_seconds",
        "Seconds until the reply to a request began.",
        labels=("operation",),
    )
    in_flight = GaugeMetricFamily(
        "memorywall_requests_in_flight",
        "Requests that have begun and not ended.",
        labels=("operation",),
    )
    for operation, one in requests:
        for status, count in sorted(one.statuses.items()):
            ended.add_metric((operation, str(status)), count)
        bounds = [*map(str, BOUNDS), "+Inf"]
        counts = zip(bounds, one.cumulative(), strict=True)
        latency.add_metric((operation,), buckets=list(counts), sum_value=one.seconds)
        in_flight.add_metric((operation,), one.in_flight)
    yield from (ended, latency, in_flight)


def _job_families(jobs: Sequence[tuple[str, float | None, int]]) -> Iterator[Metric]:
    last = GaugeMetricFamily(
        "memorywall_job_last_run_timestamp_seconds",
        "When a background job last ran or found nothing to do, in any tenant, since the epoch.",
        labels=("job",),
    )
    failed = CounterMetricFamily(
        "memorywall_job_errors",
        "Runs of a background job that failed since the start.",
        labels=("job",),
    )
    for job, ran_at, errors in jobs:
        if ran_at is not None:
            last.add_metric((job,), ran_at)
        failed.add_metric((job,), errors)
    yield from (last, failed)


def render_metrics(**measured: Any) -> HttpResponse:
    """Returns the response with the metrics in text format 0.0.4.

    measured: the fields of `Measurements`
    """
    registry = CollectorRegistry()
    registry.register(_MeasurementsCollector(Measurements(**measured)))
    return HttpResponse(200, generate_latest(registry), media=METRICS_MEDIA)
