"""`python -m benchmarks.recall`: the quality and the speed of recall."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NoReturn

from benchmarks.database import SETTINGS
from benchmarks.recall.chats import ChatError, DataSet, read_set
from benchmarks.recall.directories import DataDirectories
from benchmarks.recall.plain import measure_plain, plain_table
from benchmarks.recall.quality import Quality, measure_quality
from benchmarks.recall.quality_report import chart, compared, document, quality_tables
from benchmarks.recall.speed import Effort, measure_speed
from benchmarks.recall.speed_report import speed_document, speed_tables
from benchmarks.recall.variants import NONE
from benchmarks.recall.writes import measure_writes
from benchmarks.servers import ServerError, Servers
from benchmarks.targets import Store
from memorywall.records.errors import ConfigurationError
from tests.support.postgres import PostgresError, PostgresServer

EMBEDDERS = ("none", "static", "local")
OWN_DATA = Path(__file__).parent / "data"
"""The data sets that were written for this benchmark."""
QUICK_EFFORT = Effort(requests=60, seconds=1.0)


def main() -> int:
    """Run the benchmark; 0 when it ran without an error, whatever it found."""
    options = _options()
    # By default these end this process at once and leave the servers behind.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)
    try:
        found = _measure(options)
    except KeyboardInterrupt:
        print("\nStopped; every server has been ended.", file=sys.stderr)
        return 130
    except (ChatError, ConfigurationError, ServerError, PostgresError) as error:
        print(f"\nThe benchmark could not be finished: {error}", file=sys.stderr)
        return 1
    if options.json:
        options.json.write_text(json.dumps(found, indent=2))
    return 0


def _measure(options: argparse.Namespace) -> dict[str, Any]:
    with ExitStack() as stack:
        name = stack.enter_context(
            tempfile.TemporaryDirectory(
                prefix="memorywall-bench-", dir=options.directory, ignore_cleanup_errors=True
            )
        )
        servers = stack.enter_context(Servers(Path(name)))
        found: dict[str, Any] = {}
        if options.data:
            found["quality"] = _measure_quality(options, servers, Path(name), stack)
        if options.sizes or options.writes:
            found["speed"] = _measure_speed(options, servers, Path(name))
        return found


def _measure_quality(
    options: argparse.Namespace, servers: Servers, directory: Path, stack: ExitStack
) -> list[dict[str, Any]]:
    sets = [read_set(Path(file)) for files in options.data for file in files.split(",") if file]
    questions_file = options.questions and stack.enter_context(options.questions.open("w"))

    def record(question: dict[str, Any]) -> None:
        questions_file.write(json.dumps(question) + "\n")

    def measured(
        data: DataSet, store: Store, places: DataDirectories, *, ablations: bool
    ) -> Quality:
        quality = measure_quality(
            data,
            options.embedders,
            servers,
            places,
            store.label,
            ablations=ablations,
            say=_say,
            record=record if questions_file else None,
        )
        print("\n" + quality_tables(quality), flush=True)
        return quality

    ablations = not options.skip_ablations
    here = DataDirectories(directory)
    found = [measured(data, Store.SQLITE, here, ablations=ablations) for data in sets]
    for embedder in options.embedders:
        if embedder != NONE:
            _say(f"plain methods with {embedder}")
            plain = [measure_plain(data, embedder, options.vectors) for data in sets]
            print("\n" + plain_table(found, plain, embedder), flush=True)
    if options.store is Store.POSTGRES:
        _say("starting PostgreSQL")
        with PostgresServer(durable=True, settings=SETTINGS) as postgres:
            directories = DataDirectories(directory / "postgres", postgres)
            for one in list(found):
                other = measured(one.data, Store.POSTGRES, directories, ablations=False)
                print("\n" + compared(one, other), flush=True)
                found.append(other)
    if options.chart:
        options.chart.write_text(chart(found[0]))
    return [document(one) for one in found]


def _measure_speed(
    options: argparse.Namespace, servers: Servers, directory: Path
) -> dict[str, Any]:
    with ExitStack() as stack:
        places = DataDirectories(directory / "speed")
        if options.store is Store.POSTGRES:
            _say("starting PostgreSQL")
            postgres = stack.enter_context(PostgresServer(durable=True, settings=SETTINGS))
            places = DataDirectories(directory / "speed", postgres)
        speeds = measure_speed(
            options.sizes,
            options.embedders,
            servers,
            places,
            options.store.label,
            QUICK_EFFORT if options.quick else Effort(),
            embed_all=options.embed_all,
            say=_say,
        )
        writes = []
        if options.writes:
            _say("creating entries with and without an embedder")
            rounds, seconds = (2, 1.0) if options.quick else (6, 3.0)
            writes = measure_writes(options.embedders, servers, places, rounds, seconds)
    print("\n" + speed_tables(speeds, writes), flush=True)
    return speed_document(speeds, writes)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recall", description=__doc__)
    parser.add_argument(
        "data",
        nargs="*",
        help="data sets with questions, separated by spaces or commas (default: those that"
        " are part of this benchmark)",
    )
    parser.add_argument(
        "--store",
        type=Store,
        choices=tuple(Store),
        default=Store.SQLITE,
        help="with postgres, quality is measured on both and compared (default: sqlite)",
    )
    parser.add_argument(
        "--embedders",
        type=lambda text: tuple(text.split(",")),
        default=EMBEDDERS,
        help="separated by commas (default: none,static,local)",
    )
    parser.add_argument(
        "--questions", type=Path, help="also write each question and the signals of its hits here"
    )
    parser.add_argument(
        "--vectors",
        type=Path,
        default=Path.home() / ".cache" / "memorywall" / "benchmark",
        help="a folder that keeps the vectors of plain methods (default: in the user's cache)",
    )
    parser.add_argument("--skip-ablations", action="store_true", help="only the whole pipeline")
    parser.add_argument(
        "--sizes",
        type=_sizes,
        default=(),
        help="also measure speed with so many entries of one agent, separated by commas",
    )
    parser.add_argument(
        "--writes", action="store_true", help="also measure creates with and without an embedder"
    )
    parser.add_argument(
        "--embed-all", action="store_true", help="no invented vectors in large stores"
    )
    parser.add_argument("--quick", action="store_true", help="speed from few requests")
    parser.add_argument("--directory", type=Path, help="a folder on the disk to measure on")
    parser.add_argument("--chart", type=Path, help="also draw the quality as an SVG into this file")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    if not options.data and not options.sizes and not options.writes:
        options.data = [str(file) for file in sorted(OWN_DATA.glob("*.json"))]
    return options


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(sorted({int(part) for part in text.replace("_", "").split(",")}))


def _say(what: str) -> None:
    print(f"{what} ...", file=sys.stderr, flush=True)


def _leave(number: int, _: object) -> NoReturn:
    raise SystemExit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
