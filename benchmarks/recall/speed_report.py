"""The tables about speed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from tabulate import tabulate

from benchmarks.plan import CONNECTIONS
from benchmarks.recall.load_connections import Latency
from benchmarks.recall.speed import CLIENTS, THOUSAND, Embedded, Speed, Speeds
from benchmarks.recall.variants import label_of
from benchmarks.recall.writes import Writes

TARGETS = {10_000: (8.0, None), 100_000: (20.0, 60.0)}
"""Milliseconds of p50 and p95, by how many entries are searched."""
TARGET_WITHIN_THOUSAND = 4.0
TARGET_EMBEDDED = 150.0
TARGET_WRITES = 1.0
_BAR = 40


def speed_tables(speeds: Speeds, writes: Sequence[Writes]) -> str:
    """Everything that was seen, as text."""
    parts = []
    if speeds.seen:
        parts += [
            f"{speeds.store}. Searches in everything an agent owns, over HTTP, the question"
            " embedded within the time. Milliseconds, one user at a time.",
            _table([row for speed in speeds.seen for row in _latency_rows(speed)]),
            "Beside it",
            _table([_beside(speed) for speed in speeds.seen]),
            *_notes(speeds),
            "p50 within one agent, by how many entries it has\n" + _growth(speeds.seen),
        ]
    if speeds.embedded:
        parts += [
            "Embedding, in the background of a server that does nothing else; a core is a second"
            " of processor time, of all that the server does",
            _table([_embedded(one) for one in speeds.embedded]),
        ]
    if writes:
        parts += [
            f"{speeds.store}. Creates over {CONNECTIONS} connections, by turns with and without an"
            " embedder",
            _table([_writes(one) for one in writes]),
        ]
    return "\n\n".join(parts)


def speed_document(speeds: Speeds, writes: Sequence[Writes]) -> dict[str, Any]:
    """The figures for programs."""
    return {
        "store": speeds.store,
        "searches": [asdict(one) for one in speeds.seen],
        "embedded": [asdict(one) for one in speeds.embedded],
        "writes": [
            {
                "embedder": one.embedder,
                "ratio": one.ratio,
                "rates": [result.rate for result in one.rounds],
                "rates_without": [result.rate for result in one.without],
            }
            for one in writes
        ],
    }


def _latency_rows(speed: Speed) -> Iterator[dict[str, str]]:
    p50, p95 = TARGETS.get(speed.size, (None, None))
    yield _latency(speed, f"one agent's {speed.size:,}", speed.one, p50, p95)
    yield _latency(speed, "right after a write", speed.after_write, None, None)
    title = f"other agents' {THOUSAND:,} each"
    yield _latency(speed, title, speed.small, TARGET_WITHIN_THOUSAND, None)


def _latency(
    speed: Speed, where: str, seen: Latency, p50: float | None, p95: float | None
) -> dict[str, str]:
    limits = [(seen.p50, p50, "p50"), (seen.p95, p95, "p95")]
    targets = [(value, limit, name) for value, limit, name in limits if limit is not None]
    reached = all(value <= limit for value, limit, _ in targets)
    return {
        "stored": f"{speed.size:,}",
        "embedder": label_of(speed.embedder),
        "searched": where,
        "p50": f"{seen.p50:.1f}",
        "p95": f"{seen.p95:.1f}",
        "p99": f"{seen.p99:.1f}",
        "target": ", ".join(f"{name} <= {limit:g}" for _, limit, name in targets),
        "reached": ("yes" if reached else "no") if targets else "",
    }


def _beside(speed: Speed) -> dict[str, str]:
    return {
        "stored": f"{speed.size:,}",
        "embedder": label_of(speed.embedder),
        f"searches/s, {CLIENTS} clients": f"{speed.rate:,.0f}",
        "first search, s": f"{speed.first:.2f}",
        "entries read/s": f"{speed.size / speed.first:,.0f}",
        "MB before": f"{speed.megabytes_before:,.0f}",
        "MB after": f"{speed.megabytes:,.0f}",
        "vectors": "invented" if speed.invented else "",
    }


def _notes(speeds: Speeds) -> Iterator[str]:
    if any(speed.invented for speed in speeds.seen):
        yield (
            "Where vectors are invented, random ones of length one were written into the store"
            " under the model's id; questions are embedded by the model all the same."
        )


def _growth(seen: Sequence[Speed]) -> str:
    most = max(speed.one.p50 for speed in seen)
    return "\n".join(
        f"{label_of(speed.embedder):>10} {speed.size:>10,}"
        f"  {'█' * max(1, round(_BAR * speed.one.p50 / most)):<{_BAR}}  {speed.one.p50:.1f} ms"
        for speed in sorted(seen, key=lambda one: (one.embedder, one.size))
    )


def _embedded(one: Embedded) -> dict[str, str]:
    per_core = one.texts / one.processor_seconds
    return {
        "embedder": label_of(one.embedder),
        "texts": f"{one.texts:,}",
        "seconds": f"{one.seconds:.1f}",
        "texts/s": f"{one.texts / one.seconds:,.0f}",
        "texts/s a core": f"{per_core:,.0f}",
        "target": f">= {TARGET_EMBEDDED:g}",
        "reached": "yes" if per_core >= TARGET_EMBEDDED else "no",
    }


def _writes(one: Writes) -> dict[str, str]:
    return {
        "embedder": label_of(one.embedder),
        "creates/s": f"{one.rate:,.0f}",
        "without": f"{one.rate_without:,.0f}",
        "ratio": f"{one.ratio:.2f}",
        "ratio by round": " ".join(
            f"{mine.rate / other.rate:.2f}"
            for mine, other in zip(one.rounds, one.without, strict=True)
        ),
        "p99 ms": f"{max(result.p99 for result in one.rounds):.1f}",
        "p99 ms without": f"{max(result.p99 for result in one.without):.1f}",
        "target": f">= {TARGET_WRITES:g}",
    }


def _table(rows: Sequence[dict[str, str]]) -> str:
    # Figures stay as written: tabulate would otherwise take the commas out again.
    return tabulate(rows, headers="keys", tablefmt="simple", disable_numparse=True)
