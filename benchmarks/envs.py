"""Environments: each peer gets its own, made once under ~/.cache/dpmerf-bench, so that nothing here depends on it."""

from __future__ import annotations

import hashlib
import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path


class PeerFailed(Exception):
    """A peer could not be installed or did not finish; the message is the end of what it said."""


def folder() -> Path:
    named = os.environ.get("DPMERF_BENCH_ENVS")
    return Path(named) if named else Path.home() / ".cache" / "dpmerf-bench"


def python(name: str, requirements: tuple[str, ...], without: tuple[str, ...] = ()) -> Path:
    """The interpreter of an environment with these packages and `without` others that they bring and do not need."""
    stamp = hashlib.sha256(" ".join(requirements).encode()).hexdigest()[:8]
    place = folder() / f"{name}-{stamp}"
    done = place / ".installed"
    if not done.exists():
        print(f"making the environment {place} ({', '.join(requirements)}) …", file=sys.stderr, flush=True)
        shutil.rmtree(place, ignore_errors=True)
        place.parent.mkdir(parents=True, exist_ok=True)
        run([sys.executable, "-m", "venv", str(place)])
        run([str(place / "bin" / "python"), "-m", "pip", "install", "-q", *requirements])
        if without:
            run([str(place / "bin" / "python"), "-m", "pip", "uninstall", "-q", "-y", *without])
        done.write_text("\n".join(requirements) + "\n", encoding="utf-8")
    return place / "bin" / "python"


def run(command: list[str], seconds: float | None = None) -> str:
    """The output of a command; its failure as PeerFailed. `seconds` is of CPU time: other load does not count."""
    one_thread = {k: "1" for k in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")}

    def limit() -> None:
        if seconds is not None:
            resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 5))

    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, **one_thread}, check=False, preexec_fn=limit
    )
    if done.returncode == -signal.SIGXCPU:
        raise PeerFailed(f"not finished after {seconds:.0f} s of CPU time, the limit")
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()
        raise PeerFailed(f"exit code {done.returncode}: {said[-1500:]}")
    return done.stdout
