"""Runs one program on several PySpark releases and compares what works with what docs promise."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from kafka08.embedded.cluster import EmbeddedCluster
from kafka08.producer import KafkaProducer, KafkaProducerConfig
from scripts.spark_delta import exactly_once_into_delta

ROOT: Final = Path(__file__).parent.parent
SECONDS: Final = 600
"""For one release."""
COUNT: Final = 1000
WORKS_SINCE: Final = {
    "read_ranges": (3, 5),
    "createRDD": (3, 5),
    "createDirectStream": (3, 5),
    "createStream": (3, 5),
    "batch": (4, 0),
    "sink": (4, 0),
    "stream sink": (4, 1),
    "stream": (4, 2),
    "pushFilters": (4, 4),
}
"""What the program tries → the first release where it works; kafka08/spark/versions.py has them.
Earlier ones must refuse it with an error of ours, which names the release that is needed."""
WITH_DELTA: Final = ("4.2",)
"""Releases that have streams and a Delta Lake: docs/spark-exactly-once.md."""
PROGRAM: Final = """
import sys, tempfile
from pyspark.sql import SparkSession
from kafka08.spark import read_ranges, register
from kafka08.spark.kafka import KafkaUtils, OffsetRange

bootstrap, zookeeper, text, count = *sys.argv[1:4], int(sys.argv[4])
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.python.filterPushdown.enabled", "true")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("OFF")
SERVERS = {"kafka.bootstrap.servers": bootstrap}
PAGES = {**SERVERS, "subscribe": "pages"}


def options(builder, **more):
    register(spark)  # first in a program: docs/spark.md
    return builder.format("kafka08").options(**SERVERS, **more)


def checkpoint():
    return tempfile.mkdtemp()


def stream():
    frame = options(spark.readStream, subscribe="pages", startingOffsets="earliest").load()
    query = (
        frame.writeStream.format("memory").queryName("seen")
        .option("checkpointLocation", checkpoint()).trigger(availableNow=True).start()
    )
    query.awaitTermination(300)
    return spark.table("seen").count()


def stream_sink():
    numbers = spark.readStream.format("text").load(text)
    query = (
        options(numbers.writeStream, topic="from-stream", checkpointLocation=checkpoint())
        .trigger(availableNow=True).start()
    )
    query.awaitTermination(300)
    return read_ranges(spark, {**SERVERS, "subscribe": "from-stream"}).count()


def sink():
    rows = spark.range(count).selectExpr("string(id) AS value")
    options(rows.write, topic="from-batch").mode("append").save()
    return read_ranges(spark, {**SERVERS, "subscribe": "from-batch"}).count()


def counted(make_stream):
    from pyspark.streaming import StreamingContext

    context, counts = StreamingContext(spark.sparkContext, 1), []
    make_stream(context).foreachRDD(lambda rdd: counts.append(rdd.map(len).count()))
    context.start()
    for _ in range(60):
        if context.awaitTerminationOrTimeout(1) or sum(counts) >= count:
            break
    context.stop(False, False)
    return sum(counts)


def direct_stream(context):
    keys = {"metadata.broker.list": bootstrap, "auto.offset.reset": "smallest"}
    return KafkaUtils.createDirectStream(context, ["pages"], keys)


def group_stream(context):
    keys = {"auto.offset.reset": "smallest"}
    return KafkaUtils.createStream(context, zookeeper, "versions", {"pages": 1}, keys)


TRIED = {
    "read_ranges": lambda: read_ranges(spark, PAGES).count(),
    "createRDD": lambda: KafkaUtils.createRDD(
        spark.sparkContext, {"metadata.broker.list": bootstrap}, [OffsetRange("pages", 0, 0, count)]
    ).map(len).count(),
    "createDirectStream": lambda: counted(direct_stream),
    "createStream": lambda: counted(group_stream),
    "batch": lambda: options(spark.read, subscribe="pages").load().count(),
    "sink": sink,
    "pushFilters": lambda: options(spark.read, subscribe="pages", pushFilters="true").load()
        .where("offset >= 0").count(),
    "stream sink": stream_sink,
    "stream": stream,
}
for name, run in TRIED.items():
    try:
        found = run()
    except Exception as error:
        told = "needs PySpark" in str(error)
        print(f"{name}\\t{'is refused' if told else 'fails'}\\t{type(error).__name__}", flush=True)
    else:
        print(f"{name}\\t{'works' if found == count else found}\\t", flush=True)
"""


def python_of(version: str) -> str:
    return str(ROOT / ".spark-versions" / version / "bin" / "python")


def tried(version: str, cluster: EmbeddedCluster, text: Path) -> dict[str, str]:
    """name → works, is refused (by an error of ours), fails, or a wrong number of rows."""
    python = python_of(version)
    done = subprocess.run(
        [
            *(python, "-c", PROGRAM, cluster.bootstrap, cluster.zookeeper.connect_string),
            *(str(text), str(COUNT)),
        ],
        env={**os.environ, "PYSPARK_PYTHON": python},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    lines = [line.split("\t") for line in done.stdout.splitlines() if line.count("\t") == 2]
    if len(lines) != len(WORKS_SINCE):
        raise SystemExit(f"PySpark {version}: {done.stderr[-2000:]}")
    return {name: result for name, result, _ in lines}


def row(version: str, name: str, result: str, expected: str) -> int:
    """Print it. Returns 1 if the result is not as expected."""
    note = "" if result == expected else f", but {expected} was expected"
    print(f"PySpark {version}  {name:23} {result}{note}", flush=True)
    return int(bool(note))


def main(versions: list[str]) -> int:
    """Print a row for each release and thing. Returns 1 if one is not as WORKS_SINCE says."""
    wrong = 0
    text = ROOT / ".spark-versions" / "text"
    text.mkdir(exist_ok=True)
    (text / "numbers").write_text("".join(f"{number}\n" for number in range(COUNT)))
    for version in versions:
        release = tuple(int(part) for part in version.split("."))
        with EmbeddedCluster(brokers=1) as cluster:
            config = KafkaProducerConfig({"bootstrap.servers": cluster.bootstrap})
            with KafkaProducer(config) as producer:
                producer.send_many("pages", [b"%d" % number for number in range(COUNT)])
            for name, result in tried(version, cluster, text).items():
                expected = "works" if release >= WORKS_SINCE[name] else "is refused"
                wrong += row(version, name, result, expected)
            if version in WITH_DELTA:
                with tempfile.TemporaryDirectory() as directory:
                    result = exactly_once_into_delta(
                        python_of(version), cluster.bootstrap, Path(directory)
                    )
                wrong += row(version, "exactly once into Delta", result, "works")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
