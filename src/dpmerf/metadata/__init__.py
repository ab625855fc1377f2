"""Other people's metadata: descriptions of tables in the formats that are in use, read into a schema and written back.

One file a format. Each reads what the description says and nothing else: no row, no value of the table. What is not
said stays a gap that a person fills in.
"""

from dpmerf.metadata.formats import READABLE, WRITABLE, imported, read
from dpmerf.schema.facts import Facts, TableFacts
from dpmerf.schema.toml import write_schema

__all__ = ["READABLE", "WRITABLE", "Facts", "TableFacts", "imported", "read", "write_schema"]
