"""Read a topic as Arrow columns, and commit once the result is safe.

usage: columns.py TOPIC
"""

from __future__ import annotations

import os
import sys

import pyarrow as pa
import pyarrow.compute as pc

from kafka08.arrow import scan


def main(topic: str) -> int:
    with scan(os.environ["KAFKA08_BOOTSTRAP"], topic, columns=["partition", "value"]) as messages:
        table = pa.table(messages)
    sizes = table.append_column("bytes", pc.binary_length(table["value"]))
    grouped = sizes.group_by("partition").aggregate([("bytes", "sum"), ("bytes", "count")])
    for row in sorted(grouped.to_pylist(), key=lambda row: row["partition"]):
        print(
            f"partition {row['partition']}: {row['bytes_count']} messages, {row['bytes_sum']} bytes"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
