"""Plugins: queries, generators, methods and sources of other packages, by the entry points that these declare.

A plugin is code that its user installed; a file never brings one. What a plugin's query measures goes the way of all
queries: its map is priced by the same algebra, every row's integers are clipped to the bound of its block, and what is
measured may not be larger than what was priced. What stays the plugin's own word: that its map is a function of the
row alone, and an angle (`Dense.apart` below 4) if it claims one.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal

from dpmerf.errors import PlanError

Group = Literal["queries", "generators", "methods", "sources"]


@cache
def offered(group: Group) -> dict[str, EntryPoint]:
    """What is installed, by name. Two packages with one name are refused: which was meant cannot be told."""
    found: dict[str, EntryPoint] = {}
    for point in entry_points(group=f"dpmerf.{group}"):
        if point.name in found and found[point.name].value != point.value:
            raise PlanError(f"two packages offer '{point.name}' among dpmerf.{group}: uninstall one of them")
        found[point.name] = point
    return found


def load(group: Group, name: str) -> Any:
    """The thing itself; None if no package offers it."""
    point = offered(group).get(name)
    if point is None:
        return None
    try:
        return point.load()
    except (ImportError, AttributeError) as problem:
        raise PlanError(f"the plugin '{name}' ({point.value}) cannot be loaded: {problem}") from None


def home(name: str, group: Group) -> str:
    """The package that offers it, with its version, for people."""
    point = offered(group).get(name)
    return "" if point is None or point.dist is None else f"{point.dist.name} {point.dist.version}"
