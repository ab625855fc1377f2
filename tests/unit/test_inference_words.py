"""Questions as text: words and a little SQL, nothing executed, one sentence for what is not understood."""

import pytest

from dpmerf.errors import AnswerError
from dpmerf.inference import sql_questions as sql
from dpmerf.inference import words
from dpmerf.inference.questions import Condition
from dpmerf.schema import Schema


@pytest.mark.parametrize(
    ("text", "again"),
    [
        ("share of ill by ward", "share of ill = True by ward"),
        ("mean of age by ward, ill where ill = yes", "mean of age by ward, ill where ill = yes"),
        ("median of dose", "quantile 0.5 of dose"),
        ("quantile 0.9 of dose where ward = a or b", "quantile 0.9 of dose where ward = a or b"),
        ('share of ward = "a" where 20 <= age <= 40', "share of ward = a where 20 ≤ age ≤ 40"),
        ("count where age < 40 and age >= 18", "count where age ≤ 39 and 18 ≤ age"),
        ("count where 40 > age", "count where age ≤ 39"),
        ("count where dose is null", "count where dose = None"),
        ("count where age from 20 to 40", "count where 20 ≤ age ≤ 40"),
        ("crosstab by ward, ill", "crosstab by ward, ill"),
    ],
)
def test_words(mixed_schema: Schema, text: str, again: str) -> None:
    assert str(words.parse(mixed_schema, text)) == again


@pytest.mark.parametrize(
    "text",
    [
        "",
        "by ward",
        "mean age",
        "mean of age by",
        "mean of age by ward by ill",
        "count where",
        "count where age > null",
        "count where ward < 3",
        "count where age from 3",
        "mean of age of dose",
        "count where age = 3 = 4",
        "count where age is old",
        "quantile x of age",
        "share of age < 3",
        "count where seen < x",
        "__import__('os')",
        "mean of nothing",
    ],
)
def test_words_that_are_not_understood(mixed_schema: Schema, text: str) -> None:
    if text == "count where":  # no condition is no restriction
        assert not words.parse(mixed_schema, text).where
        return
    with pytest.raises(AnswerError):
        words.parse(mixed_schema, text)


def test_sql(mixed_schema: Schema) -> None:
    text = """SELECT ward, COUNT(*), AVG(age) AS years, AVG(ill = TRUE), MEDIAN(dose), SUM(dose), VARIANCE(age)
              FROM release WHERE (age BETWEEN 20 AND 40) AND ward IN ('a', 'b') AND dose IS NULL AND age > 25
              GROUP BY ward"""
    found = sql.parse(mixed_schema, text)
    assert [q.what for q in found] == ["count", "mean", "share", "quantile", "sum", "variance"]
    assert found[2].values == (True,) and all(q.by == ("ward",) for q in found)
    assert found[0].where == (
        Condition("age", None, 20, 40),
        Condition("ward", ("a", "b")),
        Condition("dose", (None,)),
        Condition("age", None, 26.0, None),
    )


@pytest.mark.parametrize(
    "text",
    [
        "SELECT",
        "DROP TABLE x",
        "SELECT age FROM r",
        "SELECT AVG(age + 1) FROM r",
        "SELECT AVG(age) FROM r LIMIT 3",
        "SELECT MAX(age) FROM r",
        "SELECT COUNT(*) FROM r WHERE age = ward",
        "SELECT COUNT(*) FROM r WHERE NOT ill",
        "SELECT COUNT(*) FROM r WHERE age > 3 OR ill = TRUE",
        "SELECT AVG(ward) FROM r",
        "SELECT AVG(x) FROM r",
        "SELECT COUNT(*) FROM r JOIN s ON r.a = s.a",
        "SELECT COUNT(DISTINCT age) FROM r",
        "SELECT QUANTILE(age, NULL) FROM r",
        "SELECT QUANTILE(age, TRUE) FROM r",
        "SELECT QUANTILE(age) FROM r",
        "SELECT COUNT(*) FROM r; DROP TABLE r",
        "SELECT " * 3000,
    ],
)
def test_sql_that_is_not_understood(mixed_schema: Schema, text: str) -> None:
    with pytest.raises(AnswerError):
        sql.parse(mixed_schema, text)
