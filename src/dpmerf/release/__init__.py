"""Release: the artefact that may leave the building."""

from dpmerf.release.release import Charge, Release

__all__ = ["Charge", "Release"]
