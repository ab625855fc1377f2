"""Planted bugs: each breaks the product in one classic way. A suite that does not catch them proves nothing."""

from __future__ import annotations

from privacy.bugs import derived, noise, outside, relations, rows
from privacy.bugs.bug import Bug

BUGS: tuple[Bug, ...] = (*noise.BUGS, *rows.BUGS, *derived.BUGS, *outside.BUGS, *relations.BUGS)
