"""The rules for what a mirror's target has."""

from __future__ import annotations

from kafka08.kernel.types import NO_TIMESTAMP
from kafka08.simulation.mirror_load import REFUSED_BYTES, Copied, Copies
from kafka08.structs import TopicPartition

TP = TopicPartition("t", 0)


class Judged:
    """Copies of one partition of the source, and the violations."""

    def __init__(self, *, refuses: bool = False, keeps: bool = False) -> None:
        self.found: list[str] = []
        self.copies = Copies(self.found.append, refuses=refuses, keeps=keeps)
        self.source: list[Copied] = []

    def sent(self, *messages: tuple[bytes | None, bytes, int]) -> None:
        for key, value, at_ms in messages:
            self.source.append(Copied(len(self.source), key, value, at_ms))
            self.copies.known(TP.partition, self.source[-1])

    def copied(self, partition: int, *messages: tuple[bytes | None, bytes, int]) -> None:
        for offset, (key, value, at_ms) in enumerate(messages):
            self.copies.copied(partition, Copied(offset, key, value, at_ms))

    def commit(self, *, is_ordered: bool = True) -> list[str]:
        self.copies.committed(TP, self.source, is_ordered=is_ordered)
        return self.found


A, B = (b"k", b"a", 5), (b"k", b"b", 6)


def test_copies_that_are_as_the_source_break_no_rule() -> None:
    """Also when some were copied again: their last copies are in order."""
    judged = Judged()
    judged.sent(A, B)
    judged.copied(1, A, B, A, B)
    assert judged.commit() == []
    assert judged.copies.invented() == ""


def test_a_commit_ahead_of_the_target_is_found() -> None:
    """A message was committed that the target does not have."""
    judged = Judged()
    judged.sent(A, B)
    judged.copied(0, A)
    [text] = judged.commit()
    assert "offset 1 b'b', which is not at the target" in text


def test_only_a_large_message_may_be_refused() -> None:
    """The target refuses messages above its limit, and mirrors skip them."""
    judged = Judged(refuses=True)
    judged.sent((None, b"x" * REFUSED_BYTES, 5), A)
    [text] = judged.commit()
    assert "offset 1" in text


def test_another_key_or_timestamp_is_found() -> None:
    """Each copy has the key of its message, and its timestamp if it has one."""
    for copy in ((b"l", b"a", 5), (b"k", b"a", 7)):
        judged = Judged()
        judged.sent(A)
        judged.copied(0, copy)
        assert len(judged.commit()) == 1
    judged = Judged()
    judged.sent((b"k", b"a", NO_TIMESTAMP))
    judged.copied(0, A)
    assert judged.commit() == []


def test_one_key_in_two_partitions_is_found() -> None:
    """The messages of one key are in one partition."""
    judged = Judged()
    judged.sent(A, B)
    judged.copied(0, A)
    judged.copied(1, B)
    assert len(judged.commit()) == 1


def test_another_partition_than_the_kept_one_is_found() -> None:
    """With keep_partitions a message is in the partition of the same number."""
    judged = Judged(keeps=True)
    judged.sent(A)
    judged.copied(1, A)
    assert len(judged.commit()) == 1


def test_last_copies_out_of_order_are_found() -> None:
    """Where one mirror has copied them, and the source has each once."""
    judged = Judged()
    judged.sent(A, B)
    judged.copied(0, A, B, A)
    assert judged.commit(is_ordered=False) == []
    assert len(judged.commit()) == 1


def test_a_message_that_the_source_does_not_have_is_found() -> None:
    """The target has nothing else."""
    judged = Judged()
    judged.copied(0, A)
    assert "invented" in judged.copies.invented()
