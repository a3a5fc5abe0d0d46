"""The rules for a group with a coordinator, on hand-made histories: one test for each."""

from __future__ import annotations

import pytest

from kafka08.simulation.group_history import GroupHistory
from kafka08.structs import TopicPartition

TP, OTHER = TopicPartition("t", 0), TopicPartition("t", 1)


class Group:
    """A history, and what was wrong with it: "a" was assigned TP and handed offsets 0 to 4."""

    def __init__(self, *, is_safe: bool = True) -> None:
        self.wrong: list[str] = []
        self.history = GroupHistory(self.wrong.append, is_safe=is_safe)
        self.history.assigned("a", [TP])
        for offset in range(5):
            self.history.handed("a", TP, offset)
            self.history.processed(TP, offset)


@pytest.fixture
def group() -> Group:
    return Group()


def test_a_sound_history(group: Group) -> None:
    """A successor may begin at the committed offset, and anywhere from there to the last message
    that a member received."""
    history = group.history
    history.committed("a", {TP: 3})
    history.revoked("a", [TP])
    history.assigned("b", [TP])
    for offset in (3, 4, 5):
        history.handed("b", TP, offset)
        history.processed(TP, offset)
    assert group.wrong == []
    assert (history.count, history.repetitions) == (6, 2)
    assert history.missing(TP, range(8)) == {6, 7}


def test_1_only_of_partitions_that_it_has(group: Group) -> None:
    """A member that receives messages of a partition that it does not own, or owns no more, breaks
    rule 1."""
    group.history.handed("a", OTHER, 0)
    group.history.revoked("a", [TP])
    group.history.handed("a", TP, 5)
    assert [text.partition(" of a ")[2] for text in group.wrong] == (
        ["partition that it does not own"] * 2
    )


@pytest.mark.parametrize("offset", [4, 6])
def test_2_one_after_the_other(group: Group, offset: int) -> None:
    """A member whose last message was 4 must receive 5 next, whatever was committed."""
    group.history.handed("a", TP, offset)
    assert group.wrong == [f"a was handed [t,0] offset {offset} instead of 5"]


def test_3_nothing_is_skipped(group: Group) -> None:
    """A member that begins at 6 skips 5, which no member has processed, even if one had it."""
    group.history.handed("a", TP, 5)
    group.history.assigned("b", [TP])
    group.history.handed("b", TP, 6)
    assert group.wrong == ["b begins [t,0] at 6, but no member has processed 5"]


def test_3_commits_do_not_go_back(group: Group) -> None:
    """A member must not begin before an offset whose commit was acknowledged to the owner. Commits
    that a former owner hears of do not count: its successor may have begun before them."""
    group.history.committed("a", {TP: 3})
    group.history.assigned("b", [TP])
    group.history.committed("a", {TP: 5})
    group.history.handed("b", TP, 3)
    assert group.history.committed_offsets == {TP: 3}
    group.history.assigned("c", [TP])
    group.history.handed("c", TP, 4)
    assert group.wrong == []
    group.history.committed("c", {TP: 5})
    group.history.assigned("d", [TP])
    group.history.handed("d", TP, 4)
    assert group.wrong == [
        "d begins [t,0] at 4, though 5 was committed, by c; the partition belongs to d"
    ]


def test_4_committed_messages_were_processed(group: Group) -> None:
    """A commit behind a message that was handed out, but whose work is not done, breaks rule 4: it
    may lose the message."""
    group.history.handed("a", TP, 5)
    group.history.committed("a", {TP: 5})
    assert group.wrong == []
    group.history.committed("a", {TP: 6})
    assert group.wrong == ["a committed [t,0] offset 6, but no member has processed 5"]


def test_an_even_share() -> None:
    """No member may have more than one partition more than another, and none may be left out."""
    history = GroupHistory(lambda _: None, is_safe=True)
    partitions = [TopicPartition("t", number) for number in range(4)]
    history.assigned("a", partitions)
    assert history.uneven(1, partitions) == ""
    assert history.uneven(2, partitions) == "{'a': 4}"
    history.assigned("b", partitions[:1])
    assert history.uneven(2, partitions) == "{'b': 1, 'a': 3}"
    history.assigned("b", partitions[:2])
    assert history.uneven(2, partitions) == ""


def test_logs_that_lose_messages_excuse_gaps() -> None:
    """Where logs lose messages, a member may skip some, but must not receive those of a partition
    that it does not own."""
    group = Group(is_safe=False)
    group.history.handed("a", TP, 2)
    group.history.committed("a", {TP: 9})
    assert group.wrong == []
    group.history.handed("a", OTHER, 0)
    assert len(group.wrong) == 1
