"""`kafka08 perf produce`: kafka-producer-perf-test.

Source: kafka.tools.ProducerPerformance 0.8.2.2, with two differences: the remainder of --messages
by --threads is sent too, and --show-detailed-stats, which 0.8.2.2 accepts and ignores, prints lines
as the consumer's does.
"""

from __future__ import annotations

import random
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import click

from kafka08.cli.echo import say
from kafka08.cli.options import (
    Whole,
    client_bootstrap_option,
    config_options,
    example,
    legal_topic,
    read_client_config,
)
from kafka08.cli.perf_figures import (
    MEGABYTE,
    Reports,
    figure_options,
    in_threads,
    show_header,
    show_line,
)
from kafka08.errors import FailedToSend, KafkaError

Send = Callable[[str, bytes, int], None]
"""`send(topic, message, number)`: the number spreads messages over the partitions."""
HEADER: Final = (
    "start.time, end.time, compression, message.size, batch.size, total.data.sent.in.MB, MB.sec, "
    "total.data.sent.in.nMsg, nMsg.sec"
)
DETAILED_HEADER: Final = (
    "time, thread.id, compression, message.size, batch.size, total.data.sent.in.MB, MB.sec, "
    "total.data.sent.in.nMsg, nMsg.sec"
)
SAMPLED_EVERY: Final = 1000
"""One in this many messages is timed until it is acknowledged."""
ID_DIGITS: Final = 10
BYTES_ENCODER: Final = "kafka.serializer.DefaultEncoder"


@click.command(
    epilog=example("kafka08 perf produce --topics load --messages 1000000 --new-producer")
)
@client_bootstrap_option
@config_options
@click.option(
    "--topics", required=True, help="Topics, separated by commas; messages go to them in turn."
)
@click.option("--messages", required=True, type=Whole(1), help="Messages per topic.")
@click.option("--message-size", default=100, show_default=True, type=Whole(1))
@click.option("--vary-message-size", is_flag=True, help="Sizes from 1 to --message-size.")
@click.option("--batch-size", default=200, show_default=True, type=Whole(1),
              help="Messages in a batch (of the old producer).")  # fmt: skip
@click.option("--compression-codec", default=0, show_default=True, type=Whole(0, 3),
              help="0 none, 1 gzip, 2 snappy, 3 lz4.")  # fmt: skip
@click.option("--threads", default=1, show_default=True, type=Whole(1))
@click.option("--request-num-acks", default="-1", show_default=True,
              type=click.Choice(["-1", "0", "1"]))  # fmt: skip
@click.option("--request-timeout-ms", default=3000, show_default=True, type=Whole(1))
@click.option("--producer-num-retries", default=3, show_default=True, type=Whole(0))
@click.option("--producer-retry-backoff-ms", default=100, show_default=True,
              type=Whole(0))  # fmt: skip
@click.option("--sync", is_flag=True, help="Wait for each batch (old) or message (new).")
@click.option("--new-producer", is_flag=True, help="KafkaProducer instead of the old Producer.")
@click.option("--initial-message-id", type=int, help="Number the messages, starting here.")
@click.option("--message-send-gap-ms", default=0, show_default=True, type=Whole(0))
@figure_options
def produce(**options: Any) -> None:
    """Send messages as fast as possible; each of --threads has its own producer.

    The last line has kafka-producer-perf-test's figures. With --new-producer a line on stderr adds
    the latency from send to acknowledgement.
    """
    topics = options["topics"].split(",")
    for topic in topics:
        legal_topic(click.get_current_context(), click.Argument(["topics"]), topic)
    load = Load(options, topics)
    show_header(DETAILED_HEADER if options["show_detailed_stats"] else HEADER, options)
    started = time.time()
    in_threads(options["threads"], load.run)
    ended = time.time()
    if not options["show_detailed_stats"]:
        show_line(HEADER, load.summary(started, ended), as_json=options["as_json"])
    if load.latencies_ms:
        times = sorted(load.latencies_ms)
        p99 = times[int(len(times) * 0.99)]
        say(
            f"ms to the acknowledgement: median {statistics.median(times):.1f}, 99 % {p99:.1f}, "
            f"largest {times[-1]:.1f}; time in the buffer included",
        )
    if load.lost:
        raise FailedToSend(
            f"{load.lost} of {load.sent} messages were not acknowledged: {load.why}"
        ) from load.why


class Load:
    """Shared by all threads of a run: counts and latencies."""

    def __init__(self, options: dict[str, Any], topics: list[str]) -> None:
        self.options = options
        self._topics = topics
        self._lock = threading.Lock()
        self._sizes = tuple(options[k] for k in ("compression_codec", "message_size", "batch_size"))
        self.properties = properties_of(options)
        self.sent = 0
        self.sent_bytes = 0
        self.lost = 0
        self.why: Exception | None = None
        """The error of the first that was lost."""
        self.latencies_ms: list[float] = []

    def run(self, thread: int) -> None:
        """Send this thread's share."""
        options = self.options
        reports = Reports(DETAILED_HEADER, options, (thread, *self._sizes), time.time())
        interval = options["reporting_interval"] if options["show_detailed_stats"] else 0
        gap_s = options["message_send_gap_ms"] / 1000
        count = size = 0
        make = maker(options, thread)
        with (new_sender if options["new_producer"] else old_sender)(self) as send:
            for number in share_of(thread, options["threads"], options["messages"]):
                for topic in self._topics:
                    message = make(topic, number)
                    send(topic, message, number)
                    count += 1
                    size += len(message)
                    if interval and not count % interval:
                        reports.add(count, size, time.time())
                    if gap_s:
                        time.sleep(gap_s)
        if interval:
            reports.add(count, size, time.time())
        with self._lock:
            self.sent += count
            self.sent_bytes += size

    def note_lost(self, count: int, error: Exception) -> None:
        self.lost += count
        self.why = self.why or error

    def summary(self, started: float, ended: float) -> tuple[object, ...]:
        """The columns of HEADER."""
        dates = self.options["date_format"]
        megabytes, seconds = self.sent_bytes / MEGABYTE, max(1e-9, ended - started)
        return (
            dates.text(started),
            dates.text(ended),
            *self._sizes,
            f"{megabytes:.2f}",
            f"{megabytes / seconds:.4f}",
            self.sent,
            f"{self.sent / seconds:.4f}",
        )


@contextmanager
def old_sender(load: Load) -> Iterator[Send]:
    """`send`, with the old Producer."""
    from kafka08.producer import CallbackHandler, KeyedMessage, Producer, ProducerConfig

    class Counter(CallbackHandler):
        def on_error(self, messages: list[Any], error: Exception) -> None:
            load.note_lost(len(messages), error)

    batch: list[Any] = []
    size = load.options["batch_size"]

    def send(topic: str, message: bytes, number: int) -> None:
        batch.append(KeyedMessage(topic, message, partition_key=number))
        if len(batch) >= size:
            flush()

    def flush() -> None:
        try:
            put(batch)
        except FailedToSend as error:
            load.note_lost(len(error.messages), error)
        batch.clear()

    with Producer(ProducerConfig(load.properties), callback_handler=Counter()) as producer:
        put = producer.send
        if load.options["sync"]:
            yield send
            flush()
        else:
            yield lambda topic, message, number: put(KeyedMessage(topic, message, None, number))


@contextmanager
def new_sender(load: Load) -> Iterator[Send]:
    """`send`, with KafkaProducer; times some of the messages."""
    from kafka08.producer import KafkaProducer, KafkaProducerConfig, ProducerRecord

    left, sync = 0, load.options["sync"]

    def send(topic: str, message: bytes, number: int) -> None:
        nonlocal left
        record = ProducerRecord(topic, message)
        future = send_record(record, count_failed if left else timed())
        left = (left or SAMPLED_EVERY) - 1
        if sync:
            future.exception()

    def count_failed(_: object, error: KafkaError | None) -> None:
        if error is not None:
            load.note_lost(1, error)

    def timed() -> Callable[[object, KafkaError | None], None]:
        started = time.monotonic()

        def done(metadata: object, error: KafkaError | None) -> None:
            if error is None:
                load.latencies_ms.append((time.monotonic() - started) * 1000)
            count_failed(metadata, error)

        return done

    with KafkaProducer(KafkaProducerConfig(load.properties)) as producer:
        send_record = producer.send
        yield send


def properties_of(options: dict[str, Any]) -> dict[str, str]:
    """The producer's configuration; --config and --override override the options. Serializers are
    those of bytes, as in the JVM's tool."""
    from kafka08.producer.kafka_producer_config import SERIALIZERS_OF_BYTES
    from kafka08.protocol.compression import CODECS

    acks, timeout = options["request_num_acks"], str(options["request_timeout_ms"])
    retries, codec = str(options["producer_num_retries"]), options["compression_codec"]
    backoff = str(options["producer_retry_backoff_ms"])
    if options["new_producer"]:
        defaults = {
            "client.id": "producer-performance",
            "acks": acks,
            "timeout.ms": timeout,
            "retries": retries,
            "retry.backoff.ms": backoff,
            "compression.type": CODECS[codec],
        }
        found = read_client_config("bootstrap", "bootstrap.servers", defaults=defaults)
        return {**found, **SERIALIZERS_OF_BYTES}
    defaults = {
        "client.id": "perf-test",
        "request.required.acks": acks,
        "request.timeout.ms": timeout,
        "message.send.max.retries": retries,
        "retry.backoff.ms": backoff,
        "compression.codec": str(codec),
    }
    if not options["sync"]:
        defaults |= {
            "producer.type": "async",
            "batch.num.messages": str(options["batch_size"]),
            "queue.buffering.max.messages": str(max(10_000, 2 * options["batch_size"])),
        }
    found = read_client_config("bootstrap", "metadata.broker.list", defaults=defaults)
    return found | dict.fromkeys(("key.serializer.class", "serializer.class"), BYTES_ENCODER)


def share_of(thread: int, threads: int, messages: int) -> range:
    """The numbers of the messages that one of `threads` sends to each topic."""
    return range(thread * messages // threads, (thread + 1) * messages // threads)


def maker(options: dict[str, Any], thread: int) -> Callable[[str, int], bytes]:
    """The function that makes the messages of a thread, `make(topic, number)`: numbered ones, in
    the format of the JVM's tool, or ones of x in the wanted size."""
    size, first = options["message_size"], options["initial_message_id"]
    rng = random.Random(thread)

    def next_size() -> int:
        return rng.randint(1, size) if options["vary_message_size"] else int(size)

    if first is not None:
        return lambda topic, number: (
            f"Topic:{topic}:ThreadID:{thread}:MessageID:{first + number:0{ID_DIGITS}}:".encode()
        ).ljust(next_size(), b"x")
    plain = b"x" * size
    if options["vary_message_size"]:
        return lambda topic, number: plain[: next_size()]
    return lambda topic, number: plain
