"""Views: a picture as vectors, for Fourier features. Fixed filters, no data, nothing learned.

A view needs no norm bound of its own: the Fourier features of any vector have norm 1. What it must be is a function of
one picture alone, bit for bit. So in float64 every number is rounded to a binary grid before numbers are added up,
coarse enough for every partial sum to be exact: the order of additions, which changes with the batch, cannot matter.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, final

from dpmerf.features.circle import cos_sin
from dpmerf.features.dense import Dense
from dpmerf.features.fourier import INPUT_BITS, on_grid
from dpmerf.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor

BITS = 16  # pixels and pooled responses lie on a grid of 2⁻¹⁶: squares of 8,192 of them add up exactly
FINE_BITS = 20  # filter taps and responses before pooling
COARSE = 8  # the pooled grid is at most this wide
WINDOW, STRIDE = 3, 2  # cells of a window, and from one window to the next
FLOOR, WINDOW_FLOOR = 1e-2, 0.5  # added to norms: nothing divides by 0, and faint pictures or corners stay faint


@final
@dataclass(frozen=True)
class Views:
    """The views of pictures of one size, by name; each is (windows, n, numbers) with entries in [−1, 1].

    - `pixels`: the picture.
    - `coarse`: the picture averaged to twice the pooled grid (14×14 for 28×28).
    - `edges`: where edges of which direction and size lie. One bank of 7×7 complex Gabor filters (wavelength 4 pixels,
      width 1.6, deaf to constant patches) on the grey picture (every second pixel) and on the picture halved, halved
      again, …; the moduli are averaged over a grid at most 8 cells wide; the picture averaged over the same grid
      stands beside them. The vector is divided by its length: contrast does not count.
    - `windows`: the same maps in windows of 3×3 cells, every second cell, each divided by its length.

    >>> {name: tuple(v.shape) for name, v in Views(1, 28, 28)(torch.zeros(5, 784)).items()}
    {'pixels': (1, 5, 784), 'coarse': (1, 5, 196), 'edges': (1, 5, 833), 'windows': (9, 5, 153)}
    """

    channels: int
    height: int
    width: int
    orientations: int = 8

    @property
    def octaves(self) -> int:
        """How often the picture is halved until the grid is at most COARSE wide."""
        return max(1, math.ceil(math.log2(max(self.height, self.width) / COARSE)))

    @property
    def blank(self) -> Tensor:
        """One black picture."""
        return torch.zeros(1, self.channels * self.height * self.width)

    def numbers(self, view: str) -> int:
        """How many numbers a view has, all windows together."""
        return self(self.blank, (view,))[view].numel()

    @cached_property
    def bank(self) -> Tensor:
        return gabor_bank(self.orientations)

    def __call__(
        self, numbers: Tensor, names: Collection[str] = ("pixels", "coarse", "edges", "windows")
    ) -> dict[str, Tensor]:
        """Pictures (n, channels · height · width) in [0, 1] -> the named views."""
        found: dict[str, Tensor] = {"pixels": numbers[None]} if "pixels" in names else {}
        if not set(names) - {"pixels"}:
            return found
        x = _rounded(numbers, BITS).view(-1, self.channels, self.height, self.width)
        x = _padded(x, 2**self.octaves)
        if "coarse" in names:
            found["coarse"] = torch.nn.functional.avg_pool2d(x, 2 ** (self.octaves - 1)).flatten(1)[None]
        if set(names) & {"edges", "windows"}:
            low, moduli = torch.nn.functional.avg_pool2d(x, 2**self.octaves), self._moduli(x)
            if "edges" in names:
                found["edges"] = _unit(torch.cat([m.flatten(1) for m in (low, *moduli)], dim=1), FLOOR)[None]
            if "windows" in names:
                found["windows"] = _unit(_windows(torch.cat([2 * low, *moduli], dim=1)), WINDOW_FLOOR)
        return found

    def _moduli(self, x: Tensor) -> list[Tensor]:
        """One pooled map of moduli per octave: (n, orientations, grid, grid)."""
        grey = x if self.channels == 1 else _rounded(x.sum(dim=1, keepdim=True) / self.channels, BITS)
        found = []
        for octave in range(self.octaves):
            r = torch.nn.functional.conv2d(grey, self.bank.to(grey), padding=3, stride=2 if octave == 0 else 1)
            even, odd = r[:, 0::2], r[:, 1::2]
            modulus = _rounded((even * even + odd * odd + 1e-6).sqrt(), FINE_BITS)
            found.append(torch.nn.functional.avg_pool2d(modulus, 2 ** (self.octaves - max(octave, 1))))
            grey = torch.nn.functional.avg_pool2d(grey, 2)
        return found


@final
@dataclass(frozen=True, eq=False)
class FourierOf(Dense):
    """cos and sin of random projections of one view, window by window, over all w windows and m frequencies ÷ √(w·m).

    ‖φ(x)‖ = 1 whatever the view says, since cos² + sin² = 1 pair by pair. Views and frequencies lie on binary grids on
    which every projection is exact in float64, as in `Fourier`.
    """

    views: Views
    view: str
    frequencies: Tensor  # (windows, numbers, m) float64, on a binary grid

    @staticmethod
    def draw(views: Views, view: str, dim: int, scales: tuple[float, ...], seed: int) -> FourierOf:
        """Independent Gaussian frequencies that cycle through the length-scales; `dim` is cut to whole pairs."""
        windows, _, numbers = views(views.blank, (view,))[view].shape
        m = max(1, dim // (2 * windows))
        rng = torch.Generator().manual_seed(seed)
        drawn = torch.randn(windows, numbers, m, generator=rng, dtype=torch.float64)
        cycle = torch.tensor([scales[j % len(scales)] for j in range(m)], dtype=torch.float64)
        flat = (drawn / cycle).transpose(0, 1).reshape(numbers, windows * m)
        return FourierOf(views, view, on_grid(flat).view(numbers, windows, m).transpose(0, 1).contiguous())

    @property
    def name(self) -> str:
        return f"fourier of {self.view}"

    @property
    def dim(self) -> int:
        return 2 * self.frequencies.shape[0] * self.frequencies.shape[2]

    def __call__(self, numbers: Tensor) -> Tensor:
        view = self.views(numbers, (self.view,))[self.view]
        return cos_sin(projected(view, self.frequencies.to(numbers.dtype)))


def projected(view: Tensor, frequencies: Tensor) -> Tensor:
    """(w, n, d) and (w, d, m) -> angles (n, w·m), window by window."""
    return torch.bmm(_rounded(view, INPUT_BITS), frequencies).transpose(0, 1).flatten(1)


def gabor_bank(orientations: int, size: int = 7, wavelength: float = 4.0, width: float = 1.6) -> Tensor:
    """(2 · orientations, 1, size, size): even and odd parts of complex Gabor filters, unit norm, on a binary grid."""
    axis = torch.arange(size, dtype=torch.float64) - size // 2
    y, x = torch.meshgrid(axis, axis, indexing="ij")
    bell = torch.exp(-(x**2 + y**2) / (2 * width**2))
    taps = []
    for k in range(orientations):
        angle = math.pi * k / orientations
        wave = 2 * math.pi * (x * math.cos(angle) + y * math.sin(angle)) / wavelength
        even, odd = bell * torch.cos(wave), bell * torch.sin(wave)
        even = even - bell * (even.sum() / bell.sum())
        norm = torch.sqrt((even**2 + odd**2).sum())
        taps += [even / norm, odd / norm]
    return _rounded(torch.stack(taps)[:, None], FINE_BITS)


def _windows(maps: Tensor) -> Tensor:
    """(n, c, grid, grid) -> (windows, n, c · 9)."""
    below, right = (max(WINDOW - side, (side - WINDOW) % STRIDE) for side in maps.shape[2:])
    cut = torch.nn.functional.pad(maps, (0, right, 0, below)).unfold(2, WINDOW, STRIDE).unfold(3, WINDOW, STRIDE)
    return cut.permute(2, 3, 0, 1, 4, 5).flatten(3).flatten(0, 1)  # (n, c, a, b, 3, 3) -> (a·b, n, c·9)


def _unit(v: Tensor, floor: float) -> Tensor:
    """v ÷ (length + floor) along the last axis; the sum of squares is exact on its grid."""
    v = _rounded(v, BITS)
    return v / ((v * v).sum(dim=-1, keepdim=True).sqrt() + floor)


def _rounded(x: Tensor, bits: int) -> Tensor:
    """float64 to multiples of 2^−bits; float32, the generator's side, stays smooth."""
    return torch.round(x * 2.0**bits) / 2.0**bits if x.dtype == torch.float64 else x


def _padded(x: Tensor, multiple: int) -> Tensor:
    """Black below and to the right, up to a multiple of the pooling."""
    below, right = -x.shape[2] % multiple, -x.shape[3] % multiple
    return torch.nn.functional.pad(x, (0, right, 0, below)) if below or right else x
