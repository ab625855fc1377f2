"""Plan: what will be measured and what it costs, before any row is read; and what is known as it is answered."""

from dpmerf.plan.embedding import Embedding, View
from dpmerf.plan.known import Known
from dpmerf.plan.measurements import Measurement
from dpmerf.plan.plan import Plan, digest
from dpmerf.plan.stages import Stage

__all__ = ["Embedding", "Known", "Measurement", "Plan", "Stage", "View", "digest"]
