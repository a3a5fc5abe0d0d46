"""EpochSearch: a follower keeps exactly what its leader has, whatever the elections were."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kafka08.broker.replication.epoch_search import EpochSearch
from kafka08.log.leader_epochs import NO_END_OFFSET, EpochStart, LeaderEpochs

Log = list[int]
"""The epoch of each record: two records are the same if offset and epoch are."""


def epochs_of(log: Log) -> LeaderEpochs:
    epochs = LeaderEpochs()
    for offset, epoch in enumerate(log):
        epochs.assign(epoch, offset)
    return epochs


def searched(follower: Log, leader: Log, asked: list[int] | None = None) -> int | None:
    """The common end that a follower finds by a leader's answers."""
    search = EpochSearch(epochs_of(follower).entries, len(follower))
    while not search.is_done:
        if asked is not None:
            asked.append(search.wanted)
        search.advance(epochs_of(leader).end_offset(search.wanted, len(leader)))
    return search.common_end


def common(one: Log, other: Log) -> int:
    same = (own == theirs for own, theirs in zip(one, other, strict=False))
    return next((n for n, is_same in enumerate(same) if not is_same), min(len(one), len(other)))


def test_two_elections_in_a_row() -> None:
    """The follower led in epoch 2 from offset 5 on, while the next leader still had records of
    epoch 1 above that. 0.11.0.3 takes the first answer, 10, and keeps five records that differ."""
    follower, leader = [1] * 5 + [2] * 15, [1] * 10 + [3] * 4
    assert 10 == epochs_of(leader).end_offset(2, len(leader))
    assert 5 == searched(follower, leader)


def test_two_questions_are_enough_without_a_difference() -> None:
    """The follower's latest epoch, and the one before, which tells whether the leader has it."""
    asked: list[int] = []
    assert 6 == searched([1, 1, 4, 4, 4, 4], [1, 1, 4, 4, 4, 4, 7], asked)
    assert [4, 3] == asked


def test_epochs_that_the_leader_does_not_know_yet_are_cut() -> None:
    """The leader answers -1 for them, as for those before its first."""
    assert 2 == searched([0, 0, 5, 6], [0, 0, 0])
    assert searched([5, 6], [1, 2]) is None
    assert searched([1], [2, 2]) is None


def test_a_log_without_epochs_has_no_question() -> None:
    """It is compared by its messages."""
    assert EpochSearch([], 9).is_done


def test_an_epoch_that_begins_with_the_leaders_log_is_common() -> None:
    """Its earlier records were deleted there: 0.11.0.3 answers -1 for the epoch before."""
    search = EpochSearch([EpochStart(4, 0), EpochStart(5, 50)], 80)
    search.advance(200)
    search.advance(NO_END_OFFSET)
    assert (True, 80) == (search.is_done, search.common_end)


elections = st.lists(
    st.tuples(
        st.integers(0, 2),  # who leads
        st.integers(0, 3),  # how many records it appends
        st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9)), max_size=3),  # who follows, up to
    ),
    max_size=12,
)


@given(elections)
def test_any_history_of_elections(drawn: list[tuple[int, int, list[tuple[int, int]]]]) -> None:
    """Three replicas, of which anyone may be elected, at any time, unclean elections too. A
    follower keeps all that its leader has, and nothing else; so their records of one epoch are the
    same for ever."""
    logs: list[Log] = [[], [], []]
    for epoch, (leader, count, followers) in enumerate(drawn):
        logs[leader] += [epoch] * count
        for follower, copied in followers:
            if follower == leader or not logs[follower]:
                continue
            own, theirs = logs[follower], logs[leader]
            end = searched(own, theirs)
            assert common(own, theirs) == (end or 0)
            logs[follower] = [*own[: end or 0], *theirs[end or 0 : (end or 0) + copied]]
