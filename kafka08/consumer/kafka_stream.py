"""A stream of messages: what one thread of a program reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from kafka08.consumer.batch import Batches, BatchLimits
from kafka08.consumer.stream import MemberStream
from kafka08.kernel import MessageAndMetadata
from kafka08.structs import TopicPartition

K = TypeVar("K")
V = TypeVar("V")


class KafkaStream(Generic[K, V]):
    """Iterator of MessageAndMetadata, whose key is a K and whose value is a V: what the decoders
    make of bytes, or bytes without a decoder. One thread at a time reads it. It ends when its
    connector is shut down.

    Raises, and may be asked again after each of them: ConsumerTimeout after consumer.timeout.ms
    without a message; ConsumerRebalanceFailed once for each stall of the group; MessageTooLarge and
    InvalidMessage for a message that cannot be read, again and again until it can or (a damaged
    one) until `skip_damaged`; what a decoder raised, once, and goes on behind that message.
    """

    def __init__(self, stream: MemberStream, thread_id: str) -> None:
        """thread_id   its name among the owners of partitions, `<consumer id>-<number>`"""
        self._stream = stream
        self.thread_id = thread_id

    def __iter__(self) -> Iterator[MessageAndMetadata[K, V]]:
        # Not this object: a loop would call two methods for each message.
        return self._stream

    def __next__(self) -> MessageAndMetadata[K, V]:
        return next(self._stream)

    def batches(
        self,
        max_messages: int = BatchLimits().max_messages,
        max_bytes: int = BatchLimits().max_bytes,
    ) -> Batches:
        """The messages in batches, each of one partition: iterate over them instead of the stream,
        or in turns with it. Waits and raises as the stream does, and may be asked again as well. A
        batch is finished when the next one is asked for, or when its reader commits.

        Decoders are not called. A batch has at most `max_messages`, and `max_bytes` of keys and
        values unless one message alone has more; ValueError for limits below 1 and 0.
        """
        return self._stream.batches(max_messages, max_bytes)

    def skip_damaged(self) -> tuple[TopicPartition, int] | None:
        """Go on behind the message for which the stream has just raised InvalidMessage: partition,
        and the offset where reading goes on. The message counts as finished, so the next commit is
        behind it; of a compressed one that cannot be decompressed, all messages inside are skipped.

        None, and nothing is skipped, if the error did not name the message's offset, or if the
        partition has moved to another stream or member.
        """
        return self._stream.skip_damaged()

    def __repr__(self) -> str:
        return f"<KafkaStream {self.thread_id}{', ended' if self._stream.is_closed else ''}>"
