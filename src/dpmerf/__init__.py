"""dpmerf: differentially private synthetic data from one noisy mean embedding."""

__version__ = "0.1.0"
