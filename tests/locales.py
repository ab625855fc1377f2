"""Tables as they come from four countries: the same 4,000 simulated visits, each file with its own habits."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from pathlib import Path

import numpy as np

COLUMNS = """
[columns.admitted]
kind = "date"
first = 2023-01-01
last = 2023-12-31

[columns.seen]
kind = "timestamp"
first = 2023-01-01T00:00:00
last = 2024-01-01T23:59:00
step = 60

[columns.charges]
kind = "number"
min = 0
max = 10000
decimals = 2
nullable = true

[columns.weight]
kind = "number"
min = 0
max = 200
decimals = 1

[columns.sex]
kind = "category"
values = ["female", "male"]
{sex}

[columns.smoker]
kind = "flag"
{smoker}

[columns.visits]
kind = "integer"
min = 0
max = 50
"""


@dataclass(frozen=True)
class Country:
    """How one country's file is written, and what its schema has to declare."""

    name: str
    delimiter: str
    encoding: str
    reading: str
    sex: tuple[str, ...]  # female first; further ones are other words for female
    smoker: tuple[str, str]  # no, yes
    date: str
    moment: str
    decimal: str
    thousands: str
    money: str
    missing: str

    @property
    def mark(self) -> str:
        return self.delimiter.replace("\\t", "\t")

    def schema(self, declared: bool = True) -> str:
        words = self.sex[:1] + self.sex[2:]
        sex = ", ".join([*(f'"{w}" = "female"' for w in words), f'"{self.sex[1]}" = "male"'])
        smoker = f'"{self.smoker[1]}" = true, "{self.smoker[0]}" = false'
        text = COLUMNS.format(
            sex=f"synonyms = {{ {sex} }}" if declared else "",
            smoker=f"synonyms = {{ {smoker} }}" if declared else "",
        )
        frame = f'delimiter = "{self.delimiter}"\nencoding = "{self.encoding}"\n'
        return f"[reading]\n{frame}{self.reading if declared else ''}\n{text}"

    def write(self, path: Path, rows: int = 4000) -> Path:
        draw = np.random.default_rng(7)
        lines = [self.mark.join(names())]
        for _ in range(rows):
            day = dt.datetime(2023, 1, 1) + dt.timedelta(days=int(draw.integers(365)))
            seen = day + dt.timedelta(minutes=int(draw.integers(24 * 60)))
            charges = None if draw.random() < 0.1 else draw.gamma(2.0, 900.0)
            female = draw.random() < 0.6
            word = self.sex[1] if not female else self.sex[0] if draw.random() < 0.5 else self.sex[-1]
            cells = [
                day.strftime(self.date),
                seen.strftime(self.moment),
                self.missing if charges is None else self.money.format(self.number(min(charges, 9999), 2)),
                self.number(min(draw.normal(75, 12), 199), 1),
                word if len(self.sex) > 2 or not female else self.sex[0],
                self.smoker[int(draw.random() < 0.3)],
                str(int(draw.poisson(3))),
            ]
            lines.append(self.mark.join(f'"{c}"' if self.mark in c else c for c in cells))
        path.write_bytes(("\r\n".join(lines) + "\r\n").encode(self.encoding))
        return path

    def number(self, value: float, decimals: int) -> str:
        text = f"{value:,.{decimals}f}".replace(",", "\0").replace(".", self.decimal)
        return text.replace("\0", self.thousands)


def names() -> list[str]:
    return ["admitted", "seen", "charges", "weight", "sex", "smoker", "visits"]


GERMANY = Country(
    "german", ";", "cp1252",
    'decimal = ","\nthousands = "."\nunit = "€"\ndate = ["%d.%m.%Y", "%d.%m.%Y %H:%M"]\nmissing = ["k. A."]\n',
    ("W", "M", "weiblich"), ("nein", "ja"), "%d.%m.%Y", "%d.%m.%Y %H:%M", ",", ".", "€ {}", "k. A.",
)  # fmt: skip
FRANCE = Country(
    "french", ";", "utf-8",
    'decimal = ","\nthousands = " "\nunit = "€"\ndate = ["%d/%m/%Y", "%d/%m/%Y %Hh%M"]\nmissing = ["n/d"]\n',
    ("femme", "homme"), ("non", "oui"), "%d/%m/%Y", "%d/%m/%Y %Hh%M", ",", "\u202f", "{} €", "n/d",
)  # fmt: skip
AMERICA = Country(
    "american", ",", "utf-8",
    'thousands = ","\nunit = "$"\ndate = ["%m/%d/%Y", "%m/%d/%Y %I:%M %p"]\nmissing = ["N/A"]\n',
    ("F", "M"), ("Never", "Current"), "%m/%d/%Y", "%m/%d/%Y %I:%M %p", ".", ",", "${}", "N/A",
)  # fmt: skip
JAPAN = Country(
    "japanese", "\\t", "shift_jis",
    'thousands = ","\nunit = ["¥", "円"]\ndate = ["%Y年%m月%d日", "%Y年%m月%d日 %H時%M分"]\nmissing = ["不明"]\n',
    ("女", "男", "女性"), ("いいえ", "はい"), "%Y年%m月%d日", "%Y年%m月%d日 %H時%M分", ".", ",", "{}円", "不明",
)  # fmt: skip
COUNTRIES = (GERMANY, FRANCE, AMERICA, JAPAN)
