"""The demo's consumer group: members that join and leave, and one tally of what they read."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import islice
from typing import Final

from kafka08.consumer import ConsumerConfig, ConsumerConnector
from kafka08.demo.ledger import MASK, Content, message_hash
from kafka08.errors import ConsumerTimeout, KafkaError
from kafka08.kernel import MessageAndMetadata

POLL_MS: Final = 100
BATCH_COUNT: Final = 500
SILENCE_LIMIT_S: Final = 60


class Tally:
    """The messages that the group has read, and its limit.

    content      every message counted once
    duplicates   messages that were delivered again
    ceiling      members pause after this many messages (a few hundred more may pass)
    """

    def __init__(self, ceiling: int) -> None:
        self.content = Content()
        self.duplicates = 0
        self.ceiling = ceiling
        self._next_offsets: dict[int, int] = {}
        self._lock = threading.Lock()

    def add(self, batch: list[MessageAndMetadata[bytes, bytes]]) -> None:
        """Count the messages of `batch`; a partition's batches must come in offset order."""
        with self._lock:
            count = size = checksum = 0
            for message in batch:
                expected = self._next_offsets.get(message.partition, 0)
                if message.offset < expected:
                    self.duplicates += 1
                    continue
                self._next_offsets[message.partition] = message.offset + 1
                count += 1
                size += len(message.key or b"") + len(message.value or b"")
                checksum += message_hash(message.key, message.value)
            self.content += Content(count, size, checksum & MASK)

    def next_offsets(self) -> dict[int, int]:
        """partition → the offset after the last one read."""
        with self._lock:
            return dict(self._next_offsets)

    @property
    def full(self) -> bool:
        return self.content.count >= self.ceiling


class Member:
    """One ConsumerConnector and the thread that reads its stream."""

    def __init__(self, name: str, topic: str, properties: Mapping[str, str], tally: Tally) -> None:
        self.name = name
        self.failure: KafkaError | None = None
        config = ConsumerConfig(
            {**properties, "consumer.id": name, "consumer.timeout.ms": str(POLL_MS)}
        )
        self._tally = tally
        self._stopping = threading.Event()
        self._connector = ConsumerConnector(config)
        try:
            self._stream = self._connector.create_message_streams({topic: 1})[topic][0]
        except BaseException:
            self._connector.shutdown()
            raise
        self._thread = threading.Thread(target=self._read, name=f"member-{name}")
        self._thread.start()

    def stop(self) -> None:
        """Commit, leave the group, and raise the failure of the member's thread, if any."""
        self._stopping.set()
        self._thread.join()
        self._connector.shutdown()
        if self.failure is not None:
            raise self.failure

    def _read(self) -> None:
        try:
            while not self._stopping.is_set():
                if self._tally.full:
                    self._stopping.wait(0.02)
                else:
                    self._tally.add(self._next_batch())
            self._connector.commit_offsets()
        except KafkaError as error:
            self.failure = error

    def _next_batch(self) -> list[MessageAndMetadata[bytes, bytes]]:
        """Up to BATCH_COUNT messages; fewer when nothing arrives for POLL_MS."""
        batch: list[MessageAndMetadata[bytes, bytes]] = []
        with suppress(ConsumerTimeout):
            batch.extend(islice(self._stream, BATCH_COUNT))
        return batch


class Group:
    """Members of one group reading one topic into one tally."""

    def __init__(self, topic: str, properties: Mapping[str, str], tally: Tally) -> None:
        self.members: dict[str, Member] = {}
        self._topic = topic
        self._properties = properties
        self._tally = tally

    def join(self, name: str) -> None:
        self.members[name] = Member(name, self._topic, self._properties, self._tally)

    def leave(self, name: str) -> None:
        self.members.pop(name).stop()

    def leave_all(self) -> None:
        """Stop every member, even if one fails; then raise the first failure."""
        failures = []
        for name in list(self.members):
            try:
                self.leave(name)
            except KafkaError as error:
                failures.append(error)
        if failures:
            raise failures[0]

    def read_up_to(self, count: int, tick: Callable[[Content], None]) -> None:
        """Let the members read until `count` messages in total; call `tick` meanwhile.

        Raises a member's failure, and KafkaError if nothing arrives for SILENCE_LIMIT_S.
        """
        self._tally.ceiling = count
        silent = 0
        last = -1
        while not self._tally.full:
            for member in self.members.values():
                if member.failure is not None:
                    raise member.failure
            tick(self._tally.content)
            silent = silent + 1 if self._tally.content.count == last else 0
            last = self._tally.content.count
            if silent * POLL_MS > SILENCE_LIMIT_S * 1000:
                raise KafkaError(
                    f"the group read no message for {SILENCE_LIMIT_S} s after {last} messages"
                )
            time.sleep(POLL_MS / 1000)
        tick(self._tally.content)
