"""Cores: how many workers may run side by side here. A container's share of the machine counts, not the machine."""

from __future__ import annotations

import math
import os
from pathlib import Path

QUOTA = Path("/sys/fs/cgroup/cpu.max")  # cgroup v2: "quota period" in microseconds, or "max period"
VARIABLES = ("DPMERF_THREADS", "OMP_NUM_THREADS")


def usable_cores(quota: Path = QUOTA) -> int:
    """What the user says (DPMERF_THREADS, then OMP_NUM_THREADS); else the cores that this process may use at once.

    More workers than a CPU quota allows are stopped together when it is used up, and wait for each other.
    """
    for name in VARIABLES:
        said = os.environ.get(name, "")
        if said.isdecimal() and 1 <= int(said) <= 1024:
            return int(said)
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(allowed, _quota(quota)))


def _quota(path: Path) -> int:
    """Whole cores of the cgroup's quota, rounded up; very many if there is none."""
    try:
        limit, period = path.read_text().split()
        return math.ceil(int(limit) / int(period))
    except (OSError, ValueError, ZeroDivisionError):
        return 1024
