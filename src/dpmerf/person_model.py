"""Person model: one generator a part. Draws persons first, then their rows in every table, with keys that join."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
import pyarrow as pa
import torch

from dpmerf.encoding.codec import Codec
from dpmerf.encoding.extended_rows import ExtendedRows, Values
from dpmerf.encoding.writing import id_array, restored
from dpmerf.errors import ArtefactError, TrainError
from dpmerf.folders import read_json, write_folder
from dpmerf.generators.maxent.maxent import MaxEnt
from dpmerf.generators.sequences import declared_rows, draw_rows
from dpmerf.generators.threads import in_few_threads
from dpmerf.model import Model
from dpmerf.plan import digest
from dpmerf.progress import SILENT, Bars
from dpmerf.release.person_release import PersonRelease
from dpmerf.schema import Id
from dpmerf.schema.extended_schema import count_of
from dpmerf.schema.person_schema import History
from dpmerf.train import train

FORMAT = 1
DOCUMENT = "model.json"
Tables = dict[str, pa.Table]


@final
@dataclass(frozen=True)
class PersonModel:
    """Everything that sampling needs. Made from a release alone; its guarantee is the release's."""

    release: PersonRelease
    models: dict[str, Model]
    seed: int

    @in_few_threads
    def sample(self, n: int | None = None, seed: int | None = None) -> Tables:
        """n synthetic persons (as many as there seem to be, if left out) with all rows: table -> rows in order."""
        persons = self.release.plan.persons
        n = round(self.release.persons_estimate) if n is None else n
        if n < 1:
            raise TrainError(f"n is {n}: ask for 1 person or more")
        persons.schema_of(persons.tables[0]).check_ids(n)
        rng = torch.Generator().manual_seed(self.seed if seed is None else seed)
        first = self._generator(persons.tables[0])
        codec = self.release.parts[persons.tables[0]].codec
        drawn = codec.values(first.draw(n, None, rng))
        found: Tables = {}
        if persons.parent is not None:
            found[persons.parent[0]] = self._parents(drawn, n)
        for history in persons.histories:
            found[history.name] = self._rows(history, drawn, rng)
        return found

    def _generator(self, part: str) -> MaxEnt:
        generator = self.models[part].generator
        if not isinstance(generator, MaxEnt):
            raise TrainError("histories are drawn by the model of tables: train it from a release of persons")
        return generator

    def _parents(self, drawn: Values, n: int) -> pa.Table:
        persons = self.release.plan.persons
        assert persons.parent is not None
        codec = Codec(persons.parent[1])
        batch = codec.batch({name: drawn[name] for name in codec.schema.learned}, n)
        return codec.decode(batch)

    def _rows(self, history: History, drawn: Values, rng: torch.Generator) -> pa.Table:
        of = ExtendedRows(history)
        counts = drawn[count_of(history)].astype(np.int64)
        people = {name: drawn[name] for name in history.measured_persons}
        rows = draw_rows(self._generator(history.name), of, people, counts, rng)
        table = of.declared.decode(declared_rows(of, rows))
        key = history.schema.columns[history.key]
        assert isinstance(key, Id)
        names = restored(id_array(key, 1, len(counts)), of.declared.types[history.key]).take(pa.array(rows.person))
        table = table.set_column(table.column_names.index(history.key), history.key, names)
        return table.select(list(history.written))

    def save(self, path: str | Path) -> None:
        """Write a folder: the generators, and the release that they came from."""
        files = dict(self.release.files())
        for name, model in self.models.items():
            files |= {f"{name}/{file}": data for file, data in model.files().items()}
        document: dict[str, Any] = {"format": FORMAT, "kind": "model of persons", "seed": self.seed}
        document["hash"] = digest(document)
        write_folder(path, {DOCUMENT: (json.dumps(document, indent=1) + "\n").encode(), **files})

    @staticmethod
    def load(path: str | Path, *, test_noise: bool = False) -> PersonModel:
        folder = Path(path)
        document = read_json(folder / DOCUMENT, "model")
        if set(document) != {"format", "kind", "seed", "hash"} or document["kind"] != "model of persons":
            raise ArtefactError(f"{path}: not a model of persons of format {FORMAT}. Train it again from its release")
        if (
            document["format"] != FORMAT
            or digest({k: v for k, v in document.items() if k != "hash"}) != document["hash"]
        ):
            raise ArtefactError(f"{path}: its description was changed, or is of another version. Train it again")
        release = PersonRelease.load(folder, test_noise=test_noise)
        models = {name: Model.load(folder / name, test_noise=test_noise) for name in release.parts}
        return PersonModel(release, models, int(document["seed"]))


def train_persons(
    release: PersonRelease, *, seed: int = 0, steps: int | None = None, bars: Bars = SILENT
) -> PersonModel:
    """Fit one generator a part. The same release and seed give the same model; no row is needed."""
    models = {name: train(part, seed=seed, steps=steps, bars=bars) for name, part in release.parts.items()}
    return PersonModel(release, models, seed)
