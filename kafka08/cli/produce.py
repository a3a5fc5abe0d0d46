"""`kafka08 produce`: sends lines of text to a topic."""

from __future__ import annotations

import sys
import time
from contextlib import closing, suppress
from io import BufferedReader
from typing import TYPE_CHECKING, Final, cast

import click
from click.core import ParameterSource

from kafka08.cli.echo import say
from kafka08.cli.json_lines import BadLine, record_of
from kafka08.cli.key_splitter import KeySplitter
from kafka08.cli.lines import line_batches
from kafka08.cli.options import (
    RATE,
    client_bootstrap_option,
    config_options,
    example,
    json_option,
    legal_topic,
    read_client_config,
    read_config,
)
from kafka08.cli.progress import Progress
from kafka08.cli.signals import Stopped, StopRequest, handles_stop_signals
from kafka08.cli.table import show_json
from kafka08.errors import (
    ApiError,
    ConfigError,
    FailedToSend,
    KafkaError,
    QueueFull,
    RequestTimeout,
)
from kafka08.listing import counted
from kafka08.nearest import did_you_mean
from kafka08.producer.record import ProducerRecord
from kafka08.rate_limiter import RateLimiter

if TYPE_CHECKING:
    from kafka08.client import ClusterClient
    from kafka08.producer import KafkaProducer, KeyedMessage, Producer

SLICES_PER_SECOND: Final = 20
"""The number of parts of a second over which a limited rate is spread."""


CLOSE_S: Final = 5.0
"""How long lines in flight may take after a signal."""


class LinesNotSent(KafkaError):
    """Some lines were not acknowledged, or not read any more; the text has their numbers."""


def not_empty(_: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value == "":
        raise click.BadParameter("it is empty; give at least one character", param=parameter)
    return value


@click.command(epilog=example("seq 100 | kafka08 produce words --bootstrap localhost:9092"))
@click.argument("topic", callback=legal_topic)
@client_bootstrap_option
@config_options
@click.option(
    "--input",
    "path",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
    default="-",
    help="The file to send; default: stdin.",
)
@click.option(
    "--key-separator",
    callback=not_empty,
    help="Split each line into key and value, at the first separator.",
)
@click.option(
    "--ignore-error",
    is_flag=True,
    help="With --key-separator: a line without the separator is a message without a key.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    help="json: objects as `consume --format json` prints them; key, partition and timestamp are "
    "kept.",
)
@click.option(
    "--new-producer",
    is_flag=True,
    help="Use KafkaProducer and its keys, as for json: brokers from 0.10 on store timestamps.",
)
@click.option(
    "--old-producer",
    is_flag=True,
    help="Use 0.8's Producer and its keys: messages have no timestamps.",
)
@click.option("--rate", type=RATE, help="Send at most this many messages per second.")
@json_option("One JSON object at the end: topic, sent.")
@click.option("--progress", is_flag=True, help="Print the progress each second, on stderr.")
@handles_stop_signals
def produce(
    topic: str,
    path: str,
    key_separator: str | None,
    ignore_error: bool,
    form: str,
    new_producer: bool,
    old_producer: bool,
    rate: float | None,
    as_json: bool,
    progress: bool,
    **_: object,
) -> None:
    """Send each line of the input as one message to TOPIC, as soon as it arrives.

    Like Kafka's console producers, it uses KafkaProducer for brokers from 0.9 on and the old
    Producer for those of 0.8. It also uses the old one with --old-producer, with a key that only
    the old one has (request.required.acks), and if one of several brokers is of 0.8.

    Unlike 0.8's producers, it waits for the leader's acknowledgement (request.required.acks=1):
    with 0.8's default of 0 a message that no broker accepted is lost silently. It stops at the
    first line that is refused. SIGTERM and Ctrl-C wait for the lines in flight only.
    """
    stop = StopRequest()
    if form == "json" and key_separator is not None:
        raise click.UsageError("--key-separator is for lines of text; JSON has its own keys")
    if ignore_error and key_separator is None:
        raise click.UsageError("--ignore-error needs --key-separator")
    if old_producer and (new_producer or form == "json"):
        other = "--new-producer" if new_producer else "--format json, which KafkaProducer sends"
        raise click.UsageError(f"Give only one of --old-producer and {other}.")
    splitter = KeySplitter(key_separator, ignore_error=ignore_error)
    takes_new = new_producer or form == "json"
    if not takes_new and not old_producer:
        try:
            with stop.waiting():
                takes_new = not chooses_old_producer()
        except Stopped:
            raise stopped_early() from None
    with closing(open_input(path)) as source:
        sender: LineSender | RecordSender
        if takes_new:
            sender = record_sender(topic, splitter, form, stop)
        else:
            sender = line_sender(topic, splitter, stop)
        limiter, shown = RateLimiter(rate, slices=SLICES_PER_SECOND), Progress(progress)
        try:
            with closing(sender):
                send_lines(source, sender, limiter, shown, stop)
            sender.check_all_sent()
        except Stopped:
            raise stopped_early() from None
        finally:
            if as_json:
                show_json({"topic": topic, "sent": sender.count})
            say(f"Sent {counted(sender.count, 'message')} to {topic}")


def send_lines(
    source: BufferedReader,
    sender: LineSender | RecordSender,
    limiter: RateLimiter,
    shown: Progress,
    stop: StopRequest,
) -> None:
    """Send all lines. Stopped if a signal comes while it waits; NoBrokersAvailable, also for an
    empty input."""
    batches = line_batches(source)
    while True:
        with stop.waiting():
            lines = next(batches, None)
        if lines is None:
            break
        if not sender.taken:
            with stop.waiting():
                say_if_absent(sender)
        while lines:
            some = limiter.slice_of(len(lines))
            with stop.waiting():
                time.sleep(limiter.wait_s(some))
            started = time.monotonic()
            sender.send(lines[:some])
            shown.add(some, time.monotonic() - started)
            del lines[:some]
    if not sender.taken:  # no request tells whether a broker responds
        with stop.waiting(), closing(sender.connect()) as client:
            client.refresh()


def stopped_early() -> LinesNotSent:
    """The error after a signal: there may have been more input."""
    return LinesNotSent("stopped by a signal before the end of the input")


def say_if_absent(sender: LineSender | RecordSender) -> None:
    """Say that there is no topic of this name, which is maybe mistyped: brokers create it."""
    from kafka08.client.cluster import PROBE_S

    with closing(sender.connect()) as client:
        # Nothing about brokers that do not respond: the producer says it, once.
        if not set(sender.bootstrap) - client.find_silent(PROBE_S).keys():
            return
        topics = client.refresh().topics
    if sender.topic not in topics:
        say(
            f"Topic {sender.topic} does not exist: the brokers create it, unless "
            f"auto.create.topics.enable is off{did_you_mean(sender.topic, topics)}"
        )


def chooses_old_producer() -> bool:
    """Whether the running command, whose user names no producer, uses the old one."""
    from kafka08.client import parse_bootstrap
    from kafka08.producer.choice import name_old_producer, need_old_producer

    context = click.get_current_context()
    given = read_config(context.params["config_file"], context.params["overrides"], {})
    if name_old_producer(given):
        return True
    if given.get("security.protocol", "PLAINTEXT") != "PLAINTEXT":
        return False  # brokers of 0.8 have no other protocol
    is_typed = context.get_parameter_source("bootstrap") is ParameterSource.COMMANDLINE
    if "bootstrap.servers" in given and not is_typed:
        return False
    bootstrap = context.params["bootstrap"]
    if bootstrap is None:
        return True  # its configuration says what is missing
    return need_old_producer(parse_bootstrap(bootstrap, "metadata.broker.list"))


def line_sender(topic: str, splitter: KeySplitter, stop: StopRequest) -> LineSender:
    from kafka08.producer import Producer, ProducerConfig, StringEncoder

    defaults = {
        "request.required.acks": "1",
        "partitioner.class": "kafka.producer.ByteArrayPartitioner",
    }
    config = ProducerConfig(
        read_client_config("bootstrap", "metadata.broker.list", defaults=defaults)
    )
    for key, encoder in (
        ("serializer.class", config.encoder()),
        ("key.serializer.class", config.key_encoder()),
    ):
        if isinstance(encoder, StringEncoder):
            raise takes_text(key)
    producer = Producer(config)
    kind = LineSender if config.producer_type == "sync" else QueueingLineSender
    return kind(producer, topic, splitter, stop)


def takes_text(key: str) -> ConfigError:
    """The error for an encoder or serializer of text."""
    return ConfigError(f"{key}: it takes str, and a line is bytes; leave the key out")


def record_sender(topic: str, splitter: KeySplitter, form: str, stop: StopRequest) -> RecordSender:
    from kafka08.producer import KafkaProducer, KafkaProducerConfig
    from kafka08.producer.serializers import serialize_string

    defaults = {"retries": "3", "max.in.flight.requests.per.connection": "1"}
    config = KafkaProducerConfig(
        read_client_config("bootstrap", "bootstrap.servers", defaults=defaults)
    )
    for name, serializer in zip(("key", "value"), config.serializers(), strict=True):
        if serializer is serialize_string:
            raise takes_text(f"{name}.serializer")
    return RecordSender(KafkaProducer(config), topic, splitter, form, stop)


def open_input(path: str) -> BufferedReader:
    """The file, or stdin for `-`. Raises UsageError if stdin is closed, OSError."""
    if path != "-":
        return open(path, "rb")
    if sys.stdin is None:
        raise click.UsageError("standard input is closed; give a file with --input")
    return cast(BufferedReader, sys.stdin.buffer)


class LineSender:
    """Sends lines to `topic`, split into key and value at the first separator, and counts the
    acknowledged ones; `taken` counts all."""

    def __init__(
        self, producer: Producer, topic: str, splitter: KeySplitter, stop: StopRequest
    ) -> None:
        self.count = 0
        self.topic = topic
        self.bootstrap = producer.config.bootstrap
        self._producer = producer
        self._splitter = splitter
        self._stop = stop
        self.taken = 0

    def connect(self) -> ClusterClient:
        from kafka08.client import ClusterClient

        return ClusterClient(self.bootstrap)

    def send(self, lines: list[bytes]) -> None:
        """LinesNotSent, with line numbers of the input, if some were not acknowledged or cannot be
        split; lines before one that cannot be split were sent. A signal gives them CLOSE_S
        seconds."""
        from kafka08.producer import KeyedMessage

        first = self.taken + 1
        self.taken += len(lines)
        pairs, bad = self._splitter.split_up_to_error(lines)
        self._send_messages(first, [KeyedMessage(self.topic, value, key) for key, value in pairs])
        if bad is not None:
            raise LinesNotSent(f"line {first + len(pairs)}: {bad}") from bad

    def _send_messages(self, first: int, messages: list[KeyedMessage]) -> None:
        """Send them and wait; `first` is the number of the first line."""
        last = first + len(messages) - 1
        where = f"line {first}" if last == first else f"lines {first} to {last}"
        try:
            with self._stop.limited(CLOSE_S):
                self._producer.send(messages)
        except Stopped:
            raise LinesNotSent(
                f"{where}: stopped by a signal before the acknowledgement; what was sent may be "
                "stored"
            ) from None
        except FailedToSend as error:
            self.count += len(messages) - len(error.messages)
            raise LinesNotSent(f"{where}: {error}") from error
        self.count += len(messages)

    def check_all_sent(self) -> None:
        """After `close`: LinesNotSent if a line was lost that `send` accepted."""

    def close(self) -> None:
        self._producer.close()


class QueueingLineSender(LineSender):
    """With producer.type=async: `send` puts lines into the producer's queue, and `count` is known
    after `close`. LinesNotSent at the first line for which the queue has no room."""

    _queued = 0

    def _send_messages(self, first: int, messages: list[KeyedMessage]) -> None:
        before = self._queued - first
        try:
            with self._stop.limited(CLOSE_S):
                for message in messages:
                    self._producer.send(message)
                    self._queued += 1
        except Stopped:
            where = f"line {self._queued - before}"
            raise LinesNotSent(f"{where}: stopped by a signal; the queue was full") from None
        except QueueFull as error:
            raise LinesNotSent(f"line {self._queued - before}: {error}") from error

    def check_all_sent(self) -> None:
        _, lost, error = self._producer.outcome
        if lost:
            raise LinesNotSent(f"{counted(lost, 'queued line')} not sent: {error}") from error

    def close(self) -> None:
        """Waits for the queue, after a signal CLOSE_S seconds at most."""
        try:
            with self._stop.limited(CLOSE_S):
                self._producer.close()
        except Stopped:
            left = self._queued - sum(self._producer.outcome[:2])
            raise LinesNotSent(
                f"{counted(left, 'queued line')} not sent: stopped by a signal"
            ) from None
        finally:
            self.count = self._producer.outcome.sent


class RecordSender:
    """Sends lines of text or of JSON with KafkaProducer."""

    def __init__(
        self,
        producer: KafkaProducer,
        topic: str,
        splitter: KeySplitter,
        form: str,
        stop: StopRequest,
    ) -> None:
        self.count = 0
        self.topic = topic
        self.bootstrap = producer.config.bootstrap
        self._producer = producer
        self._splitter = splitter
        self._is_json = form == "json"
        self._stop = stop
        self.taken = 0

    def connect(self) -> ClusterClient:
        from kafka08.client import ClusterClient

        return ClusterClient(self.bootstrap, security=self._producer.config.security)

    def send(self, lines: list[bytes]) -> None:
        """LinesNotSent, with the number of the first line that was not stored; those before it
        were, and some after it may have been. Stopped while the topic's metadata is missing; a
        signal later gives the lines in flight CLOSE_S seconds."""
        first = self.taken + 1
        self._await_metadata(first)
        self.taken += len(lines)
        futures = []
        bad: KafkaError | None = None
        for line in lines:
            try:
                futures.append(self._producer.send(self._record(line)))
            except BadLine as error:
                bad = error
                break
        try:
            with self._stop.waiting():
                errors = [future.exception() for future in futures]
        except Stopped:
            self.close()
            errors = [future.exception() for future in futures]
        self.count += errors.count(None)
        for number, cause in enumerate([*errors, bad], first):
            if cause is not None:
                raise LinesNotSent(f"line {number}: {cause}") from cause

    def _await_metadata(self, line: int) -> None:
        """Wait for it before anything is in flight, so that a signal can end the wait."""
        try:
            with self._stop.waiting():
                self._producer.partitions_for(self.topic)
        except (RequestTimeout, ApiError) as error:
            raise LinesNotSent(f"line {line}: {error}") from error

    def check_all_sent(self) -> None:
        """`send` has waited for all."""

    def close(self) -> None:
        """Waits CLOSE_S seconds at most for lines in flight. Their futures have the errors."""
        with suppress(FailedToSend):
            self._producer.close(CLOSE_S)

    def _record(self, line: bytes) -> ProducerRecord:
        if self._is_json:
            return record_of(self.topic, line)
        key, value = self._splitter.split(line)
        return ProducerRecord(self.topic, value, key)
