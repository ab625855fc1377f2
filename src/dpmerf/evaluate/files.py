"""Files: the tables that an evaluation reads. Parquet (a file or a folder) and CSV."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as parquet

from dpmerf.errors import DataError


def read_table(path: Path) -> pa.Table:
    """A table from a file; the message of a failure names the file, never what it holds."""
    if not path.exists():
        raise DataError(f"{path} does not exist. Check the path")
    try:
        if path.is_dir() or path.suffix.lower() in {".parquet", ".pq"}:
            return parquet.read_table(path)
        options = csv.ConvertOptions(strings_can_be_null=True, null_values=["", "null", "NULL", "NA", "NaN"])
        return csv.read_csv(path, convert_options=options)
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        raise DataError(f"{path} cannot be read. Write a Parquet file or a CSV file with a header") from None
