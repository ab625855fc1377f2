"""Runs in an environment with mostlyai-engine: rows.csv and task.json in, synthetic.csv and cost.json out.

TabularARGN trained with its differential-privacy option (DP-SGD by Opacus), which stops when ε is used up; its own
noise multiplier, batch and learning rate. Numbers arrive on their public axis [0, 1] and are cut into 32 equal bins,
categories arrive as codes; all are declared categories, so that nothing is spent on looking for values (its value
protection). It takes the values from the rows and decides by un-noised held-out rows when to stop: both in its favour.
"""

import json
import resource
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from mostlyai.engine import TabularARGN
from mostlyai.engine.domain import DifferentialPrivacyConfig

BINS = 32

if __name__ == "__main__":
    torch.set_num_threads(1)
    folder = Path(sys.argv[1])
    task = json.loads((folder / "task.json").read_text())
    rows = pd.read_csv(folder / "rows.csv")
    levels = task["levels"]  # None: a number in [0, 1]
    coded = pd.DataFrame(
        {
            c: np.clip(np.floor(rows[c] * BINS), 0, BINS - 1).astype(int).astype(str)
            if size is None
            else rows[c].astype(int).astype(str)
            for c, size in levels.items()
        }
    )
    start, before = time.monotonic(), time.process_time()
    privacy = DifferentialPrivacyConfig(max_epsilon=task["epsilon"], delta=task["delta"], value_protection_epsilon=None)
    model = TabularARGN(
        differential_privacy=privacy,
        value_protection=False,
        tgt_encoding_types=dict.fromkeys(coded.columns, "TABULAR_CATEGORICAL"),
        workspace_dir=folder / "workspace",
        random_state=task["seed"],
        device="cpu",
        **task["options"],
    )
    model.fit(coded)
    made = model.sample(n_samples=len(rows))
    rng = np.random.default_rng(task["seed"])
    out = {}
    for c, size in levels.items():
        codes = pd.to_numeric(made[c], errors="coerce").fillna(0).to_numpy()
        out[c] = (codes + rng.random(len(codes))) / BINS if size is None else codes
    pd.DataFrame(out).to_csv(folder / "synthetic.csv", index=False)
    cost = {
        "cpu_seconds": round(time.process_time() - before, 1),
        "wall_seconds": round(time.monotonic() - start, 1),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }
    (folder / "cost.json").write_text(json.dumps(cost))
