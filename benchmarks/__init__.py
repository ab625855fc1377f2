"""Benchmarks: every claim of the paper and of this project, checked by one command each.

python -m benchmarks list | run NAME | table
"""
