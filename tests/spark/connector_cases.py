"""The same reads and writes by Spark's own connector ("kafka") and ours ("kafka08"), as a program.

    python -m tests.spark.connector_cases BOOTSTRAP ZOOKEEPER DIRECTORY

The cluster is a Kafka 3.9 broker, since Spark's own connector reads nothing before 0.11. Prints a
JSON object: case → [outcome of Spark's own, outcome of ours]. An outcome is what a user sees: rows,
the cuts of tasks, the batches of a stream, or the kind of an error.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

from confluent_kafka import TopicPartition as ConfluentPartition
from confluent_kafka.admin import AdminClient as ConfluentAdmin
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import count, max, min, spark_partition_id

from benchmarks.spark_peer.connector import connector_classpath
from kafka08.admin import AdminClient
from kafka08.embedded.java import find_java
from kafka08.embedded.spark_java import make_java_home
from kafka08.producer import KafkaProducer, ProducerRecord
from kafka08.spark.session import local_session
from tests.integration.transactional import producer_on

Options: TypeAlias = Mapping[str, str]
BASE_MS: Final = 1_700_000_000_000
FORMATS: Final = ("kafka", "kafka08")
COLUMNS: Final = ["topic", "partition", "offset", "key", "value", "timestamp", "timestampType"]


class Cases:
    """One run of everything. outcomes: case → both outcomes."""

    def __init__(self, spark: SparkSession, bootstrap: str, admin: AdminClient, room: Path) -> None:
        self.outcomes: dict[str, list[Any]] = {}
        self._spark = spark
        self._bootstrap = bootstrap
        self._room = room
        self._admin = admin
        self._confluent = ConfluentAdmin({"bootstrap.servers": bootstrap})

    def run(self) -> None:
        self._fill()
        self._reads()
        self._refused_reads()
        self._lost_messages()
        self._streams()
        self._writes()
        self._open.close()

    def _create(self, topic: str, partitions: int) -> None:
        self._admin.create_topic(topic, partitions, 1)
        self._admin.await_leaders(topic)

    def _fill(self) -> None:
        """rows: partitions of 100, 60, 7 and 0 messages; gaps: begins at offset 40; none: empty."""
        for topic, sizes in {"rows": (100, 60, 7, 0), "gaps": (100,), "none": (0, 0)}.items():
            self._create(topic, len(sizes))
            with KafkaProducer(bootstrap_servers=self._bootstrap) as producer:
                for partition, size in enumerate(sizes):
                    for n in range(size):
                        value = None if n % 10 == 9 else b"v%d" % n
                        key = None if n % 3 == 0 else b"k%d" % n
                        made_ms = BASE_MS + 1000 * n
                        producer.send(ProducerRecord(topic, value, key, partition, made_ms))
        self._delete("gaps", 40)
        self._fill_mixed()
        self._create("headed", 1)
        some: list[tuple[str, bytes | None]] = [("a", b"1"), ("a", None), ("é", b"")]
        with KafkaProducer(bootstrap_servers=self._bootstrap) as producer:
            for n in range(12):
                headers = some[: n % 4] or None
                producer.send(ProducerRecord("headed", b"%d" % n, headers=headers))

    def _fill_mixed(self) -> None:
        """mixed: transactions of two producers among each other, every third is aborted; the last
        is still open, and a record of no transaction is behind it."""
        self._create("mixed", 2)
        with ExitStack() as stack:
            first, second, self._open = (
                producer_on(self._bootstrap, name, transaction_timeout_ms=900_000)
                for name in ("1", "2", "open")
            )
            stack.enter_context(first)
            stack.enter_context(second)
            for producer in (first, second, self._open):
                producer.init_transactions()
            for number in range(12):
                for producer in (first, second):
                    producer.begin_transaction()
                for each in range(10):
                    for producer in (first, second):
                        value = b"%d.%d" % (number, each)
                        producer.send(ProducerRecord("mixed", value, partition=each % 2)).result(30)
                first.abort_transaction() if number % 3 == 2 else first.commit_transaction()
                second.commit_transaction() if number % 2 else second.abort_transaction()
            self._open.begin_transaction()
            self._open.send(ProducerRecord("mixed", b"open", partition=0)).result(30)
        with KafkaProducer(bootstrap_servers=self._bootstrap) as producer:
            producer.send(ProducerRecord("mixed", b"behind it", partition=0)).result(30)

    def _delete(self, topic: str, before: int) -> None:
        deleted = self._confluent.delete_records([ConfluentPartition(topic, 0, before)])
        for future in deleted.values():
            future.result(60)

    # Reads

    def _reads(self) -> None:
        by_offset = {"rows": {"0": 10, "1": -2, "2": -1, "3": 0}}
        until = {"rows": {"0": 90, "1": 30, "2": -1, "3": -1}}
        by_time = {"rows": {str(n): BASE_MS + 5500 for n in range(4)}}
        ranges = {"startingOffsets": json.dumps(by_offset), "endingOffsets": json.dumps(until)}
        late = {"startingTimestamp": str(BASE_MS + 90_500)}
        reads: dict[str, Options] = {
            "all of a topic": {},
            "assign": {"assign": '{"rows":[0,2]}'},
            "a pattern": {"subscribePattern": "row.*|gaps"},
            "two topics": {"subscribe": "rows,none"},
            "starts and ends by offset": ranges,
            "a start by time": {"startingTimestamp": str(BASE_MS + 5500), **LATEST_START},
            "a start and an end by time": {
                "startingTimestamp": str(BASE_MS + 5000),
                "endingTimestamp": str(BASE_MS + 20_000),
                **LATEST_START,
            },
            "a start by time of each partition": {
                "startingOffsetsByTimestamp": json.dumps(by_time),
                **LATEST_START,
            },
            "a start by time later than some partitions": late,
            "the same with the strategy latest": {**late, **LATEST_START},
            "minPartitions 7": {"minPartitions": "7"},
            "minPartitions 2": {"minPartitions": "2"},
            "maxRecordsPerPartition 30": {"maxRecordsPerPartition": "30"},
            "minPartitions 9 and maxRecordsPerPartition 40": {
                "minPartitions": "9",
                "maxRecordsPerPartition": "40",
            },
            "an empty topic": {"subscribe": "none"},
            "an end in front of the start": {
                "assign": '{"rows":[0]}',
                "startingOffsets": '{"rows":{"0":50}}',
                "endingOffsets": '{"rows":{"0":20}}',
            },
            "limits of a stream": {"maxOffsetsPerTrigger": "10"},
            "transactions, uncommitted": {"subscribe": "mixed"},
            "transactions, committed": {"subscribe": "mixed", **COMMITTED},
            "transactions, committed, in parts": {
                "subscribe": "mixed",
                "minPartitions": "11",
                **COMMITTED,
            },
        }
        for case, options in reads.items():
            self._both(case, partial(self._read_all, options))
        self._both("the columns", lambda form: self._read(form, {}).schema.simpleString())
        self._both(
            "the columns with includeHeaders",
            lambda form: self._read(form, {"includeHeaders": "true"}).schema.simpleString(),
        )
        self._both("headers", partial(self._headers, "headed"))

    def _headers(self, topic: str, form: str) -> list[str]:
        frame = self._read(form, {"subscribe": topic, "includeHeaders": "true"})
        rows = frame.selectExpr("string(value)", "headers").collect()
        return sorted(str(row) for row in rows)

    def _refused_reads(self) -> None:
        reads: dict[str, Options] = {
            "an unknown topic": {"subscribe": "missing"},
            "subscribe and assign": {"assign": '{"rows":[0]}', "subscribe": "rows"},
            "no topic": {"subscribe": ""},
            "a batch from latest": {"startingOffsets": "latest"},
            "a batch until earliest": {"endingOffsets": "earliest"},
            "offsets that are not JSON": {"startingOffsets": "{rows"},
            "starts for some partitions": {"startingOffsets": '{"rows":{"0":1}}'},
            "a partition that does not exist": {"assign": '{"rows":[9]}'},
            "minPartitions 0": {"minPartitions": "0"},
            "kafka.auto.offset.reset": {"kafka.auto.offset.reset": "earliest"},
            "kafka.key.deserializer": {"kafka.key.deserializer": "x"},
            "an unknown option": {"startngOffsets": "earliest"},
        }
        for case, options in reads.items():
            self._both(case, partial(self._read_all, options))
        self._both("no address", lambda form: self._rows(self._load(form, {"subscribe": "rows"})))

    def _lost_messages(self) -> None:
        start = {"subscribe": "gaps", "startingOffsets": '{"gaps":{"0":10}}'}
        beyond = {"subscribe": "gaps", "startingOffsets": '{"gaps":{"0":500}}'}
        lost = {"a start that was deleted": start, "a start behind the end": beyond}
        for name, options in lost.items():
            for loss in ("true", "false"):
                given = {**options, "failOnDataLoss": loss}
                self._both(f"{name}, failOnDataLoss={loss}", partial(self._read_all, given))

    def _read_all(self, options: Options, form: str) -> dict[str, Any]:
        return self._rows(self._read(form, options))

    def _read(self, form: str, options: Options) -> DataFrame:
        topics = {"subscribe", "assign", "subscribePattern"} & options.keys()
        return self._load(
            form,
            {
                "kafka.bootstrap.servers": self._bootstrap,
                **({} if topics else {"subscribe": "rows"}),
                **options,
            },
        )

    def _load(self, form: str, options: Options) -> DataFrame:
        return self._spark.read.format(form).options(**options).load()

    def _rows(self, frame: DataFrame) -> dict[str, Any]:
        """Rows (count and digest), and what each task read: [topic, partition, first, last]."""
        rows = sorted(
            tuple(str(value) for value in row) for row in frame.select(*COLUMNS).collect()
        )
        tasks = (
            frame.groupBy(spark_partition_id(), "topic", "partition")
            .agg(min("offset"), max("offset"), count("*"))
            .collect()
        )
        digest = hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:12]
        return {
            "rows": len(rows),
            "digest": digest,
            "tasks": sorted([row[1], row[2], row[3], row[4]] for row in tasks),
        }

    # Streams

    def _streams(self) -> None:
        self._create("flow", 3)
        self._send("flow", 40)
        for case, limits in {
            "a stream of 20 a batch": {"maxOffsetsPerTrigger": "20"},
            "a stream of at least 30 a batch": {"minOffsetsPerTrigger": "30"},
            "a stream without a limit": {},
            "a stream of committed messages": {**COMMITTED, "maxOffsetsPerTrigger": "50"},
        }.items():
            topic = "mixed" if "committed" in case else "flow"
            self._both(case, partial(self._batches, case, topic, limits))
        for loss in ("true", "false"):
            case = f"a stream's topic is made again, failOnDataLoss={loss}"
            self._both(case, partial(self._made_again, case, loss))
        for mode in ("append", "update", "complete"):
            case = f"a stream into a topic, output mode {mode}"
            self._both(case, partial(self._stream_into, case, mode))

    def _send(self, topic: str, each: int) -> None:
        with KafkaProducer(bootstrap_servers=self._bootstrap) as producer:
            for partition in range(3):
                for n in range(each * (partition + 1)):
                    producer.send(ProducerRecord(topic, b"%d" % n, partition=partition))

    def _stream(self, form: str, topic: str, options: Options) -> DataFrame:
        given = {"kafka.bootstrap.servers": self._bootstrap, "subscribe": topic}
        given |= {"startingOffsets": "earliest", **options}
        return self._spark.readStream.format(form).options(**given).load()

    def _place(self, form: str, case: str) -> Path:
        return self._room / f"{form}-{hashlib.sha256(case.encode()).hexdigest()[:8]}"

    def _batches(self, case: str, topic: str, options: Options, form: str) -> list[list[list[int]]]:
        """[partition, rows] of each batch, until all is read."""
        found: dict[int, list[list[int]]] = {}

        def take(frame: DataFrame, number: int) -> None:
            counted = frame.groupBy("partition").count().collect()
            found[number] = sorted([row[0], row[1]] for row in counted)

        query = (
            self._stream(form, topic, options)
            .writeStream.foreachBatch(take)
            .option("checkpointLocation", str(self._place(form, case)))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(120)
        return [found[number] for number in sorted(found)]

    def _made_again(self, case: str, loss: str, form: str) -> Any:
        """How many messages a stream has read of a topic that is deleted between its two runs and
        made again with more."""
        topic = f"again-{self._place(form, case).name}"
        place = self._place(form, case)
        read = []

        def run() -> None:
            query = (
                self._stream(form, topic, {"failOnDataLoss": loss})
                .writeStream.foreachBatch(lambda frame, _: read.append(frame.count()))
                .option("checkpointLocation", str(place))
                .trigger(availableNow=True)
                .start()
            )
            query.awaitTermination(120)

        self._create(topic, 3)
        self._send(topic, 10)
        run()
        self._admin.delete_topic(topic)
        while topic in self._admin.list_topics():
            time.sleep(0.1)
        self._create(topic, 3)
        self._send(topic, 4)
        run()
        return read

    def _stream_into(self, case: str, mode: str, form: str) -> int:
        topic = f"sunk-{mode}-{form}"
        self._create(topic, 1)
        frame = self._stream(form, "flow", {})
        rows = frame.selectExpr("value") if mode != "complete" else (
            frame.groupBy("partition").count().selectExpr("cast(count as string) as value")
        )  # fmt: skip
        query = (
            rows.writeStream.format(form)
            .outputMode(mode)
            .option("kafka.bootstrap.servers", self._bootstrap)
            .option("topic", topic)
            .option("checkpointLocation", str(self._place(form, case)))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(120)
        return self._count(topic)

    def _count(self, topic: str) -> int:
        return self._read("kafka", {"subscribe": topic}).count()

    # Writes

    def _writes(self) -> None:
        bytes_and_key = "SELECT cast(id as string) AS key, cast(id as string) AS value"
        writes: dict[str, tuple[str, Options]] = {
            "a write of keys and values": (f"{bytes_and_key} FROM range(50)", {}),
            "a write without keys": ("SELECT cast(id as string) AS value FROM range(50)", {}),
            "a write of nulls": (
                "SELECT cast(id as string) AS key, cast(NULL as string) AS value FROM range(5)",
                {},
            ),
            "a write with a column topic": (
                "SELECT 'other-{form}' AS topic, cast(id as string) AS value FROM range(5)",
                {},
            ),
            "a write with partitions": (
                "SELECT cast(id % 3 as int) AS partition, 'v' AS value FROM range(9)",
                {},
            ),
            "a write to a partition that does not exist": (
                "SELECT 7 AS partition, 'v' AS value",
                {"kafka.max.block.ms": "3000"},
            ),
            "a write of a null topic": (
                "SELECT cast(NULL as string) AS topic, 'v' AS value",
                {"topic": ""},
            ),
            "a write without a value": ("SELECT 'k' AS key", {}),
            "a write of a number": ("SELECT 1 AS value", {}),
        }
        headers = "array(struct('a' AS key, binary(string(id)) AS value))"
        self._both("a write of headers", partial(self._write_headers, headers))
        self._both("a write of headers of text", partial(self._write_headers, "array('a')"))
        nameless = "array(struct(string(NULL) AS key, binary('v') AS value))"
        self._both("a write of a header without a name", partial(self._write_headers, nameless))
        modes = {"append": "append", "overwrite": "overwrite", "ignore": "ignore", "error": "error"}
        for case, (sql, options) in writes.items():
            self._both(case, partial(self._write, case, sql, "append", options))
        for mode in modes:
            case = f"a write in mode {mode}"
            sql = f"{bytes_and_key} FROM range(3)"
            self._both(case, partial(self._write, case, sql, mode, {}))

    def _write(self, case: str, sql: str, mode: str, options: Options, form: str) -> Any:
        """How many messages each partition got."""
        topic = self._place(form, case).name
        self._create(topic, 3)
        self._create_once(f"other-{form}")
        given = {"kafka.bootstrap.servers": self._bootstrap, "topic": topic, **options}
        if "AS topic" in sql:
            del given["topic"]
        frame = self._spark.sql(sql.format(form=form))
        frame.write.format(form).mode(mode).options(**given).save()
        where = f"other-{form}" if "other" in sql else topic
        counted = self._read("kafka", {"subscribe": where}).groupBy("partition").count().collect()
        return sorted([row[0], row[1]] for row in counted)

    def _write_headers(self, headers: str, form: str) -> list[str]:
        """The rows as Spark's own connector reads them, every third without headers."""
        topic = self._place(form, headers).name
        self._create(topic, 3)
        frame = self._spark.sql(
            f"SELECT string(id) AS value, CASE WHEN id % 3 < 2 THEN {headers} END AS headers "
            "FROM range(20)"
        )
        given = {"kafka.bootstrap.servers": self._bootstrap, "topic": topic}
        given["includeHeaders"] = "true"
        frame.write.format(form).mode("append").options(**given).save()
        return self._headers(topic, "kafka")

    def _create_once(self, topic: str) -> None:
        if topic not in self._admin.list_topics():
            self._create(topic, 1)

    def _both(self, case: str, outcome: Callable[[str], Any]) -> None:
        self.outcomes[case] = [attempt(partial(outcome, form)) for form in FORMATS]
        sys.stderr.write(f"{case}\n    {self.outcomes[case][0]}\n    {self.outcomes[case][1]}\n")


LATEST_START: Final = {"startingOffsetsByTimestampStrategy": "latest"}
COMMITTED: Final = {"kafka.isolation.level": "read_committed"}


def attempt(outcome: Callable[[], Any]) -> Any:
    """The outcome, or the text of the error in one line."""
    try:
        return outcome()
    except (PySparkException, Exception) as error:  # noqa: BLE001 - is compared
        return {"error": " ".join(str(error).split())[:300]}


def main() -> None:
    bootstrap, zookeeper, name = sys.argv[1:]
    room = Path(name)
    conf = {"spark.driver.extraClassPath": connector_classpath()}
    java_home = make_java_home(room / "java", find_java(), room / "spark.log")
    with (
        AdminClient(zookeeper) as admin,
        local_session("connectors", java_home, room / "spark.log", conf=conf) as spark,
    ):
        cases = Cases(spark, bootstrap, admin, room)
        cases.run()
    sys.stdout.write(json.dumps(cases.outcomes, indent=1))


if __name__ == "__main__":
    main()
