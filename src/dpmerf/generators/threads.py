"""Threads: the mathematics runs in one, unless the user says otherwise.

Two threads gain little here and wait for each other on a busy machine (ten times as long and more); sums in several
threads differ in their last bits, so that a seed would not give the same rows everywhere; and a process that has
started OpenMP's threads and then forks hangs in the child.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

import torch

VARIABLE = "DPMERF_THREADS"
P = ParamSpec("P")
R = TypeVar("R")


@contextmanager
def few_threads() -> Iterator[None]:
    """As many threads as DPMERF_THREADS names, else one; then as many as before."""
    said = os.environ.get(VARIABLE, "1")
    before = torch.get_num_threads()
    torch.set_num_threads(int(said) if said.isdecimal() and 1 <= int(said) <= 1024 else 1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def in_few_threads(action: Callable[P, R]) -> Callable[P, R]:
    """The same function, run with few threads."""

    @wraps(action)
    def run(*arguments: P.args, **named: P.kwargs) -> R:
        with few_threads():
            return action(*arguments, **named)

    return run
