"""dpmerf: differentially private synthetic data from one noisy mean embedding."""

__version__ = "0.1.0"

from dpmerf.accounting.unit import Unit
from dpmerf.api import Synthesizer, release, synthesize, synthesize_images
from dpmerf.errors import DpmerfError
from dpmerf.inference.ask import answer
from dpmerf.methods.presets import make_plan
from dpmerf.model import Model
from dpmerf.plan import Plan
from dpmerf.private.ledger import Ledger
from dpmerf.release import Release
from dpmerf.release.verify import verify
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
    "answer",
    "make_plan",
    "release",
    "synthesize",
    "synthesize_images",
    "train",
    "verify",
]
