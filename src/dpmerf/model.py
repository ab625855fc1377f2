"""Model: a trained generator with its release's guarantee. Draws rows, saves and loads."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
import pyarrow as pa
import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

import dpmerf
from dpmerf.encoding.codec import Batch
from dpmerf.encoding.conditions import held, met
from dpmerf.errors import ArtefactError, DpmerfError, TrainError
from dpmerf.folders import read_bytes, read_json, write_folder
from dpmerf.generators.base import Generator, Given, History, State
from dpmerf.generators.maxent.maxent import MaxEnt
from dpmerf.generators.maxent.posterior import draws
from dpmerf.generators.registry import generator_of
from dpmerf.generators.threads import in_few_threads
from dpmerf.plan import digest
from dpmerf.release.release import CARD, Release
from dpmerf.shown import Shown

FORMAT = 2
DOCUMENT, TENSORS = "model.json", "weights.safetensors"
CHUNK, CELLS = 200_000, 2**24  # rows, and numbers, drawn at a time
TRIES = 100  # rejection rounds before a shortfall is admitted


@final
@dataclass(frozen=True, repr=False)
class Model(Shown):
    """Everything that `sample` needs. Made by `train` or `Model.load` from a release alone, whose guarantee it keeps.

    Parameters
    ----------
    release : Release
        What it was trained from.
    generator, history, seed
        The fitted generator, how its training went, and the seed of both training and drawing.

    Examples
    --------
    >>> model = Model.load("out/model")  # doctest: +SKIP
    >>> model.sample(1_000, given={"ward": "surgery"}, seed=7)  # doctest: +SKIP
    """

    release: Release
    generator: Generator
    history: History
    seed: int

    def sample(self, n: int, given: dict[str, Any] | None = None, seed: int | None = None) -> pa.Table:
        """n synthetic rows as an Arrow table.

        Parameters
        ----------
        n : int
            How many rows.
        given : dict, optional
            Columns to hold fixed, by name; None holds a column at null.
        seed : int, optional
            Other rows for another seed; the model's own if left out.
        """
        return pa.concat_tables(self.stream(n, given, seed))

    def stream(self, n: int, given: dict[str, Any] | None = None, seed: int | None = None) -> Iterator[pa.Table]:
        """The same rows as `sample`, in parts of bounded size."""
        if n < 1:
            raise TrainError(f"n is {n}: ask for 1 row or more")
        check_seed(self.seed if seed is None else seed)
        rng = torch.Generator().manual_seed(self.seed if seed is None else seed)
        codec = self.release.codec
        codec.declared.check_ids(n)
        own, row = held(codec, given) if given else ({}, None)
        fixed = Given(frozenset(own), row) if row is not None else None
        checked = given if given and codec.relations is not None else None
        chunk = max(1, min(CHUNK, CELLS // max(1, self.release.codec.width)))
        done = 0
        while done < n:
            batch = self._checked(min(chunk, n - done), fixed, checked, rng)
            yield self.release.codec.decode(batch, first_id=done + 1)
            if len(batch) < min(chunk, n - done):
                warnings.warn(f"only {done + len(batch)} of {n} rows met what was given", stacklevel=2)
                return
            done += len(batch)

    def copies(self, m: int = 20, n: int | None = None, seed: int | None = None) -> Iterator[pa.Table]:
        """m synthetic tables, each from its own draw of the model given the noisy release, for `dpmerf.analyse`.

        Their spread holds what the privacy noise and the sampling of the real rows leave open. Costs nothing: no row.

        Parameters
        ----------
        m : int
            How many; 20 is a good number.
        n : int, optional
            Rows of each; as many as the data had (or is estimated to have) if left out.
        seed : int, optional
            Other copies for another seed; the model's own if left out.
        """
        if m < 1:
            raise TrainError(f"copies is {m}: ask for 1 or more")
        if not isinstance(self.generator, MaxEnt):
            raise TrainError("copies need a model of tables (the default preset): this one has another generator")
        rows, first = n if n is not None else round(self.release.rows_estimate), self.seed if seed is None else seed
        fitted, settings, rng = self.generator.fitted, self.generator.settings, torch.Generator().manual_seed(first)
        for i, drawn in enumerate(draws(self.release, fitted, settings, m, rng)):
            yield Model(self.release, drawn, self.history, first).sample(rows, seed=(first + i + 1) % 2**63)

    @in_few_threads
    def _checked(self, n: int, fixed: Given | None, given: dict[str, Any] | None, rng: torch.Generator) -> Batch:
        """n rows; where relations decide about given columns, those of more rows that hold all given values."""
        if given is None:
            return self._draw(n, fixed, rng)
        codec, found, have = self.release.codec, [], 0
        for _ in range(TRIES):
            batch = self._draw(max(n, 1000), fixed, rng)
            match = torch.from_numpy(np.flatnonzero(met(codec, codec.decode(batch), given))[: n - have])
            found.append(batch.rows(match))
            have += len(match)
            if have == n:
                break
        if have == 0:
            raise TrainError(
                "no row met what was given: ask for something less rare, or give the columns it follows from"
            )
        return _concatenate(found)

    def _draw(self, n: int, given: Given | None, rng: torch.Generator) -> Batch:
        """n rows, by rejection for the given columns that the generator cannot fix itself; fewer if they are rare."""
        rest = given.names - self.generator.conditions if given else frozenset[str]()
        if given is None or not rest:
            return self.generator.draw(n, given, rng)
        if unmet := [name for name in rest if name not in given.row.codes]:
            raise TrainError(
                f"this model cannot fix the number '{unmet[0]}'. Use the default preset, whose model can fix any column"
            )
        found: list[Batch] = []
        have = 0
        for _ in range(TRIES):
            batch = self.generator.draw(max(n, 1000), given, rng)
            match = torch.ones(len(batch), dtype=torch.bool)
            for name in rest:
                match &= batch.codes[name] == given.row.codes[name]
            found.append(batch.rows(torch.nonzero(match).flatten()[: n - have]))
            have += len(found[-1])
            if have == n:
                break
        if have == 0:
            raise TrainError("no row met what was given: ask for something less rare")
        return _concatenate(found)

    def facts(self) -> dict[str, Any]:
        """At a glance."""
        return {"generator": self.generator.kind, "seed": self.seed, **self.release.facts()}

    def save(self, path: str | Path) -> None:
        """Write a folder: the generator, and the release that it came from."""
        write_folder(path, self.files())

    def files(self) -> dict[str, bytes]:
        """The folder as named files."""
        state = self.generator.state()
        tensors = save_tensors({name: t.contiguous() for name, t in state.tensors.items()})
        document = {
            "format": FORMAT,
            "kind": "model",
            "made_with": f"dpmerf {dpmerf.__version__}",
            "generator": self.generator.kind,
            "settings": state.settings,
            "history": self.history.to_json(),
            "seed": self.seed,
            "weights_sha256": hashlib.sha256(tensors).hexdigest(),
        }
        document["hash"] = digest(document)
        text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
        files = {DOCUMENT: text.encode(), TENSORS: tensors, CARD: self.release.card().encode()}
        return {**files, **self.release.files()}

    @staticmethod
    def load(path: str | Path, *, test_noise: bool = False) -> Model:
        """Read a model. One whose release has noise from a source for tests is refused, as by `Release.load`."""
        folder = Path(path)
        document = read_json(folder / DOCUMENT, "model")
        tensors = read_bytes(folder / TENSORS, "model")
        release = Release.load(folder, test_noise=test_noise)
        try:
            if document.get("format") != FORMAT or document.get("kind") != "model":
                raise ArtefactError(f"{path}: not a model of format {FORMAT}. Train it again from its release")
            if digest({k: v for k, v in document.items() if k != "hash"}) != document["hash"]:
                raise ArtefactError(f"{path}: its description was changed (hash differs). Train it again")
            if hashlib.sha256(tensors).hexdigest() != document["weights_sha256"]:
                raise ArtefactError(f"{path}: its weights were changed (hash differs). Train it again")
            state = State(document["settings"], load_tensors(tensors))
            generator = generator_of(document["generator"]).from_state(release, state)
            return Model(release, generator, History.from_json(document["history"]), int(document["seed"]))
        except DpmerfError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, RuntimeError, SafetensorError):
            raise ArtefactError(f"{path}: the model is damaged. Train it again from its release") from None


def check_seed(seed: int) -> None:
    """TrainError for a seed that no generator of random numbers takes."""
    if not 0 <= seed < 2**63:
        raise TrainError(f"seed is {seed}: write a whole number from 0 to 2^63 - 1")


def _concatenate(parts: list[Batch]) -> Batch:
    codes = {name: torch.cat([p.codes[name] for p in parts]) for name in parts[0].codes}
    return Batch(torch.cat([p.numbers for p in parts]), codes)
