"""The tables for people and the JSON document for programs."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict
from statistics import median
from typing import Any

from tabulate import tabulate

from benchmarks.plan import CONNECTIONS, Operation
from benchmarks.results import ONE_AGENT, RAW, REFERENCE, TWO_SERVERS, Results, size_name
from benchmarks.rounds import Series
from benchmarks.targets import (
    COLD_START_SECONDS,
    IDLE_MEGABYTES,
    INSTALLED_MEGABYTES,
    LEAST_SHARE_LEFT,
    TARGET_SIZE,
    TARGETS,
    Store,
)
from benchmarks.work import CONTENDED_KEYS, CONTENDERS, ENTRIES_PER_TASK

Row = dict[str, str]
NOT_AVAILABLE = "n/a"
SUFFIXES = {ONE_AGENT: ", one agent owns all", TWO_SERVERS: ", 2 servers on one database"}


def tables(results: Results) -> str:
    """Everything, as text."""
    parts = [
        results.setting.text(),
        f"Operations, {size_name(results.setting.headline)} stored",
        _table(operation_rows(results)),
    ]
    if results.direct:
        parts += ["PostgreSQL without a server before it", _table(direct_rows(results))]
    parts += [
        "Footprint",
        _table(footprint_rows(results)),
    ]
    if len(results.setting.sizes) > 1:
        parts += ["Rate by stored entries", _table(size_rows(results))]
    parts += ["Work", _table(work_rows(results))]
    parts += ["Entries that match a two-tag query", _table(match_rows(results))]
    parts += results.notes
    if results.setting.headline != TARGET_SIZE:
        parts.append(f"The targets hold for {size_name(TARGET_SIZE)}; this run had another size.")
    errors = list(results.errors())
    if errors:
        parts.append("THIS RUN HAD ERRORS. Its figures say nothing.\n" + "\n".join(errors))
    return "\n\n".join(parts)


def operation_rows(results: Results) -> list[Row]:
    """The main table: every operation beside the ceiling and the reference server."""
    rows = []
    for operation, lanes in results.measured.items():
        raw, reference = lanes[RAW], lanes.get(REFERENCE)
        target = TARGETS[results.setting.store].get(operation)
        for name in results.headline_lanes(operation):
            ours = lanes[name]
            times = ours.times(reference) if reference else None
            row = {
                "operation": operation.label + SUFFIXES.get(name, ""),
                "unit": operation.unit,
                "rate": _rate(ours),
                "p50 ms": f"{ours.p50:.2f}",
                "p99 ms": f"{ours.p99:.2f}",
                "raw rate": _rate(raw),
                "ratio to raw": f"{ours.times(raw):.2f}",
            }
            if results.setting.store is Store.SQLITE:
                row["reference rate"] = _rate(reference) if reference else NOT_AVAILABLE
                row["times the reference"] = f"{times:.1f}" if times else NOT_AVAILABLE
            row["target"] = target.text() if target else ""
            row["reached"] = target.verdict(ours.rate, ours.p99, times) if target else ""
            rows.append(row)
    return rows


def direct_rows(results: Results) -> list[Row]:
    """The rates of the database alone, and the share of them that HTTP and Python leave."""
    headline = size_name(results.setting.headline)
    rows = []
    for lane in results.direct:
        lanes = results.measured[lane.operation]
        alone = lanes[lane.name]
        rows.append(
            {
                "operation": lane.operation.label,
                "by asyncpg alone": lane.name,
                "unit": lane.operation.unit,
                "rate": _rate(alone),
                "p50 ms of a transaction": f"{alone.p50:.2f}",
                "p99 ms": f"{alone.p99:.2f}",
                "memorywall's share of it": f"{lanes[headline].times(alone):.2f}",
            }
        )
    return rows


def footprint_rows(results: Results) -> list[Row]:
    """Start, memory and size of each kind of server."""
    ours = "memorywall"
    fastest = {kind: start.fastest for kind, start in results.starts.items()}
    medians = {kind: start.median for kind, start in results.starts.items()}
    idle = {kind: start.idle_megabytes for kind, start in results.starts.items()}
    installed = results.installed_megabytes
    sizes = {} if installed is None else {ours: installed}
    rows = [
        _footprint("cold start, fastest (s)", fastest, "{:.3f}", None),
        _footprint("cold start, median (s)", medians, "{:.3f}", COLD_START_SECONDS),
        _footprint("RSS idle (MB)", idle, "{:.1f}", IDLE_MEGABYTES),
        _footprint("RSS after the load (MB)", results.loaded_megabytes, "{:.1f}", None),
        _footprint("installed size (MB)", sizes, "{:.1f}", INSTALLED_MEGABYTES),
    ]
    if results.setting.store is Store.SQLITE:
        return rows
    # The targets are those of a server that brings its store along.
    return [{name: row[name] for name in ("figure", ours, RAW)} for row in rows]


def size_rows(results: Results) -> list[Row]:
    """The rates by the size of the store."""
    smallest, *larger = results.setting.sizes
    rows = []
    for operation, lanes in results.measured.items():
        base = lanes.get(size_name(smallest))
        if base is None or operation is Operation.BATCH:
            continue
        row = {"operation": operation.label, size_name(smallest): _rate(base)}
        for size in larger:
            series = lanes[size_name(size)]
            row[size_name(size)] = _rate(series)
            row[f"{size:,} / {smallest:,}"] = f"{series.times(base):.2f}"
        left = lanes[size_name(larger[-1])].times(base)
        row["target"] = f">= {LEAST_SHARE_LEFT:.2f} at the last"
        row["reached"] = "yes" if left >= LEAST_SHARE_LEFT else "no"
        rows.append(row)
    grown: Row = {"operation": "stored after the creates"}
    for size in results.setting.sizes:
        grown[size_name(size)] = f"{size + results.created[size_name(size)]:,}"
    return [*rows, grown]


def work_rows(results: Results) -> list[Row]:
    """Claims, completion of tasks, resumption."""
    work = results.work
    return [
        _row(
            f"claims taken and given back, {CONTENDERS} agents for {CONTENDED_KEYS} keys",
            f"{work.claims:,.0f}/s",
            f"{work.refusals:,.0f}/s refused, p99 {work.claim_p99:.1f} ms",
        ),
        _row("claims taken and given back, no two for one key", f"{work.free_claims:,.0f}/s", ""),
        _row(
            f"completing a task, {ENTRIES_PER_TASK} entries archived",
            f"{work.completion_p50:.1f} ms",
            f"p99 {work.completion_p99:.1f} ms",
        ),
        _row(
            "resumption, from the reassignment to the next checkpoint",
            f"{work.resumption_p50:.1f} ms",
            f"p99 {work.resumption_p99:.1f} ms",
        ),
    ]


def _row(figure: str, seen: str, besides: str) -> Row:
    return {"figure": figure, "seen": seen, "besides": besides}


def match_rows(results: Results) -> list[Row]:
    """The numbers of matches of the sampled queries, which show that the queries find entries."""
    return [
        {
            "store": name,
            "queries sampled": str(len(counts)),
            "least": str(min(counts)),
            "median": f"{median(counts):g}",
            "most": str(max(counts)),
        }
        for name, counts in results.matches.items()
    ]


def document(results: Results) -> str:
    """The same figures as JSON, with those of every single round."""
    setting = results.setting
    body: dict[str, Any] = {
        "setting": {
            "python": platform.python_version(),
            "machine": platform.machine(),
            "cores": os.cpu_count(),
            "connections": CONNECTIONS,
            **asdict(setting),
        },
        "operations": operation_rows(results),
        "database_alone": direct_rows(results),
        "footprint": footprint_rows(results),
        "by_size": size_rows(results) if len(setting.sizes) > 1 else [],
        "matches": match_rows(results),
        "work": asdict(results.work),
        "measured": {
            operation.value: {name: _plain(series) for name, series in lanes.items()}
            for operation, lanes in results.measured.items()
        },
        "notes": results.notes,
        "errors": list(results.errors()),
    }
    return json.dumps(body, indent=2) + "\n"


def _plain(series: Series) -> dict[str, Any]:
    return {
        "rate": series.rate,
        "p50_ms": series.p50,
        "p99_ms": series.p99,
        "errors": series.errors,
        "turns": [asdict(turn) for turn in series.turns],
    }


def _footprint(title: str, figures: dict[str, float], form: str, limit: float | None) -> Row:
    shown = {kind: form.format(figure) for kind, figure in figures.items()}
    ours = figures.get("memorywall")
    reached = ""
    if limit is not None:
        reached = "not measured" if ours is None else "yes" if ours < limit else "no"
    return {
        "figure": title,
        "memorywall": shown.get("memorywall", NOT_AVAILABLE),
        RAW: shown.get(RAW, NOT_AVAILABLE),
        REFERENCE: shown.get(REFERENCE, NOT_AVAILABLE),
        "target": "" if limit is None else f"< {limit:g}",
        "reached": reached,
    }


def _rate(series: Series) -> str:
    return f"{series.rate:,.0f}"


def _table(rows: list[Row]) -> str:
    # Figures stay as written: tabulate would otherwise take the commas out again.
    return tabulate(rows, headers="keys", tablefmt="simple", disable_numparse=True)
