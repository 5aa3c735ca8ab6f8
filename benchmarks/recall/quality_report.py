"""The tables and the chart about quality."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tabulate import tabulate

from benchmarks.recall.judging import SEED, TITLES, Judgement, difference
from benchmarks.recall.quality import Quality, Series
from benchmarks.recall.variants import label_of

_BAR = 50
_TOP = 100.0


def quality_tables(quality: Quality) -> str:
    """Everything that was seen on one store, as text."""
    parts = [
        f"{quality.data.name}, {quality.store}: {quality.entries:,} entries,"
        f" {len(quality.data.questions)} questions, asked as they are written."
        f" All figures in percent; intervals of 95 % by bootstrap with seed {SEED}.",
        "Over a server, by embedder and mode",
        _table([_row(one.title, one.mean) for one in quality.served]),
        "The same by category",
        _table(_category_rows(quality)),
    ]
    for embedder, whole in quality.whole.items():
        parts += [
            f"{label_of(embedder)}, {whole.mode}, without each signal; in the benchmark's own"
            " process over the store that the server filled, through the application's API",
            _table(_ablation_rows(whole, quality.without[embedder])),
        ]
    took = ", ".join(
        f"{label_of(embedder)} {seconds:.1f} s" for embedder, seconds in quality.seconds.items()
    )
    parts.append(f"From the first entry until everything was stored and embedded: {took}")
    parts.append("R@10\n" + bars([(one.title, 100 * one.mean.recall) for one in _charted(quality)]))
    return "\n\n".join(parts)


def compared(one: Quality, other: Quality) -> str:
    """Returns the difference of two stores in the recall among the best ten."""
    rows = []
    for ours, theirs in zip(one.served, other.served, strict=True):
        rows.append(
            {
                "": ours.title,
                f"R@10 {one.store}": _percent(ours.mean.recall),
                f"R@10 {other.store}": _percent(theirs.mean.recall),
                "difference": str(difference(ours.judgements, theirs.judgements)),
                "questions that differ": sum(
                    old != new for old, new in zip(ours.judgements, theirs.judgements, strict=True)
                ),
            }
        )
    return _table(rows)


def document(quality: Quality) -> dict[str, Any]:
    """The figures for programs."""

    def figures(judgement: Judgement) -> dict[str, float]:
        return dict(zip(TITLES, judgement.figures, strict=True))

    def as_json(series: Series) -> dict[str, Any]:
        return {
            "embedder": series.embedder,
            "mode": series.mode,
            "title": series.title,
            "all": figures(series.mean),
            "categories": {
                title: {"questions": size, **figures(mean)}
                for title, size, mean in quality.by_category(series)
            },
        }

    return {
        "store": quality.store,
        "entries": quality.entries,
        "set": quality.data.name,
        "questions": len(quality.data.questions),
        "served": [as_json(one) for one in quality.served],
        "whole": [as_json(one) for one in quality.whole.values()],
        "without": [as_json(one) for several in quality.without.values() for one in several],
    }


def chart(quality: Quality) -> str:
    """R@10 of everything, as an SVG of bars."""
    rows = [(one.title, 100 * one.mean.recall) for one in _charted(quality)]
    line, left, scale = 22, 260, 4.0
    height = line * len(rows) + 30
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + scale * _TOP + 60:.0f}"'
        f' height="{height}" font-family="sans-serif" font-size="13">',
        f'<text x="{left}" y="16" font-weight="bold">R@10, percent</text>',
    ]
    for number, (title, share) in enumerate(rows):
        y = 30 + line * number
        parts += [
            f'<text x="{left - 8}" y="{y + 13}" text-anchor="end">{title}</text>',
            f'<rect x="{left}" y="{y + 2}" width="{scale * share:.1f}" height="{line - 6}"'
            ' fill="#4878a8"/>',
            f'<text x="{left + scale * share + 6:.1f}" y="{y + 13}">{share:.1f}</text>',
        ]
    return "\n".join([*parts, "</svg>", ""])


def bars(rows: Sequence[tuple[str, float]]) -> str:
    """A bar for each title, out of a hundred."""
    width = max(len(title) for title, _ in rows)
    return "\n".join(
        f"{title:>{width}}  {'█' * round(_BAR * share / _TOP):<{_BAR}}  {share:5.1f}"
        for title, share in rows
    )


def _charted(quality: Quality) -> list[Series]:
    return quality.served


def _row(title: str, mean: Judgement) -> dict[str, str]:
    return {"": title, **dict(zip(TITLES, map(_percent, mean.figures), strict=True))}


def _category_rows(quality: Quality) -> list[dict[str, str]]:
    rows = []
    for series in quality.served:
        for title, size, mean in quality.by_category(series):
            row = _row(series.title, mean)
            rows.append({"": row.pop(""), "category": title, "questions": str(size), **row})
    return rows


def _ablation_rows(whole: Series, without: Sequence[Series]) -> list[dict[str, str]]:
    rows = [{**_row(whole.title, whole.mean), "difference of R@10": ""}]
    for series in without:
        rows.append(
            {
                **_row(series.title, series.mean),
                "difference of R@10": str(difference(whole.judgements, series.judgements)),
            }
        )
    return rows


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _table(rows: Sequence[dict[str, Any]]) -> str:
    # Figures stay as written: tabulate would otherwise round them once more.
    return tabulate(rows, headers="keys", tablefmt="simple", disable_numparse=True)
