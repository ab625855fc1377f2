"""Release: the artefact that may leave the building."""

from dpmerf.release.release import Charge, Measurement, Release

__all__ = ["Charge", "Measurement", "Release"]
