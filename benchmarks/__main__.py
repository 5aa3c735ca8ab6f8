"""`python -m benchmarks`: measure, print, and say whether the targets were reached."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import NoReturn

from benchmarks.database import Database
from benchmarks.environments import ROOT
from benchmarks.generator import Generator, GeneratorError
from benchmarks.report import document, tables
from benchmarks.results import Results
from benchmarks.rounds import Effort
from benchmarks.run import Run, Wishes
from benchmarks.servers import ServerError, Servers
from benchmarks.targets import TARGET_SIZE, Store
from tests.support.postgres import PostgresError

USUAL_SIZES = (10_000, TARGET_SIZE)
QUICK_SIZES = (10_000,)
USUAL_EFFORT = Effort(rounds=5, read_seconds=1.5, write_seconds=1.0)
QUICK_EFFORT = Effort(rounds=2, read_seconds=0.5, write_seconds=0.5)


def main() -> int:
    """Run the benchmark; 0 when it ran without an error, whatever it found."""
    options = _options()
    # By default these end this process at once and leave the servers behind.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)
    try:
        results = _measure(_wishes(options), options.data)
    except KeyboardInterrupt:
        print("\nStopped; every server has been ended.", file=sys.stderr)
        return 130
    except (ServerError, GeneratorError, PostgresError) as error:
        print(f"\nThe benchmark could not be finished: {error}", file=sys.stderr)
        return 1
    print("\n" + tables(results))
    if options.json:
        options.json.write_text(document(results))
    return 1 if any(results.errors()) else 0


def _measure(wishes: Wishes, parent: Path | None) -> Results:
    with ExitStack() as stack:
        name = stack.enter_context(
            tempfile.TemporaryDirectory(
                prefix="memorywall-bench-", dir=parent, ignore_cleanup_errors=True
            )
        )
        database = None
        if wishes.store is Store.POSTGRES:
            print("Starting PostgreSQL ...", flush=True)
            # Its data goes where temporary files go, if its user may enter that.
            tempfile.tempdir = str(parent) if parent else None
            database = stack.enter_context(Database())
        servers = stack.enter_context(Servers(Path(name)))
        generator = stack.enter_context(Generator())
        try:
            return Run(wishes, Path(name), servers, generator, database).results()
        except GeneratorError as error:
            raise GeneratorError("; ".join([str(error), *servers.fallen()])) from error


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--store",
        type=Store,
        choices=tuple(Store),
        default=Store.SQLITE,
        help="what to measure on; with postgres also the database alone (default: sqlite)",
    )
    parser.add_argument("--quick", action="store_true", help="few, short rounds on a small store")
    parser.add_argument(
        "--sizes",
        type=_sizes,
        help="stored entries to measure at, separated by commas (default: 10000,100000)",
    )
    parser.add_argument(
        "--skip-reference", action="store_true", help="do not install or measure the reference"
    )
    parser.add_argument(
        "--reference-env",
        type=Path,
        default=ROOT / ".bench-env",
        help="virtual environment of the reference server (default: .bench-env)",
    )
    parser.add_argument(
        "--installed-size", action="store_true", help="also install into a fresh environment"
    )
    parser.add_argument("--data", type=Path, help="a folder on the disk to measure on")
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    return parser.parse_args()


def _wishes(options: argparse.Namespace) -> Wishes:
    sizes: tuple[int, ...] = options.sizes or (QUICK_SIZES if options.quick else USUAL_SIZES)
    # The reference server has no such store: what it does on a file says nothing here.
    alone = options.skip_reference or options.store is Store.POSTGRES
    return Wishes(
        store=options.store,
        sizes=sizes,
        headline=TARGET_SIZE if TARGET_SIZE in sizes else sizes[-1],
        effort=QUICK_EFFORT if options.quick else USUAL_EFFORT,
        cold_starts=3 if options.quick else 7,
        reference=None if alone else options.reference_env,
        installed_size=options.installed_size,
    )


def _sizes(text: str) -> tuple[int, ...]:
    sizes = tuple(sorted({int(part) for part in text.replace("_", "").split(",")}))
    if sizes[0] < 1000 or any(size % 1000 for size in sizes):
        raise argparse.ArgumentTypeError("sizes are multiples of 1000")
    return sizes


def _leave(number: int, _: object) -> NoReturn:
    raise SystemExit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
