"""Data: the paper's ten sets, one loader each. Raw values; what is learned from them is declared in schemas/."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
import pandas as pd
import pyarrow as pa

from benchmarks import origins
from dpmerf.schema import Schema

HERE = Path(__file__).parent
UCI = "https://archive.ics.uci.edu/dataset/"


class MissingData(Exception):
    """A data set is not there; the message says what to download from where."""


@final
@dataclass(frozen=True)
class DataSet:
    """One table: its files, where they come from and how their columns become those of the schema."""

    name: str
    files: tuple[str, ...]  # training rows, and the official test rows where they exist
    origin: str
    prepare: Callable[[pd.DataFrame], pd.DataFrame] = lambda frame: frame
    score_rows: int = 50_000  # rows that classifiers are trained on, at most

    @property
    def schema(self) -> Schema:
        return Schema.load(HERE / "schemas" / f"{self.name}.toml")

    def frame(self, part: int, data_dir: Path | None) -> pd.DataFrame:
        """The schema's columns of one file."""
        return self.prepare(read(self.files[part], self.origin, data_dir))[list(self.schema.columns)]

    def table(self, frame: pd.DataFrame) -> pa.Table:
        return pa.Table.from_pandas(frame, preserve_index=False)


def folder(data_dir: Path | None) -> Path:
    """--data-dir, DPMERF_DATA or ../shared/data."""
    if data_dir is not None:
        return data_dir
    named = os.environ.get("DPMERF_DATA")
    return Path(named) if named else HERE.parent.parent / "shared" / "data"


def read(file: str, origin: str, data_dir: Path | None) -> pd.DataFrame:
    """`file`.parquet, or the files that the origin offers."""
    place = folder(data_dir)
    path = place / f"{file}.parquet"
    if path.exists():
        return pd.read_parquet(path)
    if (frame := origins.read(file, place)) is not None:
        return frame
    raise MissingData(
        f"the data set '{file}' is not in {place}. Download {' and '.join(origins.FILES[file])} from {origin} "
        f"into that folder, or name another folder with --data-dir or DPMERF_DATA"
    )


def images(name: str, data_dir: Path | None) -> dict[str, np.ndarray]:
    """x_train, y_train, x_test, y_test of `mnist` or `fashion_mnist`, uint8."""
    path = folder(data_dir) / f"{name}.npz"
    if not path.exists():
        raise MissingData(
            f"the image set '{name}' is not in {path.parent}. Make {path.name} with the uint8 arrays x_train, y_train, "
            "x_test, y_test, for example from torchvision.datasets.MNIST / FashionMNIST"
        )
    with np.load(path) as arrays:
        return {key: arrays[key] for key in ("x_train", "y_train", "x_test", "y_test")}


def _covtype(frame: pd.DataFrame) -> pd.DataFrame:
    """The binary codes of area and soil as two categories."""
    out = frame.iloc[:, :10].copy()
    for column, size in (("Wilderness_Area", 4), ("Soil_Type", 40)):
        out[column] = frame[[f"{column}{i}" for i in range(1, size + 1)]].to_numpy().argmax(1) + 1
    out["Cover_Type"] = frame["Cover_Type"].astype("int64")
    return out


GROUPS = {
    "dos": "apache2 back land mailbomb neptune pod processtable smurf teardrop udpstorm",
    "probe": "ipsweep mscan nmap portsweep saint satan",
    "r2l": "ftp_write guess_passwd imap multihop named phf sendmail snmpgetattack snmpguess spy warezclient "
    "warezmaster worm xlock xsnoop",
    "u2r": "buffer_overflow httptunnel loadmodule perl ps rootkit sqlattack xterm",
    "normal": "normal",
}


def _intrusion(frame: pd.DataFrame) -> pd.DataFrame:
    group = {attack: name for name, attacks in GROUPS.items() for attack in attacks.split()}
    return frame.assign(attack=frame["label"].str.rstrip(".").map(group))


SETS = {
    s.name: s
    for s in (
        DataSet("adult", ("adult_train", "adult_test"), UCI + "2/adult"),
        DataSet("census", ("census_train", "census_test"), UCI + "117/census+income+kdd", score_rows=10_000),
        DataSet("cervical", ("cervical",), UCI + "383/cervical+cancer+risk+factors"),
        DataSet(
            "credit",
            ("credit",),
            "https://www.kaggle.com/datasets/mlg-ulb/creditcardfraud",
            lambda f: f.astype({"Class": "int64"}),
            score_rows=50_000,
        ),
        DataSet(
            "epileptic",
            ("epileptic",),
            "https://www.kaggle.com/datasets/harunshimanto/epileptic-seizure-recognition",
            lambda f: f.copy().assign(seizure=(f["y"] == 1).astype("int64")),
        ),
        DataSet(
            "isolet",
            ("isolet_train", "isolet_test"),
            UCI + "54/isolet",
            lambda f: f.copy().assign(vowel=f["letter"].isin(list("AEIOU")).astype("int64")),
        ),
        DataSet("covtype", ("covtype",), UCI + "31/covertype", _covtype, score_rows=10_000),
        DataSet(
            "intrusion",
            ("intrusion_train", "intrusion_test_corrected"),
            UCI + "130/kdd+cup+1999+data",
            _intrusion,
            score_rows=10_000,
        ),
    )
}
