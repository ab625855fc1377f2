"""Audit: try to tell two neighbouring tables apart from what was released, and say how far that got.

An audit can show that a claim is false, never that it is true. It runs on made-up rows that fit a plan's schema.
"""

from dpmerf.audit.bounds import MuBound, mu_bound
from dpmerf.audit.canary import Neighbours, neighbours
from dpmerf.audit.run import Audit, audit

__all__ = ["Audit", "MuBound", "Neighbours", "audit", "mu_bound", "neighbours"]
