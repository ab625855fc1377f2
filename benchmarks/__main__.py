"""python -m benchmarks list | run NAME | table"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks import pages
from benchmarks.data import MissingData
from benchmarks.registry import Run, experiments
from benchmarks.store import RESULTS, Store


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("list", help="every experiment and what it costs")
    verbs.add_parser("table", help="regenerate the tables and figures of the pages from the stored results")
    run = verbs.add_parser("run", help="run an experiment, or go on with it")
    run.add_argument("name")
    run.add_argument("--quick", action="store_true", help="few rows and steps, within ten minutes; stored apart")
    run.add_argument("--data-dir", type=Path, help="where the data sets are (else DPMERF_DATA, ../shared/data)")
    run.add_argument("--runs", type=int, default=1, help="repetitions with other seeds (the paper: 5)")
    run.add_argument(
        "--only",
        action="append",
        default=[],
        help="only cells named so (A,B: one of these); repeatable",
    )
    run.add_argument("--redo", action="store_true", help="compute again what is stored")
    options = parser.parse_args(arguments)
    known = experiments()
    if options.verb == "list":
        for experiment in known.values():
            print(f"{experiment.name:14} {experiment.what}\n{'':14} cost: {experiment.cost}")
        return 0
    if options.verb == "table":
        pages.write(known, Store())
        return 0
    if options.name not in known:
        print(f"there is no experiment '{options.name}'. Choose one of {', '.join(known)}", file=sys.stderr)
        return 2
    store = Store(RESULTS / "quick" if options.quick else RESULTS, options.redo)
    this = Run(store, options.data_dir, options.quick, 1 if options.quick else options.runs, tuple(options.only))
    try:
        known[options.name].run(this)
    except MissingData as problem:
        print(problem, file=sys.stderr)
        return 1
    if this.only and not any(this.asked.values()):
        names = f" Their names: {', '.join(list(this.asked)[:3])}, …" if this.asked else ""
        print(f"no cell of '{options.name}' is named {' and '.join(this.only)}.{names}", file=sys.stderr)
        return 2
    print(known[options.name].page(store))
    return 0


if __name__ == "__main__":
    sys.exit(main())
