"""Registry: the generators by kind, ours and those of plugins, and which of them reads a release."""

from __future__ import annotations

from dpmerf import plugins
from dpmerf.errors import ArtefactError, TrainError
from dpmerf.generators.base import Generator
from dpmerf.generators.elliptic.elliptic import Elliptic
from dpmerf.generators.images.picture_network import Pictures
from dpmerf.generators.maxent.maxent import MaxEnt
from dpmerf.generators.network import Network
from dpmerf.release import Release

GENERATORS: dict[str, type[Generator]] = {g.kind: g for g in (MaxEnt, Elliptic, Network, Pictures)}


def generator_of(kind: str) -> type[Generator]:
    """The generator of that kind: one of ours, or a plugin's that is installed."""
    found = GENERATORS.get(kind) or plugins.load("generators", kind)
    if found is None:
        raise ArtefactError(f"the model was made by the plugin '{kind}', which is not installed: install its package")
    if not (isinstance(found, type) and issubclass(found, Generator)):
        raise ArtefactError(f"the plugin '{kind}' is no generator: it must extend dpmerf.generators.base.Generator")
    return found


def suited(release: Release) -> type[Generator]:
    """The generator that reads what was measured. A plugin's is asked only where none of ours does."""
    for kind in (*GENERATORS, *plugins.offered("generators")):
        if release.plan.has(generator_of(kind).reads):
            return generator_of(kind)
    raise TrainError("no generator reads what this release measured: make the plan with `dpmerf plan`")
