"""KafkaStream: a stream of messages for one thread of a program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from kafka08.consumer.fetching.batch import Batches, BatchLimits
from kafka08.consumer.zookeeper.member_stream import MemberStream
from kafka08.kernel import MessageAndMetadata
from kafka08.lifecycle import ProcessBound
from kafka08.structs import TopicPartition

K = TypeVar("K")
V = TypeVar("V")


class KafkaStream(ProcessBound, Generic[K, V]):
    """Iterator of MessageAndMetadata[K, V]: key and value are the results of the decoders, or bytes
    without a decoder. One thread at a time reads it. It ends when its connector is shut down.

    You can continue to iterate after each of these errors. ConsumerTimeout: no message within
    consumer.timeout.ms. ConsumerRebalanceFailed: once for each stall of the group. MessageTooLarge
    and InvalidMessage: a message cannot be read; repeated until it can, or (if it is damaged) until
    `skip_damaged`. An error of a decoder: once; the stream continues with the next message.
    """

    def __init__(self, stream: MemberStream, thread_id: str, connector: object = None) -> None:
        """thread_id   its name in owner znodes, `<consumer id>-<number>`
        connector   lives as long as this, and its iterators"""
        self._stream = stream
        self.thread_id = thread_id
        self._connector = connector

    def __iter__(self) -> Iterator[MessageAndMetadata[K, V]]:
        # Returns another object: through this one a loop would call two methods for each message.
        return self._stream.loop(self)

    def __next__(self) -> MessageAndMetadata[K, V]:
        return next(self._stream)

    def batches(
        self,
        max_messages: int = BatchLimits().max_messages,
        max_bytes: int = BatchLimits().max_bytes,
    ) -> Batches:
        """The messages in batches, each of one partition. Iterate over them instead of the stream,
        or in turns with it. Waits and raises as the stream does, and you can continue likewise. A
        batch is finished when the next one is taken, or when its reader commits.

        Decoders are not called. A batch has at most `max_messages`, and `max_bytes` of keys and
        values unless a single message has more; ValueError for limits below 1 and 0.
        """
        return self._stream.batches(max_messages, max_bytes, self)

    def skip_damaged(self) -> tuple[TopicPartition, int] | None:
        """Continue after the message for which the stream has just raised InvalidMessage. Returns
        the partition and the offset at which reading continues. The message counts as finished, so
        the next commit is after it; if it is a compressed one that cannot be decompressed, all
        messages in it are skipped.

        None, and skips nothing, if the error did not name the message's offset, or if the
        partition has moved to another stream or member.
        """
        return self._stream.skip_damaged()

    def __repr__(self) -> str:
        return f"<KafkaStream {self.thread_id}{', ended' if self._stream.is_closed else ''}>"
