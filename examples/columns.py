"""Read a topic as Arrow columns, and commit once the result is safe.

usage: columns.py TOPIC
"""

from __future__ import annotations

import argparse
import os
import sys

import pyarrow as pa
import pyarrow.compute as pc

from kafka08.arrow import scan
from kafka08.errors import KafkaError


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("topic")
    topic = parser.parse_args().topic
    with scan(
        os.environ.get("KAFKA08_BOOTSTRAP", "localhost:9092"), topic, columns=["partition", "value"]
    ) as messages:
        table = pa.table(messages)
    sizes = table.append_column("bytes", pc.binary_length(table["value"]))
    grouped = sizes.group_by("partition").aggregate([("bytes", "sum"), ("bytes", "count")])
    for row in sorted(grouped.to_pylist(), key=lambda row: row["partition"]):
        print(
            f"partition {row['partition']}: {row['bytes_count']} messages, {row['bytes_sum']} bytes"
        )
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KafkaError as error:
        sys.exit(f"Error: {error}")
