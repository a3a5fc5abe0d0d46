"""One Spark session for all tests here, and clusters to read: ours and a real 0.8.2.2.

What needs a session or a cluster is in the tier `spark`. Without PySpark, pyarrow or Java these
tests are left out, with CI=true they fail.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from kafka08.embedded.cluster import EmbeddedCluster
from kafka08.embedded.java import find_java
from kafka08.embedded.spark_java import make_java_home
from kafka08.errors import ConfigError
from tests.interop.jvm import JvmKafka, require_jvm
from tests.spark.filling import Topics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MISSING = [name for name in ("pyspark", "pyarrow") if find_spec(name) is None]

if MISSING and os.environ.get("CI") != "true":
    collect_ignore_glob = ["test_*.py"]


def pytest_report_header() -> str:
    missing = ", ".join(MISSING)
    return f"tests/spark: no {missing}, see scripts/install spark" if missing else ""


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """local[2] for the whole run."""
    from kafka08.spark.session import local_session

    directory = tmp_path_factory.mktemp("spark")
    log_file = directory / "spark.log"
    try:
        java = find_java()
    except ConfigError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))
    conf = {
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.sql.shuffle.partitions": "2",
    }
    home = make_java_home(directory / "java", java, log_file)
    with local_session("kafka08 tests", home, log_file, conf=conf) as session:
        yield session


BROKER_KEYS = {
    "num.partitions": "2",
    "log.segment.bytes": "2000000",
    "log.retention.check.interval.ms": "1000",
    "offsets.topic.num.partitions": "2",
    "delete.topic.enable": "true",
    "log.cleaner.enable": "true",
    "log.cleaner.backoff.ms": "200",
}


@pytest.fixture(scope="session", params=["ours", "jvm"])
def brokers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Topics]:
    """A cluster with small segments, ours and then the JVM's, to be filled by the tests: each
    takes topics of its own."""
    with ExitStack() as stack:
        if request.param == "jvm":
            require_jvm()
            jvm = stack.enter_context(JvmKafka(tmp_path_factory.mktemp("jvm"), BROKER_KEYS))
            topics = Topics(jvm.bootstrap, jvm.zookeeper)
        else:
            ours = stack.enter_context(EmbeddedCluster(1, BROKER_KEYS, level="0.8.2"))
            topics = Topics(ours.bootstrap, ours.zookeeper.connect_string)
        stack.callback(topics.close)
        yield topics
