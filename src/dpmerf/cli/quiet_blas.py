"""One thread for NumPy's linear algebra, unless the user says otherwise. Imported before NumPy is.

OpenBLAS starts a thread for every core, and they spin while they wait for each other: on a busy machine a whole run
took half as much CPU time again, and no step of it was faster.
"""

from __future__ import annotations

import os

VARIABLE = "OPENBLAS_NUM_THREADS"
if not os.environ.keys() & {VARIABLE, "OMP_NUM_THREADS"}:
    os.environ[VARIABLE] = "1"
