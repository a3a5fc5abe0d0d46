"""producer.type=async: when batches are sent, what happens when the queue is full, which hooks are
called, and what close() sends."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pytest

from kafka08.clock import SYSTEM_CLOCK, Clock
from kafka08.errors import FailedToSend, ProducerClosed, QueueFull
from kafka08.producer import CallbackHandler, KeyedMessage, Producer, ProducerConfig
from kafka08.runtime.threads import ThreadRuntime
from kafka08.structs import TopicPartition
from tests.client.fake_cluster import FakeCluster
from tests.mock_clock import MockClock
from tests.waiting import until

SECONDS = 10


class Recorder:
    """An event handler that keeps its batches. `block` makes it wait for `go`."""

    def __init__(self, config: ProducerConfig | None = None) -> None:
        self.batches: list[list[Any]] = []
        self.go = threading.Event()
        self.go.set()
        self.busy = threading.Event()
        self.errors: list[Exception] = []
        self.closed = 0

    @property
    def sent(self) -> list[Any]:
        return [message for batch in self.batches for message in batch]

    def block(self) -> None:
        self.go.clear()

    def handle(self, messages: Sequence[KeyedMessage]) -> None:
        self.busy.set()
        assert self.go.wait(SECONDS)
        self.batches.append([message.message for message in messages])
        if self.errors:
            raise self.errors.pop(0)

    def close(self) -> None:
        self.closed += 1


class AskedClock(MockClock):
    """Counts its calls, so that a test can wait until a thread has read the time."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def monotonic(self) -> float:
        self.asked += 1
        return super().monotonic()


class Hooks(CallbackHandler):
    """Records every stage. `fail` is the stage that raises an `error`."""

    def __init__(self, fail: str = "", error: type[BaseException] = RuntimeError) -> None:
        self.log: list[tuple[Any, ...]] = []
        self.fail = fail
        self.error = error

    def note(self, stage: str, *details: Any) -> None:
        self.log.append((stage, *details))
        if stage == self.fail:
            raise self.error(stage)

    def before_enqueue(self, message: KeyedMessage) -> KeyedMessage:
        self.note("before_enqueue", message.message)
        return message._replace(message=message.message.upper())

    def after_enqueue(self, message: KeyedMessage, added: bool) -> None:
        self.note("after_enqueue", message.message, added)

    def after_dequeue(self, messages: list[KeyedMessage]) -> list[KeyedMessage]:
        self.note("after_dequeue", [m.message for m in messages])
        return [*messages, KeyedMessage("t", "MORE")]

    def before_sending(self, messages: list[KeyedMessage]) -> list[KeyedMessage]:
        self.note("before_sending", [m.message for m in messages])
        return messages[:2]

    def after_sending(self, messages: list[KeyedMessage]) -> None:
        self.note("after_sending", [m.message for m in messages])

    def on_error(self, messages: list[KeyedMessage], error: Exception) -> None:
        self.note("on_error", [m.message for m in messages], type(error))

    def close(self) -> None:
        self.note("close")


def async_producer(
    handler: Recorder,
    hooks: CallbackHandler | None = None,
    clock: Clock = SYSTEM_CLOCK,
    **keys: Any,
) -> Producer:
    keys.setdefault("queue_buffering_max_ms", 1_000_000)
    config = ProducerConfig(metadata_broker_list="b1:9092", producer_type="async", **keys)
    return Producer(
        config, event_handler=handler, callback_handler=hooks, runtime=ThreadRuntime(clock=clock)
    )


def messages(count: int, first: int = 0) -> list[KeyedMessage]:
    return [KeyedMessage("t", f"m{n}") for n in range(first, first + count)]


def test_a_batch_goes_when_it_is_full() -> None:
    """A batch is sent when it has batch.num.messages. The rest waits for its time, or for close(),
    which sends it."""
    handler = Recorder()
    producer = async_producer(handler, batch_num_messages=3)
    producer.send(messages(3))
    until(lambda: len(handler.batches) == 1)
    producer.send(messages(2, 3))
    producer.close()
    assert handler.batches == [["m0", "m1", "m2"], ["m3", "m4"]]
    assert handler.closed == 1


def test_a_batch_goes_when_its_time_has_come() -> None:
    """A batch is sent queue.buffering.max.ms after its first message, not before, and whole."""
    handler, clock = Recorder(), AskedClock()

    def await_looks() -> None:
        """Waits until the thread, which waits for real milliseconds, has read the clock twice. Then
        it has handled the first time."""
        before = clock.asked
        until(lambda: clock.asked >= before + 2)

    with async_producer(handler, clock=clock, queue_buffering_max_ms=10) as producer:
        producer.send(messages(1))
        await_looks()
        clock.advance(0.004)
        producer.send(messages(1, 1))
        clock.advance(0.005)
        await_looks()
        assert handler.batches == []
        clock.advance(0.002)
        until(lambda: handler.batches == [["m0", "m1"]])


def test_a_backlog_goes_in_whole_batches() -> None:
    """Messages that gather during a request are sent in whole batches; the rest waits."""
    handler = Recorder()
    handler.block()
    producer = async_producer(handler, batch_num_messages=2)
    producer.send(messages(2))
    assert handler.busy.wait(SECONDS)
    producer.send(messages(5, 2))
    handler.go.set()
    until(lambda: len(handler.batches) == 2)
    producer.close()
    assert list(map(len, handler.batches)) == [2, 4, 1]
    assert handler.sent == [f"m{n}" for n in range(7)]


def test_large_messages_go_batch_by_batch() -> None:
    """Batches of a backlog are combined up to 1 MiB, no further."""
    handler = Recorder()
    handler.block()
    with async_producer(handler, batch_num_messages=2) as producer:
        producer.send([KeyedMessage("t", b"x" * 600_000) for _ in range(8)])
        handler.go.set()
    assert list(map(len, handler.batches)) == [2, 2, 2, 2]


class Losing(Recorder):
    """Fails for a batch with m1 as a whole, and for m3 alone."""

    def handle(self, batch: Sequence[KeyedMessage]) -> None:
        super().handle(batch)
        if any(m.message == "m1" for m in batch):
            raise OSError("no disk")
        if lost := tuple(m for m in batch if m.message == "m3"):
            raise FailedToSend("one of them", lost)


@pytest.mark.parametrize("hooks", [None, CallbackHandler()], ids=["plain", "hooks"])
def test_the_outcome_counts_what_left_the_queue(hooks: CallbackHandler | None) -> None:
    """Messages that were sent and lost are counted, each once; the first error stays."""
    producer = async_producer(Losing(), hooks, batch_num_messages=2, queue_buffering_max_ms=1)
    for first in (0, 2, 4):
        producer.send(messages(2, first))
        until(lambda first=first: first + 2 == sum(producer.outcome[:2]))  # type: ignore[misc]
    producer.close()
    sent, lost, error = producer.outcome
    assert (3, 3, "no disk") == (sent, lost, str(error))


@pytest.mark.parametrize("timeout_ms", [0, 20])
def test_a_full_queue_refuses(timeout_ms: int) -> None:
    """send() raises QueueFull after queue.enqueue.timeout.ms. Messages enqueued before are still
    sent."""
    handler = Recorder()
    handler.block()
    producer = async_producer(
        handler,
        batch_num_messages=1,
        queue_buffering_max_messages=2,
        queue_enqueue_timeout_ms=timeout_ms,
    )
    producer.send(messages(1))
    assert handler.busy.wait(SECONDS)
    producer.send(messages(2, 1))
    assert {"ProducerQueueSize": 2.0} == producer.metrics()["ProducerSendThread"]
    with pytest.raises(QueueFull, match="full of 2 unsent"):
        producer.send(messages(2, 3))
    dropped = producer.metrics()["ProducerTopicMetrics.t"]["DroppedMessagesPerSec.Count"]
    handler.go.set()
    producer.close()
    assert handler.sent == ["m0", "m1", "m2"]
    assert 1 == dropped


def test_a_batch_that_is_being_filled_counts() -> None:
    """queue.buffering.max.messages also counts the batch that is being filled."""
    handler = Recorder()
    handler.block()
    producer = async_producer(
        handler,
        batch_num_messages=10,
        queue_buffering_max_messages=15,
        queue_enqueue_timeout_ms=0,
    )
    producer.send(messages(10))
    assert handler.busy.wait(SECONDS)
    producer.send(messages(15, 10))
    with pytest.raises(QueueFull, match="full of 15 unsent"):
        producer.send(messages(1, 25))
    handler.go.set()
    producer.close()
    assert handler.sent == [f"m{n}" for n in range(25)]


def test_a_full_queue_makes_wait() -> None:
    """With the default -1, send() blocks until there is room. No message is lost, and the order is
    kept."""
    handler = Recorder()
    with async_producer(handler, batch_num_messages=5, queue_buffering_max_messages=10) as producer:
        for message in messages(1000):
            producer.send(message)
    assert handler.sent == [f"m{n}" for n in range(1000)]


def test_threads_share_the_queue() -> None:
    """Several threads and a queue that is often full: each thread's messages keep their order, none
    is lost, and the queue is never longer than queue.buffering.max.messages."""
    handler, lengths = Recorder(), set()
    with async_producer(handler, batch_num_messages=7, queue_buffering_max_messages=20) as producer:
        ours: Any = producer

        def handle(messages: Sequence[KeyedMessage]) -> None:
            lengths.add(ours._queue.count)
            handler.handle(messages)

        ours._queue._handle = handle

        def run(name: int) -> None:
            for n in range(1000):
                producer.send(KeyedMessage("t", f"{name} {n}"))

        threads = [threading.Thread(target=run, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(SECONDS)
    assert len(handler.sent) == 4000
    assert max(lengths) <= 20
    for name in range(4):
        of_one = [sent for sent in handler.sent if sent.startswith(f"{name} ")]
        assert of_one == [f"{name} {n}" for n in range(1000)]


def test_a_subclass_has_its_own_send() -> None:
    """A subclass that overrides `send` sees every call, and may pass it on."""
    handler = Recorder()

    class Loud(Producer):
        def send(self, messages: Any) -> None:
            super().send(messages._replace(message=messages.message.upper()))

    config = ProducerConfig(metadata_broker_list="b1:9092", producer_type="async")
    with Loud(config, event_handler=handler) as producer:
        producer.send(KeyedMessage("t", "a"))
    assert handler.sent == ["A"]


def test_close_ends_a_send_that_waits_for_room() -> None:
    """close() ends a send() that waits for room with ProducerClosed."""
    handler = Recorder()
    handler.block()
    producer = async_producer(handler, batch_num_messages=1, queue_buffering_max_messages=1)
    producer.send(messages(1))
    assert handler.busy.wait(SECONDS)
    producer.send(messages(1, 1))
    raised: list[BaseException] = []

    def send() -> None:
        try:
            producer.send(messages(1, 2))
        except ProducerClosed as error:
            raised.append(error)

    sender = threading.Thread(target=send)
    sender.start()
    closer = threading.Thread(target=producer.close)
    closer.start()
    sender.join(SECONDS)
    handler.go.set()
    closer.join(SECONDS)
    assert len(raised) == 1
    assert handler.sent == ["m0", "m1"]


def test_hooks_see_every_stage() -> None:
    """Hooks are called in this order, and each gets what the one before returned."""
    handler, hooks = Recorder(), Hooks()
    with async_producer(handler, hooks, batch_num_messages=1) as producer:
        producer.send(KeyedMessage("t", "a"))
    assert hooks.log == [
        ("before_enqueue", "a"),
        ("after_enqueue", "A", True),
        ("after_dequeue", ["A"]),
        ("before_sending", ["A", "MORE"]),
        ("after_sending", ["A", "MORE"]),
        ("close",),
    ]
    assert handler.batches == [["A", "MORE"]]


def test_hooks_get_the_failed_messages() -> None:
    """A FailedToSend names its messages; any other error concerns the whole batch. The thread
    continues."""
    handler, hooks = Recorder(), Hooks()
    handler.errors = [FailedToSend("", (KeyedMessage("t", "A"),)), TypeError()]
    with async_producer(handler, hooks, batch_num_messages=1) as producer:
        producer.send(KeyedMessage("t", "a"))
        until(lambda: len(handler.batches) == 1)
        producer.send(KeyedMessage("t", "b"))
    failed = [entry for entry in hooks.log if entry[0] == "on_error"]
    assert failed == [
        ("on_error", ["A"], FailedToSend),
        ("on_error", ["B", "MORE"], TypeError),
    ]


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (KeyedMessage("t", 5), "StringEncoder takes str"),
        (KeyedMessage("t", "x", key=0.5), "the partitioner failed"),
        (KeyedMessage("", "x"), "needs a topic"),
        (KeyedMessage(b"t", "x"), "topic must be a str"),  # type: ignore[arg-type]
        (KeyedMessage("bad!", "x"), "InvalidTopic"),
    ],
)
def test_a_message_that_cannot_be_sent_costs_no_other(bad: KeyedMessage, why: str) -> None:
    """A message that cannot be encoded fails alone. The others of its batch are stored in order,
    and `on_error` gets that message with the reason (DefaultEventHandler.serialize)."""
    lost: list[tuple[list[KeyedMessage], Exception]] = []
    hooks = CallbackHandler()
    hooks.on_error = lambda messages, error: lost.append((messages, error))  # type: ignore[method-assign]
    cluster = FakeCluster({"t": {0: 1}})
    config = ProducerConfig(
        metadata_broker_list="b1:9092",
        producer_type="async",
        request_required_acks=1,
        serializer_class="kafka.serializer.StringEncoder",
        queue_buffering_max_ms=1_000_000,
    )
    with Producer(
        config,
        key_encoder=lambda key: str(key).encode(),
        callback_handler=hooks,
        runtime=cluster.runtime,
    ) as producer:
        producer.send([*messages(50), bad, *messages(50, 50)])
    stored = [value for _, value in cluster.messages(TopicPartition("t", 0))]
    assert stored == [b"m%d" % n for n in range(100)]
    [(those, error)] = lost
    assert those == [bad]
    assert why in str(error)


@pytest.mark.parametrize(
    "stage", ["after_dequeue", "before_sending", "after_sending", "after_enqueue"]
)
def test_a_hook_that_fails_costs_no_message(stage: str) -> None:
    """A hook that raises is logged. Within send() the caller gets the error, after the message was
    enqueued."""
    handler, hooks = Recorder(), Hooks(fail=stage)
    with async_producer(handler, hooks, batch_num_messages=1) as producer:
        if stage == "after_enqueue":
            with pytest.raises(RuntimeError):
                producer.send(KeyedMessage("t", "a"))
        else:
            producer.send(KeyedMessage("t", "a"))
    assert handler.batches[0][0] == "A"


def test_a_hook_that_exits_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """sys.exit in a hook is logged. It ended the thread of the queue without a word: `send` waited
    for ever when that was full, and `close` lost what was in it."""
    handler, hooks = Recorder(), Hooks("after_sending", SystemExit)
    with async_producer(handler, hooks, batch_num_messages=1) as producer:
        producer.send(KeyedMessage("t", "a"))
        until(lambda: any(stage == "after_sending" for stage, *_ in hooks.log))
        producer.send(KeyedMessage("t", "b"))
    assert ["A", "MORE", "B", "MORE"] == handler.sent
    assert 2 == caplog.text.count("Error executing the callback handler's after_sending")


def test_other_objects_are_refused() -> None:
    """An object that is no message is refused, also after messages, which are sent, and from a
    hook."""
    handler = Recorder()
    with async_producer(handler) as producer, pytest.raises(TypeError, match="not a tuple"):
        producer.send([*messages(2), ("t", "m2")])  # type: ignore[list-item]
    assert handler.sent == ["m0", "m1"]
    hooks = CallbackHandler()
    hooks.before_enqueue = lambda message: None  # type: ignore[method-assign,assignment,return-value]
    with async_producer(handler, hooks) as producer, pytest.raises(TypeError, match="NoneType"):
        producer.send(messages(1))


def test_hooks_learn_of_a_refused_message() -> None:
    """A refused message calls after_enqueue(added=False); then send() raises QueueFull."""
    handler, hooks = Recorder(), Hooks()
    handler.block()
    producer = async_producer(
        handler, hooks, queue_buffering_max_messages=1, batch_num_messages=1,
        queue_enqueue_timeout_ms=0,
    )  # fmt: skip
    producer.send(KeyedMessage("t", "a"))
    assert handler.busy.wait(SECONDS)
    producer.send(KeyedMessage("t", "b"))
    with pytest.raises(QueueFull):
        producer.send(KeyedMessage("t", "c"))
    handler.go.set()
    producer.close()
    assert ("after_enqueue", "C", False) in hooks.log


def test_a_closed_producer_says_so() -> None:
    """send() on a closed producer says so. close() may be called twice."""
    handler = Recorder()
    producer = async_producer(handler)
    producer.close()
    producer.close()
    assert handler.closed == 1
    with pytest.raises(ProducerClosed):
        producer.send(messages(1))


def test_handlers_are_named_by_the_configuration() -> None:
    """event.handler and callback.handler name their classes as module:callable."""
    config = ProducerConfig(
        {
            "metadata.broker.list": "b1:9092",
            "producer.type": "async",
            "event.handler": f"{__name__}:Recorder",
            "callback.handler": f"{__name__}:Hooks",
        }
    )
    with Producer(config) as producer:
        producer.send(KeyedMessage("t", "a"))
    assert isinstance(producer._handler, Recorder)
    assert producer._handler.batches == [["A", "MORE"]]


def test_0_7s_names_are_understood() -> None:
    """The keys of 0.7 are accepted: queue.time, batch.size and the like, which the seeds use."""
    config = ProducerConfig(
        {
            "metadata.broker.list": "b1:9092",
            "queue.time": "7",
            "batch.size": "8",
            "queue.size": "9",
        }
    )
    assert (config.queue_buffering_max_ms, config.batch_num_messages) == (7, 8)
    assert config.queue_buffering_max_messages == 9
    assert config.unknown == {}


def test_a_dropped_producer_sends_the_rest_after_a_warning() -> None:
    """Its thread ends then."""
    recorder = Recorder()
    config = ProducerConfig(metadata_broker_list="h:1", producer_type="async")
    producer = Producer(config, event_handler=recorder)
    producer.send(KeyedMessage("t", b"v"))
    with pytest.warns(ResourceWarning, match="unclosed <Producer to h:1, async>"):
        del producer
    until(lambda: recorder.sent == [b"v"])
