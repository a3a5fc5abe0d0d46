"""The columns of a read, by the names and types of Spark's own connector."""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from kafka08.errors import ConfigError

HEADERS: Final = ArrayType(
    StructType([StructField("key", StringType()), StructField("value", BinaryType())])
)
COLUMNS: Final[dict[str, DataType]] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    "headers": HEADERS,
}
"""All nullable. `timestamp` is null where a message has none. `timestampType` is 0 for the
producer's time, 1 for the broker's, -1 for messages of 0.8 and 0.9, which carry none. `headers` is
null where a message has none, as before 0.11."""


def default_schema(include_headers: bool) -> StructType:
    """Every column; `headers` only if asked for."""
    return StructType(
        [
            StructField(name, kind)
            for name, kind in COLUMNS.items()
            if include_headers or name != "headers"
        ]
    )


def check_schema(schema: StructType, include_headers: bool) -> None:
    """Check a user's schema. It may omit columns, which then are not read, and reorder them; names
    and types must be those of COLUMNS. ConfigError names a wrong one."""
    allowed = default_schema(include_headers)
    wanted = {field.name: field.dataType for field in allowed}
    for field in schema:
        if field.name not in wanted:
            raise ConfigError(
                f"schema: there is no column {field.name}; valid are {', '.join(wanted)}"
                + ("" if include_headers else " (and headers with includeHeaders=true)")
            )
        if not _same_type(field.dataType, wanted[field.name]):
            raise ConfigError(
                f"schema: {field.name} is {wanted[field.name].simpleString()}, "
                f"not {field.dataType.simpleString()}; cast it afterwards"
            )


def _same_type(left: DataType, right: DataType) -> bool:
    return left.simpleString() == right.simpleString()
