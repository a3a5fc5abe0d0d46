"""The cooperative sticky assignor, and the bytes of its members."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kafka08.client.metadata import ClusterMetadata, PartitionInfo, TopicInfo
from kafka08.consumer.group.assignor_bytes import decode_subscription, encode_subscription
from kafka08.consumer.group.assignors import MemberSubscription
from kafka08.consumer.group.sticky import CooperativeStickyAssignor
from kafka08.structs import TopicPartition

ASSIGNOR = CooperativeStickyAssignor()
Owned = dict[str, tuple[TopicPartition, ...]]


def assigned(count: int, owned: Owned, generations: dict[str, int] | None = None) -> Owned:
    """Of one topic with `count` partitions."""
    subscriptions = {
        member: MemberSubscription(("t",), None, had, (generations or {}).get(member, 1))
        for member, had in owned.items()
    }
    found = ASSIGNOR.assign(cluster_of(count), subscriptions)
    return {member: tuple(one.partitions) for member, one in found.items()}


def cluster_of(count: int) -> ClusterMetadata:
    partitions = tuple(PartitionInfo(number, 1) for number in range(count))
    return ClusterMetadata(topics={"t": TopicInfo("t", None, partitions)})


def of(*numbers: int) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition("t", number) for number in numbers)


@given(st.integers(1, 20), st.lists(st.integers(0, 5), max_size=20), st.integers(1, 6))
def test_in_two_rounds_it_is_even(count: int, owners: list[int], members: int) -> None:
    """No partition has two owners in between; what stays is not interrupted."""
    owned: Owned = {f"m{n}": () for n in range(members)}
    for number, owner in enumerate(owners[:count]):
        if owner < members:
            owned[f"m{owner}"] += of(number)
    first = assigned(count, owned)
    for member, got in first.items():
        others = {tp for other, had in owned.items() if other != member for tp in had}
        assert not others & set(got)
    second = assigned(count, first)
    assert sorted(tp for got in second.values() for tp in got) == list(of(*range(count)))
    sizes = [len(got) for got in second.values()]
    assert max(sizes) - min(sizes) <= 1
    for member, got in first.items():
        assert set(got) <= set(second[member])


def test_claims_of_an_earlier_generation_do_not_count() -> None:
    """But nobody gets the partition before it is given up."""
    owned = {"m1": of(0, 1), "m2": of(1)}
    found = assigned(2, owned, {"m1": 3, "m2": 4})
    assert found == {"m1": of(0), "m2": ()}
    assert assigned(2, found) == {"m1": of(0), "m2": of(1)}


def test_of_two_equal_claims_none_is_believed() -> None:
    """Both give the partition up."""
    found = assigned(1, {"m1": of(0), "m2": of(0)})
    assert found == {"m1": (), "m2": ()}


def test_java_s_bytes() -> None:
    """Of Java 4.4, from a joining member; and ours, as Java before 3.2 and later reads them."""
    theirs = bytes.fromhex("0003000000010004636f6f7000000004ffffffff00000000ffffffffffff")
    assert decode_subscription(theirs) == MemberSubscription(("coop",), b"\xff" * 4, (), -1)
    ours = encode_subscription(ASSIGNOR, ["coop"], [TopicPartition("coop", 2)], 7)
    assert ours == bytes.fromhex(
        "0002 00000001 0004 636f6f70 00000004 00000007 "
        "00000001 0004 636f6f70 00000001 00000002 00000007"
    )
    found = decode_subscription(ours)
    assert (found.owned, found.generation) == ((TopicPartition("coop", 2),), 7)


def test_a_generation_in_user_data() -> None:
    """Members before Java 3.2 have it there alone."""
    of_2_8 = bytes.fromhex(
        "0001 00000001 0001 74 00000004 00000005 00000001 0001 74 00000001 00000000"
    )
    one = decode_subscription(of_2_8)
    assert one.owned == of(0)
    other = MemberSubscription(("t",), None, of(0), 4)
    found = ASSIGNOR.assign(cluster_of(1), {"m1": one, "m2": other})
    assert {member: got.partitions for member, got in found.items()} == {"m1": [], "m2": []}
    new = MemberSubscription(("t",), None, (), 4)
    again = ASSIGNOR.assign(cluster_of(2), {"m1": one, "m2": new})
    assert again["m1"].partitions == list(of(0))
