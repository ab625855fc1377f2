"""Generators: models that are trained on a release alone and draw encoded rows."""
