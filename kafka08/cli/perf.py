"""`kafka08 perf produce | consume`: figures in the columns of kafka-producer-perf-test and
kafka-consumer-perf-test, under their options. Source: kafka.tools.ProducerPerformance,
kafka.tools.ConsumerPerformance 0.8.2.2.
"""

from __future__ import annotations

import random
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import click

from kafka08.cli.consume import remove_group
from kafka08.cli.options import (
    client_bootstrap_option,
    client_zookeeper_option,
    config_options,
    example,
    legal_topic,
    read_client_config,
)
from kafka08.errors import ConsumerTimeout, FailedToSend, KafkaError

if TYPE_CHECKING:
    from kafka08.consumer import KafkaStream

Send = Callable[[str, bytes], None]
MEGABYTE: Final = 1024 * 1024
PRODUCE_HEADER: Final = (
    "start.time, end.time, compression, message.size, batch.size, total.data.sent.in.MB, MB.sec, "
    "total.data.sent.in.nMsg, nMsg.sec"
)
CONSUME_HEADER: Final = (
    "start.time, end.time, fetch.size, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec"
)
CODECS: Final = ("none", "gzip", "snappy", "lz4")
SAMPLED_EVERY: Final = 1000
"""Every so many messages one is timed until it is acknowledged."""
ID_DIGITS: Final = 10


@click.group(epilog=example("kafka08 perf produce --topics load --messages 1000000"))
def perf() -> None:
    """Measure how fast messages go in and out."""


@perf.command(
    epilog=example("kafka08 perf produce --topics load --messages 1000000 --new-producer")
)
@client_bootstrap_option
@config_options
@click.option("--topics", required=True, help="Comma list of the topics, which take turns.")
@click.option("--messages", required=True, type=click.IntRange(1), help="How many in all.")
@click.option("--message-size", default=100, show_default=True, type=click.IntRange(1))
@click.option("--vary-message-size", is_flag=True, help="Sizes from 1 to --message-size.")
@click.option("--batch-size", default=200, show_default=True, type=click.IntRange(1),
              help="Messages in a batch (of the old producer).")  # fmt: skip
@click.option("--compression-codec", default=0, show_default=True, type=click.IntRange(0, 3),
              help="0 none, 1 gzip, 2 snappy, 3 lz4.")  # fmt: skip
@click.option("--threads", default=1, show_default=True, type=click.IntRange(1))
@click.option("--request-num-acks", default="-1", show_default=True,
              type=click.Choice(["-1", "0", "1"]))  # fmt: skip
@click.option("--request-timeout-ms", default=3000, show_default=True, type=click.IntRange(1))
@click.option("--producer-num-retries", default=3, show_default=True, type=click.IntRange(0))
@click.option("--producer-retry-backoff-ms", default=100, show_default=True,
              type=click.IntRange(0))  # fmt: skip
@click.option("--sync", is_flag=True, help="Wait for each batch (old) or message (new).")
@click.option("--new-producer", is_flag=True, help="KafkaProducer instead of the old Producer.")
@click.option("--initial-message-id", type=int, help="Number the messages, from here on.")
@click.option("--message-send-gap-ms", default=0, show_default=True, type=click.IntRange(0))
@click.option("--hide-header", is_flag=True, help="Print the figures only.")
def produce(**options: Any) -> None:
    """Send messages as fast as they go, in each of --threads with a producer of its own.

    The last line has kafka-producer-perf-test's figures. With --new-producer a line on stderr adds
    how long messages took from send to acknowledgement.
    """
    topics = options["topics"].split(",")
    for topic in topics:
        legal_topic(click.get_current_context(), click.Argument(["topics"]), topic)
    if not options["hide_header"]:
        click.echo(PRODUCE_HEADER)
    load = Load(options, topics)
    started = time.time()
    in_threads(options["threads"], load.run)
    ended = time.time()
    megabytes = load.sent_bytes / MEGABYTE
    seconds = ended - started
    click.echo(
        f"{moment(started)}, {moment(ended)}, {options['compression_codec']}, "
        f"{options['message_size']}, {options['batch_size']}, {megabytes:.2f}, "
        f"{megabytes / seconds:.4f}, {load.sent}, {load.sent / seconds:.4f}"
    )
    if load.latencies_ms:
        times = sorted(load.latencies_ms)
        p99 = times[int(len(times) * 0.99)]
        click.echo(
            f"ms to the acknowledgement: median {statistics.median(times):.1f}, 99 % {p99:.1f}, "
            f"largest {times[-1]:.1f}; time in the buffer included",
            err=True,
        )
    if load.lost:
        raise FailedToSend(f"{load.lost} of {load.sent} messages were not acknowledged")


class Load:
    """What all threads of one run share: counts and latencies."""

    def __init__(self, options: dict[str, Any], topics: list[str]) -> None:
        self._options = options
        self._topics = topics
        self._lock = threading.Lock()
        self._properties = properties_of(options)
        self.sent = 0
        self.sent_bytes = 0
        self.lost = 0
        self.latencies_ms: list[float] = []

    def run(self, thread: int) -> None:
        """Send this thread's share."""
        threads = self._options["threads"]
        share = range(thread, self._options["messages"], threads)
        gap_s = self._options["message_send_gap_ms"] / 1000
        count = size = 0
        with self._producer() as send:
            for message in messages(self._options, share):
                send(self._topics[count % len(self._topics)], message)
                count += 1
                size += len(message)
                if gap_s:
                    time.sleep(gap_s)
        with self._lock:
            self.sent += count
            self.sent_bytes += size

    def _producer(self) -> Any:
        return NewSender(self) if self._options["new_producer"] else OldSender(self)


class OldSender:
    """A context manager that gives `send`, on the old Producer."""

    def __init__(self, load: Load) -> None:
        from kafka08.producer import CallbackHandler, Producer, ProducerConfig

        class Counter(CallbackHandler):
            def on_error(self, messages: list[Any], error: Exception) -> None:
                load.lost += len(messages)

        self._load = load
        self._producer = Producer(ProducerConfig(load._properties), callback_handler=Counter())
        self._batch: list[Any] = []

    def __enter__(self) -> Send:
        from kafka08.producer import KeyedMessage

        if not self._load._options["sync"]:
            put = self._producer.send
            return lambda topic, message: put(KeyedMessage(topic, message))
        size = self._load._options["batch_size"]

        def send(topic: str, message: bytes) -> None:
            self._batch.append(KeyedMessage(topic, message))
            if len(self._batch) >= size:
                self._flush()

        return send

    def __exit__(self, *_: object) -> None:
        self._flush()
        self._producer.close()

    def _flush(self) -> None:
        batch, self._batch = self._batch, []
        try:
            self._producer.send(batch)
        except FailedToSend as error:
            self._load.lost += len(error.messages)


class NewSender:
    """The same on KafkaProducer; times some of the messages."""

    def __init__(self, load: Load) -> None:
        from kafka08.producer import KafkaProducer, KafkaProducerConfig

        self._load = load
        self._producer = KafkaProducer(KafkaProducerConfig(load._properties))

    def __enter__(self) -> Send:
        from kafka08.producer import ProducerRecord

        load, send_record, sync = self._load, self._producer.send, self._load._options["sync"]
        left = 0

        def send(topic: str, message: bytes) -> None:
            nonlocal left
            future = send_record(
                ProducerRecord(topic, message), count_failed if left else self._timed()
            )
            left = (left or SAMPLED_EVERY) - 1
            if sync:
                future.exception()

        def count_failed(_: object, error: KafkaError | None) -> None:
            if error is not None:
                load.lost += 1

        return send

    def __exit__(self, *_: object) -> None:
        self._producer.close()

    def _timed(self) -> Callable[[Any, KafkaError | None], None]:
        started = time.monotonic()

        def done(_: Any, error: KafkaError | None) -> None:
            if error is None:
                self._load.latencies_ms.append((time.monotonic() - started) * 1000)
            else:
                self._load.lost += 1

        return done


def properties_of(options: dict[str, Any]) -> dict[str, str]:
    """The producer's configuration; --config and --override are stronger than the options."""
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
        return read_client_config("bootstrap", "bootstrap.servers", defaults=defaults)
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
    return read_client_config("bootstrap", "metadata.broker.list", defaults=defaults)


def messages(options: dict[str, Any], share: range) -> Iterator[bytes]:
    """Numbered ones, as the JVM's tool words them, or ones of x in the size wanted."""
    size, first = options["message_size"], options["initial_message_id"]
    rng = random.Random(share.start)
    plain = b"x" * size
    for number in share:
        if first is not None:
            text = b"Message:%0*d:" % (ID_DIGITS, first + number)
            yield text.ljust(size, b"x")
        elif options["vary_message_size"]:
            yield plain[: rng.randint(1, size)]
        else:
            yield plain


@perf.command(epilog=example("kafka08 perf consume --topic load --messages 1000000"))
@client_zookeeper_option
@config_options
@click.option("--topic", required=True, callback=legal_topic, help="What to read.")
@click.option("--messages", required=True, type=click.IntRange(1), help="Stop after so many.")
@click.option("--group", metavar="G", help="Default: a new one, removed at the end.")
@click.option("--fetch-size", default=MEGABYTE, show_default=True, type=click.IntRange(1))
@click.option("--socket-buffer-size", default=2 * MEGABYTE, show_default=True,
              type=click.IntRange(0))  # fmt: skip
@click.option("--num-fetch-threads", default=1, show_default=True, type=click.IntRange(1))
@click.option("--threads", default=1, show_default=True, type=click.IntRange(1), help="Streams.")
@click.option("--from-latest", is_flag=True, help="Where nothing is committed: only what comes.")
@click.option("--hide-header", is_flag=True, help="Print the figures only.")
def consume(**options: Any) -> None:
    """Read a topic as a group's only member, as fast as it goes, and do nothing with it.

    Ends after --messages or 5 s of silence (consumer.timeout.ms), which do not count.
    """
    from kafka08.consumer import ConsumerConfig, ConsumerConnector

    group = options["group"] or f"perf-consumer-{random.randrange(100_000)}"
    defaults = {
        "group.id": group,
        "socket.receive.buffer.bytes": str(options["socket_buffer_size"]),
        "fetch.message.max.bytes": str(options["fetch_size"]),
        "auto.offset.reset": "largest" if options["from_latest"] else "smallest",
        "consumer.timeout.ms": "5000",
        "num.consumer.fetchers": str(options["num_fetch_threads"]),
    }
    config = ConsumerConfig(read_client_config("zookeeper", "zookeeper.connect", defaults=defaults))
    connector = ConsumerConnector(config)
    drain = Drain(options["messages"])
    try:
        streams = connector.create_message_streams({options["topic"]: options["threads"]})
        if not options["hide_header"]:
            click.echo(CONSUME_HEADER)
        drain.started = drain.last = time.time()
        of_topic = streams[options["topic"]]
        in_threads(len(of_topic), lambda thread: drain.run(of_topic[thread]))
    finally:
        connector.shutdown()
        if options["group"] is None:
            remove_group(connector)
    megabytes = drain.size / MEGABYTE
    seconds = max(1e-9, drain.last - drain.started)
    click.echo(
        f"{moment(drain.started)}, {moment(drain.last)}, {config.fetch_message_max_bytes}, "
        f"{megabytes:.4f}, {megabytes / seconds:.4f}, {drain.count}, {drain.count / seconds:.4f}"
    )


class Drain:
    """Counts what streams hold, up to `limit` messages of all of them."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self.started = self.last = 0.0
        self.count = 0
        self.size = 0

    def run(self, stream: KafkaStream) -> None:
        count = size = 0
        last = self.started
        try:
            for message in stream:
                count += 1
                size += len(message.value or b"")
                if not count % SAMPLED_EVERY or self.count + count >= self._limit:
                    last = time.time()
                    if self.count + count >= self._limit:
                        break
        except ConsumerTimeout:
            pass
        with self._lock:
            self.count += count
            self.size += size
            self.last = max(self.last, last)


def in_threads(count: int, run: Callable[[int], None]) -> None:
    """`run(0)` to `run(count - 1)`, each in a thread; raises the first error there was."""
    errors: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            run(number)
        except BaseException as error:  # noqa: BLE001  # a thread's root: it is raised below
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def moment(seconds: float) -> str:
    """A time as the JVM's tools print it, in the local zone."""
    return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M:%S:%f")[:-3]
