"""Runs in an environment with opendp[mbi], without dpmerf: rows.csv and task.json in, synthetic.csv and cost.json out.

OpenDP's own AIM and MST (`opendp.extras.mbi`), which estimate with private-pgm. Numbers arrive on their public axis
[0, 1] and are cut into 32 equal bins, which costs nothing; categories arrive as codes, and all codes are declared as
keys. The accounting is OpenDP's zCDP, for the largest ρ that gives (ε, δ); one row added or removed. Its noise comes
from the operating system and takes no seed; the seed is for the rows that are drawn.
"""

import json
import math
import os
import resource
import sys
import time
from pathlib import Path

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import numpy as np
import opendp.prelude as dp
import polars as pl
from opendp.mod import OpenDPException

BINS = 32


def zcdp(epsilon: float, delta: float) -> float:
    """The largest ρ whose zCDP gives (ε, δ)-DP by Proposition 12 of Canonne, Kamath and Steinke (2020)."""
    orders = 1 + np.geomspace(1e-2, 1e4, 20_000)  # any order is valid

    def log_delta(rho: float) -> float:
        bound = (orders - 1) * (orders * rho - epsilon) + orders * np.log1p(-1 / orders) - np.log(orders - 1)
        return float(bound.min())

    low, high = 0.0, epsilon + 1
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if log_delta(middle) <= math.log(delta) else (low, middle)
    return low


folder = Path(sys.argv[1])
task = json.loads((folder / "task.json").read_text())
np.random.seed(task["seed"])
rows = pl.read_csv(folder / "rows.csv")
levels = task["levels"]  # None: a number in [0, 1]
coded = rows.select(
    (pl.col(c) * BINS).floor().clip(0, BINS - 1).cast(pl.Int64) if size is None else pl.col(c).cast(pl.Int64)
    for c, size in levels.items()
)

start, before = time.monotonic(), time.process_time()
dp.enable_features("contrib")
rho = zcdp(task["epsilon"], task["delta"])
algorithm = {"aim": dp.mbi.AIM, "mst": dp.mbi.MST}[task["method"]](**task["options"])
keys = {c: list(range(size or BINS)) for c, size in levels.items()}
table = None
while table is None:
    context = dp.Context.compositor(
        data=coded.lazy(),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(rho=rho),
        split_evenly_over=1,
    )
    try:
        table = context.query().contingency_table(keys=keys, algorithm=algorithm).release()
    except OpenDPException as problem:
        # Its split of ρ over columns may exceed ρ in the last bit, whatever the rows are: a slightly smaller ρ then.
        if "insufficient budget" not in str(problem) or rho < 0.98 * zcdp(task["epsilon"], task["delta"]):
            raise
        rho *= 0.9995
made = table.synthesize(len(coded))
rng = np.random.default_rng(task["seed"])
out = {}
for c, size in levels.items():
    codes = made[c].fill_null(0).to_numpy()
    out[c] = (codes + rng.random(len(codes))) / BINS if size is None else codes
pl.DataFrame(out).write_csv(folder / "synthetic.csv")
cost = {
    "cpu_seconds": round(time.process_time() - before, 1),
    "wall_seconds": round(time.monotonic() - start, 1),
    "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    "rho": rho,
}
(folder / "cost.json").write_text(json.dumps(cost))
