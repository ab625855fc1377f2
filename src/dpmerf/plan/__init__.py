"""Plan: what will be measured and what it costs, before any row is read."""

from dpmerf.plan.plan import Plan, Stage, digest

__all__ = ["Plan", "Stage", "digest"]
