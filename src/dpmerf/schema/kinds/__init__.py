"""Kinds of columns, one class each, which owns all that is particular to it."""
