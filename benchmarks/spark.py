"""Reads by Spark on two cores: ours beside Spark's own connector, which reads a Kafka 3.9 broker.

    scripts/bench spark [--rows 3000000] [--rounds 3] [--only "100 B"] [--broker jvm]
        [--cluster] [--ready-made] [--conf KEY=VALUE]...

Spark is local[2], or with --cluster a standalone master and two workers of one core. Both sources
run in one Spark, in turns; the first round of each only warms it up. Each topic has four partitions
and every read takes all its columns. There are two Sparks, one after the other: in the first, Java
and Python exchange rows by TCP, as by default; in the second by a Unix socket, as in `kafka08
spark` (cases "..., Unix"). --ready-made adds two sources that yield ready-made batches: one without
Kafka, and one that fetches the messages and checks their CRCs (spark_ready.py): what any source in
Python costs, and any that reads Kafka. Needs Java (a JDK), Maven and PySpark 4.1 or later.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from benchmarks import scratch, spark_load, spark_ready
from benchmarks.report import Goal, report
from benchmarks.spark_load import PARTITIONS, Filling
from benchmarks.spark_peer.broker import ModernBroker
from benchmarks.spark_peer.connector import connector_classpath
from benchmarks.subjects import JvmSubject, OurSubject, await_leaders
from kafka08 import kernel
from kafka08.embedded.java import find_java
from kafka08.embedded.spark_java import make_java_home
from kafka08.embedded.zookeeper import ZooKeeperServer
from kafka08.spark.session import session
from kafka08.spark.versions import UNIX_SOCKET
from tests.spark.standalone import DRIVER, StandaloneSpark

LARGE_BYTES = 32 << 20
WORKER_MEGABYTES = 200
"""What a Python worker may have, besides twice the largest message."""
MESSAGE_BYTES_MAX = 2 * LARGE_BYTES

SIZES = {"100 B": 100, "1 KB": 1000}
RATES = {
    "100 B": {"count": 4.0, "sum": 4.0, "parquet": 2.5},
    "1 KB": {"count": 3.0, "sum": 3.0, "parquet": 2.0},
}
CPU = {"100 B": 0.45, "1 KB": 0.65}

Broker = OurSubject | JvmSubject | ModernBroker


@dataclass(frozen=True, slots=True)
class Case:
    """One kind of read: messages of a size of SIZES, an action of RATES; `unix`: rows go through a
    Unix socket between Java and Python, else through TCP."""

    size: str
    action: str
    unix: bool

    @property
    def name(self) -> str:
        return f"{self.size} {self.action}{', Unix' if self.unix else ''}"

    @property
    def topic(self) -> str:
        return topic_of(self.size)

    @property
    def goals(self) -> list[Goal]:
        rate = Goal("rate", "M/s", RATES[self.size][self.action], True)
        if self.action != "sum":
            return [rate]
        return [rate, Goal("cpu", "s/M", CPU[self.size], False), Goal("broker", "s/M", 1, False)]


CASES = [
    Case(size, action, unix) for unix in (False, True) for size in SIZES for action in RATES[size]
]


def topic_of(size: str) -> str:
    return f"values-{SIZES[size]}"


class Side:
    """One way to read: `source` from `broker`. `fillings`: size -> what is in its topic."""

    def __init__(self, name: str, source: str, broker: Broker) -> None:
        self.name = name
        self.broker = broker
        self.fillings: dict[str, Filling] = {}
        self._source = source

    def fill(self, size: str, count: int) -> None:
        topic = topic_of(size)
        await_leaders(self.broker, topic, PARTITIONS)
        self.fillings[size] = spark_load.fill(self.broker.address, topic, SIZES[size], count)

    def bounds(self) -> list[Side]:
        """The same topics, read by the sources that bound it."""
        sides = [Side(name, name, self.broker) for name in spark_ready.NAMES]
        for side in sides:
            side.fillings = self.fillings
        return sides

    def frame(self, spark: SparkSession, topic: str) -> DataFrame:
        """A new data frame for each action: Spark plans ours once for all."""
        options = {"kafka.bootstrap.servers": self.broker.address, "subscribe": topic}
        return (
            spark.read.format(self._source)
            .options(**options)
            .option("startingOffsets", "earliest")
            .load()
        )


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench spark", description=__doc__)
    parser.add_argument("--rows", type=int, default=3_000_000, help="of 100 B; a fifth of 1 KB")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of each case (default 3)")
    parser.add_argument("--only", default="", help="only cases whose name contains this")
    parser.add_argument(
        "--broker", choices=["ours", "jvm"], default="ours", help="whose 0.8 broker ours reads"
    )
    parser.add_argument("--cluster", action="store_true", help="a master and two workers")
    parser.add_argument("--ready-made", action="store_true", help="also what bounds a source")
    parser.add_argument("--conf", action="append", default=[], help="KEY=VALUE of Spark's")
    parser.add_argument("--json", dest="json_file", help="write the medians to this file")
    scratch.add_option(parser)
    options = parser.parse_args()
    cases = [case for case in CASES if options.only in case.name]
    counts = {"100 B": options.rows, "1 KB": options.rows // 5}
    rows: list[dict[str, object]] = []
    with scratch.scratch(options) as directory, sides(directory, options.broker) as both:
        for size in dict.fromkeys(case.size for case in cases):
            for side in both:
                side.fill(size, counts[size])
        compared = [*both, *both[1].bounds()] if options.ready_made else both
        cluster = StandaloneSpark(directory / "standalone") if options.cluster else None
        with cluster or nullcontext():
            for unix in (False, True):
                of_spark = [case for case in cases if case.unix is unix]
                memory = unix and options.only in "memory"
                if of_spark or memory:
                    rows += spark_rows(
                        *(directory / f"spark-{unix}", options.conf, cluster),
                        *(compared, of_spark, options.rounds),
                        memory=memory,
                    )
    if options.json_file:
        Path(options.json_file).write_text(json.dumps(rows, indent=1))
    return 0


@contextmanager
def sides(directory: Path, ours: str) -> Iterator[tuple[Side, Side]]:
    """Spark's connector on its broker, and our source on the one that is asked for."""
    keys = {
        "num.partitions": str(PARTITIONS),
        "log.retention.bytes": "-1",
        "message.max.bytes": str(MESSAGE_BYTES_MAX),
        "replica.fetch.max.bytes": str(MESSAGE_BYTES_MAX),
    }
    with ExitStack() as stack:
        zookeeper = ZooKeeperServer(directory / "zookeeper", durable=False)
        stack.callback(zookeeper.stop)
        zookeeper.start()
        connect = zookeeper.connect_string
        kind = OurSubject if ours == "ours" else JvmSubject
        subject = kind(directory / "ours", f"{connect}/ours", keys)
        modern = ModernBroker(directory / "modern", f"{connect}/modern", PARTITIONS)
        for broker in (subject, modern):
            stack.callback(broker.kill)
            broker.start()
        yield Side("connector", "kafka", modern), Side("ours", "kafka08", subject)


def spark_rows(
    directory: Path,
    given: Sequence[str],
    cluster: StandaloneSpark | None,
    sides: Sequence[Side],
    cases: Sequence[Case],
    rounds: int,
    *,
    memory: bool,
) -> list[dict[str, object]]:
    """The rows of one Spark: of `cases`, which are alike in `unix`, and of the `memory`."""
    conf = dict(setting.split("=", 1) for setting in given)
    conf.setdefault(UNIX_SOCKET, str(any(case.unix for case in cases)).lower())
    rows: list[dict[str, object]] = []
    with started(directory, conf, cluster) as (spark, roots):
        print(
            f"kernel: {kernel.NAME}; {rounds} rounds; ours reads {sides[1].broker.name}; "
            f"{spark.sparkContext.master}; {UNIX_SOCKET}={conf[UNIX_SOCKET]}"
        )
        spark_ready.register(spark)
        for case in cases:
            rows += case_rows(spark, roots, sides, case, rounds, directory)
        if memory:
            rows.append(memory_row(spark, roots, sides[1], directory))
    return rows


@contextmanager
def started(
    directory: Path, given: Mapping[str, str], cluster: StandaloneSpark | None
) -> Iterator[tuple[SparkSession, list[int]]]:
    """A Spark as its users have it, but for the connector's jars and what is given: no settings of
    ours. And the processes under which it works: executors, and below them the Python workers."""
    log_file = directory / "spark.log"
    home = make_java_home(directory / "java", find_java(), log_file)
    conf = {
        **(DRIVER if cluster else {}),
        "spark.driver.extraClassPath": connector_classpath(),
        "spark.driver.extraJavaOptions": "",
        "spark.executor.extraClassPath": connector_classpath(),
        "spark.executor.extraJavaOptions": "",
        "spark.log.level": "ERROR",
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        **given,
    }
    master, roots = (cluster.url, cluster.pids) if cluster else ("local[2]", [])
    with session("kafka08 bench", master, home, log_file, conf=conf) as spark:
        gateway = SparkContext._gateway
        assert gateway is not None
        yield spark, [gateway.proc.pid, *roots]


def case_rows(
    spark: SparkSession,
    roots: Sequence[int],
    sides: Sequence[Side],
    case: Case,
    rounds: int,
    directory: Path,
) -> list[dict[str, object]]:
    """A row for each goal of a case; with further sides also the rows about what bounds it."""
    found: dict[str, list[dict[str, float]]] = {side.name: [] for side in sides}
    for number in range(rounds + 1):
        for side in sides:
            assert side.broker.pid is not None
            figures = spark_load.measured(
                *(side.frame(spark, case.topic), case.action, side.fillings[case.size]),
                *(directory / "copy", roots, side.broker.pid),
            )
            if number:
                found[side.name].append(figures)
    rows = []
    for goal in case.goals:
        theirs, ours = (
            statistics.median(figures[goal.figure] for figures in found[side.name])
            for side in sides[:2]
        )
        rows.append(report(case.name, goal, jvm=theirs, ours=ours, other="connector"))
    return rows + (spark_ready.bound_rows(case.name, found) if len(sides) > 2 else [])


def memory_row(
    spark: SparkSession, roots: Sequence[int], ours: Side, directory: Path
) -> dict[str, object]:
    """The most memory a worker had in all that went before and in reading one large message."""
    before = spark_load.peak_python_megabytes(roots)
    topic = "large"
    await_leaders(ours.broker, topic, PARTITIONS)
    filling = spark_load.fill_large(ours.broker.address, topic, LARGE_BYTES)
    spark_load.read(ours.frame(spark, topic), "sum", filling, directory / "copy")
    peak = spark_load.peak_python_megabytes(roots)
    large = LARGE_BYTES / (1 << 20)
    met = before < WORKER_MEGABYTES and peak < WORKER_MEGABYTES + 2 * large
    print(
        f"memory of a worker: {before:.0f} MB (goal < {WORKER_MEGABYTES}), {peak:.0f} MB with a "
        f"message of {large:.0f} MB (goal < {WORKER_MEGABYTES + 2 * large:.0f}) "
        f"{'ok' if met else 'MISSED'}"
    )
    return {"case": "memory", "small": before, "large": peak, "met": met}


if __name__ == "__main__":
    sys.exit(main())
