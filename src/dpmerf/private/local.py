"""Local: sums over all rows in one process. One thread reads, several encode and embed; memory stays constant.

Every worker has sums of its own, and integers add up to the same total whoever adds them.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TypeVar

import pyarrow as pa
import torch
from torch import Tensor

from dpmerf.encoding.codec import Codec
from dpmerf.errors import DataError
from dpmerf.features.algebra import FeatureMap
from dpmerf.plan import Plan, View
from dpmerf.plan.embedding import codec_of
from dpmerf.plan.queries import BrokenRelations
from dpmerf.private.contribute import Sums
from dpmerf.private.cores import usable_cores
from dpmerf.private.persons import Chosen, PersonCap, tags
from dpmerf.progress import Advance, Bars
from dpmerf.sources.rows import Rows

MOST_BYTES = 2**30  # for the sums of all workers together
PATIENCE = 0.1  # seconds between looks at whether another thread failed
T = TypeVar("T")


def sum_locally(rows: Rows, plan: Plan, phi: FeatureMap, view: View, bars: Bars, what: str) -> tuple[Tensor, int]:
    """Σφ over all rows, and their number. As many workers as there are cores to use (see `usable_cores`)."""
    workers = max(1, min(usable_cores(), MOST_BYTES // (8 * phi.dim)))
    codec = codec_of(plan, phi)
    chosen = _choose(rows, plan, codec, bars, what, workers) if plan.unit.person is not None else None
    read: list[int] = []  # rows of each batch

    def adder(sums: Sums) -> Callable[[pa.RecordBatch], None]:
        def add(table: pa.RecordBatch) -> None:
            read.append(table.num_rows)
            batch = codec.encode(table)
            if chosen is not None:
                batch = batch.rows(chosen.take(tags(table.column(plan.unit.person), batch, chosen.key)))
            sums.add(view(batch))

        return add

    parts = [Sums(phi) for _ in range(workers)]
    with _bar(rows, plan, bars, what) as advance:
        spread(rows.batches(columns_of(plan)), [adder(sums) for sums in parts], lambda table: advance(table.num_rows))
    if chosen is not None and sum(read) != chosen.seen:  # rows that the cap never saw would count in full
        raise DataError("the data changed while it was read: release a copy that nobody writes to")
    whole = parts[0]
    for part in parts[1:]:
        whole.merge(part.total(), part.rows)
    return whole.total(), whole.rows


def columns_of(plan: Plan) -> list[str]:
    """The columns that a release reads, and no other. To see what breaks a relation takes computed columns, too."""
    names = plan.schema.learned if plan.has(BrokenRelations) else plan.schema.needed
    return [*names, *([plan.unit.person] if plan.unit.person and plan.unit.person not in names else [])]


def _choose(rows: Rows, plan: Plan, codec: Codec, bars: Bars, what: str, workers: int) -> Chosen:
    """The first pass, which only looks whose rows are too many."""
    cap = PersonCap(plan.unit.max_rows)

    def see(table: pa.RecordBatch) -> None:
        cap.see(tags(table.column(plan.unit.person), codec.encode(table), cap.key))

    with _bar(rows, plan, bars, what.replace("reading", "persons")) as advance:
        spread(rows.batches(columns_of(plan)), [see] * workers, lambda table: advance(table.num_rows))
    return cap.chosen()


def _bar(rows: Rows, plan: Plan, bars: Bars, what: str) -> AbstractContextManager[Advance]:
    """Rows, rows per second and time left where the number of rows is public; the time alone where it is not."""
    public = plan.unit.rows_public
    return bars.task(what, total=rows.stored_count if public else None, counted="rows" if public else "")


def spread(source: Iterator[T], works: Sequence[Callable[[T], None]], done: Callable[[T], object]) -> None:
    """Hand every item to one of the works, each in a thread of its own; the source is read in one more.

    A few items wait in between, no more. The first error of any thread stops all and is raised here; so does Ctrl-C.
    """
    waiting: queue.Queue[T | None] = queue.Queue(maxsize=len(works) + 1)
    errors: list[BaseException] = []
    stop = threading.Event()

    def guarded(action: Callable[[], None]) -> Callable[[], None]:
        def run() -> None:
            try:
                torch.set_num_threads(1)  # the works run side by side; none of them splits further
                action()
            except BaseException as error:
                errors.append(error)
                stop.set()

        return run

    def read() -> None:
        for item in source:
            if not _put(waiting, item, stop):
                return
        for _ in works:
            _put(waiting, None, stop)

    def working(work: Callable[[T], None]) -> Callable[[], None]:
        def run() -> None:
            while not stop.is_set():
                try:
                    item = waiting.get(timeout=PATIENCE)
                except queue.Empty:
                    continue
                if item is None:
                    return
                work(item)
                done(item)

        return run

    threads = [threading.Thread(target=guarded(action), daemon=True) for action in (read, *map(working, works))]
    before = torch.get_num_threads()
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:  # also when Ctrl-C interrupts the wait: a read that hangs is not waited for, and what it gives is dropped
        stop.set()
        for thread in threads:
            if thread.ident is not None:
                thread.join(timeout=10 * PATIENCE)
        torch.set_num_threads(before)
    if errors:
        raise errors[0]


def _put(waiting: queue.Queue[T | None], item: T | None, stop: threading.Event) -> bool:
    while not stop.is_set():
        try:
            waiting.put(item, timeout=PATIENCE)
            return True
        except queue.Full:
            continue
    return False
