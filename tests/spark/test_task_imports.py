"""A worker of a cluster needs no library of brokers, tools or ZooKeeper."""

from __future__ import annotations

import base64
import subprocess
import sys
from collections.abc import Callable

import pyarrow as pa
import pytest
from pyspark import cloudpickle

from kafka08.arrow.options import parse_read_options
from kafka08.arrow.ranges import OffsetRange
from kafka08.spark.batch_reader import BatchReader
from kafka08.spark.rdd import RangeRead
from kafka08.spark.schema import default_schema
from kafka08.spark.sink import BatchWriter
from kafka08.spark.write_options import parse_write_options
from tests.spark.filling import Topics

NEEDLESS = {"kazoo", "gevent", "greenlet", "click", "rich"}
WORKER = """
import base64, pickle, sys
task = pickle.loads(base64.b64decode(sys.stdin.read()))
print(task(), *sys.modules)
"""


def run_in_a_worker(task: Callable[[], int]) -> int:
    """The result of `task` where it is unpickled into a new Python; fails if that imports too
    much."""
    text = base64.b64encode(cloudpickle.dumps(task)).decode()  # type: ignore[no-untyped-call]
    done = subprocess.run(
        [sys.executable, "-c", WORKER], input=text, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    result, *modules = done.stdout.split()
    assert NEEDLESS.intersection(name.partition(".")[0] for name in modules) == set()
    return int(result)


def reading(brokers: Topics) -> Callable[[], int]:
    """A task of the data source."""
    options = {"kafka.bootstrap.servers": brokers.bootstrap, "subscribe": brokers.filled([20])}
    reader = BatchReader(parse_read_options(options), default_schema(include_headers=False))
    [part] = reader.partitions()
    return lambda: sum(batch.num_rows for batch in reader.read(part))


def reading_an_rdd(brokers: Topics) -> Callable[[], int]:
    """A task of the old API."""
    wanted = OffsetRange(brokers.filled([20]), 0, 0, 20)
    parsed = parse_read_options(
        {"kafka.bootstrap.servers": brokers.bootstrap, "subscribe": wanted.topic}
    )
    read = RangeRead(parsed.address, parsed.settings, handle=str)
    return lambda: sum(1 for _ in read(0, [(wanted, None)]))


def writing(brokers: Topics) -> Callable[[], int]:
    """A task of the sink."""
    topic = brokers.new_topic(2)
    writer = BatchWriter(
        parse_write_options({"kafka.bootstrap.servers": brokers.bootstrap, "topic": topic})
    )
    rows = pa.RecordBatch.from_pydict({"value": [b"%d" % n for n in range(20)]})
    return lambda: writer.write(iter([rows])).counts[topic][0]


@pytest.mark.parametrize("made", [reading, reading_an_rdd, writing])
@pytest.mark.parametrize("brokers", ["ours"], indirect=True)
def test_a_task_needs_little(brokers: Topics, made: Callable[[Topics], Callable[[], int]]) -> None:
    """A task runs, and imports no module of NEEDLESS."""
    assert run_in_a_worker(made(brokers)) == 20
