"""Words: questions, SQL, command lines and environments."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from random import Random

import pyarrow.parquet as pq

from fuzz.ground import LEDGER, MARKER, Ground, rows
from privacy.fuzz import HOSTILE_TEXTS, bytes_of

QUESTIONS = [
    "share of ill by ward where age > 50 and dose is null",
    "mean of age by ward, ill",
    "quantile 0.9 of dose where seen >= 2020-03-01",
    "crosstab of ward by ill",
    "count where ward = 'a'",
]
SQL = [
    "SELECT SUM(dose) FROM t WHERE age = ward",
    f"SELECT SUM(dose) FROM t WHERE ward = '{MARKER}'",
    "SELECT * FROM t; DROP TABLE t",
    "SELECT COUNT(*) FROM t JOIN u ON t.a = u.a HAVING COUNT(*) > 3 ORDER BY 1 LIMIT 2",
]
NUMBERS = ["0", "-1", "1", "nan", "inf", "1e308", "1e-320", "9" * 400, "0x10", "", "1,5", "٣", "--", "1e5"]
OPTIONS = [
    "--epsilon", "--delta", "--rows", "--seed", "--steps", "-n", "--unit", "--neighbours", "--preset", "--label",
    "--device", "--given", "--read", "--want", "--format", "--confidence", "--sign", "--ledger", "-o", "--plan",
    "--json", "-q", "--force", "--balanced", "--fast", "--images", "--size", "--channels", "--classes", "--version",
]  # fmt: skip
FIRST = [
    ["plan", "schema.toml", "--epsilon", "1", "--rows", "40"],
    ["release", "t.parquet", "--plan", "plan.json", "--ledger", LEDGER, "-o", "out", "-q"],
    ["train", "release", "-o", "out", "--steps", "2", "-q"],
    ["sample", "model", "-n", "3", "-o", "out.csv", "-q"],
    ["verify", "release"],
    ["answer", "release", "share of ill"],
    ["ledger", "show", "there.ledger"],
    ["ledger", "init", "new.ledger", "--epsilon", "1", "--delta", "1e-5"],
    ["schema", "check", "schema.toml", "--data", "t.parquet"],
    ["schema", "draft", "t.parquet"],
    ["keys", "show", "nothing.pub"],
    ["pack", "release"],
    ["report", "release", "model", "-o", "out.html", "-q"],
    ["resume", "release"],
    ["audit", "--plan", "plan.json", "--minutes", "0"],
]


def _lay(ground: Ground, place: Path, words: list[str]) -> None:
    """The whole files that these words name."""
    for name in ("schema.toml", "plan.json"):
        if name in words:
            (place / name).write_bytes(ground.read(name))
    for name in ("release", "model"):
        if name in words[1:]:
            shutil.copytree(ground.folder / name, place / name)
    if "t.parquet" in words:
        pq.write_table(rows(), place / "t.parquet")
    if "there.ledger" in words:
        (place / "there.ledger").write_bytes(ground.read(LEDGER))


def question(ground: Ground, rng: Random, place: Path) -> list[str]:
    text = rng.choice(QUESTIONS)
    parts = text.split()
    for _ in range(rng.choice([0, 1, 2])):
        parts[rng.randrange(len(parts))] = rng.choice([*NUMBERS, *parts, "where", "by", "(", "'", MARKER, "∞"])
    text = " ".join(parts)
    _lay(ground, place, ["", "release"])
    return [
        "answer",
        "release",
        bytes_of(text.encode(), rng).decode("utf-8", "replace") if rng.random() < 0.5 else text,
    ]


VALUES = {
    "age": ["0", "50", "-3", "1e9", "3.5", "NULL"],
    "dose": ["1.5", "0", "-1", "'2'", "NULL"],
    "ward": ["'a'", "'b'", "'else'", "'no such'", "NULL", "1"],
    "seen": ["'2020-03-01'", "'2020-13-45'", "DATE '2020-03-01'", "NULL"],
    "ill": ["TRUE", "FALSE", "'yes'", "1", "NULL"],
}


def _aggregate(rng: Random) -> str:
    name = rng.choice(list(VALUES))
    number = rng.choice(["age", "dose"])
    return rng.choice(
        [
            "COUNT(*)",
            f"AVG({number})",
            f"SUM({number}) AS s",
            f"VARIANCE({number})",
            f"MEDIAN({number})",
            f"AVG({name} = {rng.choice(VALUES[name])})",
            f"QUANTILE({number}, {rng.choice(['0.5', '0.99', '1', '2', 'NULL', 'TRUE', '-0.1', number])})",
            f"{rng.choice(['MAX', 'COUNT', 'AVG', 'MEDIAN', 'QUANTILE'])}({rng.choice([name, ''])})",
        ]
    )


def _where(rng: Random) -> str:
    name = rng.choice(list(VALUES))
    value, other = rng.choice(VALUES[name]), rng.choice(VALUES[name])
    sign = rng.choice(["=", "=", "<", "<=", ">", ">=", "<>"])
    plain = [f"{name} {sign} {value}", f"({name} = {value})", f"{name} IN ({value}, {other})", f"{name} IS NULL"]
    return rng.choice([*plain, *plain, f"{name} BETWEEN {value} AND {other}", f"NOT {name}", f"{name} LIKE {value}"])


def sql(ground: Ground, rng: Random, place: Path) -> list[str]:
    """A statement of the understood form, with any value; every third is broken by words."""
    by = rng.sample(list(VALUES), rng.choice([0, 0, 1, 2]))
    text = "SELECT " + ", ".join([*by, *(_aggregate(rng) for _ in range(rng.choice([1, 1, 2])))]) + " FROM t"
    where = [_where(rng) for _ in range(rng.choice([0, 0, 1, 2]))]
    text += f" WHERE {rng.choice([' AND ', ' AND ', ' OR ']).join(where)}" if where else ""
    text += f" GROUP BY {', '.join(by)}" if by else ""
    if rng.random() < 0.33:
        parts = rng.choice([text, *SQL]).split()
        for _ in range(rng.choice([1, 2, 3])):
            strange = [*NUMBERS, *parts, "(", ")", "NULL", "'", "UNION", "CASE", "/*"]
            parts[rng.randrange(len(parts))] = rng.choice(strange)
        text = " ".join(parts)
    _lay(ground, place, ["", "release"])
    return ["answer", "release", text]


def command_line(ground: Ground, rng: Random, place: Path) -> list[str]:
    words = list(rng.choice(FIRST))
    _lay(ground, place, words)
    for _ in range(rng.choice([1, 1, 2, 4])):
        value = rng.choice([*NUMBERS, *HOSTILE_TEXTS[:6], "schema.toml", "/", ".", "n" * 300, "a=b", "person:key,2"])
        value = value.replace("\x00", "?")
        match rng.randrange(4):
            case 0:
                words.insert(rng.randrange(1, len(words) + 1), value)
            case 1 if len(words) > 2:
                words[rng.randrange(1, len(words))] = value
            case 2 if len(words) > 2:
                del words[rng.randrange(1, len(words))]
            case _:
                words += [rng.choice(OPTIONS), value]
    if "audit" in words[:1] and "0" not in words:  # an audit takes the minutes it is given
        words = ["audit", "--plan", "plan.json", "--minutes", "0"]
    for absolute in ("/", "/etc/passwd"):  # nothing outside the case's own folder is written to
        words = [f"x{w}" if w == absolute else w for w in words]
    return words


ENVIRONMENTS = {
    "HOME": ["/nonexistent", "", "/dev/null"],
    "TMPDIR": ["/nonexistent", ""],
    "LANG": ["C", "nonsense", "tr_TR.UTF-8"],
    "LC_ALL": ["C", "nonsense"],
    "COLUMNS": ["0", "-1", "1", "nonsense", "99999"],
    "TERM": ["dumb", "nonsense", ""],
    "NO_COLOR": ["1"],
    "FORCE_COLOR": ["1"],
    "TZ": ["nonsense", "Asia/Tokyo"],
    "DPMERF_THREADS": ["0", "-1", "many", "9" * 30],
    "DPMERF_PLAN_EPSILON": ["0", "nan", "nonsense"],
    "DPMERF_RELEASE_QUIET": ["maybe"],
    "DPMERF_CONFIG": ["/nonexistent", "/dev/null"],
    "PYTHONWARNINGS": ["error", "nonsense"],
    "PYTHONHASHSEED": ["0"],
    "OMP_NUM_THREADS": ["0", "nonsense"],
}


def environment(ground: Ground, rng: Random, place: Path) -> list[str]:
    """Set by the caller around the case: see `surroundings`."""
    words = list(rng.choice(FIRST[:12]))
    _lay(ground, place, words)
    for name in rng.sample(list(ENVIRONMENTS), rng.choice([1, 2, 3])):
        os.environ[name] = rng.choice(ENVIRONMENTS[name])
    if rng.random() < 0.3:
        (place / "dpmerf.toml").write_bytes(bytes_of(b"[plan]\nepsilon = 1\n[release]\nquiet = true\n", rng))
    return words
