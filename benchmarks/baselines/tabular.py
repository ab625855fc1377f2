"""Rows as the networks of the baselines see them: numbers in [0, 1] and one-hots, by the schema alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import pyarrow as pa
import torch
from torch import Tensor, nn

from dpmerf.encoding.codec import Batch, Codec, Variable
from dpmerf.schema import Schema


@final
@dataclass(frozen=True)
class Layout:
    """Column order of the matrix: numbers, then a one-hot per discrete variable; the label's one-hot is the last."""

    codec: Codec
    numeric: int
    variables: tuple[Variable, ...]  # without the label
    label: Variable | None

    @staticmethod
    def of(schema: Schema) -> Layout:
        codec = Codec(schema)
        label = codec.label if codec.label and codec.label.name in schema.learned else None
        rest = tuple(v for v in codec.variables if label is None or v.name != label.name)
        return Layout(codec, len(codec.numeric), rest, label)

    @property
    def width(self) -> int:
        return self.numeric + sum(v.size for v in self.variables)

    @property
    def classes(self) -> int:
        return self.label.size if self.label else 1

    def encode(self, rows: pa.Table) -> tuple[Tensor, Tensor]:
        """(n, width) float32 features and (n,) labels."""
        batch = self.codec.encode(rows)
        onehots = [nn.functional.one_hot(batch.codes[v.name], v.size).float() for v in self.variables]
        labels = batch.codes[self.label.name] if self.label else torch.zeros(len(batch), dtype=torch.long)
        return torch.cat([batch.numbers.float(), *onehots], dim=1), labels

    def decode(self, matrix: Tensor, labels: Tensor, rng: torch.Generator) -> pa.Table:
        """Generated rows as a table; one-hots may be probabilities, which are drawn from."""
        codes = {}
        parts = matrix[:, self.numeric :].split([v.size for v in self.variables], dim=1) if self.variables else ()
        for v, p in zip(self.variables, parts, strict=True):
            codes[v.name] = torch.multinomial(p.clamp_min(1e-9), 1, generator=rng).flatten()
        if self.label:
            codes[self.label.name] = labels
        numbers = matrix[:, : self.numeric].double().clamp(0, 1)
        return self.codec.decode(self.codec.with_label(Batch(numbers, codes)))

    def heads(self, out: Tensor) -> Tensor:
        """A network's last layer -> sigmoids for numbers, draws for categories."""
        parts = out[:, self.numeric :].split([v.size for v in self.variables], dim=1) if self.variables else ()
        return torch.cat([torch.sigmoid(out[:, : self.numeric]), *(drawn(p) for p in parts)], dim=1)


def drawn(logits: Tensor) -> Tensor:
    """One-hot draws, as real rows are (a critic tells softmaxes from those at once); gradients pass as if soft.

    Seeded by `torch.manual_seed`.
    """
    return nn.functional.gumbel_softmax(logits, tau=0.5, hard=True)


def network(inputs: int, hidden: tuple[int, ...], outputs: int) -> nn.Sequential:
    """Fully connected, leaky ReLU, no batch statistics (they would mix rows)."""
    layers: list[nn.Module] = []
    for width in hidden:
        layers += [nn.Linear(inputs, width), nn.LeakyReLU(0.2)]
        inputs = width
    return nn.Sequential(*layers, nn.Linear(inputs, outputs))
