"""Producers side by side: 1,500,000 messages of 100 bytes into the same JVM 0.8.2.2 broker.

Each run is a process of its own, so that memory and CPU are its own: `python -m
benchmarks.producers HOST:PORT SUBJECT COUNT` prints one line of JSON. The time runs from
the creation of the producer to the last acknowledgement. Ours are compared with confluent-kafka,
with and without delivery callbacks, and with the JVM's two producers in the same run. `ready-made
requests` is no producer: it shows how many such requests the broker takes on one connection.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import Goal, report
from benchmarks.subjects import JvmSubject, await_leaders
from kafka08.admin import AdminClient
from tests.interop.jvm import command

NAME = "producer"
TOPIC = "bench-producer"
PARTITIONS = 4
COUNT = 1_500_000
MESSAGE_BYTES = 100
BULK = 10_000
LINGER_MS = 5
IN_FLIGHT = 5
"""Requests: max.in.flight.requests.per.connection of the new producer."""
OLD_BATCH = 200
BUFFER_MEMORY = 32 << 20
EXTRA_MB_MAX = 30.0
FORGET_PEAK = "5"
"""Written to clear_refs: VmHWM starts again (proc(5))."""

Run = Callable[[str, Sequence[Any]], None]


def new(bootstrap: str, values: Sequence[Any], *, callback: bool, bulk: str = "") -> None:
    """KafkaProducer: record by record, by lists, or by Arrow columns. Everything must arrive."""
    from kafka08.producer import KafkaProducer, KafkaProducerConfig, ProducerRecord

    config = KafkaProducerConfig(
        bootstrap_servers=bootstrap, linger_ms=LINGER_MS, buffer_memory=BUFFER_MEMORY
    )
    told = [0]

    def done(_: object, error: BaseException | None) -> None:
        if error is not None:
            raise SystemExit(f"not stored: {error}")
        told[0] += 1

    with KafkaProducer(config) as producer:
        if bulk == "many":
            for start in range(0, len(values), BULK):
                producer.send_many(TOPIC, values[start : start + BULK])
        elif bulk == "columns":
            for rows in values:
                producer.send_columns(TOPIC, rows)
        elif callback:
            for value in values:
                producer.send(ProducerRecord(TOPIC, value), done)
        else:
            for value in values:
                producer.send(ProducerRecord(TOPIC, value))
    if callback and told[0] != len(values):
        raise SystemExit(f"{told[0]} callbacks for {len(values)} records")


def columns(values: Sequence[bytes]) -> Sequence[Any]:
    """The values as Arrow batches of BULK rows."""
    import pyarrow

    table = pyarrow.table({"value": pyarrow.array(values, pyarrow.binary())})
    batches: Sequence[Any] = table.to_batches(max_chunksize=BULK)
    return batches


def old(bootstrap: str, values: Sequence[bytes], *, spread: bool) -> None:
    """The old Producer in async mode: as it is without keys, or with a partition key for each
    message, which spreads them as the JVM's tool does."""
    from kafka08.producer import KeyedMessage, Producer, ProducerConfig

    config = ProducerConfig(
        metadata_broker_list=bootstrap,
        producer_type="async",
        request_required_acks=1,
        batch_num_messages=OLD_BATCH,
    )
    with Producer(config) as producer:
        if spread:
            for number, value in enumerate(values):
                producer.send(KeyedMessage(TOPIC, value, None, number))
        else:
            for value in values:
                producer.send(KeyedMessage(TOPIC, value))


def confluent(bootstrap: str, values: Sequence[bytes], *, callback: bool) -> None:
    """librdkafka, told what broker it talks to. With a delivery callback for each message, which
    counts it, or with none at all: then `flush` is all that says that messages were stored."""
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "api.version.request": False,
            "broker.version.fallback": "0.8.2",
            "acks": 1,
            "linger.ms": LINGER_MS,
            "queue.buffering.max.messages": 2 * COUNT,
            "queue.buffering.max.kbytes": 1 << 20,
            "log_level": 0,
        }
    )
    told = [0]

    def done(error: object, _: object) -> None:
        if error is not None:
            raise SystemExit(f"not stored: {error}")
        told[0] += 1

    if callback:
        for number, value in enumerate(values):
            producer.produce(TOPIC, value, on_delivery=done)
            if not number % 1024:
                producer.poll(0)
    else:
        for value in values:
            producer.produce(TOPIC, value)
    if left := producer.flush():
        raise SystemExit(f"{left} messages were not sent")
    if callback and told[0] != len(values):
        raise SystemExit(f"{told[0]} callbacks for {len(values)} messages")


def ready_made(bootstrap: str, values: Sequence[bytes]) -> None:
    """No producer: one request, as `send` makes it of messages of this size, again and again over
    one connection. What the broker takes from any producer that sends the same requests."""
    from benchmarks import load
    from kafka08.producer import KafkaProducerConfig
    from kafka08.protocol import message_set
    from kafka08.protocol.produce import ProduceRequest

    data = load.plain_set(
        MESSAGE_BYTES, KafkaProducerConfig(bootstrap_servers=bootstrap).batch_size
    )
    each = PARTITIONS * len(list(message_set.decode(data)))
    frame = load.wide_produce_frame(TOPIC, [(number, data) for number in range(PARTITIONS)])
    with load.connect(bootstrap) as connection:
        response = load.exchange(connection, frame)
        load.check_response(ProduceRequest, response)
        in_flight = 0
        for _ in range(len(values) // each):
            connection.sendall(frame)
            in_flight += 1
            if in_flight == IN_FLIGHT:
                load.receive_exactly(connection, len(response))
                in_flight -= 1
        load.receive_exactly(connection, in_flight * len(response))


SUBJECTS: dict[str, Run] = {
    "confluent": lambda bootstrap, values: confluent(bootstrap, values, callback=False),
    "confluent, callback": lambda bootstrap, values: confluent(bootstrap, values, callback=True),
    "send": lambda bootstrap, values: new(bootstrap, values, callback=False),
    "send, callback": lambda bootstrap, values: new(bootstrap, values, callback=True),
    "send_many": lambda bootstrap, values: new(bootstrap, values, callback=False, bulk="many"),
    "send_columns": lambda bootstrap, values: new(
        bootstrap, values, callback=False, bulk="columns"
    ),
    "old async": lambda bootstrap, values: old(bootstrap, values, spread=False),
    "old async, keys": lambda bootstrap, values: old(bootstrap, values, spread=True),
    "ready-made requests": ready_made,
}
JVM = {"jvm new": ["--new-producer"], "jvm old async": ["--batch-size", str(OLD_BATCH)]}
CASES: tuple[tuple[str, str, Goal], ...] = (
    ("send", "confluent", Goal("rate", "k/s", 1.2, True)),
    ("send, callback", "confluent, callback", Goal("rate", "k/s", 1.3, True)),
    ("send_many", "confluent", Goal("rate", "k/s", 3, True)),
    ("send_columns", "confluent", Goal("rate", "k/s", 3, True)),
    ("old async", "confluent", Goal("rate", "k/s", 1.2, True)),
    ("send", "jvm new", Goal("rate", "k/s", 1, True)),
    ("old async", "jvm old async", Goal("rate", "k/s", 2, True)),
    ("old async, keys", "jvm old async", Goal("rate", "k/s", 2, True)),
)
"""(ours, the other, what our rate must be of the other's)."""


def producer_cases(
    directory: Path, zookeeper: str, only: str, rounds: int
) -> list[dict[str, object]]:
    """All producers take turns, `rounds` times; medians. Empty if `only` does not name them."""
    if only not in NAME:
        return []
    broker = JvmSubject(directory / "jvm-producer", f"{zookeeper}/producer")
    broker.start()
    try:
        with AdminClient(f"{zookeeper}/producer") as admin:
            admin.create_topic(TOPIC, PARTITIONS, 1)
        await_leaders(broker, TOPIC, PARTITIONS)
        measure(broker.address, "send", COUNT // 4)
        found: dict[str, list[dict[str, float]]] = {name: [] for name in (*SUBJECTS, *JVM)}
        for _ in range(rounds):
            for name, runs in found.items():
                runs.append(measure(broker.address, name, COUNT))
    finally:
        broker.kill()
    medians = {
        name: {figure: statistics.median(run[figure] for run in runs) for figure in runs[0]}
        for name, runs in found.items()
    }
    for name, figures in medians.items():
        print(f"{NAME:24} {name:>19}  " + "  ".join(f"{k} {v:.2f}" for k, v in figures.items()))
    rows = [
        report(f"{ours} / {other}", goal, jvm=medians[other]["rate"], ours=medians[ours]["rate"])
        for ours, other, goal in CASES
    ]
    limit = BUFFER_MEMORY / 1e6 + EXTRA_MB_MAX
    goal = Goal("memory", "MB", 1, False)
    for name in ("send", "send, callback", "send_many", "send_columns"):
        rows.append(report(f"{name} / allowed", goal, jvm=limit, ours=medians[name]["memory"]))
    return rows


def measure(address: str, name: str, count: int) -> dict[str, float]:
    """Figures of one run: thousands of messages a second, CPU seconds a million, memory in MB."""
    if name in JVM:
        return measure_jvm(address, JVM[name], count)
    line = [sys.executable, "-m", __name__, address, name, str(count)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        raise AssertionError(f"{name} failed: {done.stdout[-500:]} {done.stderr[-1000:]}")
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def measure_jvm(address: str, options: Sequence[str], count: int) -> dict[str, float]:
    """Run the JVM's own perf tool, whose clock starts before its connections do."""
    line = command(
        "kafka.tools.ProducerPerformance",
        *("--broker-list", address, "--topics", TOPIC, "--messages", str(count)),
        *("--message-size", str(MESSAGE_BYTES), "--request-num-acks", "1", *options),
        flags=("-Xmx512m", "-Dkafka08.log.level=WARN"),
    )
    before = os.times()
    done = subprocess.run(line, capture_output=True, text=True, timeout=300, check=True)
    after = os.times()
    rate = float(done.stdout.splitlines()[-1].rpartition(",")[2])
    used = after.children_user + after.children_system
    used -= before.children_user + before.children_system
    return {"rate": rate / 1000, "cpu": used / count * 1e6, "memory": 0.0}


def main(bootstrap: str, name: str, count: int) -> None:
    values: Sequence[Any] = [b"%0*d" % (MESSAGE_BYTES, number) for number in range(count)]
    if name == "send_columns":
        values = columns(values)
        import kafka08.producer.arrow_columns  # noqa: F401  # so that only sending is timed
    Path("/proc/self/clear_refs").write_text(FORGET_PEAK)
    before = status_mb("VmRSS")
    used, started = time.process_time(), time.monotonic()
    SUBJECTS[name](bootstrap, values)
    seconds = time.monotonic() - started
    figures = {
        "rate": count / seconds / 1000,
        "cpu": (time.process_time() - used) / count * 1e6,
        "memory": status_mb("VmHWM") - before,
    }
    print(json.dumps(figures))


def status_mb(name: str) -> float:
    """The memory of this process: resident now (VmRSS) or at its largest (VmHWM), in 10^6 bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise AssertionError(f"no {name}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
