"""ProtocolVotes: every member supports a candidate; a member votes for the first candidate in its
list."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kafka08.broker.groups.group_events import Protocols
from kafka08.broker.groups.protocol_votes import ProtocolVotes


def protocols(*names: str) -> Protocols:
    return tuple((name, b"") for name in names)


def votes_of(*members: Protocols) -> ProtocolVotes:
    votes = ProtocolVotes()
    for member in members:
        votes.add(member)
    return votes


def test_most_first_votes_win() -> None:
    """Two of four members vote for p2, as captured from 0.10.2.2 (vote-join-*)."""
    members = [
        protocols("p1", "p2"),
        protocols("p2", "p1", "p3"),
        protocols("p3", "p2", "p1"),
        protocols("p2", "p3", "p1"),
    ]
    assert votes_of(*members).choose(members) == "p2"


def test_a_protocol_that_one_member_lacks_gets_no_vote() -> None:
    """If a member lacks a protocol, the members that list it vote for their next one."""
    members = [protocols("a", "b"), protocols("a", "b"), protocols("b")]
    assert votes_of(*members).choose(members) == "b"


def test_a_member_without_a_candidate_is_not_accepted() -> None:
    """A member that shares no candidate is refused, and so is one without protocols, even by an
    empty group."""
    votes = votes_of(protocols("a", "b"), protocols("a"))
    assert votes.accepts(protocols("c", "a"))
    assert not votes.accepts(protocols("b", "c"))
    assert not ProtocolVotes().accepts(())
    assert ProtocolVotes().accepts(protocols("c"))


NAMES = st.lists(st.sampled_from("abcd"), min_size=1, max_size=5)


@given(st.lists(NAMES, min_size=1, max_size=6), NAMES)
def test_counts_are_those_of_the_members_that_are_left(
    lists: list[list[str]], gone: list[str]
) -> None:
    """Counts are those of the present members: after members are removed, or join with other
    protocols, or name one twice. Every accepted member leaves at least one candidate."""
    members = [protocols(*names) for names in lists]
    common = set.intersection(*map(set, lists))
    votes = votes_of(*members)
    if common:
        assert votes.choose(members) in common
    votes.add(protocols(*gone))
    if left := common & set(gone):
        assert votes.choose([*members, protocols(*gone)]) in left
    votes.remove(protocols(*gone))
    votes.replace(members[0], protocols(*gone))
    assert all(votes.accepts(protocols(n)) for n in set.intersection(*map(set, [gone, *lists[1:]])))
    votes.replace(protocols(*gone), members[0])
    for name in "abcd":
        assert (name in common) == votes.accepts(protocols(name))
    if common:
        chosen = votes.choose(members)
        first = [next(name for name in names if name in common) for names in lists]
        assert first.count(chosen) == max(map(first.count, first))
