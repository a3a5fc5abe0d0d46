"""OffsetCache: which record wins, what a load may change, and what expires when."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kafka08.broker.groups.offset_cache import LoadState, OffsetCache
from kafka08.protocol.offset_records import OffsetKey, OffsetValue
from kafka08.structs import OffsetAndMetadata

KEY = OffsetKey("g", "t", 0)
PARTITION = 42
HOUR_MS = 3_600_000


def value(offset: int, timestamp_ms: int = 0, expire_ms: int = -1) -> OffsetValue:
    return OffsetValue(OffsetAndMetadata(offset, "", timestamp_ms), expire_ms)


def loaded() -> OffsetCache:
    cache = OffsetCache()
    generation = cache.begin_load(PARTITION)
    assert generation is not None
    cache.finish_load(PARTITION, generation)
    return cache


def expired(cache: OffsetCache, now_ms: int) -> list[OffsetKey]:
    return cache.expired(PARTITION, cache.keys(PARTITION), now_ms, HOUR_MS)


def test_a_partition_goes_absent_loading_loaded_absent() -> None:
    """A partition passes through its three states in order."""
    cache = OffsetCache()
    assert cache.state(PARTITION) is LoadState.ABSENT
    generation = cache.begin_load(PARTITION)
    assert generation is not None
    assert cache.state(PARTITION) is LoadState.LOADING
    cache.finish_load(PARTITION, generation)
    assert cache.state(PARTITION) is LoadState.LOADED
    cache.drop(PARTITION)
    assert cache.state(PARTITION) is LoadState.ABSENT


def test_confirmed_leadership_does_not_load_again() -> None:
    """A new epoch under the same leader starts no load, since the log is the same."""
    cache = loaded()
    assert cache.begin_load(PARTITION) is None
    assert cache.state(PARTITION) is LoadState.LOADED


def test_a_commit_during_a_load_wins_over_the_older_record() -> None:
    """A commit during a load wins over the older record. In 0.8.2.2 the load overwrites the newer
    offset."""
    cache = OffsetCache()
    generation = cache.begin_load(PARTITION)
    assert generation is not None
    cache.apply(PARTITION, 100, KEY, value(7))
    cache.apply(PARTITION, 3, KEY, value(2))
    cache.apply(PARTITION, 4, KEY, None)
    cache.finish_load(PARTITION, generation)
    assert cache.get(PARTITION, KEY) == value(7)


def test_a_loaded_tombstone_deletes_only_earlier_records() -> None:
    """A tombstone deletes the record before it and not the one behind it, in whichever order they
    arrive."""
    cache = OffsetCache()
    generation = cache.begin_load(PARTITION)
    assert generation is not None
    other = KEY._replace(partition=1)
    cache.apply(PARTITION, 0, KEY, value(1))
    cache.apply(PARTITION, 1, KEY, None)
    cache.apply(PARTITION, 3, other, None)
    cache.apply(PARTITION, 2, other, value(5))
    cache.finish_load(PARTITION, generation)
    assert cache.get(PARTITION, KEY) is None
    assert cache.get(PARTITION, other) is None
    assert len(cache) == 0


def test_acknowledgements_in_the_wrong_order_end_in_log_order() -> None:
    """Of two commits in flight the one that was appended later wins."""
    cache = loaded()
    cache.apply(PARTITION, 11, KEY, value(2))
    cache.apply(PARTITION, 10, KEY, value(1))
    assert cache.get(PARTITION, KEY) == value(2)


def test_late_results_of_a_lost_partition_are_ignored() -> None:
    """A late acknowledgement or load does not restore a partition that was dropped."""
    cache = OffsetCache()
    old = cache.begin_load(PARTITION)
    assert old is not None
    cache.drop(PARTITION)
    cache.apply(PARTITION, 1, KEY, value(1))
    cache.finish_load(PARTITION, old)
    assert cache.state(PARTITION) is LoadState.ABSENT
    cache.begin_load(PARTITION)
    assert not cache.is_current(PARTITION, old)
    cache.finish_load(PARTITION, old)
    assert cache.state(PARTITION) is LoadState.LOADING


def test_expiry_by_commit_time() -> None:
    """Rule 2: an offset expires when strictly more than the retention has passed."""
    cache = loaded()
    cache.apply(PARTITION, 0, KEY, value(1, timestamp_ms=1000))
    assert [] == expired(cache, 1000 + HOUR_MS)
    assert [KEY] == expired(cache, 1001 + HOUR_MS)


def test_expiry_by_the_time_that_a_later_broker_stored() -> None:
    """Rule 1: the record's own expiry must have passed, however old the commit is."""
    cache = loaded()
    cache.apply(PARTITION, 0, KEY, value(1, timestamp_ms=0, expire_ms=10 * HOUR_MS))
    assert [] == expired(cache, 10 * HOUR_MS)
    assert [KEY] == expired(cache, 10 * HOUR_MS + 1)


def test_nothing_expires_while_its_next_commit_is_on_the_way() -> None:
    """Rule 3: an offset with a commit in flight does not expire, because the tombstone would follow
    the new offset and delete it."""
    cache = loaded()
    cache.apply(PARTITION, 0, KEY, value(1))
    first, second = (cache.begin_commit(PARTITION, [KEY]) for _ in range(2))
    cache.end_commit(PARTITION, first, [KEY])
    assert [] == expired(cache, 9 * HOUR_MS)
    cache.end_commit(PARTITION, second, [KEY])
    assert [KEY] == expired(cache, 9 * HOUR_MS)


def test_the_end_of_a_commit_from_before_the_load_ends_no_other() -> None:
    """A commit that waits for an fsync may fail after the partition has been loaded again. The next
    commit of its key is still on the way then."""
    cache = loaded()
    before = cache.begin_commit(PARTITION, [KEY])
    cache.drop(PARTITION)
    generation = cache.begin_load(PARTITION)
    assert generation is not None
    cache.apply(PARTITION, 0, KEY, value(1))
    cache.finish_load(PARTITION, generation)
    now = cache.begin_commit(PARTITION, [KEY])
    cache.end_commit(PARTITION, before, [KEY])
    assert [] == expired(cache, 9 * HOUR_MS)
    cache.end_commit(PARTITION, now, [KEY])
    assert [KEY] == expired(cache, 9 * HOUR_MS)


def test_nothing_expires_while_loading() -> None:
    """No offset expires during a load, which may bring a newer record."""
    cache = OffsetCache()
    cache.begin_load(PARTITION)
    cache.apply(PARTITION, 0, KEY, value(1))
    assert [] == expired(cache, 9 * HOUR_MS)


records = st.tuples(st.sampled_from(["a", "b"]), st.none() | st.integers(0, 9))


@given(log=st.lists(records, max_size=12), data=st.data())
def test_any_mix_of_load_and_commits_ends_as_the_log_says(
    log: list[tuple[str, int | None]], data: st.DataObject
) -> None:
    """The model is a dict to which the log is applied in order. The load brings records in that
    order. An acknowledgement arrives at any time before the end of the load, or never."""
    cache = OffsetCache()
    generation = cache.begin_load(PARTITION)
    assert generation is not None
    model: dict[str, int] = {}
    for offset, (group, committed) in enumerate(log):
        early = data.draw(st.integers(offset, len(log) - 1))
        for number in (early, offset):
            early_group, early_value = log[number]
            cache.apply(
                PARTITION,
                number,
                OffsetKey(early_group, "t", 0),
                None if early_value is None else value(early_value),
            )
        if committed is None:
            model.pop(group, None)
        else:
            model[group] = committed
    cache.finish_load(PARTITION, generation)
    found = {group: cache.get(PARTITION, OffsetKey(group, "t", 0)) for group in ("a", "b")}
    assert {g: v.committed.offset for g, v in found.items() if v is not None} == model


def test_offsets_of_a_transaction_wait_for_its_end() -> None:
    """They are applied after a commit, and dropped after an abort; each producer has its own.
    Meanwhile they do not expire, and the group is not removed."""
    for commits in (True, False):
        cache = loaded()
        cache.apply(PARTITION, 1, KEY, value(1))
        cache.add_to_transaction(PARTITION, 7, 2, KEY, value(2))
        cache.add_to_transaction(PARTITION, 7, 3, KEY, value(3))
        cache.end_transaction(PARTITION, 8, commits=True)
        assert value(1) == cache.get(PARTITION, KEY)
        assert [] == expired(cache, 2 * HOUR_MS)
        cache.end_transaction(PARTITION, 7, commits=commits)
        assert value(3 if commits else 1) == cache.get(PARTITION, KEY)
        assert [KEY] == expired(cache, 2 * HOUR_MS)
        cache.end_transaction(PARTITION, 7, commits=True)
        assert value(3 if commits else 1) == cache.get(PARTITION, KEY)


def test_what_is_later_in_the_log_than_an_offset_of_a_transaction_wins() -> None:
    """Whatever the place of the marker: a plain commit, another transaction's offset, a tombstone
    (captured: offset-fetch-plain-written-after-pending)."""
    cache = loaded()
    cache.add_to_transaction(PARTITION, 7, 2, KEY, value(2))
    cache.apply(PARTITION, 3, KEY, value(3))
    cache.end_transaction(PARTITION, 7, commits=True)
    assert value(3) == cache.get(PARTITION, KEY)
    cache.add_to_transaction(PARTITION, 7, 5, KEY, value(5))
    cache.add_to_transaction(PARTITION, 8, 6, KEY, value(6))
    cache.end_transaction(PARTITION, 8, commits=True)
    cache.end_transaction(PARTITION, 7, commits=True)
    assert value(6) == cache.get(PARTITION, KEY)
    cache.add_to_transaction(PARTITION, 7, 8, KEY, value(8))
    cache.apply(PARTITION, 9, KEY, None)
    cache.end_transaction(PARTITION, 7, commits=True)
    assert cache.get(PARTITION, KEY) is None
    assert not cache.has_group(PARTITION, "g")


def test_a_tombstone_of_an_offset_in_a_transaction_outlives_the_load() -> None:
    """The transaction may be committed after the load, which has read both records."""
    cache = OffsetCache()
    generation = cache.begin_load(PARTITION)
    assert generation is not None
    cache.add_to_transaction(PARTITION, 7, 2, KEY, value(2))
    cache.apply(PARTITION, 3, KEY, None)
    cache.finish_load(PARTITION, generation)
    assert ["g"] == cache.groups_of(PARTITION)
    cache.end_transaction(PARTITION, 7, commits=True)
    assert cache.get(PARTITION, KEY) is None
    assert [] == cache.groups_of(PARTITION)
