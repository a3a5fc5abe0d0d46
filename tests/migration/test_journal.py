"""The journal: states follow each other or refuse, and of two writers one loses."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.errors import MigrationError, NoNode
from kafka08.migration.facts import Snapshot
from kafka08.migration.journal import (
    PART_CHARACTERS,
    VALID_PREVIOUS,
    Entry,
    Journal,
    State,
    begun,
    decode,
    decode_offsets,
    encode,
    next_order,
    parts_of,
    write_journals,
)
from kafka08.migration.results import raised
from kafka08.structs import TopicPartition
from kafka08.zk import paths
from kafka08.zk.client import ZkClient
from kafka08.zk.migration_protocol import OffsetStorage, Order, decode_order
from kafka08.zk.operations import Operation, Set

SNAPSHOT = {TopicPartition("t", 0): (5, None)}
offsets = st.none() | st.integers(0, 2**63 - 1)
snapshots = st.dictionaries(
    st.builds(TopicPartition, st.text("abc._-", min_size=1, max_size=5), st.integers(0, 9)),
    st.tuples(offsets, offsets),
    max_size=5,
)


def begin(zk: ZkClient, snapshot: Snapshot, now_ms: int, previous: Entry | None) -> Entry:
    """A journal of group `g` that is written in COPYING."""
    return raised(write_journals(zk, {"g": begun("g", snapshot, now_ms, previous)})["g"])


@given(
    snapshots,
    st.sampled_from(State),
    st.none() | st.builds(Order, st.integers(1, 99), st.sampled_from(OffsetStorage)),
)
def test_the_journal_round_trips(
    snapshot: dict[TopicPartition, tuple[int | None, int | None]], state: State, order: Order | None
) -> None:
    """Any snapshot, state and order survive the znode, and members read the order in it."""
    entry = Entry(state, snapshot, 17, order)
    assert decode_order(encode(entry)) == order
    assert entry == decode(encode(entry))


def test_the_text_is_stable(zk: ZkClient) -> None:
    """Later versions of this tool must be able to read today's znode."""
    entry = begin(zk, SNAPSHOT, 17, None)
    assert entry.zk_version == 0
    assert zk.get(paths.migration("g")).data == (
        '{"version":1,"state":"copying","updated":"17","taken":"17","step":0,"storage":null,'
        '"offsets":{"t":{"0":[5,null]}}}'
    )
    of_earlier_release = (
        '{"version":1,"state":"copying","updated":"17","step":0,"storage":null,'
        '"offsets":{"t":{"0":[5,null]}}}'
    )
    assert decode(of_earlier_release) == Entry(State.COPYING, SNAPSHOT, 17)


def test_only_valid_states_follow(zk: ZkClient) -> None:
    """VALID_PREVIOUS applies to every pair of states, and the error says what to do."""
    journal = Journal(zk, "g")
    for previous, state in itertools.product([None, *State], State):
        entry = None if previous is None else Entry(previous, SNAPSHOT, 1)
        if previous in VALID_PREVIOUS[state]:
            journal.check(state, entry)
        else:
            with pytest.raises(MigrationError, match="the migration of g"):
                journal.check(state, entry)


def test_a_resumed_start_takes_a_new_snapshot(zk: ZkClient) -> None:
    """Its offsets may be months old. What the interrupted copy wrote is no offset from before it,
    so the former one stays. A new migration after a rollback takes a new one."""
    a, b, c = (TopicPartition("t", n) for n in range(3))
    journal = Journal(zk, "g")
    entry = begin(zk, {a: (5, None), b: (5, 9), c: (10, 8)}, 1, None)
    again = begin(zk, {a: (5, 5), b: (9, 9), c: (190, 190)}, 2, journal.read_entry())
    assert again.snapshot == {a: (5, None), b: (5, 9), c: (190, 190)}
    assert again.snapshot_ms == 2
    with pytest.raises(MigrationError, match="at the same time"):
        journal.enter(State.DUAL, entry, 3)
    for state in (State.DUAL, State.ROLLING_TO_NEWEST, State.RETURNING, State.ROLLED_BACK):
        again = journal.enter(state, again, 3)
    assert journal.read_entry() == again
    assert begin(zk, {}, 4, again).snapshot == {}


def test_a_removed_journal_is_not_created_again(zk: ZkClient) -> None:
    """One tool forgets the migration while another continues, which would write an unreadable,
    empty journal."""
    entry = begin(zk, SNAPSHOT, 1, None)
    zk.delete_recursive(paths.migration("g"))
    with pytest.raises(NoNode):
        Journal(zk, "g").enter(State.DUAL, entry, 2)
    assert not zk.exists(paths.migration("g"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        '{"version":2}',
        '{"version":1,"state":"x"}',
        encode(Entry(State.DUAL, {}, 1, parts=10**9)),
        encode(Entry(State.DUAL, {}, 1, snapshot_ms=10**30)),
    ],
)
def test_an_unreadable_journal_is_an_error(zk: ZkClient, text: str) -> None:
    """It does not count as "no migration has begun"."""
    zk.create(paths.migration("g"), text)
    with pytest.raises(MigrationError, match="cannot be read"):
        Journal(zk, "g").read_entry()


def test_the_order_changes_only_if_members_must_act() -> None:
    """A new order exists exactly if members must commit to another store than before; other steps
    keep the order."""
    order = None
    seen = []
    for storage in (
        None,
        OffsetStorage.DUAL,
        OffsetStorage.DUAL,
        OffsetStorage.KAFKA,
        None,
        OffsetStorage.ZOOKEEPER,
    ):
        order = next_order(order, storage)
        seen.append(0 if order is None else order.step)
    assert seen == [0, 1, 1, 2, 2, 3]


def test_a_large_snapshot_is_stored_in_parts(zk: ZkClient) -> None:
    """60,000 offsets take more than a znode may have (the connection was lost again and again). A
    change of the state writes the journal alone; a new snapshot replaces the parts, and they go
    with the journal."""
    journal, parent = Journal(zk, "g"), paths.migration_snapshot("g")
    snapshot = {TopicPartition("t", n): (2**62 + n, None) for n in range(60_000)}
    entry = begin(zk, snapshot, 1, None)
    names = zk.children(parent)
    assert len(names) > 1
    texts = [zk.get(path).data or "" for path in (f"{parent}/{name}" for name in names)]
    assert max(map(len, [*texts, encode(entry)])) <= PART_CHARACTERS
    assert journal.read_entry() == entry
    assert entry.snapshot == snapshot
    for state in (State.DUAL, State.ROLLING_TO_NEWEST, State.RETURNING, State.ROLLED_BACK):
        entry = journal.enter(state, entry, 2)
    assert zk.children(parent) == names
    again = begin(zk, snapshot, 3, journal.read_entry())
    assert {name.partition("-")[0] for name in zk.children(parent)} == {"3"}
    zk.delete(f"{parent}/3-1")
    with pytest.raises(MigrationError, match=r"the part .*/3-1 of its snapshot is gone"):
        journal.read_entry()
    journal.remove(again)
    assert not zk.exists(parent)


def test_a_snapshot_in_parts_outlives_the_tool_before(
    zk: ZkClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another tool begins as soon as the first one has written or removed the journal, and even
    within the same millisecond: what the first one deletes after that are no parts of the second.
    """
    monkeypatch.setattr("kafka08.migration.journal.PART_CHARACTERS", 150)
    snapshot = {TopicPartition("t", n): (n, None) for n in range(9)}
    journal = Journal(zk, "g")
    entry = begin(zk, snapshot, 1, None)
    pipeline, multi = zk.pipeline, zk.multi

    def begin_another() -> None:
        monkeypatch.setattr(zk, "pipeline", pipeline)
        monkeypatch.setattr(zk, "multi", multi)
        begin(zk, snapshot, 2, journal.read_entry())

    def wrote(operations: Sequence[Operation], **options: bool) -> list[Any]:
        results = pipeline(operations, **options)
        if any(isinstance(one, Set) for one in operations):
            begin_another()
        return results

    def removed(operations: Sequence[Any]) -> list[Any]:
        results = multi(operations)
        begin_another()
        return results

    monkeypatch.setattr(zk, "pipeline", wrote)
    begin(zk, snapshot, 2, entry)
    found = journal.read_entry()
    assert found is not None
    assert snapshot == found.snapshot

    monkeypatch.setattr(zk, "multi", removed)
    journal.remove(found)
    assert found != (again := journal.read_entry())
    assert again is not None
    assert snapshot == again.snapshot


@given(snapshots)
def test_parts_are_the_whole_snapshot(
    snapshot: dict[TopicPartition, tuple[int | None, int | None]],
) -> None:
    """Whatever their number."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kafka08.migration.journal.PART_CHARACTERS", 150)
        found: dict[TopicPartition, tuple[int | None, int | None]] = {}
        for text in parts_of(snapshot):
            found |= decode_offsets(json.loads(text))
    assert found == snapshot
