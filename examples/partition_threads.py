"""Work on a topic with a thread for each partition, and never commit past unfinished work.

The main thread polls and commits. Each thread takes the messages of its partition in order, so the
offset behind its last finished message is safe to commit. A partition whose thread is behind is
paused, and polls go on: slow work costs no membership. Before a rebalance takes partitions away,
each thread finishes its current message. A kill repeats what was not committed yet, and loses
nothing.

usage: partition_threads.py TOPIC GROUP [--work-ms MS] [--once]
"""

from __future__ import annotations

import argparse
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Iterable
from typing import Any

from kafka08.consumer import KafkaConsumer, MessageAndMetadata
from kafka08.errors import CommitFailed, KafkaError, WokenUp
from kafka08.structs import TopicPartition

Message = MessageAndMetadata[Any, Any]

QUEUED_MAX = 100
"""A partition with more messages in its queue is paused until the queue is half empty."""
COMMIT_INTERVAL_S = 1.0


def work(message: Message, seconds: float) -> None:
    """Replace this by your own."""
    time.sleep(seconds)
    sys.stdout.write(f"{message.partition} {message.offset}\n")
    sys.stdout.flush()


class PartitionThread:
    """The thread of one partition.

    taken      the offset behind the last message in the queue
    finished   the offset behind the last finished message, to be committed
    error      what `work` raised; the thread has ended
    """

    def __init__(self, position: int, work_s: float) -> None:
        self.taken = self.finished = position
        self.error: Exception | None = None
        self._queue: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self._work_s = work_s
        self._stopping = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def queued(self) -> int:
        return self._queue.qsize()

    def take(self, message: Message) -> None:
        self.taken = message.offset + 1
        self._queue.put(message)

    def _run(self) -> None:
        while (message := self._queue.get()) is not None and not self._stopping:
            try:
                work(message, self._work_s)
            except Exception as error:  # noqa: BLE001 - the main thread raises it
                self.error = error
                return
            self.finished = message.offset + 1

    def stop(self) -> None:
        """Finish the current message, and drop the queue."""
        self._stopping = True
        self._queue.put(None)
        self._thread.join()


class Pool:
    """The threads of the partitions that this member owns."""

    def __init__(self, consumer: KafkaConsumer, work_s: float) -> None:
        self._consumer = consumer
        self._work_s = work_s
        self._threads: dict[TopicPartition, PartitionThread] = {}

    def on_assigned(self, partitions: Iterable[TopicPartition]) -> None:
        self._threads = {
            tp: PartitionThread(self._consumer.position(tp), self._work_s) for tp in partitions
        }

    def on_revoked(self, _: Iterable[TopicPartition] = ()) -> None:
        """Stop all threads and commit what they finished, while the partitions are ours."""
        for thread in self._threads.values():
            thread.stop()
        try:
            self._consumer.commit(self.finished())
        except CommitFailed:
            pass  # the group removed this member; the next owner repeats these messages
        self._threads.clear()

    def finished(self) -> dict[TopicPartition, int]:
        """The offsets to commit."""
        return {tp: thread.finished for tp, thread in self._threads.items()}

    def has_finished(self) -> bool:
        """Whether every message up to the ends of the logs is finished."""
        return bool(self._threads) and all(
            self._consumer.lag(tp) == 0 and thread.finished == thread.taken
            for tp, thread in self._threads.items()
        )

    def take(self, messages: Iterable[Message]) -> None:
        for message in messages:
            self._threads[TopicPartition(message.topic, message.partition)].take(message)

    def check(self) -> None:
        """Pause and resume partitions by the length of their queues; raise a thread's error."""
        paused = self._consumer.paused()
        for tp, thread in self._threads.items():
            if thread.error is not None:
                raise thread.error
            if thread.queued > QUEUED_MAX and tp not in paused:
                self._consumer.pause(tp)
            elif thread.queued <= QUEUED_MAX // 2 and tp in paused:
                self._consumer.resume(tp)


def run(consumer: KafkaConsumer, pool: Pool, *, once: bool) -> None:
    """Read until `wakeup`, or with `once` to the ends of the logs."""
    committed: dict[TopicPartition, int] = {}
    commit_at = 0.0
    while not (once and pool.has_finished()):
        pool.take(consumer.poll(timeout=0.1))
        pool.check()
        if time.monotonic() >= commit_at:
            commit_at = time.monotonic() + COMMIT_INTERVAL_S
            offsets = pool.finished()
            if offsets != committed:
                consumer.commit_async(offsets)
                committed = offsets


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("topic")
    parser.add_argument("group")
    parser.add_argument("--work-ms", type=float, default=1.0)
    parser.add_argument("--once", action="store_true", help="end at the ends of the logs")
    arguments = parser.parse_args()
    with KafkaConsumer(
        bootstrap_servers=os.environ.get("KAFKA08_BOOTSTRAP", "localhost:9092"),
        group_id=arguments.group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=6000,
    ) as consumer:
        signal.signal(signal.SIGTERM, lambda _number, _frame: consumer.wakeup())
        pool = Pool(consumer, arguments.work_ms / 1000)
        consumer.subscribe(
            [arguments.topic], on_assigned=pool.on_assigned, on_revoked=pool.on_revoked
        )
        try:
            run(consumer, pool, once=arguments.once)
        except (KeyboardInterrupt, WokenUp):
            pass
        finally:
            pool.on_revoked()
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KafkaError as error:
        sys.exit(f"Error: {error}")
