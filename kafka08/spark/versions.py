"""The differences between PySpark releases: what each one lacks, and the errors about it.

docs/spark.md, "Versions", has the table for users.
"""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any, Final

import pyspark
from pyspark.sql.pandas.types import to_arrow_schema

from kafka08.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

_major, _minor = pyspark.__version__.split(".")[:2]
PYSPARK: Final = (int(_major), int(_minor))
"""(major, minor) of the installed PySpark."""
DATA_SOURCES: Final = (4, 0)
"""Data sources in Python: the format `kafka08` for batches, and the sink."""
FILTERS: Final = (4, 4)
"""Filters passed to the source for one scan: the option pushFilters. From 4.1 to 4.3 all scans of a
load() share the ranges that the last filter left."""
STREAM_SINK: Final = (4, 1)
"""A sink of streams that takes Arrow batches."""
STREAM_LIMITS: Final = (4, 2)
"""Streams whose reader gets the start and the limit: the format `kafka08` as a stream."""
UNIX_SOCKETS: Final = (4, 1)
"""Unix sockets between Java and Python, which cost less than TCP: the property UNIX_SOCKET."""
UNIX_SOCKET: Final = "spark.python.unix.domain.socket.enabled"


def require(least: tuple[int, int], what: str, instead: str) -> None:
    """ConfigError unless PySpark is at least `least`, naming `what` needs it and what to do."""
    if least > PYSPARK:
        raise ConfigError(
            f"{what} needs PySpark {'.'.join(map(str, least))} or later, this is "
            f"{pyspark.__version__}: {instead}"
        )


def arrow_schema(schema: StructType) -> pa.Schema:
    """Spark's schema as Arrow's, with times in UTC. Before 4.3 that is the only choice."""
    options: dict[str, Any] = {}
    if "timezone" in signature(to_arrow_schema).parameters:
        options["timezone"] = "UTC"
    return to_arrow_schema(schema, **options)
