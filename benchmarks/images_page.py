"""The image tables as Markdown, from the stored cells, with the paper's numbers beside ours."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks import everything
from benchmarks.image_scores import CNN, SLUGS, TWELVE
from benchmarks.pages import table
from benchmarks.store import Store

SETS = ("mnist", "fashion_mnist")
NO_NOISE = "no-noise"  # NOT PRIVATE
VARIANTS = (
    *(("default", "1"), ("paper", "1"), ("fast", "1"), ("default", "0.2"), ("paper", "0.2")),
    *(("default", NO_NOISE), ("paper", NO_NOISE)),
    *(("dp-cgan", "9.6"), ("dp-gan", "9.6"), ("gs-wgan", "10")),
    *(("dp-cgan", "1"), ("dp-gan", "1"), ("gs-wgan", "1")),
    ("real", "real"),
)
PAPER = {  # mean of twelve, as published, by method and ε
    "mnist": {
        **{("default", "1"): 0.652, ("paper", "1"): 0.652, ("default", "0.2"): 0.610, ("paper", "0.2"): 0.610},
        **{("paper", NO_NOISE): 0.652, ("real", "real"): 0.870},
        **{("dp-cgan", "9.6"): 0.500, ("dp-gan", "9.6"): 0.476, ("gs-wgan", "10"): 0.526},
    },
    "fashion_mnist": {
        **{("default", "1"): 0.616, ("paper", "1"): 0.616, ("default", "0.2"): 0.526, ("paper", "0.2"): 0.526},
        **{("paper", NO_NOISE): 0.605, ("real", "real"): 0.780},
        **{("dp-cgan", "9.6"): 0.390, ("dp-gan", "9.6"): 0.457, ("gs-wgan", "10"): 0.502},
    },
}
TITLES = {
    "default": "**DP-MERF, default**",
    "paper": "DP-MERF, paper preset",
    "fast": "default, `--fast`",
    "dp-cgan": "DP-CGAN",
    "dp-gan": "DP-GAN",
    "gs-wgan": "GS-WGAN",
    "real": "real pictures",
}
Means = dict[tuple[str, str, str], dict[str, tuple[float, int]]]


def means(store: Store) -> Means:
    """(set, preset, ε) -> classifier or "cost" -> its mean (accuracy, or CPU seconds) and number of runs."""
    found: dict[tuple[str, str, str], dict[str, list[float]]] = {}
    for (name, preset, epsilon, _, what), result in store.cells("images"):
        if "error" not in result:
            value = result["cpu_release"] + result["cpu_train"] if what == "cost" else result["accuracy"]
            found.setdefault((name, preset, epsilon), {}).setdefault(what, []).append(value)
    names = {slug: m for m, slug in SLUGS.items()}
    return {
        key: {names.get(what, what): (float(np.mean(v)), len(v)) for what, v in values.items()}
        for key, values in found.items()
    }


def mean_of_twelve(scores: dict[str, tuple[float, int]]) -> str:
    known = [scores[m][0] for m in TWELVE if m in scores]
    return f"{np.mean(known):.3f}" if len(known) == len(TWELVE) else f"({len(known)} of 12)"


def page(store: Store) -> str:
    """One line per set, method and ε, the mean of runs; then what the GANs' learning curves say."""
    found = means(store)
    rows = []
    for name, (preset, epsilon) in ((s, v) for s in SETS for v in VARIANTS if (s, *v) in found):
        scores = found[name, preset, epsilon]
        counts = {n for what, (_, n) in scores.items() if what in TWELVE}
        published = PAPER[name].get((preset, epsilon))
        rows.append(
            [
                *(name, TITLES[preset], _epsilon(epsilon)),
                "–".join(str(n) for n in sorted({min(counts), max(counts)})) if counts else "",
                f"{scores['cost'][0] / 60:.1f}" if "cost" in scores and preset != "real" else "",
                _pictures(store, f"images/{name}/{preset}/{epsilon}/"),
                f"**{mean_of_twelve(scores)}**",
                f"{published:.3f}" if published else "no number",
                f"{scores[CNN][0]:.3f}" if CNN in scores else "not run",
            ]
        )
    if not rows:
        return ""
    header = ["set", "method", "ε", "runs", "CPU min", "learned from", "mean of 12", "as published", CNN]
    return "\n\n".join(filter(None, [table(header, rows), _absent(store), _curves(store), *_findings(store, found)]))


def _absent(store: Store) -> str:
    """What of the paper's image table was not run, and what it would take."""
    wanted = {
        f"{name} {preset} at ε = {_epsilon(epsilon)}" if preset != "real" else f"{name} real": [
            f"images/{name}/{preset}/{epsilon}/1/{slug}" for slug in ("cost", *SLUGS.values())
        ]
        for name in SETS
        for preset, epsilon in VARIANTS
    }
    return everything.not_run(wanted, store)


def classifiers(store: Store) -> str:
    """Every classifier's accuracy, as in the supplement."""
    found = means(store)
    rows = [
        [f"{s}, {TITLES[v[0]]}, ε = {_epsilon(v[1])}", *(_value(found[s, *v], m) for m in (CNN, *TWELVE))]
        for s in SETS
        for v in VARIANTS
        if (s, *v) in found
    ]
    return table(["", CNN, *TWELVE], rows) if rows else ""


def _value(scores: dict[str, tuple[float, int]], model: str) -> str:
    return f"{scores[model][0]:.3f}" if model in scores else "–"


def _epsilon(epsilon: str) -> str:
    return {NO_NOISE: "∞ (NOT PRIVATE)", "real": ""}.get(epsilon, epsilon)


def _curves(store: Store) -> str:
    """Accuracy of a logistic regression along the GANs' training."""
    rows: list[list[str]] = []
    for (name, method, epsilon, run, what), result in store.cells("images"):
        if what == "cost" and run == "1" and "curve" in result:
            curve: list[Any] = result["curve"]
            points = ", ".join(f"{accuracy:.2f}" for _, accuracy in curve)
            rows.append([name, TITLES[method], epsilon, f"{curve[-1][0]:,}", points])
    header = ["set", "GAN", "ε", "steps", "accuracy of a logistic regression after each eighth of them"]
    return table(header, rows) if rows else ""


def _findings(store: Store, found: Means) -> list[str]:
    """Whether a GAN of a CPU's size reaches what was published, and what its learning curve says if not."""
    said = []
    for name in SETS:
        for (method, epsilon), published in PAPER[name].items():
            scores, cost = (
                found.get((name, method, epsilon), {}),
                store.read(f"images/{name}/{method}/{epsilon}/1/cost"),
            )
            if cost and "curve" in cost and all(m in scores for m in TWELVE):
                ours = float(np.mean([scores[m][0] for m in TWELVE]))
                judged = "at least as published" if ours >= published else _why([a for _, a in cost["curve"]])
                said.append(f"{name}, {TITLES[method]}: {ours:.3f} against {published:.3f}, {judged}")
    return [f"GANs at the paper's ε: {'; '.join(said)}."] if said else []


def _why(curve: list[float]) -> str:
    """What a learning curve (at eight points, last) tells about a network that is not good enough.

    >>> _why([0.1, 0.1, 0.2, 0.4]), _why([0.1, 0.14, 0.12, 0.1]), _why([0.5, 0.7, 0.7, 0.69])
    ('its curve still rises: it would need more steps', 'its curve never leaves chance', 'its curve is flat at its end')
    """
    if max(curve) < 0.2:
        return "its curve never leaves chance"
    rises = curve[-1] > max(curve[:-1]) + 0.02
    return "its curve still rises: it would need more steps" if rises else "its curve is flat at its end"


def _pictures(store: Store, prefix: str) -> str:
    """How many pictures the classifiers of a row learned from."""
    found = {r["pictures"] for k, r in _results(store) if k.startswith(prefix) and "pictures" in r}
    return "/".join(f"{n:,}" for n in sorted(found))


def _results(store: Store) -> list[tuple[str, dict[str, Any]]]:
    return [(key, line["result"]) for key, line in store.lines("images").items()]
