"""Artefact: everything that one run of a release lets out, as named features for an attacker who looks at all of it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors

LOW = 16  # integers are also looked at modulo this: noise from a coarse grid leaves the sum's own low bits
_NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?")
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_CLOCK = re.compile(r"[-\d]+:[-\d]{2}(?::[-\d]{2})?|[\d,.]+/s|[⠀-⣿]|[━╸╺]+")


@final
@dataclass(frozen=True)
class Features:
    """What can be read off an artefact: numbers, and words (anything that is only equal or not)."""

    numbers: dict[str, float] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)

    def differences(self, other: Features) -> list[str]:
        """The names of features that the two do not share, or that differ."""
        pairs: tuple[tuple[Mapping[str, object], Mapping[str, object]], ...] = (
            (self.numbers, other.numbers),
            (self.words, other.words),
        )
        return sorted({key for a, b in pairs for key in {*a, *b} if a.get(key) != b.get(key)})


@final
@dataclass(frozen=True)
class Artefact:
    """The files of a release, what was said on a terminal while it was made, and the exit code."""

    files: Mapping[str, bytes]
    said: str = ""
    code: int = 0

    def features(self) -> Features:
        """Numbers and totals of documents and tensors, texts line by line, names, sizes, words said, exit code."""
        found = Features({"exit code": float(self.code)}, {"files": " ".join(sorted(self.files))})
        for name, raw in self.files.items():
            found.numbers[f"{name} bytes"] = float(len(raw))
            _read(name, raw, found)
        for word in _said(self.said):
            found.words[f"said {word}"] = "said"
        return found


def _read(name: str, raw: bytes, found: Features) -> None:
    if name.endswith(".safetensors"):
        try:
            tensors = load_tensors(raw)
            _flatten(f"{name} header", json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")]), found)
        except (SafetensorError, ValueError):
            tensors = {}
        for key, values in tensors.items():
            _tensor(f"{name}/{key}", values, found)
        return
    try:
        text = raw.decode()
        if name.endswith(".json"):
            _flatten(name, json.loads(text), found)
            return
    except ValueError:  # neither text nor JSON: equal or not is all that is looked at
        found.words[name] = hashlib.sha256(raw).hexdigest()
        return
    for i, line in enumerate(text.splitlines()):
        found.words[f"{name}:{i + 1}"] = _NUMBER.sub("0", line)
        for j, number in enumerate(_NUMBER.findall(line)):
            found.numbers[f"{name}:{i + 1} number {j + 1}"] = float(number.replace(",", ""))


def _tensor(name: str, values: np.ndarray, found: Features) -> None:
    flat = values.ravel()
    found.numbers[f"{name} total"] = float(flat.sum())
    for i, value in enumerate(flat.tolist()):
        found.numbers[f"{name}[{i}]"] = float(value)
        if values.dtype.kind in "iu":
            found.words[f"{name}[{i}] modulo {LOW}"] = str(value % LOW)


def _flatten(name: str, value: Any, found: Features) -> None:
    match value:
        case dict():
            found.words[f"{name} fields"] = " ".join(sorted(value))
            for key, item in value.items():
                _flatten(f"{name}/{key}", item, found)
        case list():
            found.numbers[f"{name} length"] = float(len(value))
            for i, item in enumerate(value):
                _flatten(f"{name}[{i}]", item, found)
        case bool() | None | str():
            found.words[name] = str(value)
        case _:
            found.numbers[name] = float(value)


def _said(text: str) -> set[str]:
    """The words and numbers on the terminal, without colours, clocks, speeds and bars: they differ by the moment."""
    return set(_CLOCK.sub(" ", _CONTROL.sub(" ", text)).split())
