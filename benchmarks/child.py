"""Child: run one method in a process of its own, so that its CPU time and its peak memory are its own."""

from __future__ import annotations

import multiprocessing
import resource
import time
import traceback
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import final

import pyarrow as pa

from benchmarks.methods import Task


@final
@dataclass(frozen=True)
class Outcome:
    """Synthetic rows and what they cost."""

    rows: pa.Table
    cpu_seconds: float
    wall_seconds: float
    peak_mb: float  # of the whole process, libraries included

    def cost(self) -> dict[str, float]:
        return {
            "cpu_seconds": round(self.cpu_seconds, 1),
            "wall_seconds": round(self.wall_seconds, 1),
            "peak_mb": round(self.peak_mb, 0),
        }


def run(method: str, task: Task) -> Outcome:
    """The outcome of a method of `methods.METHODS` or `baselines.BASELINES`; an error there is raised here."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(theirs, method, task))
    process.start()
    theirs.close()
    try:
        answer = ours.recv()
    except EOFError:
        answer = "the process ended without an answer: it probably ran out of memory"
    process.join()
    if isinstance(answer, str):
        raise RuntimeError(answer)
    return answer


def _work(pipe: Connection, method: str, task: Task) -> None:
    import torch

    from benchmarks.baselines import BASELINES
    from benchmarks.methods import METHODS

    torch.set_num_threads(1)
    start, before = time.monotonic(), _cpu()
    try:
        rows = {**METHODS, **BASELINES}[method](task)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        pipe.send(Outcome(rows, _cpu() - before, time.monotonic() - start, peak))
    except Exception:
        pipe.send(traceback.format_exc()[-2000:])
    finally:
        pipe.close()


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
