"""Baselines: the systems that the paper compares to, compact, each with its privacy accounting in its docstring.

They draw their noise from a seeded generator and in floating point: good for benchmarks on public data, for nothing
else.
"""

from __future__ import annotations

from benchmarks.baselines.gan import dp_cgan, dp_gan
from benchmarks.baselines.gswgan import gs_wgan
from benchmarks.baselines.pategan import pate_gan
from benchmarks.baselines.privbayes import privbayes
from benchmarks.methods import Method

BASELINES: dict[str, Method] = {
    "dp-gan": dp_gan,
    "dp-cgan": dp_cgan,
    "gs-wgan": gs_wgan,
    "pate-gan": pate_gan,
    "privbayes": privbayes,
}
