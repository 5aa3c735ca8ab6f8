"""Metrics in Prometheus' text format.

Requests are counted in plain counters, which a collector reads at each scrape: labelled metrics in
the path of a request would cost more than the count itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector

METRICS_MEDIA = CONTENT_TYPE_PLAIN_0_0_4.encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurements:
    """The measurements of one scrape.

    backlog: the number of changes in all logs that are not embedded yet
    index: the numbers of index shards and entries in memory, and their bytes
    refusals: the number of refused requests since the start, by (operation, error code)
    """

    backlog: int
    index: Mapping[str, int]
    refusals: Mapping[tuple[str, str], int]


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
            "Requests refused for lack of access or a stale lease since the start.",
            labels=("operation", "code"),
        )
        for (operation, code), count in sorted(self._measured.refusals.items()):
            refused.add_metric((operation, code), count)
        yield refused


def metrics_text(measured: Measurements) -> bytes:
    """Returns the metrics in text format 0.0.4."""
    registry = CollectorRegistry()
    registry.register(_MeasurementsCollector(measured))
    return generate_latest(registry)
