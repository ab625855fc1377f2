"""Table 1 and its supplement as Markdown, from the stored cells."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from benchmarks import paper
from benchmarks.pages import table
from benchmarks.store import Store

ORDER = ("real", "paper", "default", "paper without noise", "default without noise")
TITLES = {
    "real": "real",
    "paper": "DP-MERF, paper preset",
    "default": "**DP-MERF, default**",
    "paper without noise": "paper preset, ε = ∞",
    "default without noise": "default, ε = ∞",
}
Cells = dict[tuple[str, str, str], list[dict[str, Any]]]  # (protocol, set, method) -> runs


def cells(store: Store) -> Cells:
    found: Cells = defaultdict(list)
    for (protocol, name, method, _), result in store.cells("table1"):
        if "utility" in result:
            found[protocol, name, method.replace("-without-noise", " without noise")].append(result)
    return found


def metrics(name: str) -> tuple[str, ...]:
    return paper.METRICS["multiclass" if name in paper.MULTICLASS else "binary"]


def means(runs: list[dict[str, Any]], name: str) -> tuple[float, ...]:
    """The paper's metrics, mean over runs."""
    return tuple(float(np.mean([r["utility"]["mean"][m] for r in runs])) for m in metrics(name))


def page(store: Store) -> str:
    found = cells(store)
    if not found:
        return ""
    return "\n\n".join(filter(None, [_protocol(found, "paper"), _protocol(found, "honest"), _supplement(found)]))


def _protocol(found: Cells, protocol: str) -> str:
    methods = [m for m in ORDER if any(k[0] == protocol and k[2] == m for k in found)]
    methods += sorted({k[2] for k in found if k[0] == protocol} - set(ORDER))
    rows = []
    for name, published in paper.TABLE1.items():
        cells_of = []
        for method in methods:
            runs = found.get((protocol, name, method))
            ours = "/".join(f"{v:.3f}" for v in means(runs, name)) if runs else "–"
            theirs = published.get(method) if protocol == "paper" else None
            note = f" ({'/'.join(f'{v:.3f}' for v in theirs)})" if theirs else ""
            cells_of.append(f"{ours}{note}")
        counts = {len(found[k]) for k in found if k[:2] == (protocol, name)}
        runs_text = "–".join(str(c) for c in sorted({min(counts), max(counts)})) if counts else "0"
        unit = "/".join(paper.NAMES[m] for m in metrics(name))
        rows.append([f"{name} ({unit})", *cells_of, runs_text])
    head = {
        "paper": "Paper protocol, ε = 1, δ = 1e-5: ours, with the paper's own number in brackets",
        "honest": "Honest protocol, ε = 1, δ = 1e-5",
    }[protocol]
    return f"**{head}.**\n\n" + table(["data", *(TITLES.get(m, m) for m in methods), "runs"], rows)


def _supplement(found: Cells) -> str:
    """Per classifier, as in the supplement, for the default and the paper preset in the honest protocol."""
    blocks = []
    for name in paper.TABLE1:
        methods = [m for m in ORDER if ("honest", name, m) in found]
        if not methods:
            continue
        models = list(found["honest", name, methods[0]][0]["utility"]["models"])
        rows = []
        for model in models:
            row = [model]
            for method in methods:
                runs = [r["utility"]["models"][model] for r in found["honest", name, method]]
                row.append("/".join(f"{np.mean([r[m] for r in runs]):.3f}" for m in metrics(name)))
            rows.append(row)
        body = table(["classifier", *(TITLES[m] for m in methods)], rows)
        blocks.append(f"<details><summary>{name}, per classifier (honest protocol)</summary>\n\n{body}\n\n</details>")
    return "\n".join(blocks)
