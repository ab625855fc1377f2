"""Means of cosines and sines over groups of rows, with a gradient of their own: what networks are trained by."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor


def mean_cos_sin(angles: Tensor, groups: int) -> Tensor:
    """(groups · k, m), rows of a group together -> (groups, 2m): the mean of `cos_sin` of each group.

    Differentiable once. Keeps the cosines and sines and nothing else of the size of its input: the gradient of a mean
    is never written out row by row.
    """
    return _MeanCosSin.apply(angles, groups)  # type: ignore[no-any-return,no-untyped-call]


class _MeanCosSin(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, angles: Tensor, groups: int) -> Tensor:
        cosines, sines = torch.cos(angles), torch.sin(angles)
        ctx.save_for_backward(cosines, sines)
        per = angles.shape[0] // groups
        scale = 1 / (per * math.sqrt(angles.shape[1]))
        means = [wave.view(groups, per, -1).sum(dim=1) for wave in (cosines, sines)]
        return torch.cat(means, dim=1).mul_(scale)

    @staticmethod
    @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        cosines, sines = ctx.saved_tensors
        groups, m = gradient.shape[0], cosines.shape[1]
        per = cosines.shape[0] // groups
        scaled = gradient * (1 / (per * math.sqrt(m)))
        along, across = scaled[:, None, m:], scaled[:, None, :m]  # (groups, 1, m)
        found = cosines.view(groups, per, m) * along
        return found.addcmul_(sines.view(groups, per, m), across, value=-1).view(-1, m), None
