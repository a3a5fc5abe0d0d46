"""A KafkaConsumer refuses wrong calls before it asks any broker."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from math import inf
from typing import Any

import pytest

from kafka08.config import INT_MAX, LONG_MAX
from kafka08.consumer import KafkaConsumer
from kafka08.errors import ConfigError, DeserializationFailed, WokenUp
from kafka08.structs import TopicPartition
from tests.consumer.few_threads import FewThreads
from tests.consumer.streams import chunk_of, elsewhere
from tests.forking import in_child
from tests.waiting import until

NOWHERE = "127.0.0.1:1"
TP = TopicPartition("t", 0)


@pytest.fixture
def consumer() -> Iterator[Any]:
    with KafkaConsumer(bootstrap_servers=NOWHERE, group_id="g") as consumer:
        yield consumer


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda c: c.assign([("t", "0")]), TypeError, "('t', '0') is not a TopicPartition"),
        (lambda c: c.assign(TP), TypeError, "'t' is not a TopicPartition"),
        (lambda c: c.assign([("t", -1)]), ValueError, "[t,-1]: the lowest partition is 0"),
        (lambda c: c.assign([("t t", 0)]), ValueError, "'t t'"),
        (lambda c: c.pause([TP]), TypeError, "one by one"),
        (lambda c: c.committed([TP]), TypeError, "is not a TopicPartition"),
        (lambda c: c.end_offsets(TP), TypeError, "'t' is not a TopicPartition"),
        (lambda c: c.beginning_offsets(["t"]), TypeError, "'t' is not a TopicPartition"),
        (lambda c: c.seek(TP, 1.5), TypeError, "float"),
        (lambda c: c.seek(TP, -1), ValueError, "cannot seek to -1"),
        (lambda c: c.commit({"t": 4}), TypeError, "'t' is not a TopicPartition"),
        (lambda c: c.commit({TP: 4.0}), TypeError, "[t,0]: 4.0 is not an offset"),
        (lambda c: c.offsets_for_times({"t": 4}), TypeError, "'t' is not a TopicPartition"),
        (lambda c: c.subscribe([5]), TypeError, "must be a str, not int"),
        (lambda c: c.subscribe("^logs-.*"), ValueError, "re.compile"),
    ],
)
def test_arguments_of_the_wrong_kind_are_named(
    consumer: KafkaConsumer, call: Callable[[Any], object], error: type[Exception], said: str
) -> None:
    """The error is raised by the call itself, not by a thread later on."""
    with pytest.raises(error, match=re.escape(said)):
        call(consumer)


@pytest.mark.parametrize("argument", ["t", {"bootstrap.servers": NOWHERE}])
def test_only_a_configuration_configures(argument: Any) -> None:
    """Other libraries take topics or a dict in its place."""
    with pytest.raises(ConfigError, match=re.escape("pass KafkaConsumerConfig({...})")):
        KafkaConsumer(argument)


def test_a_forked_process_cannot_use_the_consumer_of_its_parent() -> None:
    """Nor go on with an iteration that began before: its threads do not exist there. `close` does
    nothing: it would leave the parent's group."""
    with KafkaConsumer(bootstrap_servers=NOWHERE, group_id="g") as consumer:
        consumer.subscribe(["t"])
        messages = iter(consumer)
        assert "make a KafkaConsumer in each" in in_child(lambda: consumer.poll(0.1))
        assert "make a KafkaConsumer in each" in in_child(lambda: next(messages))
        assert in_child(consumer.close) == "None"
        consumer.poll(0.1)


@pytest.mark.parametrize("scarce", ["kafka08-heartbeat-g", "kafka08-metadata-g"])
def test_a_subscription_that_found_no_thread_can_be_repeated(scarce: str) -> None:
    """The second call did nothing: the consumer had its subscription, and no member in the group,
    or nobody who watches its topics."""
    runtime = FewThreads(scarce)
    with KafkaConsumer(bootstrap_servers=NOWHERE, group_id="g", runtime=runtime) as consumer:
        with pytest.raises(RuntimeError, match="can't start new thread"):
            consumer.subscribe(["t"])
        assert consumer.subscription() == set()
        consumer.subscribe(["t"])
        for name in ("kafka08-heartbeat-g", "kafka08-metadata-g"):
            assert 1 == runtime.started.count(name)


@pytest.mark.parametrize("forever", [inf, 1e30], ids=["infinity", "very long"])
def test_a_wait_may_be_longer_than_the_system_takes(forever: float) -> None:
    """Also with times in the configuration that no wait takes: each thread goes on, and close
    ends them all."""
    before = threading.active_count()
    consumer = KafkaConsumer(
        bootstrap_servers=NOWHERE,
        group_id="g",
        auto_commit_interval_ms=INT_MAX,
        metadata_max_age_ms=LONG_MAX,
    )
    consumer.subscribe(["t"])
    consumer.poll(0.05)
    names = {thread.name for thread in threading.enumerate()}
    assert {"kafka08-commit-g", "kafka08-heartbeat-g", "kafka08-metadata-g"} <= names
    threading.Timer(0.05, consumer.wakeup).start()
    with pytest.raises(WokenUp):
        consumer.poll(forever)
    consumer.close(forever)
    until(lambda: threading.active_count() <= before)


@contextmanager
def reading(*values: bytes, **arguments: Any) -> Iterator[Any]:
    """A consumer with these fetched messages of TP, whose brokers do not respond."""
    with KafkaConsumer(bootstrap_servers=NOWHERE, group_id="g", **arguments) as consumer:
        consumer.assign([TP])
        consumer.seek(TP, 0)
        [partition] = consumer._partitions.owned
        assert consumer._stream.offer(chunk_of(partition, *values))
        yield consumer
        consumer.close(0.0)


class Forgetful:
    """An interceptor whose on_consume lacks its `return`, until it is mended."""

    is_mended = False

    def on_consume(self, messages: list[Any]) -> Any:
        return messages if self.is_mended else None

    def on_commit(self, offsets: Any) -> None:
        pass

    def close(self) -> None:
        pass


@pytest.mark.parametrize("take", [lambda c: c.poll(1.0), lambda c: [next(iter(c))]])
def test_on_consume_without_return_loses_no_message(take: Callable[[Any], Any]) -> None:
    """It is a TypeError, and the message is not finished: it would be committed unread."""
    forgetful = Forgetful()
    with reading(b"a", interceptors=[forgetful]) as consumer:
        with pytest.raises(TypeError, match="returned None, not a list of messages"):
            take(consumer)
        assert consumer.position(TP) == 0
        forgetful.is_mended = True
        [partition] = consumer._partitions.owned
        assert consumer._stream.offer(chunk_of(partition, b"a"))
        assert [message.value for message in take(consumer)] == [b"a"]


def test_a_second_thread_cannot_iterate_meanwhile() -> None:
    """Nor poll, commit or close: the message that the first one processes would count as
    finished."""
    with reading(b"a", b"b") as consumer:
        messages = iter(consumer)
        assert next(messages).offset == 0
        calls: tuple[Callable[[], object], ...] = (
            partial(next, messages),
            lambda: next(iter(consumer)),
            lambda: consumer.poll(0.0),
            consumer.commit_async,
            lambda: consumer.__exit__(None, None, None),
        )
        for call in calls:
            with pytest.raises(RuntimeError, match="only one thread at a time"):
                elsewhere(call)
        assert consumer._partitions.finished() == {TP: 0}
        assert next(messages).offset == 1
        del messages, calls, call  # as a `break` out of a loop does
        assert elsewhere(lambda: consumer.position(TP)) == 2


def test_an_iteration_ends_with_its_thread() -> None:
    """Another thread may then use the consumer, and go on with the iteration."""
    with reading(b"a", b"b") as consumer:
        messages = iter(consumer)
        assert elsewhere(lambda: next(messages)).offset == 0
        assert consumer.position(TP) == 1
        assert next(messages).offset == 1


def test_a_signal_handler_that_raises_leaves_the_consumer_usable() -> None:
    """Also between the claim of the consumer and the call that it is for."""
    with reading(b"a") as consumer:
        is_armed = True

        class Users(dict[str, object]):
            def setdefault(self, *pair: Any) -> Any:
                claimed = super().setdefault(*pair)
                if is_armed:
                    raise KeyboardInterrupt
                return claimed

        consumer._users = Users()
        with pytest.raises(KeyboardInterrupt):
            consumer.position(TP)
        is_armed = False
        assert elsewhere(lambda: consumer.position(TP)) == 0


@pytest.mark.parametrize("seek", ["seek_to_beginning", "seek_to_end"])
def test_nothing_to_seek_in_is_an_error(consumer: Any, seek: str) -> None:
    """After `subscribe` nothing is assigned before polls have joined the group: doing nothing would
    leave the messages before the end unread."""
    consumer.subscribe(["t"])
    with pytest.raises(ValueError, match="no partitions are assigned yet"):
        getattr(consumer, seek)()


def test_a_dropped_consumer_ends_after_a_warning() -> None:
    """It leaves its group and its threads end: else it would keep its partitions."""
    threads = threading.active_count()
    with reading(b"a") as consumer:
        dropped = KafkaConsumer(bootstrap_servers=NOWHERE)
        dropped.assign([TP])
        dropped.seek(TP, 0)
        assert dropped.poll(0.01) == []
        with pytest.warns(ResourceWarning, match="unclosed <KafkaConsumer of 127"):
            del dropped
        assert consumer.position(TP) == 0
    until(lambda: threading.active_count() <= threads)


def test_the_iterations_of_a_closed_consumer_end() -> None:
    """As a closed connector's streams do: the loop that closed it has nothing to handle."""
    with KafkaConsumer(bootstrap_servers=NOWHERE) as consumer:
        consumer.assign([TP])
    assert [*consumer] == [*consumer.batches()] == []


def test_an_iteration_survives_the_error_of_another_thread() -> None:
    """Which asked it for the next set. It ended the loop of the thread that reads, without a word;
    and while that call was refused, the reader's own commit could be."""
    with reading(b"a", b"b") as consumer:
        messages = iter(consumer)
        assert next(messages).offset == 0
        consumer._stream.call()  # it returns to its consumer before the next message
        with pytest.raises(RuntimeError, match="only one thread at a time"):
            elsewhere(lambda: next(messages))
        assert consumer._users.keys() == {"iteration"}
        assert next(messages).offset == 1


def test_a_signal_handler_that_closes_the_consumer_ends_its_loops() -> None:
    """As it ends the streams of a connector: a program's SIGTERM handler closes its consumer, and
    the loop that it interrupts has nothing to handle."""
    loops: tuple[Callable[[Any], object], ...] = (list, lambda c: [*c.batches()])
    for loop in loops:
        consumer = KafkaConsumer(bootstrap_servers=NOWHERE)
        consumer.assign([TP])
        consumer.seek(TP, 0)
        poll = consumer._poller.next

        def closed_meanwhile(*given: Any, consumer: Any = consumer, poll: Any = poll) -> Any:
            consumer.close(0.0)
            return poll(*given)

        consumer._poller.next = closed_meanwhile  # type: ignore[method-assign,assignment]
        assert loop(consumer) == []


def test_an_iteration_goes_on_after_an_error() -> None:
    """Also through the same iterator."""
    with reading(b"a", value_deserializer=lambda _, data: int(data)) as consumer:
        messages = iter(consumer)
        with pytest.raises(DeserializationFailed):
            next(messages)
        consumer.wakeup()
        with pytest.raises(WokenUp):
            next(messages)
        consumer.seek(TP, 7)
        [partition] = consumer._partitions.owned
        assert consumer._stream.offer(chunk_of(partition, b"8"))
        assert next(messages).value == 8
