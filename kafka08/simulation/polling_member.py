"""PollingMember: a member of a group with a coordinator, which uses its KafkaConsumer in random
ways.

It runs on simulated time and, in a process of its own, on real time (tests/histories).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from random import Random
from typing import Final, Self

from kafka08.consumer.group.kafka_consumer import KafkaConsumer
from kafka08.consumer.group.kafka_consumer_config import KafkaConsumerConfig
from kafka08.consumer.group.polled_stream import Message
from kafka08.errors import KafkaError
from kafka08.runtime import ClientRuntime
from kafka08.simulation.group_history import GroupEvents
from kafka08.structs import OffsetAndMetadata, TopicPartition

Topics = str | tuple[str, ...] | re.Pattern[str]
Limited = Callable[[str, float], AbstractContextManager[object]]
CLOSE_S: Final = 2.0
CALLBACK_S: Final = CLOSE_S + 1.0
"""The longest that its callbacks take."""
REBALANCE_S: Final = 10.0
"""The longest automatic commit of a rebalance."""
POLL_S: Final = 0.2
WORK_S: Final = 30.0
"""The default limit of a member's work, over all messages."""
WHIMS: Final = 20
"""The limit of one member: one that always leaves without a commit would make no progress."""
COMMITS: Final = 200
"""The limit of one member's commits that wait for the brokers: where each message is synced on
three disks, one takes 0.3 s. Later offsets are left to the automatic commits."""
BATCH_MESSAGES: Final = 20


@dataclass(frozen=True, slots=True)
class Habits:
    """ways            of reading, one of which is drawn each time: poll, iterate, batch
    work_seconds    the work for a message
    long_work       the share of messages with `long_seconds` of work
    commit          after work: sync, async, or "" for automatic commits alone
    commits_in_revoked   whether on_revoked commits
    whims           how often it pauses, seeks to its position, unsubscribes or calls wakeup
    fails           the share of messages whose work fails: it closes its consumer
    """

    ways: tuple[str, ...]
    work_seconds: float
    long_work: float
    long_seconds: float
    commit: str
    commits_in_revoked: bool
    whims: float
    fails: float

    @classmethod
    def draw(cls, random: Random, *, long_seconds: float) -> Self:
        return cls(
            ways=random.choice([("poll",), ("iterate",), ("batch",), ("poll", "iterate", "batch")]),
            work_seconds=random.choice([0.0, 0.001, 0.05, 0.2]),
            long_work=random.choice([0.0, 0.0, 0.001]),
            long_seconds=long_seconds,
            commit=random.choice(["", "", "sync", "async"]),
            commits_in_revoked=random.random() < 0.3,
            whims=random.choice([0.0, 0.0, 0.1]),
            fails=random.choice([0.0, 0.0, 0.01]),
        )


class WorkFailed(Exception):
    """The work for a message has failed."""


class PollingMember:
    """`run` returns once `is_ending` is set; `end` sets it and ends waits."""

    def __init__(
        self,
        runtime: ClientRuntime,
        config: KafkaConsumerConfig,
        topics: Topics,
        habits: Habits,
        events: GroupEvents,
        name: str,
        *,
        work_seconds: float = WORK_S,
        limited: Limited = lambda _what, _seconds: nullcontext(),
    ) -> None:
        """`limited(what, seconds)` is a context in which a call of the consumer must end within so
        many seconds."""
        self.runtime = runtime
        self.limited = limited
        self.is_ending = False
        self.has_ended = False
        self._config = config
        self.topics = topics
        """What it subscribes to."""
        self._habits = habits
        self._events = events
        self._name = name
        self._work_left = work_seconds
        self.whims_left = WHIMS
        self.commits_left = COMMITS
        self._consumers = 0
        self._consumer: KafkaConsumer | None = None

    def end(self) -> None:
        """Let it leave the group soon. Any thread may call it."""
        self.is_ending = True
        if self._consumer is not None:
            self._consumer.wakeup()

    def change_topics(self, topics: Topics) -> None:
        """Let it replace its subscription soon. Any thread may call it."""
        self.topics = topics
        if self._consumer is not None:
            self._consumer.wakeup()  # it may wait for messages without a limit

    def keep_calm(self) -> None:
        """Let it stay in the group from now on."""
        self.whims_left = 0

    def work(self, seconds: float) -> None:
        """Work for so long, but not beyond the limit of all work: the run must end."""
        if seconds and self._work_left > 0:
            self._work_left -= seconds
            self.runtime.sleep(seconds)

    def run(self) -> None:
        while not self.is_ending:
            self._consumers += 1
            use = Use(self, f"{self._name}.{self._consumers}")
            self._consumer = use.consumer
            try:
                use.run()
            finally:
                use.close()
                self._consumer = None
        self.has_ended = True


class Use:
    """One KafkaConsumer, from its first poll to its close."""

    def __init__(self, member: PollingMember, name: str) -> None:
        self._member = member
        self._habits = member._habits
        self._events = member._events
        self._runtime = member.runtime
        self._random = member.runtime.random
        self._name = name
        self._topics = member.topics
        self._has_failed = False
        self._paused: set[TopicPartition] = set()
        self.consumer = KafkaConsumer(member._config, interceptors=[self], runtime=member.runtime)

    def run(self) -> None:
        """Read until the member must end, or until an error after which it makes another
        consumer."""
        self._subscribe()
        while not self._member.is_ending:
            try:
                if self._topics is not self._member.topics:
                    self._subscribe()
                getattr(self, f"_{self._random.choice(self._habits.ways)}")()
                if self._member.whims_left and self._random.random() < self._habits.whims:
                    self._member.whims_left -= 1
                    self._have_a_whim()
            except WorkFailed:
                self._has_failed = True
                return
            except KafkaError:
                # A group may refuse this member for the whole session of a dead one.
                self._runtime.sleep(POLL_S)
                if self._random.random() < 0.2:
                    return

    def close(self) -> None:
        self._events.revoked(self._name, self.consumer.assignment())
        with self._member.limited("close", CLOSE_S + CALLBACK_S):
            self.consumer.close(timeout=CLOSE_S)

    # ------------------------------------------------------------------------------------ reading

    def _poll(self) -> None:
        with self._limited_poll("poll"):
            messages = self.consumer.poll(POLL_S)
        for message in messages:
            self._note(message)
        self._work([(TopicPartition(m.topic, m.partition), m.offset) for m in messages])

    def _iterate(self) -> None:
        left = self._random.choice([1, 5, 100])
        for message in self.consumer:
            self._note(message)
            self._work([(TopicPartition(message.topic, message.partition), message.offset)])
            left -= 1
            if self._member.is_ending or not left:
                return

    def _batch(self) -> None:
        with self._limited_poll("poll_batch"):
            batch = self.consumer.poll_batch(POLL_S, BATCH_MESSAGES)
        if batch is not None:
            tp, offsets = batch.topic_partition, list(batch.offsets)
            for offset in offsets:
                self._events.handed(self._name, tp, offset)
            self._work([(tp, offset) for offset in offsets])

    def _limited_poll(self, what: str) -> AbstractContextManager[object]:
        limit = POLL_S + CALLBACK_S + REBALANCE_S
        return self._member.limited(what, limit)

    def _note(self, message: Message) -> None:
        tp = TopicPartition(message.topic, message.partition)
        # A rebalance ends the pause.
        assert tp not in self._paused & self.consumer.paused(), f"{tp} is paused: {message.offset}"
        self._events.handed(self._name, tp, message.offset)

    def _work(self, messages: list[tuple[TopicPartition, int]]) -> None:
        habits = self._habits
        for tp, offset in messages:
            is_long = self._random.random() < habits.long_work
            self._member.work(habits.long_seconds if is_long else habits.work_seconds)
            if self._member.whims_left and self._random.random() < habits.fails:
                self._member.whims_left -= 1
                raise WorkFailed
            self._events.processed(tp, offset)
        if messages and habits.commit == "sync" and self._member.commits_left:
            self._member.commits_left -= 1
            self.consumer.commit()
        elif messages and habits.commit == "async":
            self.consumer.commit_async()

    # ------------------------------------------------------------------------------------- whims

    def _have_a_whim(self) -> None:
        consumer = self.consumer
        assigned = sorted(consumer.assignment())
        match self._random.choice(["pause", "seek", "leave", "wake"]):
            case "pause" if assigned:
                some = self._random.sample(assigned, self._random.randint(1, len(assigned)))
                consumer.pause(*some)
                self._paused = {*some}
                try:
                    self._poll()
                finally:
                    self._paused.clear()
                    consumer.resume(*sorted(consumer.paused()))
            case "seek" if assigned:
                tp = self._random.choice(assigned)
                consumer.seek(tp, consumer.position(tp, timeout=POLL_S))
            case "leave":
                self._events.revoked(self._name, assigned)
                consumer.unsubscribe()
                self._subscribe()
            case "wake":
                self._runtime.spawn(consumer.wakeup, name="wakeup")

    # --------------------------------------------------------------------------------- callbacks

    def _subscribe(self) -> None:
        self._topics = self._member.topics
        self.consumer.subscribe(
            self._topics, on_assigned=self._on_assigned, on_revoked=self._on_revoked
        )

    def _on_assigned(self, partitions: Iterable[TopicPartition]) -> None:
        self._events.assigned(self._name, partitions)

    def _on_revoked(self, partitions: Iterable[TopicPartition]) -> None:
        self._events.revoked(self._name, partitions)
        # A commit would finish the message whose work has failed.
        if self._habits.commits_in_revoked and not self._has_failed:
            self.consumer.commit(timeout=CLOSE_S)

    def on_consume(self, messages: list[Message]) -> list[Message]:
        return messages

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        self._events.committed(self._name, {tp: one.offset for tp, one in offsets.items()})
