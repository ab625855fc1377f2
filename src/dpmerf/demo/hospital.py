"""A simulated hospital table: no real person, the troubles of real data.

One row is a visit; a patient may have several. Mixed kinds, nulls that depend on other columns, heavy tails, a heavy
zero, and a rare outcome that depends on its columns through interactions. `hospital.toml` beside this file declares
it. Everything is drawn from one seed.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SCHEMA = Path(__file__).with_name("hospital.toml")

WARDS = np.array(["medicine", "surgery", "cardiology", "oncology", "maternity", "paediatrics", "intensive care"])
MEDICINE, SURGERY, CARDIOLOGY, ONCOLOGY, MATERNITY, PAEDIATRICS, INTENSIVE = range(len(WARDS))
INSURANCE = np.array(["public", "private", "other"])
FIRST, DAYS = np.datetime64("2019-01-01"), 1826  # admissions: 2019-01-01 … 2023-12-31
LAST_HOUR = np.datetime64("2024-03-31T23", "h")
READMITTED = 0.06  # share of visits

Floats = np.ndarray


def hospital(rows: int = 20_000, seed: int = 0) -> pa.Table:
    """The table of `hospital.toml`, in order of admission; the same for the same arguments.

    >>> table = hospital(rows=500, seed=1)
    >>> table.num_rows, table.column_names[:3]
    (500, ['visit_id', 'patient_id', 'admitted'])
    """
    if rows < 1:
        raise ValueError(f"rows must be 1 or more (now {rows})")
    rng = np.random.default_rng(seed)
    patient, day, before = _visits(rows, rng)
    who = _patients(int(patient.max()) + 1, rng)

    sex, frail, smoker = who["male"][patient], who["frail"][patient], who["smoker"][patient]
    age = np.clip(who["age"][patient] + day / 365.25, 0, 104).astype(np.int64)
    diabetes = who["diabetes_from"][patient] <= age  # once there, it stays
    insurance = who["insurance"][patient]
    ward = _ward(age, sex, smoker, frail, rng)
    weight = np.clip(_weight(age, sex, who["build"][patient], diabetes, ward) + rng.normal(0, 0.6, rows), 2.2, 220)
    crp = np.exp(_log_crp(ward, frail, day) + rng.normal(0, 1.0, rows)).clip(0.1, 480)
    systolic = _systolic(age, weight, diabetes, ward) + rng.normal(0, 13, rows)
    stay = _stay_hours(age, ward, crp, frail) * np.exp(rng.normal(0, 0.55, rows))
    charges = _charges(stay, ward, insurance) * np.exp(rng.normal(0, 0.35, rows))
    readmitted = rng.random(rows) < _readmission_risk(age, ward, crp, diabetes, smoker, before)

    admitted = FIRST + day
    arrival = admitted.astype("datetime64[h]") + rng.integers(0, 24, rows)
    discharged = np.minimum(arrival + np.maximum(stay, 2).astype(np.int64), LAST_HOUR)

    no_discharge = rng.random(rows) < np.where(ward == INTENSIVE, 0.14, 0.03)
    no_weight = rng.random(rows) < np.where(ward == INTENSIVE, 0.25, np.where(ward == PAEDIATRICS, 0.02, 0.075))
    no_systolic = rng.random(rows) < np.where(age < 12, 0.30, 0.03)
    not_asked = rng.random(rows) < np.where(age < 14, 0.70, 0.06)

    return pa.table(
        {
            "visit_id": _keys("V", np.arange(rows)),
            "patient_id": _keys("P", patient),
            "admitted": pa.array(admitted.astype("datetime64[D]"), pa.date32()),
            "discharged_at": pa.array(discharged.astype("datetime64[us]"), pa.timestamp("us"), mask=no_discharge),
            "ward": pa.array(WARDS[ward], pa.string()),
            "sex": pa.array(np.where(sex, "male", "female"), pa.string()),
            "age": pa.array(age, pa.int64()),
            "weight_kg": pa.array(weight.round(1), pa.float64(), mask=no_weight),
            "systolic": pa.array(systolic.clip(60, 240).round().astype(np.int64), pa.int64(), mask=no_systolic),
            "lab_crp": pa.array(crp.round(2), pa.float64()),
            "diabetes": pa.array(diabetes, pa.bool_()),
            "smoker": pa.array(smoker & (age >= 14), pa.bool_(), mask=not_asked),
            "insurance": pa.array(INSURANCE[insurance], pa.string()),
            "visits_before": pa.array(before, pa.int64()),
            "charges": pa.array(charges.clip(50, 480_000).round(2), pa.float64()),
            "readmitted": pa.array(readmitted, pa.bool_()),
        }
    )


def write(path: str | Path, rows: int = 20_000, seed: int = 0) -> tuple[Path, Path]:
    """Write the table to `path` (Parquet) and its schema beside it, ending in .toml; return both paths."""
    table, schema = Path(path), Path(path).with_suffix(".toml")
    pq.write_table(hospital(rows, seed), table)
    schema.write_text(SCHEMA.read_text(encoding="utf-8"), encoding="utf-8")
    return table, schema


def _visits(rows: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Patient number, day of admission and count of earlier visits, by day. Most come once, a few very often."""
    kept: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    have = patients = 0
    while have < rows:
        n = (rows - have) // 2 + 16
        often = rng.gamma(0.45, 2.6, n)
        visits = 1 + np.minimum(rng.poisson(often), 40)
        patient = np.repeat(np.arange(n), visits)
        start = np.repeat(np.cumsum(visits) - visits, visits)  # index of each patient's first visit
        before = np.arange(visits.sum()) - start
        gap = np.where(before == 0, 0.0, 1 + rng.exponential(150, before.size))
        first = _seasonal_day(n, rng)
        passed = np.cumsum(gap)
        day = (first[patient] + passed - passed[start]).astype(np.int64)
        inside = day < DAYS  # later visits are not in the table: a patient's counts stay 0, 1, 2, …
        kept.append((patient[inside] + patients, day[inside], before[inside]))
        have += int(inside.sum())
        patients += n
    patient, day, before = (np.concatenate(part)[:rows] for part in zip(*kept, strict=True))
    order = np.lexsort((before, patient, day))
    return patient[order], day[order], before[order]


def _seasonal_day(n: int, rng: np.random.Generator) -> np.ndarray:
    """First admissions, more of them in winter."""
    days = np.arange(DAYS)
    weight = 1 + 0.25 * np.cos(2 * np.pi * days / 365.25)
    return rng.choice(days, size=n, p=weight / weight.sum())


def _patients(n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """What belongs to a person and stays with them over visits."""
    group = rng.choice(4, size=n, p=[0.11, 0.22, 0.29, 0.38])  # child, young adult, middle, old
    age = np.choose(
        group,
        [
            rng.beta(0.7, 1.3, n) * 16,
            17 + rng.beta(1.6, 1.6, n) * 24,
            40 + rng.beta(1.4, 1.1, n) * 26,
            64 + rng.beta(1.8, 2.4, n) * 36,
        ],
    )
    male = rng.random(n) < np.where(group == 1, 0.36, 0.51)
    build = rng.normal(0, 1, n)
    frail = rng.normal(0, 1, n) + 0.012 * (age - 50)
    wealth = rng.normal(0, 1, n) - 0.25 * frail
    smoker = rng.random(n) < _sigmoid(-1.3 + 0.45 * male - 0.4 * wealth - 0.02 * np.maximum(age - 60, 0))
    diabetes_from = 66 - 9 * build - 6 * frail + rng.normal(0, 24, n)  # the age at which diabetes begins
    diabetes_from = np.where(rng.random(n) < 0.45, diabetes_from.clip(6), 200.0)
    chance = _sigmoid(-1.2 + 1.3 * wealth + 0.5 * (group == 2))
    draw = rng.random(n)
    insurance = np.where(draw < chance, 1, np.where(draw > 0.94 + 0.06 * chance, 2, 0))
    return {
        "age": age,
        "male": male,
        "build": build,
        "frail": frail,
        "smoker": smoker,
        "diabetes_from": diabetes_from,
        "insurance": insurance,
    }


def _ward(age: Floats, male: Floats, smoker: Floats, frail: Floats, rng: np.random.Generator) -> np.ndarray:
    score = np.full((age.size, len(WARDS)), -np.inf)  # (n, wards)
    adult, mother = age >= 16, (age >= 17) & (age <= 46) & ~male
    score[:, MEDICINE] = np.where(adult, 1.0 + 0.012 * (age - 50), -np.inf)
    score[:, SURGERY] = np.where(adult, 0.7, -0.6)
    score[:, CARDIOLOGY] = np.where(adult, -0.9 + 0.035 * (age - 50) + 0.7 * smoker + 0.3 * male, -np.inf)
    score[:, ONCOLOGY] = np.where(adult, -0.9 + 0.02 * (age - 50) + 0.3 * smoker, -3.0)
    score[:, MATERNITY] = np.where(mother, 1.9 - 0.004 * (age - 30) ** 2, -np.inf)
    score[:, PAEDIATRICS] = np.where(adult, -np.inf, 2.2)
    score[:, INTENSIVE] = -1.3 + 0.45 * frail
    return (score + rng.gumbel(size=score.shape)).argmax(axis=1)


def _weight(age: Floats, male: Floats, build: Floats, diabetes: Floats, ward: Floats) -> Floats:
    child = 3.4 + 3.1 * np.minimum(age, 16) ** 1.02
    grown = np.where(male, 82.0, 68.0) - 0.22 * np.maximum(age - 65, 0) + 6.0 * diabetes + 9.0 * (ward == MATERNITY)
    return np.where(age < 16, child * np.exp(0.12 * build), grown * np.exp(0.17 * build))


def _log_crp(ward: Floats, frail: Floats, day: Floats) -> Floats:
    """C-reactive protein, mg/l, on the log scale: inflammation, more of it in winter."""
    base = np.array([2.7, 2.4, 1.5, 2.6, 1.4, 2.0, 3.9])[ward]
    return base + 0.3 * frail + 0.25 * np.cos(2 * np.pi * day / 365.25)


def _systolic(age: Floats, weight: Floats, diabetes: Floats, ward: Floats) -> Floats:
    adult = 108 + 0.36 * np.minimum(age, 85) + 0.12 * (weight - 75) + 6 * diabetes
    adult = adult + np.where(ward == CARDIOLOGY, 9, 0) - np.where(ward == INTENSIVE, 20, 0)
    return np.where(age < 16, 82 + 2.0 * age, adult)


def _stay_hours(age: Floats, ward: Floats, crp: Floats, frail: Floats) -> Floats:
    base = np.log(np.array([96, 72, 84, 110, 60, 48, 170]))[ward]
    return np.exp(base + 0.006 * (age - 50) + 0.12 * np.log(crp / 12) + 0.12 * frail).clip(2, 1700)


def _charges(stay: Floats, ward: Floats, insurance: Floats) -> Floats:
    entry = np.array([700, 4200, 2600, 3300, 1800, 600, 3800])[ward]
    hourly = np.array([28, 36, 44, 48, 26, 30, 120])[ward]
    return (entry + hourly * stay) * np.where(insurance == 1, 1.35, 1.0)


def _readmission_risk(
    age: Floats, ward: Floats, crp: Floats, diabetes: Floats, smoker: Floats, before: Floats
) -> Floats:
    """Chance of coming back within 30 days. Several effects hold only together with another column."""
    inflamed, old, heart = np.log(crp / 12), np.maximum(age - 60, 0) / 10, ward == CARDIOLOGY
    score = np.array([0.3, 0.0, 0.5, 0.9, -1.8, -0.9, 0.8])[ward] + 0.22 * np.minimum(before, 6)
    score = score + 0.35 * old + 0.25 * inflamed + 0.3 * diabetes
    score = score + 0.7 * diabetes * inflamed + 0.5 * old * ((ward == MEDICINE) | heart) + 1.1 * (smoker & heart)
    return _sigmoid(score - _offset(score, READMITTED))


def _offset(score: Floats, rate: float) -> float:
    """The number to subtract so that the mean chance is `rate`."""
    low, high = -30.0, 30.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _sigmoid(score - middle).mean() > rate else (low, middle)
    return (low + high) / 2


def _sigmoid(x: Floats) -> Floats:
    return 1 / (1 + np.exp(-x))


def _keys(letter: str, numbers: np.ndarray) -> pa.Array:
    return pa.array([f"{letter}{number:07d}" for number in numbers.tolist()], pa.string())
