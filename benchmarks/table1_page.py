"""Table 1 and its supplement as Markdown, from the stored cells."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from benchmarks import everything, paper
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
BASELINES = ("dp-cgan", "dp-gan", "gs-wgan", "pate-gan", "privbayes")
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
    tables = [_protocol(found, "paper"), above(found), _absent(store), _protocol(found, "honest"), _same_shares(found)]
    parts = [*tables, _made_with(store)]
    return "\n\n".join(filter(None, parts))


def _protocol(found: Cells, protocol: str) -> str:
    methods = _methods(found, protocol)
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


def _absent(store: Store) -> str:
    """What of the paper's protocol was not run, and what it would take."""
    columns = ("real", "paper", "default", "paper-without-noise", "default-without-noise", *BASELINES)
    return everything.not_run({f"{n} {c}": [f"table1/paper/{n}/{c}/1"] for n in paper.TABLE1 for c in columns}, store)


def above(found: Cells) -> str:
    """Where the default is above the published DP-MERF, in a sentence."""
    better: dict[str, list[str]] = {"ROC or F1": [], "PRC": []}
    below: dict[str, list[str]] = {"ROC or F1": [], "PRC": []}
    for name, published in paper.TABLE1.items():
        if runs := found.get(("paper", name, "default")):
            for measure, ours, theirs in zip(better, means(runs, name), published["paper"], strict=False):
                (better if ours > theirs else below)[measure].append(name)
    said = [
        f"in {m} on {len(better[m])} of {len(better[m]) + len(below[m])} tables"
        + (f" (not on {', '.join(below[m])})" if below[m] else "")
        for m in better
    ]
    return f"On the paper's protocol the default is above DP-MERF as published {' and '.join(said)}."


def _made_with(store: Store) -> str:
    """How old the default's cells are."""
    said = {
        protocol: {
            n: [k for k in store.lines("table1") if k.startswith(f"table1/{protocol}/{n}/default/")]
            for n in paper.TABLE1
        }
        for protocol in ("paper", "honest")
    }
    parts = [f"{protocol} protocol: {everything.made_with(of, store)}" for protocol, of in said.items()]
    return f"The default's cells were made with these commits († with changes not yet committed). {'. '.join(parts)}."


def at_share(roc: float, prc: float, share: float, other: float) -> float:
    """PRC of hard labels if the share of positives were another: recall and false alarms stay, precision moves.

    ROC = (1 + recall − alarms) / 2 and PRC = recall · precision + (1 − recall) · share; along the line of a given ROC,
    PRC falls as recall grows, so the two of them give recall.

    >>> round(at_share(0.8485, 0.2078, 0.0018, 0.263), 2)  # recall 0.7, alarms 0.003
    0.77
    """
    gap = 2 * roc - 1

    def curve(recall: float, share: float) -> float:
        alarms = max(recall - gap, 0.0)
        called = share * recall + (1 - share) * alarms
        return recall * (share * recall / called if called > 0 else 1.0) + (1 - recall) * share

    low, high = max(gap, 0.0), 1 + min(gap, 0.0)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if curve(middle, share) > prc else (low, middle)
    return curve(low, other)


def _same_shares(found: Cells) -> str:
    """PRC of the honest protocol where the paper undersampled, at the paper's share of positives."""
    methods = _methods(found, "honest")
    rows = []
    for name, (share, other) in paper.SHARES.items():
        row = [name, f"{share:.3f}", f"{other:.3f}", f"{paper.TABLE1[name]['paper'][1]:.3f}"]
        for method in methods:
            models = [m for r in found.get(("honest", name, method), []) for m in r["utility"]["models"].values()]
            same = [at_share(m["roc_auc_hard"], m["pr_auc_hard"], share, other) for m in models]
            row.append(f"{np.mean(same):.3f}" if same else "–")
        rows.append(row)
    head = "Honest protocol: PRC at the share of positives of the paper's undersampled test rows, from the same recall"
    header = ["data", "positives", "in the paper", "DP-MERF as published", *(TITLES[m] for m in methods)]
    return f"**{head} and false alarms.**\n\n" + table(header, rows)


def classifiers(store: Store) -> str:
    """Per classifier, as in the supplement: every method of either protocol."""
    found = cells(store)
    blocks = []
    for name in paper.TABLE1:
        for protocol in ("honest", "paper"):
            methods = _methods(found, protocol, name)
            if not methods:
                continue
            rows = []
            for model in found[protocol, name, methods[0]][0]["utility"]["models"]:
                row = [model]
                for method in methods:
                    runs = [r["utility"]["models"][model] for r in found[protocol, name, method]]
                    row.append("/".join(f"{np.mean([r[m] for r in runs]):.3f}" for m in metrics(name)))
                rows.append(row)
            unit = "/".join(paper.NAMES[m] for m in metrics(name))
            head = ["classifier", *(TITLES.get(m, m) for m in methods)]
            blocks.append(f"### {name}, {protocol} protocol, {unit}\n\n{table(head, rows)}")
    return "\n\n".join(blocks)


def _methods(found: Cells, protocol: str, name: str | None = None) -> list[str]:
    """The methods with results, ours first."""
    known = {m for p, n, m in found if p == protocol and name in (None, n)}
    return [*(m for m in ORDER if m in known), *sorted(known - set(ORDER))]
