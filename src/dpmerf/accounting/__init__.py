"""Accounting: the unit that is protected and what a mechanism costs. No rows."""
