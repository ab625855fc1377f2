"""Upsampling: networks that turn noise and a label into a picture, from a small grid up."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dpmerf.schema import Image

SMALLEST = 8  # the grid that pictures grow from is at most this wide


class Blur(nn.Module):
    """[1 2 1] ÷ 4 in both directions: removes the checkerboard that learned up-sampling leaves."""

    def forward(self, x: Tensor) -> Tensor:
        x = F.pad(x, (1, 1, 1, 1), mode="replicate")
        x = (x[..., :-2] + x[..., 2:]) / 4 + x[..., 1:-1] / 2
        return (x[..., :-2, :] + x[..., 2:, :]) / 4 + x[..., 1:-1, :] / 2


class Upsampler(nn.Module):
    """latent ++ one-hot label (n, latent + classes) -> pictures (n, channels · height · width) in (0, 1)."""

    def __init__(self, image: Image, first: nn.Module, grow: nn.Module, channels: int, grid: tuple[int, int]) -> None:
        super().__init__()
        self.first, self.grow = first, grow
        self._shape = (channels, *grid)
        self._size = (image.height, image.width)

    def forward(self, inputs: Tensor) -> Tensor:
        out = self.grow(self.first(inputs).view(-1, *self._shape))
        return torch.sigmoid(out[:, :, : self._size[0], : self._size[1]]).flatten(1)


def paper_body(image: Image, inputs: int) -> Upsampler:
    """The paper's: FC 200, FC to 16 channels, then bilinear ×2 and 5×5 convolutions."""
    levels, grid = doublings(image)
    widths = [16] + [8] * (levels - 1) + [image.channels]
    cells = widths[0] * grid[0] * grid[1]
    first = nn.Sequential(
        nn.Linear(inputs, 200), nn.BatchNorm1d(200), nn.ReLU(), nn.Linear(200, cells), nn.BatchNorm1d(cells)
    )
    layers: list[nn.Module] = []
    for i in range(levels):
        layers += [
            nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True),
            nn.Conv2d(widths[i], widths[i + 1], 5, padding=2),
        ] + ([nn.ReLU()] if i < levels - 1 else [])
    return Upsampler(image, first, nn.Sequential(*layers), widths[0], grid)


def default_body(image: Image, inputs: int) -> Upsampler:
    """FC 256, FC to 32 channels, then 3×3 convolutions to four times the channels, laid out as 2×2 pixels, and a blur.

    The same maps as transposed 6×6 convolutions of stride 2, in less time.
    """
    levels, grid = doublings(image)
    widths = [32] + [16] * (levels - 1) + [image.channels]
    cells = widths[0] * grid[0] * grid[1]
    first = nn.Sequential(
        nn.Linear(inputs, 256), nn.BatchNorm1d(256), nn.ReLU(), nn.Linear(256, cells), nn.BatchNorm1d(cells), nn.ReLU()
    )
    layers: list[nn.Module] = []
    for i in range(levels):
        layers += [nn.Conv2d(widths[i], 4 * widths[i + 1], 3, padding=1), nn.PixelShuffle(2)]
        layers += [nn.BatchNorm2d(widths[i + 1]), nn.ReLU()] if i < levels - 1 else [Blur()]
    return Upsampler(image, first, nn.Sequential(*layers), widths[0], grid)


def doublings(image: Image) -> tuple[int, tuple[int, int]]:
    """How often the grid is doubled, and its first height and width: (2, (7, 7)) for 28×28."""
    levels = 2
    while max(image.height, image.width) > SMALLEST * 2**levels:
        levels += 1
    return levels, (-(-image.height // 2**levels), -(-image.width // 2**levels))
