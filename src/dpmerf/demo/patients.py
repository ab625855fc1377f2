"""Simulated patients with their visits: the hospital's table as histories, with a birth date for every patient.

The same visits as `hospital`, of the same patients; age follows from birth and admission. `patients.toml` beside this
file declares them as persons.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dpmerf.demo.hospital import FIRST, _patients, _visits, hospital

SCHEMA = Path(__file__).with_name("patients.toml")
YEAR = 365.25


def patients(rows: int = 20_000, seed: int = 0) -> pa.Table:
    """So many visits, in order of admission; the same for the same arguments.

    >>> patients(rows=500, seed=1).column_names[:4]
    ['visit_id', 'patient_id', 'born', 'admitted']
    """
    rng = np.random.default_rng(seed)
    patient, day, _ = _visits(rows, rng)
    age = _patients(int(patient.max()) + 1, rng)["age"][patient]
    born = FIRST - np.rint(age * YEAR).astype(np.int64)
    table = hospital(rows, seed)
    place = table.column_names.index("age")
    table = table.set_column(place, "age", pa.array(_years(born, FIRST + day), pa.int64()))
    return table.add_column(2, "born", pa.array(born.astype("datetime64[D]"), pa.date32()))


def write_patients(path: str | Path, rows: int = 20_000, seed: int = 0) -> tuple[Path, Path]:
    """Write the table to `path` (Parquet) and its schema beside it, ending in .toml; return both paths."""
    table, schema = Path(path), Path(path).with_suffix(".toml")
    pq.write_table(patients(rows, seed), table)
    schema.write_text(SCHEMA.read_text(encoding="utf-8"), encoding="utf-8")
    return table, schema


def _years(born: np.ndarray, when: np.ndarray) -> np.ndarray:
    """Birthdays between two days."""
    (year, month, day), (last_year, last_month, last_day) = (_calendar(d) for d in (born, when))
    before = (last_month < month) | ((last_month == month) & (last_day < day))
    years: np.ndarray = last_year - year - before
    return years


def _calendar(days: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    months = days.astype("datetime64[M]")
    years = days.astype("datetime64[Y]")
    return (
        years.astype(np.int64) + 1970,
        (months - years.astype("datetime64[M]")).astype(np.int64),
        (days.astype("datetime64[D]") - months.astype("datetime64[D]")).astype(np.int64),
    )
