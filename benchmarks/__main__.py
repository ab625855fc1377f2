"""python -m benchmarks list | run NAME|all | left | bring FOLDER | table"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks import everything, pages
from benchmarks.bring import bring
from benchmarks.data import MissingData
from benchmarks.registry import Experiment, Run, experiments
from benchmarks.store import RESULTS, Store


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("list", help="every experiment and what it costs")
    verbs.add_parser("table", help="regenerate the tables and figures of the pages from the stored results")
    run = verbs.add_parser("run", help="run an experiment, or all, or go on with it")
    run.add_argument("name", help="an experiment, or `all`")
    run.add_argument("--quick", action="store_true", help="few rows and steps, within ten minutes; stored apart")
    run.add_argument("--against", metavar="COMMIT", help="speed: the older code that is run beside the present one")
    left = verbs.add_parser("left", help="what `run all` would do, and how many hours it would take; nothing is run")
    for verb in (run, left):
        verb.add_argument("--data-dir", type=Path, help="where the data sets are (else DPMERF_DATA, ../shared/data)")
        verb.add_argument("--runs", type=int, help="repetitions with other seeds (default: 1; `all`: as on the page)")
        verb.add_argument("--redo", action="store_true", help="compute again what is stored")
    other = verbs.add_parser("bring", help="bring in the results of another folder")
    other.add_argument("folder", type=Path)
    other.add_argument("--replace", action="store_true", help="take its cells where they differ from those here, too")
    for verb in (run, left, other):
        verb.add_argument(
            "--only", action="append", default=[], help="only cells named so (A,B: one of these); repeatable"
        )
    options = parser.parse_args(arguments)
    known = experiments()
    if options.verb == "list":
        for experiment in known.values():
            print(f"{experiment.name:14} {experiment.what}\n{'':14} cost: {experiment.cost}")
        return 0
    if options.verb == "table":
        for name in Store().experiments():
            Store().tidy(name)
        pages.write(known, Store())
        return 0
    if options.verb == "bring":
        if not options.folder.is_dir():
            print(f"{options.folder} is not a folder of results", file=sys.stderr)
            return 2
        came = bring(options.folder, Store(), Run(Store(), None, only=tuple(options.only)).wants, options.replace)
        print("\n".join([*came, f"{len(came)} came"]))
        return 0
    if options.verb == "left" or options.name == "all":
        return _all(known, options)
    if options.name not in known:
        print(f"there is no experiment '{options.name}'. Choose one of {', '.join(known)}", file=sys.stderr)
        return 2
    store = Store(RESULTS / "quick" if options.quick else RESULTS, options.redo)
    runs = 1 if options.quick else options.runs or 1
    this = Run(store, options.data_dir, options.quick, runs, tuple(options.only), options.against)
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


def _all(known: dict[str, Experiment], options: argparse.Namespace) -> int:
    quick = options.verb == "run" and options.quick
    store = Store(RESULTS / "quick" if quick else RESULTS, options.redo)

    def prepare(experiment: Experiment) -> Run:
        runs = 1 if quick else options.runs or experiment.runs
        return Run(store, options.data_dir, quick, runs, tuple(options.only))

    try:
        everything.run_all(known, prepare, dry=options.verb == "left")
    except MissingData as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("stopped: finished cells are stored, and the same command goes on from there", file=sys.stderr)
        sys.exit(130)
