"""The locked room: the only code that touches rows or spends budget.

Nothing that runs after a release may import this package (the command line and the one-call API excepted).
"""
