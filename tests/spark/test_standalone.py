"""A cluster of Spark's own kind: kafka08 runs in executors that are other processes' children."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest

import kafka08
from kafka08.structs import TopicPartition
from tests.spark.filling import Topics, rows_of
from tests.spark.standalone import DRIVER, WORKERS, StandaloneSpark

pytestmark = [
    pytest.mark.parametrize("brokers", ["ours"], indirect=True),
    pytest.mark.timeout(300),  # ten JVMs start one after the other
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneSpark]:
    with StandaloneSpark(tmp_path_factory.mktemp("standalone")) as started:
        yield started


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python without kafka08."""
    environment = tmp_path_factory.mktemp("python") / "empty"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    return str(environment / "bin" / "python")


def read_by_the_command(
    cluster: StandaloneSpark, brokers: Topics, directory: Path, conf: dict[str, str]
) -> str:
    """Let `kafka08 spark read` with `conf` write a topic into files, whose rows must be those of
    the topic. Returns its stderr."""
    topic, files = brokers.filled([40, 30]), directory / "files"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "kafka08.cli", "spark", "read", topic, "--format", "json"),
            *("--output", str(files), "--bootstrap", brokers.bootstrap, "--master", cluster.url),
            *(f"--conf={name}={value}" for name, value in (DRIVER | conf).items()),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    parts = [file.read_text() for file in files.glob("*.json")]
    rows = [json.loads(row) for part in parts for row in part.splitlines()]
    assert sorted((row["partition"], row["offset"], row.get("value")) for row in rows) == [
        (partition, offset, value and value.decode())
        for partition, end in ((0, 40), (1, 30))
        for partition, offset, _, value in rows_of(partition, 0, end)
    ]
    return done.stderr


def test_the_command_reads(cluster: StandaloneSpark, brokers: Topics, tmp_path: Path) -> None:
    """Executors on both workers write a topic into files. The driver logs once that their Python
    lacks the compiled kernel."""
    conf = {"spark.executorEnv.KAFKA08_KERNEL": "python"}
    log = read_by_the_command(cluster, brokers, tmp_path, conf)
    assert log.count("run the Python twin of kafka08's kernel") == 1
    assert "KAFKA08_KERNEL=python is set" in log
    assert cluster.executors()[-1] == set(WORKERS)


def test_kafka08_in_a_zip_file(cluster: StandaloneSpark, brokers: Topics, tmp_path: Path) -> None:
    """Workers run what `--py-files` gives them, although they have kafka08: on the Python twin of
    the kernel, since Python loads no compiled module from a zip file. The driver logs that."""
    package = Path(kafka08.__file__).parent
    wheel = tmp_path / "kafka08.zip"
    with ZipFile(wheel, "w") as packed:
        for file in package.rglob("*.*"):
            if file.suffix in {".py", ".so"}:
                packed.write(file, file.relative_to(package.parent))
    log = read_by_the_command(cluster, brokers, tmp_path, {"spark.submit.pyFiles": str(wheel)})
    assert log.count("run the Python twin of kafka08's kernel") == 1
    assert "No module named 'kafka08.kernel._native'" in log


WRITE_AND_ASK = """
import json, sys
from pathlib import Path
from pyspark.streaming import StreamingContext
from kafka08.embedded.java import find_java
from kafka08.embedded.spark_java import make_java_home
from kafka08.errors import ConfigError
from kafka08.spark import register
from kafka08.spark.kafka import KafkaUtils
from kafka08.spark.session import session
from kafka08.spark.transfer import write_to_topic

given = json.loads(sys.argv[1])
home = make_java_home(Path(given["directory"], "java"), find_java(), log := Path(given["log"]))
with session("test", given["url"], home, log, conf=given["conf"]) as spark:
    rows = spark.range(0, given["count"], 1, 4).selectExpr("string(id) AS value")
    options = {"kafka.bootstrap.servers": given["bootstrap"]}
    write_to_topic(spark, rows, given["topic"], options, lambda done, total: None)
    sc, topics = spark.sparkContext, [given["topic"]]
    params = {"metadata.broker.list": given["bootstrap"]}
    ways = [
        lambda: register(spark),
        lambda: KafkaUtils.createRDD(sc, params, []),
        lambda: KafkaUtils.createDirectStream(StreamingContext(sc, 1), topics, params),
    ]
    for way, python in zip(ways, given["pythons"], strict=True):
        sc.pythonExec = python
        try:
            way()
        except ConfigError as error:
            print(error)
"""


def test_a_program_writes_and_wrong_pythons_are_errors(
    cluster: StandaloneSpark, brokers: Topics, empty: str, tmp_path: Path
) -> None:
    """Rows go into a topic, each once. A Python without kafka08 on the workers, and a missing one,
    are errors of `register`, createRDD and createDirectStream with its path."""
    topic, count = brokers.new_topic(2), 30
    given = {
        "url": cluster.url,
        "conf": DRIVER,
        "directory": str(tmp_path),
        "log": str(tmp_path / "spark.log"),
        "count": count,
        "bootstrap": brokers.bootstrap,
        "topic": topic,
        "pythons": ["/nowhere/python", empty, "/nowhere/python3"],
    }
    done = subprocess.run(
        [sys.executable, "-c", WRITE_AND_ASK, json.dumps(given)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    with brokers.simple_consumer() as consumer:
        written = [
            int(message.value or b"")
            for partition in (0, 1)
            for message in consumer.read_range(TopicPartition(topic, partition), 0)
        ]
    assert sorted(written) == list(range(count))
    missing, without, of_stream = done.stdout.splitlines()
    assert f"run {empty}, which cannot run tasks of kafka08 (No module named" in without
    assert "set PYSPARK_PYTHON (or" in without
    for error, python in ((missing, "/nowhere/python"), (of_stream, "/nowhere/python3")):
        assert f"cannot run {python} (Cannot run program" in error
        assert "set PYSPARK_PYTHON (or" in error
