"""Baselines: the systems that the paper compares to, compact, each with its privacy accounting in its docstring."""

from __future__ import annotations

from benchmarks.methods import Method

BASELINES: dict[str, Method] = {}
