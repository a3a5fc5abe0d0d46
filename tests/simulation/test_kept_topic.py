"""The rules for a topic of which brokers do not keep everything, with sound histories and not."""

from __future__ import annotations

from kafka08.simulation.kept_topic import COMPACT, DELETE, RETENTION_BYTES, KeptTopic

LARGE = RETENTION_BYTES


def kept(cleanup: str, *acknowledged: bytes, unknown: tuple[bytes, ...] = ()) -> KeptTopic:
    """A topic to which these messages were written, and whose reader has read all of them."""
    found = KeptTopic(cleanup)
    found.acknowledged += acknowledged
    found.unknown |= {*unknown}
    for offset, value in enumerate([*acknowledged, *unknown]):
        found.read(offset, value, offset)
    return found


def problems(of: KeptTopic, final: dict[int, bytes], log_bytes: int = LARGE) -> list[str]:
    """The first word of each problem."""
    return [text.split(":")[0] for text in of.problems(final, log_bytes)]


def test_compaction_keeps_the_last_acknowledged_message_of_each_key() -> None:
    """Or a later one whose outcome its producer does not know."""
    topic = kept(COMPACT, b"a/0", b"b/1", b"a/2", unknown=(b"b/3",))
    assert problems(topic, {1: b"b/1", 2: b"a/2"}) == []
    assert problems(topic, {2: b"a/2", 3: b"b/3"}) == []
    assert problems(topic, {0: b"a/0", 1: b"b/1"}) == ["compacted"]
    assert problems(topic, {2: b"a/2"}) == ["compacted"]


def test_what_a_tombstone_has_deleted_does_not_come_back() -> None:
    """The tombstone itself may go. One whose outcome is unknown may have deleted the message."""
    topic = kept(COMPACT, b"a/0", b"b/1", b"a/")
    for left in ({1: b"b/1"}, {1: b"b/1", 2: b"a/"}):
        assert problems(topic, left) == []
    assert problems(topic, {0: b"a/0", 1: b"b/1"}) == ["compacted"]
    assert problems(kept(COMPACT, b"a/0", unknown=(b"a/",)), {}) == []


def test_retention_leaves_the_last_messages() -> None:
    """All after the first that is left, and as many bytes as it must, if it has deleted any."""
    topic = kept(DELETE, b"a/0", b"a/1", b"a/2", unknown=(b"a/3",))
    whole = {0: b"a/0", 1: b"a/1", 2: b"a/2"}
    assert problems(topic, whole, 10) == []
    assert problems(topic, {2: b"a/2"}) == []
    assert problems(topic, {2: b"a/2", 3: b"a/3"}) == []
    assert len(problems(topic, {2: b"a/2"}, LARGE - 1)) == 1
    assert problems(topic, {0: b"a/0", 2: b"a/2"}) == ["lost"]
    assert problems(topic, {0: b"a/0", 1: b"a/1"}) == ["lost"]


def test_a_reader_misses_nothing_that_is_left() -> None:
    """It goes forward by gaps of compaction alone, and reads each message as it stays."""
    topic = kept(COMPACT, b"a/0")
    assert len(problems(topic, {0: b"a/0", 1: b"b/9"})) == 2  # not read, and not written
    topic.read(5, b"a/0", 3)
    assert problems(topic, {0: b"a/0"}) == []
    topic.read(2, b"a/0", 3)
    assert len(problems(topic, {0: b"a/0"})) == 1
    assert len(problems(kept(DELETE, b"a/0"), {0: b"a/1"})) == 3  # changed, invented and lost
    gap = kept(DELETE, b"a/0")
    gap.read(5, b"a/0", 3)
    assert len(problems(gap, {0: b"a/0"})) == 1


def test_a_reader_may_miss_what_another_replica_has_compacted() -> None:
    """A later message of the same key, which it has read, is enough; not for retention."""
    left = {0: b"a/0", 1: b"b/1", 2: b"a/2"}
    for cleanup, missed, count in ((COMPACT, 0, 0), (COMPACT, 1, 1), (DELETE, 0, 1)):
        topic = kept(cleanup, *left.values())
        del topic.reads[missed]
        assert len(problems(topic, left)) == count
