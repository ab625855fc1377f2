"""Discover: look at rows before anything is declared. Spend first; only noisy numbers and frequent values leave.

Three stages. `scales`: what the cells of each column are and how large. `ranges`: windows and digits of those that hold
numbers, chosen by what the first stage released. `values`: frequent texts, by noisy counts above a threshold.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from dpmerf.accounting.events import Added, Gaussian
from dpmerf.discovery.discovery import Discovery, first_look, second_look, text_columns
from dpmerf.discovery.looks import digits, look, scale, window
from dpmerf.discovery.purchase import LEFT_OUT, Purchase, map_of_scales
from dpmerf.encoding import cells, notations
from dpmerf.encoding.codec import Batch
from dpmerf.errors import DataError
from dpmerf.features.algebra import BITS, FeatureMap
from dpmerf.private.contribute import Sums
from dpmerf.private.ledger import Ledger
from dpmerf.private.noise import NoiseSource, OpenDPGaussian, check_sampler
from dpmerf.private.persons import KEY_BYTES, PersonCap, tags
from dpmerf.progress import SILENT, Bars
from dpmerf.release.release import Charge
from dpmerf.sources.rows import Rows

KEPT = 2**21  # different values that are counted at a time, all columns together
_LONGEST = 128  # bytes of a value that can be named


def discover(
    rows: Rows,
    purchase: Purchase,
    *,
    ledger: Ledger | None = None,
    noise: NoiseSource | None = None,
    bars: Bars = SILENT,
) -> Discovery:
    """Buy what the purchase asks for.

    Formal guarantee: the result is (purchase.epsilon, purchase.delta)-DP for purchase.unit. Each stage is Gaussian
    noise of the σ that its map's bounds ask for, whatever the stages before it released; what a rare value adds to δ
    by showing is in `Purchase.threshold`. The ledger is charged before the first row is read.
    """
    rows.require(list(purchase.columns) + ([purchase.unit.person] if purchase.unit.person else []))
    if noise is None:
        check_sampler()
        noise = OpenDPGaussian()
    charge = _charge(ledger, purchase)
    scales: tuple[int, ...] = ()
    ranges: tuple[int, ...] = ()
    if purchase.looked_at:
        phi = map_of_scales(purchase.looked_at)
        scales = _noisy(rows, purchase, phi, "scales", {}, noise, bars)
    found = first_look(purchase, scales)
    windows, phi = second_look(purchase, found)
    if windows:
        ranges = _noisy(rows, purchase, phi, "ranges", windows, noise, bars)
    values = _frequent(rows, purchase, text_columns(purchase, found), noise, bars)
    return Discovery(purchase, noise.name, scales, ranges, values, charge)


def _charge(ledger: Ledger | None, purchase: Purchase) -> Charge | None:
    if ledger is None:
        return None
    extra = purchase.discrete_delta_at(ledger.epsilon) + purchase.threshold_delta_at(ledger.epsilon)
    entry = ledger.spend(purchase.hash, "discover", (Gaussian(purchase.mu), Added(extra)), purchase.unit)
    return Charge(ledger.id, entry.hash)


def _noisy(
    rows: Rows,
    purchase: Purchase,
    phi: FeatureMap,
    stage: str,
    windows: dict[str, tuple[float, float]],
    noise: NoiseSource,
    bars: Bars,
) -> tuple[int, ...]:
    """One stage of looks."""
    names = tuple(windows) or purchase.looked_at
    sums = Sums(phi)
    for table in _admitted(rows, purchase, bars, f"reading ({stage})", os.urandom(KEY_BYTES)):
        codes: dict[str, torch.Tensor] = {}
        for name in names:
            seen = look(table.column(name), purchase.reading.cells)
            if stage == "scales":
                codes[f"{name}#scale"] = torch.from_numpy(scale(seen))
            else:
                codes[f"{name}#window"] = torch.from_numpy(window(seen, *windows[name]))
                codes[f"{name}#digits"] = torch.from_numpy(digits(seen))
        sums.add(Batch(torch.zeros(table.num_rows, 0, dtype=torch.float64), codes))
    _check_rows(purchase, sums.rows)
    return tuple(noise.add(sums.total(), purchase.sigma(stage, phi)).tolist())


def _check_rows(purchase: Purchase, count: int) -> None:
    if purchase.unit.rows_public and count != purchase.rows:
        raise DataError("the data changed while it was read: the number of rows differs between two passes")


def _frequent(
    rows: Rows, purchase: Purchase, names: tuple[str, ...], noise: NoiseSource, bars: Bars
) -> dict[str, tuple[tuple[str | None, int], ...]]:
    """Values of each text column whose noisy count passes the threshold; before them the noisy count of nulls.

    Memory is bounded: where there may be more values than are kept, the rows are read again for each part of the
    values, which a secret hash divides. What comes out does not depend on how many parts there are.
    """
    if not names:
        return {}
    sigma, least, threshold = purchase.threshold(len(names))
    parts = max(1, math.ceil(purchase.rows * len(names) / KEPT))
    key = os.urandom(KEY_BYTES)  # one for all parts: a person has the same rows in each
    found: dict[str, list[tuple[str | None, int]]] = {name: [] for name in names}
    nulls = dict.fromkeys(names, 0)
    for part in range(parts):
        counts: dict[str, Counter[str]] = {name: Counter() for name in names}
        for table in _admitted(rows, purchase, bars, f"reading (values, {part + 1} of {parts})", key):
            for name in names:
                texts, number, absent = _texts(table.column(name), purchase)
                nulls[name] += absent if part == 0 else 0
                for text, count in zip(texts, number, strict=True):
                    if parts == 1 or _number(text, key) % parts == part:
                        counts[name][text] += count
        for name in names:
            kept = [(text, count) for text, count in counts[name].items() if count >= least]
            exact = torch.tensor([count for _, count in kept], dtype=torch.int64) << BITS
            noisy = noise.add(exact, sigma * 2**BITS).tolist()
            found[name] += [(t, n) for (t, _), n in zip(kept, noisy, strict=True) if n >= threshold * 2**BITS]
    absent_ones = torch.tensor([nulls[name] for name in names], dtype=torch.int64) << BITS
    noisy_nulls = noise.add(absent_ones, sigma * 2**BITS).tolist()
    return {
        name: ((None, null), *sorted(found[name], key=lambda pair: (-pair[1], pair[0] or "")))
        for name, null in zip(names, noisy_nulls, strict=True)
    }


def _texts(column: pa.Array, purchase: Purchase) -> tuple[list[str], list[int], int]:
    """Different texts of a batch, how often each stands there, and the number of nulls. Long texts are left out."""
    text = cells.text_of(notations.without_missing(cells.read(column), purchase.reading.cells))
    text = pc.if_else(pc.equal(pc.ascii_trim_whitespace(text), ""), pa.scalar(None, text.type), text)
    short = text.filter(pc.less_equal(pc.binary_length(text), _LONGEST))
    counted = short.value_counts()
    values, counts = counted.field("values").to_pylist(), counted.field("counts").to_pylist()
    printable = [(v, c) for v, c in zip(values, counts, strict=True) if v is not None and v.isprintable()]
    return [v for v, _ in printable], [c for _, c in printable], text.null_count


def _admitted(rows: Rows, purchase: Purchase, bars: Bars, what: str, key: bytes) -> Iterator[pa.RecordBatch]:
    """The rows that count: all of them, or at most k of each person, chosen by that person's rows and a secret key."""
    person = purchase.unit.person
    names = [name for name, kind in purchase.columns.items() if kind != LEFT_OUT]
    columns = names + ([person] if person is not None and person not in names else [])
    with bars.task(what) as advance:
        if person is None:
            for table in rows.batches(columns):
                advance(table.num_rows)
                yield table
            return
        cap, seen = PersonCap(purchase.unit.max_rows, key), 0
        for table in rows.batches(columns):
            cap.see(tags(table.column(person), _hashed(table, names, key), key))
        chosen = cap.chosen()
        for table in rows.batches(columns):
            seen += table.num_rows
            taken = chosen.take(tags(table.column(person), _hashed(table, names, key), key))
            advance(table.num_rows)
            yield table.take(pa.array(taken.numpy()))
        if seen != chosen.seen:
            raise DataError("the data changed while it was read: release a copy that nobody writes to")


def _hashed(table: pa.RecordBatch, names: list[str], key: bytes) -> Batch:
    """What a person's rows are ranked by: their cells. Rows of one rank look the same in every stage."""
    codes = {}
    for name in names:
        encoded = cells.text_of(cells.read(table.column(name))).dictionary_encode()
        hashed = [_number(text, key) for text in encoded.dictionary.to_pylist()] + [0]
        index = np.asarray(encoded.indices.fill_null(len(hashed) - 1))
        codes[name] = torch.from_numpy(np.array(hashed, np.int64)[index])
    return Batch(torch.zeros(table.num_rows, 0, dtype=torch.float64), codes)


def _number(text: str, key: bytes) -> int:
    """63 bits of a secret hash."""
    digest = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8, key=key).digest()
    return int.from_bytes(digest, "big") >> 1


def public_fields(rows: Rows) -> dict[str, Any]:
    """Column names with stored types; none where a library chose the types by looking at cells."""
    return {name: None if rows.guessed_types else stored for name, stored in rows.fields.items()}
