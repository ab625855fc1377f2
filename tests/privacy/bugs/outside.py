"""Bugs of what stands beside the noisy sums: fields, cards, files, words on the terminal, exit codes."""

from __future__ import annotations

import hashlib
import sys
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
import torch
from safetensors.torch import load, save

from dpmerf.encoding.codec import Batch, Codec
from dpmerf.errors import DataError
from dpmerf.private import local, measure
from dpmerf.private.noise import NoiseSource
from dpmerf.release.release import TENSORS, Release
from privacy.bugs.bug import Bug, Leak, beside, leaking, on_the_card, publishing


def rows_in_the_document(patch: pytest.MonkeyPatch) -> None:
    leak = leaking(patch)
    publishing(patch, lambda: {"rows_read": leak.rows})


def fingerprint(patch: pytest.MonkeyPatch) -> None:
    leak = leaking(patch)
    publishing(patch, lambda: {"data_sha256": hashlib.sha256(str(_table(leak).to_pylist()).encode()).hexdigest()})


def ranges_seen(patch: pytest.MonkeyPatch) -> None:
    leak = leaking(patch)

    def mean() -> float:
        return float(pc.mean(_table(leak)["x"]).as_py())

    publishing(patch, lambda: {"statistics": {"x": {"mean": mean()}}})


def best_in_the_document(patch: pytest.MonkeyPatch) -> None:
    scores = _scores(patch)
    publishing(patch, lambda: {"best": scores[-1].index(max(scores[-1]))})


def scores_in_the_document(patch: pytest.MonkeyPatch) -> None:
    scores = _scores(patch)
    publishing(patch, lambda: {"scores": scores[-1]})


def _scores(patch: pytest.MonkeyPatch) -> list[list[int]]:
    """The exact scores of a choice."""
    kept: list[list[int]] = []
    real = measure.choose

    def noted(exact: Any, phi: Any, shares: Any, unit: Any, loss_range: float, noise: NoiseSource) -> int:
        class Noted(NoiseSource):
            name = noise.name

            def add(self, *arguments: Any) -> torch.Tensor:
                return noise.add(*arguments)

            def choose(self, scores: list[int], scale: float) -> int:
                kept.append(list(scores))
                return noise.choose(scores, scale)

        return real(exact, phi, shares, unit, loss_range, Noted())

    patch.setattr(measure, "choose", noted)
    return kept


def counts_on_the_card(patch: pytest.MonkeyPatch) -> None:
    leak = leaking(patch)

    def line() -> str:
        counts = pc.value_counts(_table(leak)["y"]).to_pylist()
        return "\nClasses: " + ", ".join(f"{c['values']}: {c['counts']}" for c in sorted(counts, key=str)) + "\n"

    on_the_card(patch, line)


def persons_on_the_card(patch: pytest.MonkeyPatch) -> None:
    leak = leaking(patch)
    on_the_card(patch, lambda: f"\nPersons: {pc.count_distinct(_table(leak)['who']).as_py()}\n")


def counter_on_the_terminal(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(local, "_bar", lambda rows, plan, bars, what: bars.task(what, rows.stored_count, "rows"))


def _at_encoding(patch: pytest.MonkeyPatch, look: Any) -> None:
    real = Codec.encode

    def looked(self: Codec, table: pa.Table) -> Batch:
        batch = real(self, table)
        look(batch)
        return batch

    patch.setattr(Codec, "encode", looked)


def clipped_cells_said(patch: pytest.MonkeyPatch) -> None:
    def say(batch: Batch) -> None:
        clipped = int((batch.numbers >= 1).sum())
        sys.stderr.write(f"note: {clipped} cells lie at the upper bound of their range\n")

    _at_encoding(patch, say)


def empty_class_said(patch: pytest.MonkeyPatch) -> None:
    def say(batch: Batch) -> None:
        for missing in sorted({0, 1, 2} - set(batch.codes["y"].tolist())):
            sys.stderr.write(f"warning: no picture of class {missing}\n")

    _at_encoding(patch, say)


def constant_column_refused(patch: pytest.MonkeyPatch) -> None:
    def refuse(batch: Batch) -> None:
        if bool((batch.numbers.std(dim=0, unbiased=False) == 0).any()):
            raise DataError("a column is constant: remove it from the schema")

    _at_encoding(patch, refuse)


def value_quoted(patch: pytest.MonkeyPatch) -> None:
    def refuse(batch: Batch) -> None:
        raise DataError(f"cannot read the cell {float(batch.numbers[0, 0])}")

    _at_encoding(patch, refuse)


def exact_tensor(patch: pytest.MonkeyPatch) -> None:
    leak, real = leaking(patch), Release.files

    def files(self: Release) -> dict[str, bytes]:
        found = real(self)
        return {**found, TENSORS: save({**load(found[TENSORS]), "check": leak.sums[-1]})}

    patch.setattr(Release, "files", files)


def example_rows(patch: pytest.MonkeyPatch) -> None:
    leak = leaking(patch)
    beside(patch, "example.csv", lambda: str(_table(leak).slice(0, 2).to_pylist()).encode())


def resume_file(patch: pytest.MonkeyPatch) -> None:
    """A file to go on from after a crash: one zero for every row that was read."""
    leak = leaking(patch)
    beside(patch, "resume.bin", lambda: b"\xff" + bytes(leak.rows))


def occupied_cells(patch: pytest.MonkeyPatch) -> None:
    """Which cells hold any row, to save space."""
    leak = leaking(patch)
    beside(patch, "occupied.bin", lambda: bytes((leak.sums[-1] != 0).to(torch.uint8).tolist()))


def _table(leak: Leak) -> pa.Table:
    assert leak.table is not None
    return leak.table


BUGS = (
    Bug(
        "exact private n in release.json",
        "metadata",
        "embedding, add-remove",
        rows_in_the_document,
        ("replay", "black box"),
    ),
    Bug("fingerprint of the data in release.json", "metadata", "images", fingerprint, ("replay",), ("black box",)),
    Bug("mean of a column in release.json", "metadata", "wide", ranges_seen, ("replay",), ("black box",)),
    Bug("exact arg-max in release.json", "metadata", "few rows", best_in_the_document, ("replay",), ("black box",)),
    Bug("exact scores in release.json", "metadata", "few rows", scores_in_the_document, ("replay",)),
    Bug(
        "exact class counts on the card",
        "counts",
        "tables, add-remove",
        counts_on_the_card,
        ("replay",),
        ("black box",),
    ),
    Bug("number of persons on the card", "counts", "persons", persons_on_the_card, ("replay",), ("black box",)),
    Bug(
        "row counter on a terminal, add-remove",
        "terminal",
        "embedding, add-remove",
        counter_on_the_terminal,
        ("replay",),
        ("black box",),
    ),
    Bug(
        "row counter on a terminal, persons",
        "terminal",
        "persons, tables",
        counter_on_the_terminal,
        ("replay", "black box"),
    ),
    Bug("clipped cells counted on the terminal", "terminal", "wide", clipped_cells_said, ("replay",), ("black box",)),
    Bug("an empty class named on the terminal", "terminal", "images", empty_class_said, ("replay",)),
    Bug("a constant column refused", "terminal", "tables", constant_column_refused, ("replay",)),
    Bug("an error that quotes a cell", "terminal", "embedding", value_quoted, ("replay",)),
    Bug("exact sums in a tensor of their own", "files", "wide", exact_tensor, ("replay",), ("black box",)),
    Bug("example rows beside the release", "files", "tables", example_rows, ("replay",)),
    Bug("a file as long as the private table", "files", "persons", resume_file, ("replay",), ("black box",)),
    Bug("a file of occupied cells", "files", "tables", occupied_cells, ("replay",)),
)
