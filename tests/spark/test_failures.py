"""The cause in the text of Spark's errors, as Spark 4.3 prints them."""

from __future__ import annotations

import pytest

from kafka08.spark.failures import known_cause, without_frames

OF_A_PLAN = """\
[STREAM_FAILED] Query [id = be42] terminated with exception: [PYTHON_DATA_SOURCE_ERROR] Failed to \
plan Python data source initialize source: Traceback (most recent call last):
  File "pyspark/sql/datasource_internal.py", line 50, in _streamReader
    return datasource.streamReader(schema=schema)
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
kafka08.errors.NoBrokersAvailable: no broker responded: h:1: Connection refused
Check that brokers run there.

During handling of the above exception, another exception occurred:

UnboundLocalError: cannot access local variable 'reader'
 SQLSTATE: 38000 SQLSTATE: XXKST
=== Streaming Query ===
Identifier: [id = be42]"""

OF_A_TASK = """\
An error occurred while calling o103.save.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 1 in stage 6.0 failed 1 \
times, most recent failure: Lost task 1.0 in stage 6.0 (TID 12) (10.0.0.7 executor 2): \
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "kafka08/spark/plain_errors.py", line 38, in run
kafka08.arrow.data_loss.DataLost: [t,0] [0, 9): only [3, 9) is there
\tat org.apache.spark.api.python.BasePythonRunner.handle(PythonRunner.scala:1136)
\t... 27 more

Driver stacktrace:"""

OF_A_DEAD_WORKER = """\
An error occurred while calling o103.save.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 1 in stage 6.0 failed 1 \
times, most recent failure: Lost task 1.0 in stage 6.0 (TID 12) (10.0.0.7 executor 2): \
org.apache.spark.SparkException: Python worker exited unexpectedly (crashed).
\tat org.apache.spark.api.python.BasePythonRunner.apply(PythonRunner.scala:1136)
Caused by: java.io.EOFException"""

OF_A_DEAD_DAEMON = """\
An error occurred while calling o103.save.
: org.apache.spark.SparkException: EOFException occurred while reading the port number from \
pyspark.daemon's stdout and terminated with code: 137.."""

OF_JAVA = """\
An error occurred while calling o9.save.
: java.io.IOException: No space left on device
\tat java.base/java.io.FileOutputStream.writeBytes(Native Method)
\tat org.apache.hadoop.fs.LocalFSFileOutputStream.write(RawLocalFileSystem.java:276)
\t... 12 more

Driver stacktrace:
\tat py4j.ClientServerConnection.run(ClientServerConnection.java:108)
Caused by: java.io.IOException: disk
Caused by: java.io.IOException: disk"""


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (OF_A_PLAN, "no broker responded: h:1: Connection refused\nCheck that brokers run there."),
        (OF_A_TASK, "[t,0] [0, 9): only [3, 9) is there"),
        ("kafka08.errors.ConfigError: alone", "alone"),
        (OF_JAVA, None),
    ],
)
def test_an_error_of_ours_is_found(text: str, cause: str | None) -> None:
    """Its text and its notes, without what PySpark and Java print around them."""
    assert known_cause(text) == cause


@pytest.mark.parametrize(
    ("text", "place"), [(OF_A_DEAD_WORKER, ", in task 1 on 10.0.0.7:"), (OF_A_DEAD_DAEMON, ":")]
)
def test_a_dead_worker_is_told(text: str, place: str) -> None:
    """What died, in which task if Spark says so, and what to do."""
    cause = known_cause(text)
    assert cause is not None
    assert cause.startswith(f"A Python worker of Spark died{place} something killed it")
    assert "Start it again" in cause
    assert "\n" not in cause


def test_other_errors_lose_their_frames() -> None:
    """What is left are the errors themselves, each once."""
    assert without_frames(OF_JAVA).splitlines() == [
        "java.io.IOException: No space left on device",
        "Caused by: java.io.IOException: disk",
    ]
