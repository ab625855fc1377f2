"""Settings of the tables model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True)
class Settings:
    """How the maximum-entropy model is fitted."""

    steps: int = 300
