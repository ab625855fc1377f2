"""The page of the speed experiment: tables, and one figure of how the costs grow."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from benchmarks.pages import table
from benchmarks.speed_before import page as before
from benchmarks.speed_mixing import page as mixing
from benchmarks.store import Store

GROWS = ("rows", "columns", "D", "classes")


def page(store: Store) -> str:
    parts = [
        _release(store),
        _steps(store),
        _tables(store),
        mixing(store),
        before(store),
        _commands(store),
        _whole(store),
        _memory(store),
        _wide(store),
        _spark(store),
        _growth(store),
    ]
    return "\n\n".join(part for part in parts if part)


def _cells(store: Store, prefix: str) -> dict[str, Any]:
    return {"/".join(key): cell for key, cell in store.cells(f"speed/{prefix}") if "error" not in cell}


def _release(store: Store) -> str:
    rows = []
    for cell in sorted(_cells(store, "release").values(), key=lambda c: c.get("dim", 0)):
        if "dim" in cell:
            s = {name: f"{1e6 * value:.2f}" for name, value in cell["seconds_per_row"].items()}
            share = f"**{cell['share_of_limit']:.0%}**"
            rows.append([f"{cell['dim']:,}", f"{cell['rows']:,}", s["reading"], s["limit"], s["release"], share])
    header = ["D", "rows", "reading Parquet", "limit", "release", "of the limit"]
    words = "Release of 20 mixed columns, CPU µs a row, one thread; limit = float64 matrix product + cos + sin.\n\n"
    text = words + table(header, rows) if rows else ""
    default = store.read("speed/release/default")
    if default and "error" not in default:
        per = 1e6 / default["rows"]
        text += (
            f"\n\nThe default preset (two passes, {default['coordinates']:,} coordinates): "
            f"{default['release'] * per:.2f} CPU µs a row, without the noise; reading the file once: "
            f"{default['reading'] * per:.2f}."
        )
    return text


def _steps(store: Store) -> str:
    rows = []
    for name, cell in _cells(store, "step").items():
        limit, ours, outer = (1e3 * cell[k] for k in ("limit", "ours", "outer"))
        times = [f"{limit:.1f}", f"{ours:.1f}", f"{outer:.1f}", f"**{ours / limit:.2f}**", f"**{outer / ours:.1f}**"]
        batch, columns, dim, classes = (f"{int(part):,}" for part in name.split("-"))
        rows.append([f"{batch} × {columns}, D {dim}, {classes} classes", *times])
    header = ["batch", "limit, ms", "ours, ms", "n×D×C form, ms", "ours ÷ limit", "n×D×C ÷ ours"]
    return "Training: loss and gradient of the embedding, CPU time.\n\n" + table(header, rows) if rows else ""


def _tables(store: Store) -> str:
    rows, pairs = [], _cells(store, "pairs")
    found = [
        {**cell, **({"pair_cells": pairs[what]["pair_cells"]} if what in pairs else {})}
        for what, cell in _cells(store, "tables").items()
    ]
    for cell in sorted(found, key=lambda c: (c["what"].isdecimal(), c["cells"])):
        name = f"{cell['what']} simulated columns" if cell["what"].isdecimal() else cell["what"]
        ended = f"{cell['steps']} steps: {cell['stopped']}"
        drawn = f"{cell['rows_per_cpu_second']:,.0f}"
        once = f"{cell['pair_cells']:,}" if "pair_cells" in cell else "–"
        rows.append([name, str(cell["columns"]), f"{cell['cells']:,}", once, f"{cell['training']:.1f}", ended, drawn])
    header = [
        "table",
        "columns",
        "coordinates",
        "cells of pairs",
        "training, CPU s",
        "ended",
        "rows drawn a CPU second",
    ]
    words = "The tables model, one thread.\n\n" + table(header, rows)
    return f"{words}\n\n{_exponents(found)}".rstrip() if rows else ""


def _exponents(cells: list[Any]) -> str:
    """Growth of training and of drawing a row, from each number of simulated columns to the next and over all."""
    sized = sorted((c for c in cells if c["what"].isdecimal() and "pair_cells" in c), key=lambda c: c["columns"])
    if len(sized) < 2:
        return ""
    found = []
    for a, b in [*pairwise(sized), (sized[0], sized[-1])]:
        grown = math.log(b["pair_cells"] / a["pair_cells"])
        training = math.log(b["training"] / a["training"]) / grown
        drawing = math.log(a["rows_per_cpu_second"] / b["rows_per_cpu_second"]) / grown
        found.append(f"{a['columns']} → {b['columns']} columns {training:.2f} and {drawing:.2f}")
    return (
        "Exponents of growth in cells of pairs, training and drawing: " + "; ".join(found) + ". A cell of a pair is "
        "counted once, however many tables hold it: where label × pair tables no longer pay, coordinates hardly grow."
    )


def _commands(store: Store) -> str:
    """Start-up, the report, threads and many rows."""
    parts = []
    if starts := _cells(store, "startup").get(""):
        rows = [[f"`{name}`" if "report" not in name else name, f"{spent:.2f}"] for name, spent in starts.items()]
        parts.append(
            "Commands on adult, CPU s (report alone: without what it loads).\n\n" + table(["command", "CPU s"], rows)
        )
    if busy := _cells(store, "threads").get(""):
        one, ours, ratio = busy["one"], busy["default"], busy["ratio"]
        parts.append(
            f"`synth` on adult beside a busy process (load {busy['load']:.0f}): {ours['cpu']:.1f} CPU s and "
            f"{ours['wall']:.1f} s with threads left to the program, {one['cpu']:.1f} and {one['wall']:.1f} with one: "
            f"**{ratio['cpu']:.2f}** and **{ratio['wall']:.2f}** times."
        )
    for cell in sorted(_cells(store, "drawn").values(), key=lambda c: c["rows"]):
        parts.append(
            f"`sample` of {cell['rows']:,} rows of adult to Parquet, start-up included: {cell['cpu']:.0f} CPU s, "
            f"{cell['rows_per_cpu_second']:,.0f} rows a CPU second, {cell['wall']:.0f} s, peak {cell['peak_mb']:,} MB."
        )
    for cell in sorted(_cells(store, "engines").values(), key=lambda c: c["rows"]):
        quiet = "said nothing" if not cell["spark"]["said"] else "was not quiet"
        parts.append(
            f"`release --quiet` of {cell['rows']:,} rows × 6 columns: {cell['local']['cpu']:.1f} CPU s here, "
            f"{cell['spark']['cpu']:.1f} on Spark `local[2]` with Java: **{cell['ratio']:.2f}** times; Spark {quiet}."
        )
    return "\n\n".join(parts)


def _whole(store: Store) -> str:
    rows = []
    for name, cell in _cells(store, "whole").items():
        theirs = [c["cpu_seconds"] for _, c in store.cells(f"peers/{name}/1/mbi-mst") if "cpu_seconds" in c]
        said = " / ".join(f"{t:.0f}" for t in theirs) or "–"
        rows.append([name, f"{cell['cpu_seconds']:.1f}", said, f"{cell['peak_mb']:,.0f}"])
    words = "A whole run at ε = 1 (release, training, as many rows), CPU s; MST of mbi as `peers` stored it before.\n\n"
    return words + table(["table", "ours", "mbi-MST", "ours, peak MB"], rows) if rows else ""


def _memory(store: Store) -> str:
    rows = []
    for what in ("memory", "sampling"):
        for cell in sorted(_cells(store, what).values(), key=lambda c: (c.get("preset", ""), c["rows"])):
            speed = cell.get("rows_per_second") or cell["rows"] / cell["wall"]
            name = "release (default)" if what == "memory" else f"sampling to Parquet ({cell['preset']})"
            rows.append([name, f"{cell['rows']:,}", f"{cell['peak_mb']:,}", f"{speed:,.0f}", f"{cell['cpu']:.0f}"])
    header = ["what", "rows", "peak memory, MB", "rows/s (wall, shared machine)", "CPU s"]
    return "Memory, each in a process of its own.\n\n" + table(header, rows) if rows else ""


def _wide(store: Store) -> str:
    cell = store.read("speed/wide")
    if not cell or "error" in cell:
        return ""
    timed = {k: v for k, v in cell.items() if isinstance(v, float) and k not in ("wall", "cpu")}
    rows = [[name.replace("_", " "), f"{1e6 * value:.1f}"] for name, value in timed.items()]
    sizes = ", ".join(f"{name} {size:,}" for name, size in cell["coordinates"].items())
    words = f"Parts of a release of {cell['columns']} columns, CPU µs a row (noise: a coordinate). "
    return f"{words}Coordinates: {sizes}.\n\n" + table(["part", "CPU µs"], rows)


def _spark(store: Store) -> str:
    cell = store.read("speed/spark")
    if not cell or "error" in cell:
        return ""
    rows = [
        [name, f"{cell[f'local{key}']:.1f}", f"{cell[f'spark{key}']:.1f}"]
        for name, key in (("every row its own unit", ""), ("persons capped at 5 rows (a shuffle)", "_capped"))
    ]
    words = f"{cell['rows']:,} rows, D = 1,000, wall seconds on the same two cores, workers already up.\n\n"
    return words + table(["", "local", "Spark local[2]"], rows)


def _growth(store: Store) -> str:
    cells = list(_cells(store, "growth").values())
    if not cells:
        return ""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.ticker import LogLocator

    figure, axes = pyplot.subplots(2, len(GROWS), figsize=(13, 5.5), sharey="row")
    for what, (top, bottom) in zip(GROWS, axes.T, strict=True):
        points = sorted((c for c in cells if c["what"] == what), key=lambda c: c["value"])
        values = [p["value"] for p in points]
        top.loglog(values, [1e6 * p["release"] for p in points], "o-", color="#0b6e99", label="release")
        bottom.loglog(values, [1e3 * p["step"] for p in points], "o-", color="#b3541e", label="training step")
        bottom.loglog(values, [1e3 * p["step_limit"] for p in points], ":", color="#555555", label="its limit")
        bottom.set_xlabel(what)
        for axis in (top, bottom):
            axis.set_xticks(values, [f"{v:,}" for v in values])
            axis.minorticks_off()
    axes[0, 0].set_ylabel("release, CPU µs a row")
    axes[1, 0].set_ylabel("training step, CPU ms")
    axes[1, 0].legend(frameon=False)
    for axis in axes[:, 0]:
        axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.yaxis.set_major_formatter("{x:g}")
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(alpha=0.25)
    figure.tight_layout()
    target = store.folder / "speed" / "growth.svg"
    pyplot.rcParams["svg.hashsalt"] = "dpmerf"
    figure.savefig(target, metadata={"Date": None})
    figure.savefig(target.with_suffix(".png"), dpi=110)
    pyplot.close(figure)
    return "![Growth of the release and of the training step](results/speed/growth.svg)"
