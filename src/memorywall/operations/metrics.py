"""Metrics in Prometheus' text format.

Requests are counted in plain counters, which a collector reads at each scrape: labelled metrics in
the path of a request would cost more than the count itself. No label names a principal, a tenant or
anything that a client has chosen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from memorywall.service.request_statistics import BOUNDS, OperationStatistics

METRICS_MEDIA = b"text/plain; version=0.0.4; charset=utf-8"

Labels = tuple[tuple[str, str], ...]
"""The labels of a sample: pairs of name and value."""
_INDEX = {
    "shards": "Index shards in memory.",
    "bytes": "Bytes of the index shards in memory.",
    "entries": "Entries in the index shards in memory.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurements:
    """The measurements of one scrape.

    backlog: the number of changes in all logs that are not embedded yet
    index: the numbers of index shards and entries in memory, and their bytes
    refusals: the number of refused requests since the start, by (operation, error code)
    requests: the requests since the start, by operation
    """

    backlog: int
    index: Mapping[str, int]
    refusals: Mapping[tuple[str, str], int]
    requests: Sequence[tuple[str, OperationStatistics]]


def metrics_text(measured: Measurements) -> bytes:
    """Returns the metrics in text format 0.0.4."""
    return "".join(line + "\n" for line in _lines(measured)).encode()


def _lines(measured: Measurements) -> Iterator[str]:
    yield from _family(
        "memorywall_embedding_backlog",
        "gauge",
        "Changes to memory that are not embedded yet.",
        [((), measured.backlog)],
    )
    for name, text in _INDEX.items():
        yield from _family(f"memorywall_recall_{name}", "gauge", text, [((), measured.index[name])])
    yield from _family(
        "memorywall_refused_requests_total",
        "counter",
        "Requests refused for lack of a key or of access, a stale lease or a rate limit.",
        [
            ((("code", code), ("operation", operation)), count)
            for (operation, code), count in sorted(measured.refusals.items())
        ],
    )
    yield from _family(
        "memorywall_requests_total",
        "counter",
        "Ended requests since the start.",
        [
            ((("operation", operation), ("status", str(status))), count)
            for operation, one in measured.requests
            for status, count in sorted(one.statuses.items())
        ],
    )
    name = "memorywall_request_duration_seconds"
    yield from _family(name, "histogram", "Seconds until the reply to a request began.", [])
    for operation, one in measured.requests:
        labels = (("operation", operation),)
        counts = one.cumulative()
        for bound, count in zip((*map(str, BOUNDS), "+Inf"), counts, strict=True):
            yield _sample(f"{name}_bucket", (("le", bound), *labels), count)
        yield _sample(f"{name}_count", labels, counts[-1])
        yield _sample(f"{name}_sum", labels, one.seconds)
    yield from _family(
        "memorywall_requests_in_flight",
        "gauge",
        "Requests that have begun and not ended.",
        [((("operation", operation),), one.in_flight) for operation, one in measured.requests],
    )


def _family(
    name: str, kind: str, text: str, samples: Iterable[tuple[Labels, float]]
) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"
    for labels, value in samples:
        yield _sample(name, labels, value)


def _sample(name: str, labels: Labels, value: float) -> str:
    # The values of labels are names of operations, error codes and numbers: none needs escaping.
    rendered = ",".join(f'{label}="{text}"' for label, text in labels)
    return f"{name}{{{rendered}}} {float(value)}" if rendered else f"{name} {float(value)}"
