"""dpmerf: differentially private synthetic data from noisy mean embeddings.

A name is imported when it is asked for: commands that compute nothing start without PyTorch.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from dpmerf.accounting.unit import Unit
    from dpmerf.api import release
    from dpmerf.errors import DpmerfError
    from dpmerf.inference.ask import answer
    from dpmerf.inference.combine import analyse, combine
    from dpmerf.methods.presets import make_plan
    from dpmerf.model import Model
    from dpmerf.one_call import synthesize, synthesize_images
    from dpmerf.plan import Plan
    from dpmerf.private.ledger import Ledger
    from dpmerf.release import Release
    from dpmerf.release.verify import verify
    from dpmerf.schema import Schema
    from dpmerf.synthesizer import Synthesizer
    from dpmerf.train import train

_HOMES = {
    "DpmerfError": "dpmerf.errors",
    "Ledger": "dpmerf.private.ledger",
    "Model": "dpmerf.model",
    "Plan": "dpmerf.plan",
    "Release": "dpmerf.release",
    "Schema": "dpmerf.schema",
    "Synthesizer": "dpmerf.synthesizer",
    "Unit": "dpmerf.accounting.unit",
    "analyse": "dpmerf.inference.combine",
    "answer": "dpmerf.inference.ask",
    "combine": "dpmerf.inference.combine",
    "make_plan": "dpmerf.methods.presets",
    "release": "dpmerf.api",
    "synthesize": "dpmerf.one_call",
    "synthesize_images": "dpmerf.one_call",
    "train": "dpmerf.train",
    "verify": "dpmerf.release.verify",
}

__all__ = [
    "DpmerfError",
    "Ledger",
    "Model",
    "Plan",
    "Release",
    "Schema",
    "Synthesizer",
    "Unit",
    "__version__",
    "analyse",
    "answer",
    "combine",
    "make_plan",
    "release",
    "synthesize",
    "synthesize_images",
    "train",
    "verify",
]


class _Package(ModuleType):
    """`dpmerf.release` and `dpmerf.train` are functions, though a package and a module of these names are imported."""

    def __getattr__(self, name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module 'dpmerf' has no attribute '{name}'")
        return getattr(importlib.import_module(_HOMES[name]), name)

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *__all__})


sys.modules[__name__].__class__ = _Package
