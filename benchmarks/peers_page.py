"""The comparison with peers as Markdown and as a figure, from the stored cells."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from benchmarks import everything, figures
from benchmarks.pages import table
from benchmarks.store import Store

HEADER = ["", "ROC or F1", "ROC hard", "TV 1-way", "2-way", "3-way", "CPU s", "peak MB", "runs"]
OURS = {"default": "**dpmerf default**", "add-remove": "**dpmerf**, a row added or removed"}
LEADS = ("real", *OURS)


Cells = dict[tuple[str, str], dict[str, list[dict[str, Any]]]]  # (data, ε) -> method -> runs


def page(store: Store) -> str:
    found = cells(store)
    blocks = []
    for (name, epsilon), methods in found.items():
        order = [m for m in LEADS if m in methods] + sorted(set(methods) - set(LEADS))
        rows = [row(m, methods[m]) for m in order]
        blocks.append(f"**{name}, ε = {epsilon}, δ = 1e-5.**\n\n" + table(HEADER, rows))
    if not blocks:
        return ""
    if picture := _figure(store, found):
        blocks.insert(0, f"![utility against CPU time]({picture})")
    return "\n\n".join(filter(None, [*blocks, _absent(store, found)]))


def _absent(store: Store, found: Cells) -> str:
    """The tools that are known here and have no result on adult, and what they would take."""
    from benchmarks.peers import PEERS

    at = ("adult", "1")
    return everything.not_run({m: [f"peers/adult/1/{m}/1"] for m in PEERS if m not in found.get(at, {})}, store)


def cells(store: Store) -> Cells:
    found: Cells = defaultdict(lambda: defaultdict(list))
    for (name, epsilon, method, _), result in store.cells("peers"):
        found[name, epsilon][method].append(result)
    return dict(sorted(found.items(), key=lambda item: (item[0][0], float(item[0][1]))))


def row(method: str, runs: list[dict[str, Any]]) -> list[str]:
    """Means over the runs that finished; the error where none did."""
    done = [r for r in runs if "utility" in r]
    name = OURS.get(method, method)
    if not done:
        error = runs[0]["error"].strip().splitlines()[-1][-120:].replace("|", "/")
        return [name, f"failed: {error}", *["–"] * 7]

    def mean(values: list[float], digits: int) -> str:
        return f"{np.mean(values):.{digits}f}" if values else "–"

    scores = [r["utility"]["mean"] for r in done]
    first = "roc_auc" if "roc_auc" in scores[0] else "f1_weighted"
    return [
        name,
        mean([s[first] for s in scores], 3),
        mean([s["roc_auc_hard"] for s in scores if "roc_auc_hard" in s], 3),
        *(mean([r[f"tv{k}"] for r in done if f"tv{k}" in r], 3) for k in (1, 2, 3)),
        mean([r["cpu_seconds"] for r in done if "cpu_seconds" in r], 0),
        mean([r["peak_mb"] for r in done if "peak_mb" in r], 0),
        str(len(done)),
    ]


def _figure(store: Store, found: Cells) -> str:
    points = []
    for method, runs in found.get(("adult", "1"), {}).items():
        if method == "add-remove":  # another unit, the same picture
            continue
        done = [r for r in runs if "utility" in r and "cpu_seconds" in r]
        if done:
            points.append(
                (
                    method,
                    float(np.mean([r["cpu_seconds"] for r in done])),
                    float(np.mean([r["utility"]["mean"]["roc_auc"] for r in done])),
                )
            )
    if not points:
        return ""
    with figures.figure(store, "peers/adult.svg", width=6, height=3.6) as (place, axes):
        for method, x, y in points:
            axes.plot(x, y, "o", color=figures.STRONG if method == "default" else figures.MUTED)
            crowded = any(0 < b - y < 0.035 and 0.4 < a / x < 2.5 for _, a, b in points)  # a point just above
            offset = (6, -11) if crowded else (6, 3)
            name = "dpmerf" if method == "default" else method
            axes.annotate(name, (x, y), xytext=offset, textcoords="offset points")
        real = found["adult", "1"].get("real")
        if real and "utility" in real[0]:
            axes.axhline(real[0]["utility"]["mean"]["roc_auc"], color="black", lw=0.8, ls=":")
        axes.set(
            xscale="log", xlabel="CPU seconds", ylabel="ROC-AUC, mean of 12", title="adult, ε = 1 (dotted: real rows)"
        )
    return place
