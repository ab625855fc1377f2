"""Files: the tables that an evaluation reads. Parquet (a file or a folder), Arrow and CSV.

CSV cells stay text: the schema says what they mean, as it did when the release was made.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.feather as feather
import pyarrow.parquet as parquet

from dpmerf.errors import DataError

PARQUET_ENDINGS = (".parquet", ".pq")
ARROW_ENDINGS = (".arrow", ".feather", ".ipc")
CSV_ENDINGS = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt")


def read_table(path: Path) -> pa.Table:
    """A table from a file; the message of a failure names the file, never what it holds."""
    name = path.name.lower()
    if not path.exists():
        raise DataError(f"there is no file {path}")
    try:
        if path.is_dir() or name.endswith(PARQUET_ENDINGS):
            return parquet.read_table(path)
        if name.endswith(ARROW_ENDINGS):
            return feather.read_table(path)
        if name.endswith(CSV_ENDINGS):
            return _csv(path, "\t" if ".tsv" in name else ",")
    except (pa.ArrowException, OSError, EOFError, UnicodeError):
        raise DataError(f"{path} is damaged, or not the kind of file that its name says") from None
    raise DataError(f"{path}: unknown kind of file. Use .csv, .parquet or .arrow")


def _csv(path: Path, delimiter: str) -> pa.Table:
    parse = csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    with csv.open_csv(path, parse_options=parse) as reader:
        header = reader.schema.names
    text = csv.ConvertOptions(
        column_types=dict.fromkeys(header, pa.string()), strings_can_be_null=True, null_values=[""]
    )
    return csv.read_csv(path, parse_options=parse, convert_options=text)
