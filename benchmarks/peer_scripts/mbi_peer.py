"""Runs in an environment with mbi, without dpmerf: rows.csv and task.json in, synthetic.csv and cost.json out.

mbi (private-pgm) estimates graphical models from noisy marginals. The mechanisms MST (McKenna, Miklau and Sheldon 2021)
and AIM (McKenna, Mullins, Sheldon and Miklau 2022), which choose the marginals, are written here over its API. Numbers
arrive on their public axis [0, 1] and are cut into 32 equal bins, which costs nothing; categories arrive as codes.
The accounting: zCDP calibrated to (ε, δ); one row added or removed. The noise is of numpy, seeded: for benchmarks on
public rows only.
"""

import json
import math
import os
import resource
import sys
import time
from itertools import combinations
from pathlib import Path

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_ENABLE_X64"] = "1"  # as mbi advises: with single precision, fits of many rows stall
os.environ["JAX_ENABLE_COMPILATION_CACHE"] = "0"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import jax
import networkx as nx
import numpy as np
import opt_einsum
import pandas as pd
from mbi import Dataset, Domain, LinearMeasurement, MarkovRandomField, junction_tree
from mbi.estimation import MirrorDescent, minimum_variance_unbiased_total
from scipy.special import logsumexp, softmax

BINS = 32
WIDE = 25  # columns, a public number; from there on AIM's workload is of pairs: thousands of triples take too long
MAX_CELLS = 10_000  # of a marginal in AIM's workload

Clique = tuple[str, ...]


def zcdp(epsilon: float, delta: float) -> float:
    """The largest ρ whose zCDP gives (ε, δ)-DP by Proposition 12 of Canonne, Kamath and Steinke (2020)."""

    def log_delta(rho: float) -> float:
        low, high = 1.0 + 1e-12, (epsilon + 1) / (2 * rho) + 2  # the best order α lies between: a root
        for _ in range(200):
            alpha = (low + high) / 2
            if (2 * alpha - 1) * rho - epsilon + math.log1p(-1 / alpha) < 0:
                low = alpha
            else:
                high = alpha
        alpha = max(high, 1.01)  # any order is valid; those close to 1 are numerically bad
        return (alpha - 1) * (alpha * rho - epsilon) + alpha * math.log1p(-1 / alpha) - math.log(alpha - 1)

    low, high = 0.0, epsilon + 1
    for _ in range(200):
        middle = (low + high) / 2
        if log_delta(middle) <= math.log(delta):
            low = middle
        else:
            high = middle
    return low


def counts(data: Dataset, clique: Clique) -> np.ndarray:
    return np.asarray(data.project(clique).datavector())


def measure(data: Dataset, clique: Clique, sigma: float, rng: np.random.Generator) -> LinearMeasurement:
    """The marginal with Gaussian noise: 1 / (2 σ²) of ρ, since a row counts in one cell."""
    exact = counts(data, clique)
    return LinearMeasurement(exact + rng.normal(0, sigma, exact.size), clique, sigma)


def choose(scores: np.ndarray, epsilon: float, sensitivity: float, rng: np.random.Generator) -> int:
    """The exponential mechanism: ε² / 8 of ρ."""
    return int(rng.choice(scores.size, p=softmax(0.5 * epsilon / sensitivity * scores)))


def mst(data: Dataset, rho: float, rng: np.random.Generator, iters: int = 10_000) -> tuple[MarkovRandomField, dict]:
    """MST: all columns, then a tree of the pairs that independence describes worst. The model, and merged levels."""
    names = data.domain.attributes
    sigma = math.sqrt(3 * len(names) / (2 * rho))
    alone = [measure(data, (name,), sigma, rng) for name in names]
    total = minimum_variance_unbiased_total(alone)

    merged = {}  # levels that do not stand out of the noise become one
    for measured in alone:
        rare = measured.noisy_measurement < 3 * sigma
        if rare.any():
            merged[measured.clique[0]] = np.where(rare, (~rare).sum(), np.cumsum(~rare) - 1)
    alone = [measured.compress(merged, data.domain) for measured in alone]
    data = data.compress(merged)

    model = MirrorDescent().estimate(data.domain, alone, known_total=total, iters=2500)
    shares = {name: np.asarray(model.project((name,)).datavector()) / total for name in names}
    pairs = list(combinations(names, 2))
    apart = {
        (a, b): np.abs(counts(data, (a, b)) - total * np.outer(shares[a], shares[b]).ravel()).sum() for a, b in pairs
    }
    tree = nx.Graph()
    tree.add_nodes_from(names)
    epsilon = math.sqrt(8 * rho / 3 / (len(names) - 1))
    for _ in range(len(names) - 1):
        pairs = [(a, b) for a, b in pairs if not nx.has_path(tree, a, b)]
        tree.add_edge(*pairs[choose(np.array([apart[pair] for pair in pairs]), epsilon, 1.0, rng)])

    sigma = math.sqrt(3 * (len(names) - 1) / (2 * rho))
    both = [measure(data, data.domain.canonical(pair), sigma, rng) for pair in tree.edges]
    return MirrorDescent().estimate(data.domain, [*alone, *both], iters=iters), merged


def aim(
    data: Dataset,
    rho: float,
    rng: np.random.Generator,
    degree: int = 3,
    rounds: int | None = None,
    max_model_size: float = 80.0,
    iters: int = 1000,
) -> MarkovRandomField:
    """AIM: all columns, then round by round the marginal of the workload that the model describes worst.

    The workload is all marginals of `degree` columns with at most MAX_CELLS cells; what they contain may be measured
    too. `rounds` sets the first σ and ε; a round that taught nothing makes the next ones dearer. `max_model_size` is of
    the junction tree, in MB, and open in proportion to the budget used.
    """
    domain = data.domain
    rounds = rounds or 16 * len(domain)
    if len(domain) >= WIDE:
        degree = min(degree, 2)
    workload = [clique for clique in combinations(domain, degree) if domain.size(clique) <= MAX_CELLS]
    often = {name: sum(name in clique for clique in workload) for name in domain}
    closure = {part for clique in workload for k in range(1, degree + 1) for part in combinations(clique, k)}
    candidates = sorted(closure, key=lambda clique: (len(clique), clique))
    weights = {clique: sum(often[name] for name in clique) for clique in candidates}  # columns shared with the workload
    exact = {clique: counts(data, clique) for clique in candidates}

    sigma = math.sqrt(rounds / (2 * 0.9 * rho))
    epsilon = math.sqrt(8 * 0.1 * rho / rounds)
    measured = [measure(data, (name,), sigma, rng) for name in domain]
    used = len(domain) / (2 * sigma**2)
    if used >= rho:
        raise ValueError(f"{rounds} rounds are too few for {len(domain)} columns")
    model = MirrorDescent().estimate(domain, measured, iters=iters)
    last = False
    while not last:
        last = rho - used < 2 * (1 / (2 * sigma**2) + epsilon**2 / 8)
        if last:  # all that is left
            sigma = math.sqrt(1 / (2 * 0.9 * (rho - used)))
            epsilon = math.sqrt(8 * 0.1 * (rho - used))
        used += 1 / (2 * sigma**2) + epsilon**2 / 8
        joint = Joint(model)
        limit = max_model_size * used / rho
        open_to = [c for c in candidates if joint.holds(c) or megabytes(domain, [*model.cliques, c]) <= limit]
        noise = math.sqrt(2 / math.pi) * sigma  # mean of a cell's error, once measured
        scores = [weights[c] * (np.abs(exact[c] - joint.marginal(c)).sum() - noise * domain.size(c)) for c in open_to]
        clique = open_to[choose(np.array(scores), epsilon, max(weights[c] for c in open_to), rng)]
        measured.append(measure(data, clique, sigma, rng))
        before = joint.marginal(clique)
        jax.clear_caches()  # each round's program is new; the old ones would fill gigabytes
        model = MirrorDescent().estimate(domain, measured, iters=iters, warm_start=model)
        after = np.asarray(model.project(clique).datavector())
        if np.abs(after - before).sum() <= noise * domain.size(clique):
            sigma, epsilon = sigma / 2, epsilon * 2
    return MirrorDescent().estimate(domain, measured, iters=iters, warm_start=model)


def megabytes(domain: Domain, cliques: list[Clique]) -> float:
    """Size of the junction tree by greedy elimination, as mbi builds it, but fast enough for all candidates."""
    near = {name: {name} for name in domain}
    for clique in cliques:
        for name in clique:
            near[name].update(clique)
    cost = {name: math.prod(domain[other] for other in near[name]) for name in near}
    cells, found = 0, []
    while cost:
        name = min(cost, key=cost.__getitem__)
        whole = near.pop(name)
        if not any(whole <= other for other in found):
            found.append(whole)
            cells += cost[name]
        del cost[name]
        for other in whole - {name}:
            near[other] = (near[other] | whole) - {name}
            cost[other] = math.prod(domain[third] for third in near[other])
    return cells * 8 / 2**20


class Joint:
    """A model as a product of P(clique | what it shares with its parent) along its junction tree, in numpy.

    mbi compiles one program for each marginal that no clique holds: about a second for each candidate of each round.
    """

    def __init__(self, model: MarkovRandomField) -> None:
        tree = junction_tree.make_junction_tree(model.domain, list(model.cliques))[0]
        self.total = float(model.total)
        self.axis = {name: i for i, name in enumerate(model.domain)}
        logs = model.potentials.expand(list(tree.nodes))
        belief = {clique: np.array(logs[clique].datavector(flatten=False)) for clique in tree.nodes}
        self.parent: dict[Clique, Clique | None] = {}
        self.parts: dict[Clique, np.ndarray] = {}
        self.top: dict[str, Clique] = {}  # where a column enters, seen from the root
        for group in nx.connected_components(tree):
            root = min(group)
            self.parent[root] = None
            self.parent.update((child, parent) for parent, child in nx.dfs_edges(tree, root))
            for clique in nx.dfs_postorder_nodes(tree, root):
                parent = self.parent[clique]
                above = set(parent or ())
                summed = tuple(i for i, name in enumerate(clique) if name not in above)
                message = logsumexp(belief[clique], axis=summed, keepdims=True)
                self.parts[clique] = np.exp(belief[clique] - message)
                self.top.update((clique[i], clique) for i in summed)
                if parent is not None:  # cliques list their columns in the domain's order, so axes need no turning
                    shape = [model.domain[name] if name in clique else 1 for name in parent]
                    belief[parent] = belief[parent] + message.reshape(shape)

    def holds(self, clique: Clique) -> bool:
        return any(set(clique) <= set(part) for part in self.parts)

    def marginal(self, clique: Clique) -> np.ndarray:
        needed: dict[Clique, None] = {}
        for name in clique:
            part: Clique | None = self.top[name]
            while part is not None and part not in needed:
                needed[part] = None
                part = self.parent[part]
        arguments: list = []
        for part in needed:
            arguments += [self.parts[part], [self.axis[name] for name in part]]
        return self.total * opt_einsum.contract(*arguments, [self.axis[name] for name in clique]).ravel()


def main(folder: Path) -> None:
    task = json.loads((folder / "task.json").read_text())
    rows = pd.read_csv(folder / "rows.csv")
    levels = task["levels"]  # None: a number in [0, 1]
    codes = {
        name: np.clip(rows[name] * BINS, 0, BINS - 1).astype(int) if size is None else rows[name].astype(int)
        for name, size in levels.items()
    }
    start, before = time.monotonic(), time.process_time()
    data = Dataset(codes, Domain.fromdict({name: size or BINS for name, size in levels.items()}))
    rho = zcdp(task["epsilon"], task["delta"])
    rng = np.random.default_rng(task["seed"])
    np.random.seed(task["seed"])  # mbi draws rows from numpy's global generator
    if task["method"] == "mst":
        model, merged = mst(data, rho, rng, **task["options"])
    else:
        model, merged = aim(data, rho, rng, **task["options"]), {}
    made = model.synthetic_data(rows=len(rows)).decompress(merged).to_dict()
    synthetic = pd.DataFrame({name: made[name].astype(int) for name in levels})
    for name, size in levels.items():
        if size is None:
            synthetic[name] = (synthetic[name] + rng.random(len(synthetic))) / BINS
    synthetic.to_csv(folder / "synthetic.csv", index=False)
    cost = {
        "cpu_seconds": round(time.process_time() - before, 1),
        "wall_seconds": round(time.monotonic() - start, 1),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }
    (folder / "cost.json").write_text(json.dumps(cost))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
