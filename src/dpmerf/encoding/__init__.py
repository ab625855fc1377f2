"""Encoding: rows <-> tensors. Pure functions of public facts and released numbers; nothing is fitted on rows."""
