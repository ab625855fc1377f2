"""Runs in an environment with dpmm, without dpmerf: rows.csv and task.json in, synthetic.csv and cost.json out.

Numbers arrive on their public axis [0, 1], categories as codes. dpmm bins the numbers with PrivTree for a tenth of ε.
Its accounting: ε-DP bins, then zCDP calibrated to (0.9 ε, δ) for the marginals; one row added or removed.
"""

import json
import resource
import sys
import time
from pathlib import Path

import pandas as pd
from dpmm.pipelines.aim import AIMPipeline
from dpmm.pipelines.mst import MSTPipeline
from dpmm.pipelines.priv_bayes import PrivBayesPipeline

folder = Path(sys.argv[1])
task = json.loads((folder / "task.json").read_text())
rows = pd.read_csv(folder / "rows.csv")
domain = {}
for name, levels in task["levels"].items():  # None: a number in [0, 1]
    if levels is None:
        domain[name] = {"lower": 0.0, "upper": 1.0}
    else:
        rows[name] = rows[name].astype(int).astype("category")
        domain[name] = {"categories": list(range(levels))}

start, before = time.monotonic(), time.process_time()
pipeline = {"aim": AIMPipeline, "mst": MSTPipeline, "privbayes": PrivBayesPipeline}[task["method"]](
    epsilon=0.9 * task["epsilon"],
    delta=task["delta"],
    proc_epsilon=0.1 * task["epsilon"],
    n_jobs=1,
    **task["options"],
)
pipeline.fit(rows, domain, random_state=task["seed"])
synthetic = pipeline.generate(n_records=len(rows), random_state=task["seed"])
synthetic.to_csv(folder / "synthetic.csv", index=False)
cost = {
    "cpu_seconds": round(time.process_time() - before, 1),
    "wall_seconds": round(time.monotonic() - start, 1),
    "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
}
(folder / "cost.json").write_text(json.dumps(cost))
