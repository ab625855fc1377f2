"""Origins: the same sets as their publishers offer them, read into the columns that the loaders expect."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from dpmerf.schema import Schema

FILES: dict[str, tuple[str, ...]] = {
    "adult_train": ("adult.data",),
    "adult_test": ("adult.test",),
    "census_train": ("census-income.data",),
    "census_test": ("census-income.test",),
    "cervical": ("risk_factors_cervical_cancer.csv",),
    "covtype": ("covtype.data.gz",),
    "credit": ("creditcard.csv",),
    "epileptic": ("Epileptic Seizure Recognition.csv",),
    "intrusion_train": ("kddcup.data_10_percent.gz",),
    "intrusion_test_corrected": ("corrected.gz",),
    "isolet_train": ("isolet1+2+3+4.data",),
    "isolet_test": ("isolet5.data",),
}


def read(file: str, place: Path) -> pd.DataFrame | None:
    """A set from its publisher's file, packed or not; None if it is not in the folder."""
    for name in FILES.get(file, ()):
        for path in (place / name, place / name.removesuffix(".gz"), place / f"{name}.gz"):
            if path.exists():
                return _READERS[file.split("_")[0]](path)
    return None


def _columns(name: str) -> list[str]:
    return list(Schema.load(Path(__file__).parent / "schemas" / f"{name}.toml").columns)


def _adult(path: Path) -> pd.DataFrame:
    skip = 1 if path.name.startswith("adult.test") else 0  # the test file opens with a remark
    frame = pd.read_csv(path, header=None, names=_columns("adult"), skipinitialspace=True, skiprows=skip)
    return frame.assign(income=frame["income"].str.rstrip(".")).dropna(subset=["income"])


def _census(path: Path) -> pd.DataFrame:
    columns = _columns("census")
    columns.insert(columns.index("migration_code_change_in_msa"), "instance_weight")
    codes = ("detailed_industry_recode", "detailed_occupation_recode", "own_business_or_self_employed")
    text = dict.fromkeys((*codes, "veterans_benefits", "year"), str)
    frame = pd.read_csv(
        path, header=None, names=columns, skipinitialspace=True, dtype=text, keep_default_na=False, na_values=[]
    )
    return frame.assign(income=frame["income"].str.rstrip("."))


def _cervical(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, na_values="?")


def _covtype(path: Path) -> pd.DataFrame:
    numbers = _columns("covtype")[:10]
    areas = [f"Wilderness_Area{i}" for i in range(1, 5)]
    soils = [f"Soil_Type{i}" for i in range(1, 41)]
    return pd.read_csv(path, header=None, names=[*numbers, *areas, *soils, "Cover_Type"])


def _csv(path: Path) -> pd.DataFrame:
    return pd.read_csv(path)


def _intrusion(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, header=None, names=[*_columns("intrusion")[:-1], "label"])


def _isolet(path: Path) -> pd.DataFrame:
    frame = pd.read_csv(path, header=None, names=[*_columns("isolet")[:-1], "letter"], skipinitialspace=True)
    return frame.assign(letter=frame["letter"].map(lambda number: chr(ord("A") + round(float(number)) - 1)))


_READERS: dict[str, Callable[[Path], pd.DataFrame]] = {
    "adult": _adult,
    "census": _census,
    "cervical": _cervical,
    "covtype": _covtype,
    "credit": _csv,
    "epileptic": _csv,
    "intrusion": _intrusion,
    "isolet": _isolet,
}
