"""`kafka08 perf consume`: kafka-consumer-perf-test.

Source: kafka.tools.ConsumerPerformance 0.8.2.2, with three differences: --messages counts those of
all threads together, the header of --show-detailed-stats names the thread's column too, and the
default is one thread.
"""

from __future__ import annotations

import itertools
import random
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import click

from kafka08.cli.options import (
    Whole,
    client_zookeeper_option,
    config_options,
    example,
    given,
    legal_topic,
    read_client_config,
)
from kafka08.cli.perf_figures import (
    MEGABYTE,
    Reports,
    figure_options,
    figures,
    in_threads,
    show_header,
    show_line,
)
from kafka08.errors import ConsumerTimeout
from kafka08.zk.reachability import check_not_refused

if TYPE_CHECKING:
    from kafka08.consumer import KafkaStream

HEADER: Final = (
    "start.time, end.time, fetch.size, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec"
)
DETAILED_HEADER: Final = (
    "time, thread.id, fetch.size, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec"
)
LOOK_EVERY: Final = 1000
"""The number of messages between two looks at the clock."""


@click.command(epilog=example("kafka08 perf consume --topic load --messages 1000000"))
@client_zookeeper_option
@config_options
@click.option("--topic", required=True, callback=legal_topic, help="The topic to read.")
@click.option("--messages", type=Whole(1), help="Stop after this many; default: all.")
@click.option("--group", metavar="G", help="The group; default: a temporary one.")
@click.option("--fetch-size", default=MEGABYTE, show_default=True, type=Whole(1))
@click.option("--socket-buffer-size", default=2 * MEGABYTE, show_default=True,
              type=Whole(0))  # fmt: skip
@click.option("--num-fetch-threads", default=1, show_default=True, type=Whole(1))
@click.option("--threads", default=1, show_default=True, type=Whole(1), help="Number of streams.")
@click.option("--from-latest", is_flag=True, help="Without a committed offset: new messages only.")
@figure_options
def consume(**options: Any) -> None:
    """Read a topic as a group's only member, as fast as possible, and discard the messages.

    Ends after --messages, or after 5 s without a message (consumer.timeout.ms), which the figures
    leave out.
    """
    from kafka08.cli.consume_streams import remove_group
    from kafka08.consumer import ConsumerConfig, ConsumerConnector

    defaults = {
        "socket.receive.buffer.bytes": str(options["socket_buffer_size"]),
        "fetch.message.max.bytes": str(options["fetch_size"]),
        "auto.offset.reset": "largest" if options["from_latest"] else "smallest",
        "consumer.timeout.ms": "5000",
        "num.consumer.fetchers": str(options["num_fetch_threads"]),
    }
    properties = read_client_config(
        "zookeeper",
        "zookeeper.connect",
        defaults=defaults,
        options=given({"group.id": options["group"]}),
    )
    is_temporary = "group.id" not in properties
    properties.setdefault("group.id", f"perf-consumer-{random.randrange(100_000)}")
    config = ConsumerConfig(properties)
    check_not_refused(config.zookeeper_connect)
    connector = ConsumerConnector(config)
    detailed = options["show_detailed_stats"]
    drain = Drain(options, config.fetch_message_max_bytes, timeout_ms=config.consumer_timeout_ms)
    try:
        streams = connector.create_message_streams({options["topic"]: options["threads"]})
        show_header(DETAILED_HEADER if detailed else HEADER, options)
        drain.started = drain.last = time.time()
        of_topic = streams[options["topic"]]
        in_threads(len(of_topic), lambda thread: drain.run(thread, of_topic[thread]))
    finally:
        connector.shutdown()
        if is_temporary:
            remove_group(connector)
    if not detailed:
        show_line(HEADER, drain.summary(), as_json=options["as_json"])


class Drain:
    """Counts the messages of streams, up to --messages of all of them.

    timeout_ms   the streams' consumer.timeout.ms
    """

    def __init__(
        self,
        options: dict[str, Any],
        fetch_size: int,
        *,
        timeout_ms: int = -1,
        time_s: Callable[[], float] = time.time,
    ) -> None:
        self._options = options
        self._limit = options["messages"] or sys.maxsize
        self._interval = options["reporting_interval"] if options["show_detailed_stats"] else 0
        self._fetch_size = fetch_size
        self._timeout_s = timeout_ms / 1000
        self._time_s = time_s
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self.started = self.last = 0.0
        self.count = 0
        self.size = 0

    def run(self, thread: int, stream: KafkaStream[bytes, bytes]) -> None:
        columns = (thread, self._fetch_size)
        reports = Reports(DETAILED_HEADER, self._options, columns, self._time_s())
        step = self._interval or LOOK_EVERY
        limit, numbers = self._limit, self._numbers
        count = size = 0
        last = self.started
        try:
            for message in stream:
                # A number among all threads' messages: one call into C, so each is unique.
                number = next(numbers)
                if number <= limit:
                    count += 1
                    size += len(message.value or b"")
                if not count % step or number >= limit:
                    last = self._time_s()
                    if self._interval:
                        reports.add(count, size, last)
                    if number >= limit:
                        break
        except ConsumerTimeout:
            if count % step:  # messages since the last look at the clock
                last = self._time_s() - self._timeout_s
                if self._interval:
                    reports.add(count, size, last)
        with self._lock:
            self.count += count
            self.size += size
            self.last = max(self.last, last)

    def summary(self) -> tuple[str, ...]:
        """The columns of HEADER; the timeout at the end is not included."""
        dates, seconds = self._options["date_format"], self.last - self.started
        return (
            dates.text(self.started),
            dates.text(self.last),
            str(self._fetch_size),
            *figures(self.size, self.size, self.count, self.count, seconds),
        )
