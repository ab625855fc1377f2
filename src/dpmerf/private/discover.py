"""Discover: look at rows before anything is declared. Spend first; only noisy numbers and frequent values leave.

`scales`: what the cells of each column are and how large. Of those that hold numbers: `tails` (how large, where that
was not seen), `ends` (the last powers of two in parts) and `digits`. `values`: frequent texts, by noisy weights above a
threshold, in rounds. In tails, ends and rounds a row counts by what is not yet known alone: its columns share norm 1.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from dpmerf.accounting.events import Added, Gaussian
from dpmerf.discovery.bought import rows_of
from dpmerf.discovery.discovery import Discovery, first_look, measured, noisy_scales, second_look, text_columns
from dpmerf.discovery.looks import PARTS, SCALES, Cells, digits, look, parts, scale
from dpmerf.discovery.purchase import LEFT_OUT, Purchase, map_of_digits, map_of_scales
from dpmerf.discovery.ranges import edges, outside
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
    noise of the σ that its bounds ask for, whatever the stages before it released; what a rare value adds to δ
    by showing is in `Purchase.threshold`. The ledger is charged before the first row is read.
    """
    rows.require(list(purchase.columns) + ([purchase.unit.person] if purchase.unit.person else []))
    if noise is None:
        check_sampler()
        noise = OpenDPGaussian()
    charge = _charge(ledger, purchase)
    scales: tuple[int, ...] = ()
    tails, ends, last_digits = scales, scales, scales
    if purchase.looked_at:
        phi = map_of_scales(purchase.looked_at)
        scales = _noisy(rows, purchase, phi, "scales", purchase.looked_at, noise, bars)
    found = first_look(purchase, scales)
    if numeric := measured(found):
        tails = _shared(
            rows, purchase, "tails", numeric, SCALES, lambda name, seen: outside(found[name], scale(seen)), noise, bars
        )
        wide = second_look(purchase, found, tails, rows_of(purchase, noisy_scales(purchase, scales)))
        closer = {name: edges(purchase, wide[name]) for name in numeric}
        ends = _shared(
            rows, purchase, "ends", numeric, PARTS, lambda name, seen: parts(seen, closer[name]), noise, bars
        )
        last_digits = _noisy(rows, purchase, map_of_digits(numeric), "digits", numeric, noise, bars)
    values, left = frequent(rows, purchase, text_columns(purchase, found), noise, bars)
    return Discovery(purchase, noise.name, scales, tails, ends, last_digits, values, left, charge)


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
    names: tuple[str, ...],
    noise: NoiseSource,
    bars: Bars,
) -> tuple[int, ...]:
    """One look at each column, a one-hot each."""
    sums = Sums(phi)
    for table in _admitted(rows, purchase, bars, f"reading ({stage})", os.urandom(KEY_BYTES)):
        codes: dict[str, torch.Tensor] = {}
        for name in names:
            seen = look(table.column(name), purchase.reading.cells)
            if stage == "scales":
                codes[f"{name}#scale"] = torch.from_numpy(scale(seen))
            else:
                codes[f"{name}#digits"] = torch.from_numpy(digits(seen))
        sums.add(Batch(torch.zeros(table.num_rows, 0, dtype=torch.float64), codes))
    _check_rows(purchase, sums.rows)
    return tuple(noise.add(sums.total(), purchase.sigma(stage, phi)).tolist())


def _shared(
    rows: Rows,
    purchase: Purchase,
    stage: str,
    names: tuple[str, ...],
    size: int,
    place: Callable[[str, Cells], np.ndarray],
    noise: NoiseSource,
    bars: Bars,
) -> tuple[int, ...]:
    """A look at some cells of a row (place −1: none), which share norm 1."""
    sums, count = np.zeros((len(names), size), np.int64), 0
    for table in _admitted(rows, purchase, bars, f"reading ({stage})", os.urandom(KEY_BYTES)):
        codes = [place(name, look(table.column(name), purchase.reading.cells)) for name in names]
        sums += shared_sums(codes, size)
        count += table.num_rows
    _check_rows(purchase, count)
    sigma = purchase.shared_sigma(stage) * 2**BITS
    return tuple(noise.add(torch.from_numpy(sums).flatten(), sigma).tolist())


def shared_sums(codes: list[np.ndarray], size: int) -> np.ndarray:
    """(columns, size) sums of rows in which r columns have a place: each weighs ⌊2²⁴ ÷ √r⌋, so a row's norm is 2²⁴ at
    most, and two rows, which have no negative entry, are √2 times that apart at most."""
    weight = weights(codes)
    return np.stack([np.bincount(c[c >= 0], weight[c >= 0], size).astype(np.int64) for c in codes])


def weights(codes: list[np.ndarray]) -> np.ndarray:
    """(n,) what each of a row's places weighs: whole numbers of the grid, in float64."""
    held = np.sum([c >= 0 for c in codes], axis=0)
    table = [0, *(math.isqrt(2 ** (2 * BITS) // r) for r in range(1, len(codes) + 1))]
    return np.array(table, dtype=np.float64)[held]


def _check_rows(purchase: Purchase, count: int) -> None:
    if purchase.unit.rows_public and count != purchase.rows:
        raise DataError("the data changed while it was read: the number of rows differs between two passes")


def frequent(
    rows: Rows, purchase: Purchase, names: tuple[str, ...], noise: NoiseSource, bars: Bars
) -> tuple[dict[str, tuple[tuple[str, int], ...]], tuple[int, ...]]:
    """Values of each text column whose noisy weight passes a threshold, and noisy weights of nulls and of the rest.

    In each round a row counts by those of its values that have no name yet. Memory is bounded: where there may be more
    values than are kept, the rows are read again for each part of the values, which a secret hash divides. What comes
    out does not depend on how many parts there are.
    """
    if not names:
        return {}, ()
    key = os.urandom(KEY_BYTES)  # one for all rounds and parts: a person has the same rows in each
    divided = max(1, math.ceil(purchase.rows * len(names) / KEPT))
    found: dict[str, list[tuple[str, int]]] = {name: [] for name in names}
    rounds = purchase.rounds(len(names))
    for turn in range(len(rounds)):
        sigma, least, threshold = purchase.threshold(len(names), turn)
        passed: dict[str, list[tuple[str, int]]] = {name: [] for name in names}
        for part in range(divided):
            counts: dict[str, Counter[str]] = {name: Counter() for name in names}
            what = f"reading (values, {turn * divided + part + 1} of {len(rounds) * divided})"
            for table in _admitted(rows, purchase, bars, what, key):
                for name, (texts, weight) in _unnamed(table, purchase, found).items():
                    for text, more in zip(texts, weight, strict=True):
                        if more and (divided == 1 or _number(text, key) % divided == part):
                            counts[name][text] += more
            for name in names:
                kept = [(text, weight) for text, weight in counts[name].items() if weight >= least << BITS]
                exact = torch.tensor([weight for _, weight in kept], dtype=torch.int64)
                noisy = noise.add(exact, sigma * 2**BITS).tolist()
                passed[name] += [(t, n) for (t, _), n in zip(kept, noisy, strict=True) if n >= threshold * 2**BITS]
        for name in names:
            found[name] += sorted(passed[name], key=lambda pair: (-pair[1], pair[0]))
    sums = np.zeros((len(names), 2), np.int64)
    for table in _admitted(rows, purchase, bars, "reading (values, the rest)", key):
        sums += shared_sums([_left(*_texts(table.column(n), purchase), found[n]) for n in names], 2)
    sigma = purchase.shared_sigma("values", purchase.settings.left) * 2**BITS
    left = tuple(noise.add(torch.from_numpy(sums).flatten(), sigma).tolist())
    return {name: tuple(pairs) for name, pairs in found.items()}, left


def _unnamed(
    table: pa.RecordBatch, purchase: Purchase, found: dict[str, list[tuple[str, int]]]
) -> dict[str, tuple[list[str], list[int]]]:
    """Texts of a batch that can be named and are not yet, by column, with their weights."""
    texts, codes = {}, {}
    for name, pairs in found.items():
        texts[name], code = _texts(table.column(name), purchase)
        known = {text for text, _ in pairs}
        new = [
            t not in known and len(t.encode("utf-8", "replace")) <= _LONGEST and t.isprintable() for t in texts[name]
        ]
        codes[name] = np.where(np.array([*new, False])[code], code, -1)
    weight = weights(list(codes.values()))
    summed = {n: np.bincount(c[c >= 0], weight[c >= 0], len(texts[n])).astype(np.int64) for n, c in codes.items()}
    return {name: (texts[name], summed[name].tolist()) for name in found}


def _can_be_named(text: str) -> bool:
    return len(text.encode("utf-8", "replace")) <= _LONGEST and text.isprintable()


def _left(texts: list[str], code: np.ndarray, pairs: list[tuple[str, int]]) -> np.ndarray:
    """(n,) 0: null, 1: no named value, −1: named."""
    known = {text for text, _ in pairs}
    return np.array([*(-1 if text in known else 1 for text in texts), 0])[code]


def _texts(column: pa.Array, purchase: Purchase) -> tuple[list[str], np.ndarray]:
    """Different texts of a batch, and the place of each row's text among them; −1: null."""
    text = cells.text_of(notations.without_missing(cells.read(column), purchase.reading.cells))
    text = pc.if_else(pc.equal(pc.ascii_trim_whitespace(text), ""), pa.scalar(None, text.type), text)
    encoded = text.dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    return encoded.dictionary.to_pylist(), np.asarray(encoded.indices.fill_null(-1), dtype=np.int64)


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
