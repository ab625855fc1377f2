"""Lazy: PyTorch takes longer to import than `plan`, `schema` or `ledger` take to run. It is imported at its first use.

What these commands reach says `from dpmerf.lazy import torch` and names `Tensor` for type checkers alone; everything
that computes from its first moment (generators, the locked room) imports PyTorch as usual.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch as torch
else:
    import importlib
    from types import ModuleType

    class _Late(ModuleType):
        """A module that is imported when something of it is asked for."""

        def __getattr__(self, name: str) -> object:
            return getattr(importlib.import_module(self.__name__), name)

    torch = _Late("torch")
