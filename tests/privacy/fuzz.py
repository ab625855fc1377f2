"""Fuzz: broken and hostile versions of files, from a numbered seed, so that a failure can be looked at again."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

HOSTILE_NUMBERS = [
    0,
    -1,
    1,
    2,
    3,
    10**9,
    -(10**9),
    2**31,
    2**53,
    2**63,
    10**30,
    10**400,
    0.5,
    1e-320,
    1e308,
    1e999,
    -1e999,
]
HOSTILE_TEXTS = [
    "", "?", "../../../../tmp/dpmerf-pwned", "/etc/passwd", "\x00", "\ud7ff", "𝄞" * 50, "a" * 10_000, "%s%n",
    "{0.__class__}", "__import__('os').system('touch /tmp/dpmerf-pwned')", "NaN", "true", "1e5", "9" * 5_000,
]  # fmt: skip
HOSTILE: list[Any] = [
    *HOSTILE_NUMBERS, *HOSTILE_TEXTS, None, True, False, [], {}, [[]], {"": {}}, [None], [1, "a"],
    [1e999] * 3, list(range(300)),
]  # fmt: skip


def bytes_of(raw: bytes, rng: random.Random) -> bytes:
    """Truncated, flipped, overwritten, repeated, swollen, spliced."""
    data = bytearray(raw)
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        if not data:
            return bytes(data)
        place = rng.randrange(len(data))
        end = min(len(data), place + rng.choice([1, 2, 8, 100]))
        match rng.randrange(8):
            case 0:
                del data[place:]
            case 1:
                data[place] ^= 1 << rng.randrange(8)
            case 2:
                del data[place:end]
            case 3:
                data[place:end] = bytes(rng.randrange(256) for _ in range(end - place))
            case 4:
                data[place:place] = data[place:end] * rng.choice([1, 2, 50])
            case 5:
                data[place:end] = rng.choice([b"\xff", b"\x00", b"9", b"[", b'{"a":', b'"', b"\n", b"1e999"]) * (
                    end - place
                )
            case 6:
                data[:8] = rng.choice(
                    [b"\xff" * 8, (2**62).to_bytes(8, "little"), b"\x00" * 8, (10**6).to_bytes(8, "little")]
                )
            case _:
                data += rng.choice([b"\x00", b"{", b"]", b"#void\n", b"\n", b"PK\x03\x04", b"\x1f\x8b"]) * rng.choice(
                    [1, 1000]
                )
    return bytes(data)


def json_of(document: Any, rng: random.Random) -> Any:
    """A copy with one to three places replaced, removed, renamed or nested."""
    found = copy.deepcopy(document)
    for _ in range(rng.choice([1, 1, 2, 3])):
        places = [(parent, key) for parent, key in _places(found)]
        if not places:
            return found
        parent, key = rng.choice(places)
        match rng.randrange(6):
            case 0 | 1 | 2:
                parent[key] = copy.deepcopy(rng.choice(HOSTILE))
            case 3:
                del parent[key]
            case 4:
                parent[key] = [parent[key]] * rng.choice([1, 2, 40])
            case _:
                value = parent[key]
                if isinstance(value, int | float) and not isinstance(value, bool):
                    parent[key] = value * rng.choice([-1, 0, 2, 0.5, 1 + 1e-9, 10**6])
                elif isinstance(parent, dict):
                    parent[str(key) + rng.choice(["x", "", " "])] = value
    return found


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


def _places(document: Any, most: int = 4_000) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    waiting = [document]
    while waiting and len(found) < most:
        value = waiting.pop()
        if isinstance(value, dict):
            found += [(value, k) for k in value]
            waiting += list(value.values())
        elif isinstance(value, list):
            found += [(value, i) for i in range(len(value))][:40]
            waiting += value[:40]
    return found


def dumped(document: Any) -> bytes:
    """JSON with whatever Python can write, NaN and lone surrogates included."""
    return json.dumps(document).encode("utf-8", "replace")
