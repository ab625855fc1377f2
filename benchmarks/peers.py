"""Peers: the tools that a user would pick instead, on the same rows, with the same public facts, ε and δ."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, final

import numpy as np
import pandas as pd
import pyarrow as pa
import torch

from benchmarks import child, envs, scoring
from benchmarks.data import SETS
from benchmarks.methods import Task
from benchmarks.peers_page import page
from benchmarks.protocols import Split, split
from benchmarks.registry import Experiment, Run
from dpmerf.accounting.unit import Unit
from dpmerf.encoding.codec import Batch, Codec

DELTA = 1e-5
ON = (
    ("adult", 1.0),
    ("covtype", 1.0),
    ("credit", 1.0),
    ("intrusion", 1.0),
    ("census", 1.0),
    ("adult", 0.2),
    ("adult", 10.0),
)
OURS = {"default": Unit(), "add-remove": Unit(neighbours="add-remove")}  # the latter protects what the peers protect
SECONDS = 3600.0  # of CPU time; then a peer counts as not finished
QUICK_SECONDS = 180.0  # compiling takes some of them a minute
DAY = 24 * SECONDS  # for AIM with no limit of its own rounds and model
SCRIPTS = Path(__file__).parent / "peer_scripts"
DPMM = ("dpmm==0.1.9",)
MBI = ("mbi==2.0.0", "jax==0.10.2", "pandas")
OPENDP = ("opendp[mbi]==0.16.0", "jax==0.7.2", "pandas")  # which it imports and does not declare
MOSTLYAI = ("mostlyai-engine==2.7.3",)
SMARTNOISE = ("smartnoise-synth==1.0.8", "packaging")  # which it imports and does not declare


@final
@dataclass(frozen=True)
class Peer:
    """A method of a tool, and what was reduced so that it finishes on one core."""

    tool: str
    method: str
    requirements: tuple[str, ...]
    options: Callable[[int], dict[str, Any]] = lambda columns: {}
    quick: dict[str, Any] = field(default_factory=dict)  # in place of `options` with --quick
    without: tuple[str, ...] = ()  # packages that come with them, are not needed and do not fit a CPU's torch
    seconds: float = SECONDS


def _quick(**more: Any) -> dict[str, Any]:
    return {"max_model_size": 1, "gen_kwargs": {"n_iters": 50, **more}}


def _dpmm_aim(columns: int) -> dict[str, Any]:
    return {"max_model_size": 5, "gen_kwargs": {"rounds": _rounds(columns)}}


def _aim(columns: int) -> dict[str, Any]:
    return {"max_model_size": 5, "rounds": _rounds(columns)}


def _opendp_aim(columns: int) -> dict[str, Any]:
    return {"max_size": 5.0, "rounds": _rounds(columns)}


def _rounds(columns: int) -> int:
    """AIM without limits takes many hours: these rounds and a model of 5 MB keep most of its quality."""
    return max(45, 3 * columns)


PEERS = {
    "aim": Peer("dpmm", "aim", DPMM, _dpmm_aim, quick=_quick(rounds=5)),
    "mst": Peer("dpmm", "mst", DPMM, quick=_quick()),
    "privbayes": Peer("dpmm", "privbayes", DPMM, quick=_quick()),
    "mbi-mst": Peer("mbi", "mst", MBI, quick={"iters": 50}),
    "mbi-aim": Peer("mbi", "aim", MBI, _aim, quick={"max_model_size": 1, "rounds": 16, "degree": 2, "iters": 50}),
    "opendp-mst": Peer("opendp", "mst", OPENDP),
    "opendp-aim": Peer("opendp", "aim", OPENDP, _opendp_aim, quick={"max_size": 1.0, "rounds": 3, "queries": 2}),
    "mostlyai": Peer("mostlyai", "argn", MOSTLYAI, quick={"max_epochs": 1}, without=("torchvision", "torchaudio")),
    "aim-defaults": Peer("dpmm", "aim", DPMM, quick=_quick(rounds=5), seconds=DAY),
    "smartnoise-mst": Peer("smartnoise", "mst", SMARTNOISE),
    "smartnoise-aim": Peer("smartnoise", "aim", SMARTNOISE, _aim, quick={"max_model_size": 1, "rounds": 3}),
    "dp-ctgan": Peer("smartnoise", "dpctgan", SMARTNOISE, quick={"epochs": 2}),
    "pate-ctgan": Peer("smartnoise", "patectgan", SMARTNOISE, quick={"epochs": 2}),
}


def run(this: Run) -> None:
    for name, epsilon in ON[:1] if this.quick else ON:
        for repeat in range(1, this.runs + 1):
            for method in ("real", *OURS, *PEERS):
                key = f"peers/{name}/{epsilon:g}/{method}/{repeat}"
                if this.wants(f"/{key}/"):
                    this.store.cell(key, partial(cell, this, name, epsilon, method, repeat))


def cell(this: Run, name: str, epsilon: float, method: str, repeat: int) -> dict[str, Any]:
    same = f"table1/honest/{name}/{method}/{repeat}"
    if epsilon == 1.0 and not this.quick and (known := this.store.read(same)) and "utility" in known:
        return {**known, "same_as": same}
    rows = split(SETS[name], "honest", repeat, this.data_dir, this.quick)
    cost: dict[str, float] = {}
    options: dict[str, Any] = {}
    synthetic = rows.train
    if method in PEERS:
        peer = PEERS[method]
        options = peer.quick if this.quick else peer.options(len(rows.schema.learned))
        synthetic, cost = run_peer(peer, options, rows, epsilon, repeat, QUICK_SECONDS if this.quick else peer.seconds)
    elif method in OURS:
        task = Task(rows.train, rows.schema, epsilon, DELTA, repeat, this.quick, OURS[method])
        outcome = child.run("default", task)
        synthetic, cost = outcome.rows, outcome.cost()
    utility = scoring.utility(synthetic, rows, repeat, this.quick)
    reduced = {"options": options} if options else {}
    return {
        "train_rows": rows.train.num_rows,
        **reduced,
        **cost,
        "utility": utility,
        **scoring.distances(synthetic, rows),
    }


def run_peer(
    peer: Peer, options: dict[str, Any], rows: Split, epsilon: float, seed: int, seconds: float
) -> tuple[pa.Table, dict[str, float]]:
    """Hand the rows over as codes and as numbers in [0, 1], and read the answer back."""
    codec = Codec(rows.schema)
    frame, levels = flat(codec.encode(rows.train), codec)
    task = {
        "method": peer.method,
        "options": options,
        "levels": levels,
        "epsilon": epsilon,
        "delta": DELTA,
        "seed": seed,
    }
    place = answer(peer, json.dumps(task), frame.to_csv(index=False), seconds)
    synthetic = pd.read_csv(place / "synthetic.csv")
    return codec.decode(unflat(synthetic, codec)), json.loads((place / "cost.json").read_text(encoding="utf-8"))


def answer(peer: Peer, task: str, rows: str, seconds: float) -> Path:
    """A folder with the peer's rows and their cost. Kept, so that scoring anew does not take its hours again."""
    script = SCRIPTS / f"{peer.tool}_peer.py"
    asked = "\n".join((*peer.requirements, script.read_text(encoding="utf-8"), task, rows))
    place = envs.folder() / "answers" / hashlib.sha256(asked.encode()).hexdigest()[:16]
    if not (place / "cost.json").exists():
        with tempfile.TemporaryDirectory(prefix="dpmerf-peer-") as temporary:
            made = Path(temporary)
            (made / "rows.csv").write_text(rows, encoding="utf-8")
            (made / "task.json").write_text(task, encoding="utf-8")
            envs.run([str(envs.python(peer.tool, peer.requirements, peer.without)), str(script), temporary], seconds)
            place.mkdir(parents=True, exist_ok=True)
            for name in ("synthetic.csv", "cost.json"):  # the cost last: with it the answer is whole
                shutil.copy(made / name, place / name)
    return place


def flat(batch: Batch, codec: Codec) -> tuple[pd.DataFrame, dict[str, int | None]]:
    """One column per number (its axis) and per discrete variable (its codes)."""
    columns: dict[str, Any] = {f"n{i}": batch.numbers[:, i].numpy() for i in range(len(codec.numeric))}
    levels: dict[str, int | None] = dict.fromkeys(columns)
    for i, variable in enumerate(codec.variables):
        columns[f"c{i}"] = batch.codes[variable.name].numpy()
        levels[f"c{i}"] = variable.size
    return pd.DataFrame(columns), levels


def unflat(frame: pd.DataFrame, codec: Codec) -> Batch:
    """The way back; anything out of range is clipped, a missing number is the middle."""
    numbers = [
        np.clip(np.nan_to_num(pd.to_numeric(frame[f"n{i}"], errors="coerce"), nan=0.5), 0, 1)
        for i in range(len(codec.numeric))
    ]
    codes = {}
    for i, variable in enumerate(codec.variables):
        code = np.nan_to_num(pd.to_numeric(frame[f"c{i}"], errors="coerce"), nan=0.0)
        codes[variable.name] = torch.from_numpy(np.clip(code, 0, variable.size - 1).astype(np.int64))
    stacked = np.stack(numbers, axis=1) if numbers else np.zeros((len(frame), 0))
    return codec.with_label(Batch(torch.from_numpy(stacked.astype(np.float64)), codes))


EXPERIMENT = Experiment(
    "peers",
    "Our default beside MST, AIM, PrivBayes (dpmm), MST, AIM (mbi, OpenDP), MST, AIM, DP-CTGAN, PATE-CTGAN "
    "(SmartNoise), TabularARGN (mostlyai-engine), with their cost",
    "about 10 CPU hours a run and 6 GB of environments; --quick 10 minutes",
    run,
    page,
    runs=3,
)
