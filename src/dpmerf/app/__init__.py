"""The page: `dpmerf app` walks from a table to synthetic rows in a browser, on this machine alone.

Nothing of the rows reaches the page but the names of columns, their stored types and what was bought with noise.
"""
