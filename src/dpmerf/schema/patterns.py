"""Patterns: ids that look like the real ones. A small part of regular expressions: characters, [sets] and {counts}."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

MOST_CHARACTERS = 64
_PIECE = re.compile(r"(\\d|\\.|\[[^\]^]+\]|[^\\\[\]{}()*+?.|^$])(?:\{(\d{1,2})\})?")


@final
@dataclass(frozen=True)
class Pattern:
    """One alphabet per character; ids are counted in it, the last character fastest.

    >>> Pattern.parse("P[0-9]{3}").ids(7, 2).tolist()
    ['P007', 'P008']
    """

    alphabets: tuple[str, ...]

    @staticmethod
    def parse(text: str) -> Pattern:
        found: list[str] = []
        at = 0
        while at < len(text):
            piece = _PIECE.match(text, at)
            if piece is None:
                raise ValueError(
                    f"cannot read the pattern from {text[at:][:10]!r} on: write characters, sets such as [0-9A-F] and "
                    "counts such as {7}"
                )
            found += [_alphabet(piece[1])] * int(piece[2] or 1)
            at = piece.end()
        if not 1 <= len(found) <= MOST_CHARACTERS:
            raise ValueError(f"a pattern has 1 to {MOST_CHARACTERS} characters")
        if all(len(a) == 1 for a in found):
            raise ValueError("the pattern gives one id only: write a set, such as [0-9]{7}")
        return Pattern(tuple(found))

    @cached_property
    def capacity(self) -> int:
        """How many different ids it gives."""
        return math.prod(len(a) for a in self.alphabets)

    def ids(self, first: int, n: int) -> np.ndarray:
        """(n,) text: the ids number first, first + 1, …, all different."""
        return self.ids_at(np.arange(first, first + n))

    def ids_at(self, numbers: np.ndarray) -> np.ndarray:
        """(n,) text: the ids of these numbers."""
        n, left = len(numbers), numbers.astype(np.int64)
        left = left % self.capacity if self.capacity < 2**62 else left
        found = np.empty((n, len(self.alphabets)), dtype="<U1")
        for place in range(len(self.alphabets) - 1, -1, -1):
            alphabet = np.array(list(self.alphabets[place]))
            found[:, place] = alphabet[left % len(alphabet)]
            left = left // len(alphabet)
        return found.view(f"<U{len(self.alphabets)}").reshape(n)


def _alphabet(piece: str) -> str:
    if piece == r"\d":
        return "0123456789"
    if piece.startswith("\\"):
        return piece[1:]
    if not piece.startswith("["):
        return piece
    inside, found = piece[1:-1], ""
    for low, high, single in re.findall(r"(.)-(.)|(.)", inside):
        if single:
            found += single
        elif low <= high:
            found += "".join(chr(c) for c in range(ord(low), ord(high) + 1))
        else:
            raise ValueError(f"in the pattern, {low}-{high} goes backward")
    return "".join(dict.fromkeys(found))
