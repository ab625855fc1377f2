"""dpmerf: differentially private synthetic data from one noisy mean embedding."""

__version__ = "0.1.0"

from dpmerf.api import Synthesizer, release, synthesize, synthesize_images
from dpmerf.budget import Unit
from dpmerf.errors import DpmerfError
from dpmerf.model import Model
from dpmerf.plan import Plan
from dpmerf.presets import make_plan
from dpmerf.private.ledger import Ledger
from dpmerf.release import Release
from dpmerf.schema import Schema
from dpmerf.train import train

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
    "make_plan",
    "release",
    "synthesize",
    "synthesize_images",
    "train",
]
