"""Replica placement by the rules of kafka.admin.AdminUtils 0.8.2.2."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.assignment import (
    PARTITIONS_MAX,
    REPLICAS_MAX,
    assign_added_partitions,
    assign_replicas,
    check_assignment,
    parse_assignment,
    racks_if_all_known,
)
from kafka08.errors import AdminError, ZooKeeperError
from kafka08.zk import nodes


def test_the_example_of_the_source() -> None:
    """The assignment equals AdminTest.testReplicaAssignment of 0.8.2.2: ten partitions, three
    replicas, five brokers."""
    expected = {
        0: (0, 1, 2),
        1: (1, 2, 3),
        2: (2, 3, 4),
        3: (3, 4, 0),
        4: (4, 0, 1),
        5: (0, 2, 3),
        6: (1, 3, 4),
        7: (2, 4, 0),
        8: (3, 0, 1),
        9: (4, 1, 2),
    }
    assert assign_replicas(range(5), 10, 3, start_index=0, shift=0) == expected


SIX = {0: "rack1", 1: "rack3", 2: "rack3", 3: "rack2", 4: "rack2", 5: "rack1"}


def test_the_example_of_the_source_for_racks() -> None:
    """One broker of each rack in turn is 0, 3, 1, 5, 4, 2, as in AdminUtils 0.10.2.2."""
    expected = {
        0: (0, 3, 1),
        1: (3, 1, 5),
        2: (1, 5, 4),
        3: (5, 4, 2),
        4: (4, 2, 0),
        5: (2, 0, 3),
        6: (0, 4, 2),
    }
    assert expected == assign_replicas(range(6), 7, 3, start_index=0, shift=0, racks=SIX)


@given(
    racks=st.dictionaries(st.integers(0, 30), st.sampled_from("abcd"), min_size=1, max_size=12),
    data=st.data(),
)
def test_each_rack_has_a_replica_or_at_most_one(racks: dict[int, str], data: st.DataObject) -> None:
    """Each broker has at most one, and leaders are distributed evenly."""
    factor = data.draw(st.integers(1, len(racks)))
    draw = random.Random(data.draw(st.integers()))
    partitions = 2 * len(racks)
    assigned = assign_replicas(sorted(racks), partitions, factor, racks=racks, rng=draw)
    for replicas in assigned.values():
        assert factor == len(set(replicas))
        counts = Counter(racks[replica] for replica in replicas)
        if factor >= len(set(racks.values())):
            assert set(racks.values()) == set(counts)
        else:
            assert {1} == set(counts.values())
    assert {2} == set(Counter(replicas[0] for replicas in assigned.values()).values())


def test_racks_of_some_brokers_alone_are_refused() -> None:
    """The error names the brokers; a broker that creates a topic by itself ignores the racks."""
    with pytest.raises(AdminError, match=r"brokers 2, 3 have no broker\.rack"):
        assign_replicas([1, 2, 3], 1, 1, racks={1: "a", 2: None}, rng=random.Random(1))
    assert {} == racks_if_all_known([1, 2], {1: "a", 2: None})
    assert SIX == racks_if_all_known(SIX, SIX)


def test_start_and_shift_are_drawn_in_this_order() -> None:
    """The start index first, then the shift, each below the number of brokers."""
    rng = random.Random(7)
    twin = random.Random(7)
    start, shift = twin.randrange(4), twin.randrange(4)
    drawn = assign_replicas([1, 2, 3, 4], 6, 2, rng=rng)
    assert drawn == assign_replicas([1, 2, 3, 4], 6, 2, start_index=start, shift=shift)


def test_added_partitions_continue_from_the_old_count() -> None:
    """Start and shift are the id of the first replica of partition 0, used as an index."""
    existing = {0: (1, 2), 1: (2, 1)}
    added = assign_added_partitions([1, 2, 3], existing, 4)
    assert added == assign_replicas([1, 2, 3], 2, 2, start_index=1, shift=1, first_partition=2)
    assert added == {2: (1, 3), 3: (2, 3)}


def test_added_partitions_must_be_more() -> None:
    """The count of a topic can only rise."""
    with pytest.raises(AdminError, match="can only be increased"):
        assign_added_partitions([1], {0: (1,), 1: (1,)}, 2)


@pytest.mark.parametrize(
    ("existing", "complaint"),
    [
        ({0: ()}, "Partition 0 of the topic has no replicas"),
        ({0: (1,), 2: (1,)}, "partitions are not numbered from 0"),
        ({1: (1,)}, "partitions are not numbered from 0"),
    ],
    ids=str,
)
def test_partitions_are_added_to_whole_topics(
    existing: dict[int, tuple[int, ...]], complaint: str
) -> None:
    """An assignment written by another client gives an error if it has no replicas to take the
    factor from, or if an added partition would replace an existing one."""
    with pytest.raises(AdminError, match=complaint):
        assign_added_partitions([1, 2], existing, 3)


@pytest.mark.parametrize(
    ("partitions", "factor", "text"),
    [
        (0, 1, "number of partitions must be larger than 0"),
        (2_000_000_000, 1, "at most 100000, not 2000000000"),
        (1, 0, "replication factor must be larger than 0"),
        (1, 3, "replication factor: 3 larger than available brokers: 2"),
    ],
)
def test_impossible_counts_are_refused(partitions: int, factor: int, text: str) -> None:
    """The messages are 0.8.2.2's, but for a count that no znode can hold: it would take this
    machine's memory before ZooKeeper refused it."""
    with pytest.raises(AdminError, match=text):
        assign_replicas([1, 2], partitions, factor, rng=random.Random(1))


@given(
    brokers=st.lists(st.integers(0, 1000), min_size=1, max_size=12, unique=True).map(sorted),
    partitions=st.integers(1, 60),
    data=st.data(),
)
def test_every_assignment_is_sound_and_even(
    brokers: list[int], partitions: int, data: st.DataObject
) -> None:
    """Replicas of a partition differ, and no broker leads two partitions more than another."""
    factor = data.draw(st.integers(1, len(brokers)))
    assigned = assign_replicas(brokers, partitions, factor, rng=random.Random(3))
    check_assignment(assigned, live=brokers)
    leaders = [replicas[0] for replicas in assigned.values()]
    led = [leaders.count(broker) for broker in brokers]
    assert max(led) - min(led) <= 1


def test_a_manual_assignment_is_parsed() -> None:
    """Colons separate replicas, commas partitions; blanks are allowed."""
    assert parse_assignment("0:1, 1:2,2:0") == {0: (0, 1), 1: (1, 2), 2: (2, 0)}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("0:1,2", "same number of replicas"),
        ("1:1", "duplicate entries"),
        ("", "not of the form"),
        ("a", "not of the form"),
        ("1:99999999999", r"0 to 2147483647: partition 0 has \[1, 99999999999\]"),
        ("1,-5", r"0 to 2147483647: partition 1 has \[-5\]"),
    ],
)
def test_a_bad_manual_assignment_is_refused(text: str, complaint: str) -> None:
    """Every reason is an AdminError that says it."""
    with pytest.raises(AdminError, match=complaint):
        parse_assignment(text)


def test_replicas_must_be_on_live_brokers() -> None:
    """Brokers that are not there are named."""
    with pytest.raises(AdminError, match=r"not available: \[9\] of partition 1"):
        check_assignment({0: (1,), 1: (9,)}, live=[1, 2])
    with pytest.raises(AdminError, match="numbered from 0"):
        check_assignment({1: (1,)})


def test_an_assignment_that_no_reader_takes_is_refused() -> None:
    """The bounds are those of the readers of a topic's znode."""
    most = {0: tuple(range(REPLICAS_MAX))}
    assert most == nodes.decode_assignment(nodes.encode_assignment(most))
    with pytest.raises(ZooKeeperError, match="1001 brokers, the limit is 1000"):
        nodes.decode_assignment(nodes.encode_assignment({0: range(REPLICAS_MAX + 1)}))
    check_assignment({0: range(REPLICAS_MAX)})
    with pytest.raises(AdminError, match="replicas of a partition must be at most 1000, not 1001"):
        check_assignment({0: range(REPLICAS_MAX + 1)})
    with pytest.raises(AdminError, match="number of partitions must be at most 100000, not 100001"):
        check_assignment(dict.fromkeys(range(PARTITIONS_MAX + 1), (1,)))
