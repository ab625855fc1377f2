"""Runs in an environment with smartnoise-synth: rows.csv and task.json in, synthetic.csv and cost.json out.

Numbers arrive on their public axis [0, 1], categories as codes. MST and AIM get 20 equal bins of the axis; the networks
get the numbers themselves. The bounds are public, so the transformers spend nothing (but its
LabelTransformer takes the categories from the rows). The package's own accounting: zCDP
(MST, AIM), DP-SGD by Opacus (DP-CTGAN), PATE moments (PATE-CTGAN); one row added or removed.
"""

import json
import resource
import sys
import time
from pathlib import Path

import pandas as pd
from snsynth import Synthesizer
from snsynth.transform import BinTransformer, LabelTransformer, MinMaxTransformer, OneHotEncoder, TableTransformer
from snsynth.transform.chain import ChainTransformer

BINS = 20

folder = Path(sys.argv[1])
task = json.loads((folder / "task.json").read_text())
rows = pd.read_csv(folder / "rows.csv")
network = task["method"].endswith("ctgan")
parts = []
for name, levels in task["levels"].items():  # None: a number in [0, 1]
    if levels is None:
        number = MinMaxTransformer(lower=0.0, upper=1.0) if network else BinTransformer(bins=BINS, lower=0.0, upper=1.0)
        parts.append(number)
    else:
        rows[name] = rows[name].astype(int)
        parts.append(ChainTransformer([LabelTransformer(), OneHotEncoder()]) if network else LabelTransformer())

start, before = time.monotonic(), time.process_time()
maker = Synthesizer.create(task["method"], epsilon=task["epsilon"], delta=task["delta"], **task["options"])
maker.fit(rows, transformer=TableTransformer(parts), preprocessor_eps=0.0)
synthetic = pd.DataFrame(maker.sample(len(rows)), columns=rows.columns)
synthetic.to_csv(folder / "synthetic.csv", index=False)
cost = {
    "cpu_seconds": round(time.process_time() - before, 1),
    "wall_seconds": round(time.monotonic() - start, 1),
    "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
}
(folder / "cost.json").write_text(json.dumps(cost))
