"""Registry: the generators by kind, and which of them reads a release."""

from __future__ import annotations

from dpmerf.errors import TrainError
from dpmerf.generators.base import Generator
from dpmerf.generators.elliptic.elliptic import Elliptic
from dpmerf.generators.images.picture_network import Pictures
from dpmerf.generators.maxent.maxent import MaxEnt
from dpmerf.generators.network import Network
from dpmerf.release import Release

GENERATORS: dict[str, type[Generator]] = {g.kind: g for g in (MaxEnt, Elliptic, Network, Pictures)}


def suited(release: Release) -> type[Generator]:
    """The generator that reads what was measured."""
    for generator in GENERATORS.values():
        if release.plan.has(generator.reads):
            return generator
    raise TrainError("no generator reads what this release measured: make the plan with `dpmerf plan`")
