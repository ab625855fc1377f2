"""Timelines: synthetic histories against real ones. NOT COVERED by the guarantee: it reads real rows.

Shares are compared by total variation (0: the same, 1: nothing in common), numbers over deciles of the real ones.
"""

from __future__ import annotations

import itertools
from dataclasses import asdict, dataclass
from typing import Any, final

import numpy as np
import pandas as pd
import pyarrow as pa

from dpmerf.evaluate.classifiers import require_sklearn
from dpmerf.schema import Numeric, Schema
from dpmerf.schema.person_schema import History, Persons

BINS = 10
LEAST = 20  # rows of either class that a task needs
Tables = dict[str, pa.Table]


@final
@dataclass(frozen=True)
class HistoryScores:
    """One table of rows. Means are over columns; `lag` is the correlation of a number with the one before it."""

    rows_per_person: float  # total variation
    without_rows: tuple[float, float]  # share of persons, real and synthetic
    one_way: float
    columns: dict[str, float]  # of each column by itself
    two_way: float
    first_rows: float
    transitions: dict[str, float]
    gap: float | None
    lag: dict[str, tuple[float, float]]  # real, synthetic
    constant: float  # share of synthetic persons whose own columns never change
    ordered: float  # share of synthetic persons whose rows are in order
    orphans: int  # synthetic rows whose key the table of persons does not have
    task: tuple[float, float] | None  # ROC-AUC of the next row's label: trained on real rows, on synthetic ones

    def to_json(self) -> dict[str, Any]:
        return {"NOT COVERED": "computed from real rows", **asdict(self)}


def compare_histories(real: Tables, synthetic: Tables, persons: Persons, test: Tables | None = None) -> dict[str, Any]:
    """Table of rows -> its scores. `test`: persons held out, on whom both classifiers of the task are tested."""
    return {h.name: _compare(real, synthetic, test, persons, h) for h in persons.histories}


def _compare(real: Tables, synthetic: Tables, test: Tables | None, persons: Persons, h: History) -> HistoryScores:
    key, order = h.key, h.facts.order
    frames = [_frame(tables, persons, h) for tables in (real, synthetic)]
    people = [_people(tables, persons, f) for tables, f in zip((real, synthetic), frames, strict=True)]
    counts = [f.groupby(key).size().reindex(p, fill_value=0) for f, p in zip(frames, people, strict=True)]
    names = [n for n in h.schema.learned if n in frames[0].columns]
    edges = {n: _edges(frames[0][n]) for n in names if isinstance(h.schema.columns[n], Numeric)}
    coded = [pd.DataFrame({n: _codes(f[n], edges.get(n)) for n in names}, index=f.index) for f in frames]
    own = [n for n in names if n not in h.persons]
    last = [c.groupby(f[key].to_numpy()).shift() for c, f in zip(coded, frames, strict=True)]
    first = [~f[key].duplicated() for f in frames]
    changing = [n for n in own if n != order and n != h.facts.counter]
    moved = {
        n: _tv(*(c[n][~f].astype(str) + ">" + b[n][~f].astype(str) for c, b, f in zip(coded, last, first, strict=True)))
        for n in (changing if order is not None else [])
    }
    single = {n: _tv(*(c[n] for c in coded)) for n in names}
    gap = None
    if order is not None:
        gaps = [_number(f[order]).groupby(f[key].to_numpy()).diff()[~s] for f, s in zip(frames, first, strict=True)]
        gap = _tv(*(_codes(g, _edges(gaps[0])) for g in gaps))
    made = frames[1]
    theirs = made.groupby(key)
    constant = [theirs[n].nunique(dropna=False).le(1) for n in h.persons if n in made]
    sorted_rows = theirs[order].apply(lambda v: bool((_number(v).diff().dropna() >= 0).all())) if order else None
    return HistoryScores(
        rows_per_person=_tv(*counts),
        without_rows=tuple(float((c == 0).mean()) for c in counts),  # type: ignore[arg-type]
        one_way=float(np.mean(list(single.values()))),
        columns=single,
        two_way=float(np.mean([_tv(*(c[a] + "|" + c[b] for c in coded)) for a, b in itertools.combinations(names, 2)])),
        first_rows=float(np.mean([_tv(*(c[n][f] for c, f in zip(coded, first, strict=True))) for n in own])),
        transitions=moved,
        gap=gap,
        lag={n: _lags(frames, h, n) for n in changing if n in edges and order is not None},
        constant=float(np.mean([c.mean() for c in constant])) if constant else 1.0,
        ordered=1.0 if sorted_rows is None else float(sorted_rows.mean()),
        orphans=int((~made[key].isin(people[1])).sum()),
        task=_task(frames, None if test is None else _frame(test, persons, h), h),
    )


def _frame(tables: Tables, persons: Persons, h: History) -> pd.DataFrame:
    """Rows in order with the person's columns, values as written."""
    found = tables[h.name].to_pandas(date_as_object=False)
    if persons.parent is not None:
        parents = tables[persons.parent[0]].to_pandas(date_as_object=False)
        found = found.merge(parents[[h.key, *persons.parent[1].learned]], on=h.key, how="left")
    by = [h.key, *([h.facts.order] if h.facts.order else [])]
    return found.sort_values(by, kind="stable").reset_index(drop=True)


def _people(tables: Tables, persons: Persons, rows: pd.DataFrame) -> pd.Index:
    if persons.parent is None:
        return pd.Index(rows[persons.key].unique())
    return pd.Index(tables[persons.parent[0]].column(persons.key).to_pandas().unique())


def _number(values: pd.Series) -> pd.Series:
    if pd.api.types.is_datetime64_any_dtype(values):
        return (values - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1)
    return pd.to_numeric(values, errors="coerce").astype(float)


def _edges(values: pd.Series) -> np.ndarray:
    known = _number(values).dropna()
    cuts = np.unique(np.quantile(known, np.linspace(0, 1, BINS + 1)[1:-1])) if len(known) else np.empty(0)
    return np.asarray(cuts)


def _codes(values: pd.Series, edges: np.ndarray | None) -> pd.Series:
    if edges is None:
        return values.astype(object).where(values.notna(), "null").astype(str)
    number = _number(values)
    code = np.searchsorted(edges, number.to_numpy(), side="right").astype(str)
    return pd.Series(np.where(number.isna(), "null", code), index=values.index)


def _tv(a: pd.Series, b: pd.Series) -> float:
    first, second = (s.value_counts(normalize=True) for s in (a, b))
    return float(first.subtract(second, fill_value=0.0).abs().sum() / 2)


def _lags(frames: list[pd.DataFrame], h: History, name: str) -> tuple[float, float]:
    return _lag(frames[0], h, name), _lag(frames[1], h, name)


def _lag(frame: pd.DataFrame, h: History, name: str) -> float:
    """Of log(1 + x) where the schema declares a log scale."""
    values, column = _number(frame[name]), h.schema.columns[name]
    if getattr(column, "log", False):
        values = np.log1p(values - column.min)  # type: ignore[attr-defined]
    last = values.groupby(frame[h.key].to_numpy()).shift()
    known = last.notna() & values.notna()
    return float(np.corrcoef(values[known], last[known])[0, 1]) if known.sum() > 2 else 0.0


def _task(frames: list[pd.DataFrame], test: pd.DataFrame | None, h: History) -> tuple[float, float] | None:
    """Predict whether the next row has the label's last value, from this row and the person."""
    label = h.schema.label
    if label is None or h.facts.order is None or test is None:
        return None
    require_sklearn()
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score

    scores = []
    x_test, y_test = _examples(test, h, label)
    for frame in frames:
        x, y = _examples(frame, h, label)
        if min(y.sum(), len(y) - y.sum(), y_test.sum(), len(y_test) - y_test.sum()) < LEAST:
            return None
        model = HistGradientBoostingClassifier(max_iter=100, learning_rate=0.05, random_state=0).fit(x, y)
        scores.append(float(roc_auc_score(y_test, model.predict_proba(x_test)[:, 1])))
    return scores[0], scores[1]


def _examples(frame: pd.DataFrame, h: History, label: str) -> tuple[np.ndarray, np.ndarray]:
    columns = [_feature(frame[n], h.schema, n) for n in h.schema.learned if n in frame]
    following = _feature(frame[label], h.schema, label).groupby(frame[h.key].to_numpy()).shift(-1)
    has = following.notna()
    y = following[has].to_numpy()
    return np.stack([c[has] for c in columns], axis=1), (y == np.nanmax(y)).astype(int)


def _feature(values: pd.Series, schema: Schema, name: str) -> pd.Series:
    column = schema.columns[name]
    if isinstance(column, Numeric) or column.kind == "flag":
        return _number(values)
    levels = {str(v): i for i, v in enumerate(column.levels)}  # type: ignore[attr-defined]
    return values.astype(object).map(lambda v: levels.get(str(v), np.nan)).astype(float)
