"""Claims: the screen that leads the page. Each number of the paper with ours beside it, and each of its claims in words
with the figure that decides it here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks import everything, images_page, paper, privbayes, table1_page
from benchmarks.image_scores import SLUGS, TWELVE
from benchmarks.pages import table
from benchmarks.store import Store

LEVEL = 0.005  # closer than this counts as level
GANS = ("dp-gan", "dp-cgan", "gs-wgan", "pate-gan")
NONE = "–"


def verdict(ours: Sequence[float], theirs: Sequence[float], lower_is_better: bool = False) -> str:
    """above, level or below the paper, by each measure.

    >>> verdict((0.80, 0.40), (0.70, 0.43)), verdict((0.2,), (0.3,), lower_is_better=True)
    ('above/below', 'above')
    """
    said = []
    for a, b in zip(ours, theirs, strict=True):
        better = b - a if lower_is_better else a - b
        said.append("level" if abs(better) < LEVEL else "above" if better > 0 else "below")
    return said[0] if len(set(said)) == 1 else "/".join(said)


def numbers(store: Store) -> str:
    """Every table and figure of the paper in a line: its number for DP-MERF, ours, the command and the verdict."""
    rows = [*_tables(store), *_pictures(store), *_mixture(store), *_bound(store), *_marginals(store), *_points(store)]
    shown = table(
        ["what", "DP-MERF as published", "paper preset", "**default**", "`run` …", "default against it"], rows
    )
    wanted = {
        f"paper preset, {name} at ε = 0.2": [f"images/{name}/paper/0.2/1/{SLUGS[m]}" for m in TWELVE]
        for name in images_page.SETS
    }
    return "\n\n".join(
        filter(None, [shown, table1_page.above(table1_page.cells(store)), everything.not_run(wanted, store)])
    )


def _text(values: Sequence[float] | None) -> str:
    return "/".join(f"{v:.3f}" for v in values) if values is not None else NONE


def _tables(store: Store) -> list[list[str]]:
    found = table1_page.cells(store)
    rows = []
    for name, published in paper.TABLE1.items():
        said = {
            method: table1_page.means(runs, name) if (runs := found.get(("paper", name, method))) else None
            for method in ("paper", "default")
        }
        theirs, ours = published["paper"], said["default"]
        unit = "/".join(paper.NAMES[m] for m in table1_page.metrics(name))
        mark = verdict(ours, theirs) if ours else NONE
        rows.append([f"{name}, {unit}", _text(theirs), _text(said["paper"]), f"**{_text(ours)}**", "`table1`", mark])
    return rows


def _pictures(store: Store) -> list[list[str]]:
    found = images_page.means(store)
    rows = []
    for name in images_page.SETS:
        for epsilon in ("1", "0.2"):
            theirs = images_page.PAPER[name]["paper", epsilon]
            said = {p: twelve(found.get((name, p, epsilon), {})) for p in ("paper", "default")}
            ours = said["default"]
            mark = verdict((ours,), (theirs,)) if ours is not None else NONE
            texts = [_text((v,)) if v is not None else NONE for v in (theirs, said["paper"], ours)]
            rows.append([f"{name}, ε = {epsilon}, accuracy", texts[0], texts[1], f"**{texts[2]}**", "`images`", mark])
    return rows


def twelve(scores: dict[str, tuple[float, int]]) -> float | None:
    """The mean of the twelve classifiers, if all are there."""
    known = [scores[m][0] for m in TWELVE if m in scores]
    return float(np.mean(known)) if len(known) == len(TWELVE) else None


def _mixture(store: Store) -> list[list[str]]:
    found = {m: store.read(f"mixture/{m}") for m in ("paper", "default", "real")}
    said = [f"{r['nll_authors']:.2f}, {r['modes']} of 25 modes" if r and "nll" in r else NONE for r in found.values()]
    theirs = "all modes, NLL as of real points"
    return [["2-D mixture, NLL", theirs, said[0], f"**{said[1]}** (real: {said[2]})", "`mixture`", "modes level"]]


def _bound(store: Store) -> list[list[str]]:
    points = [p for w in ("D", "n", "ε") if (r := store.read(f"proposition1/{w}")) for p in r["points"]]
    if not points:
        return []
    kept = sum(p["measured"] <= p["paper_bound"] for p in points)
    tight = sum(p["measured"] <= p["tight_bound"] for p in points)
    said = f"**{kept} of {len(points)} points below it, {tight} below the tight one**"
    return [["Proposition 1", "a bound on the mean error", "the same features", said, "`proposition1`", "holds"]]


def _marginals(store: Store) -> list[list[str]]:
    rows = []
    for name, domain, order in (("adult", "D", 3), ("census", "D", 3)):
        theirs = privbayes.PUBLISHED[name, domain, order][1]
        said = {m: privbayes.errors(store, name, domain, m, order) for m in ("paper", "default")}
        known = [(a, b) for a, b in zip(said["default"], theirs, strict=True) if a is not None]
        ours, published = [a for a, _ in known], [b for _, b in known]
        mark = verdict(ours, published, lower_is_better=True) if known else NONE
        texts = ["/".join(f"{v:.3f}" if v is not None else NONE for v in said[m]) for m in ("paper", "default")]
        what = f"{name}, error of {order}-way tables, ε = 1/0.3/0.1"
        rows.append([what, _text(theirs), texts[0], f"**{texts[1]}**", "`privbayes`", mark])
    return rows


def _points(store: Store) -> list[list[str]]:
    found = {m: store.read(f"balog/{m}") for m in ("paper", "default")}
    said = [
        f"{r['distance'][0]:.3f} → {r['distance'][-1]:.4f}" if r and "distance" in r else NONE for r in found.values()
    ]
    return [["reduced set: distance, 10 → 20,000 points", "falls", said[0], f"**{said[1]}**", "`balog`", "falls too"]]


def words(store: Store) -> str:
    """The paper's claims, one a line: holds here or not, and by which figure."""
    rows = [
        ["Better data than GANs at ε = 1", *_better_than_gans(store)],
        ["MNIST at ε = 0.2 better than GANs at ε ≈ 10", *_strong_privacy(store)],
        ["Class counts cost little", *_counts()],
        ["Proposition 1 guides the choice of D", *_guide(store)],
        ["Rows and labels can be generated jointly", *_jointly(store)],
    ]
    return table(["claim of the paper", "here", "the figure"], rows)


def _better_than_gans(store: Store) -> tuple[str, str]:
    found = table1_page.cells(store)
    wins, of, misses = 0, 0, []
    for name in paper.TABLE1:
        gans = {g: table1_page.means(r, name)[0] for g in GANS if (r := found.get(("paper", name, g)))}
        runs = found.get(("paper", name, "paper"))
        if gans and runs:
            ours, best = table1_page.means(runs, name)[0], max(gans, key=lambda g: gans[g])
            of += 1
            wins += ours > gans[best]
            if ours <= gans[best]:
                default = found.get(("paper", name, "default"))
                has = f"; the default has {table1_page.means(default, name)[0]:.3f}" if default else ""
                misses.append(f"{name} ({ours:.3f} against {gans[best]:.3f} of {best}{has})")
    but = f"; not on {', '.join(misses)}" if misses else ""
    return "holds" if of and wins == of else "holds mostly" if wins * 2 > of else "does not hold", (
        f"the paper preset is above every GAN that was run on {wins} of {of} tables (ROC or F1){but}"
    )


def _strong_privacy(store: Store) -> tuple[str, str]:
    found = images_page.means(store)
    gans = {
        g: score
        for g, epsilon in (("dp-cgan", "9.6"), ("dp-gan", "9.6"), ("gs-wgan", "10"))
        if (score := twelve(found.get(("mnist", g, epsilon), {}))) is not None
    }
    presets = {p: twelve(found.get(("mnist", p, "0.2"), {})) for p in ("paper", "default")}
    ours = {p: score for p, score in presets.items() if score is not None}
    published = images_page.PAPER["mnist"]["gs-wgan", "10"]
    theirs = f"published GANs at most {published:.3f}" + "".join(f", our {g} {s:.3f}" for g, s in gans.items())
    said = ", ".join(f"{p} {score:.3f}" for p, score in ours.items())
    if not ours:
        return "not run", theirs
    best = max([published, *gans.values()])
    holds = all(score > best for score in ours.values())
    beats = "holds" if holds else "holds for " + (", ".join(p for p, s in ours.items() if s > best) or "neither preset")
    return beats, f"at ε = 0.2: {said} (mean of 12); {theirs}"


def _counts() -> tuple[str, str]:
    from dpmerf.encoding.codec import Variable
    from dpmerf.features.algebra import of, onehot
    from dpmerf.features.fourier import Fourier

    label, other = onehot(Variable("label", 2)), onehot(Variable("other", 2))
    f = of(Fourier.draw(3, 8, (1.0,), seed=0))
    without, with_counts = (f * label).diameter, (f * label + label).diameter
    mixed = ((f + other) * label + label).diameter
    return "holds, and more", (
        f"sensitivity {without:.3f} without and {with_counts:.3f} with the counts in the same release: they are free; "
        f"with categories {mixed:.3f}, where the paper needs {2 * 2**0.5:.3f} and a second release"
    )


def _guide(store: Store) -> tuple[str, str]:
    result = store.read("proposition1/D")
    if not result:
        return "not run", NONE
    points = result["points"]
    best, paper_d, tight_d = (min(points, key=lambda p: p[k]) for k in ("measured", "paper_bound", "tight_bound"))
    same = best["at"] == paper_d["at"]
    return "holds" if same else "as a bound, not as a guide", (
        f"its bound is least at D = {paper_d['at']:,} (the tight one: {tight_d['at']:,}), the measured error at "
        f"{best['at']:,}; there {best['measured']:.4f} and {paper_d['measured']:.4f} at the bound's choice"
    )


def _jointly(store: Store) -> tuple[str, str]:
    found = {m: r for m in ("paper", "default", "dp-cgan") if (r := store.read(f"mixture/{m}")) and "nll" in r}
    if "paper" not in found:
        return "not run", NONE
    said = ", ".join(f"{m} {r['right_class']:.0%}" for m, r in found.items())
    holds = all(found["paper"]["right_class"] > r["right_class"] for m, r in found.items() if m in GANS)
    return (
        "holds" if holds else "does not hold",
        f"points of the 2-D mixture that carry the class of their place: {said}",
    )
