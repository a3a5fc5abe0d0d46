"""The leader selectors, rule by rule. Numbers in the names are those in the docstrings of the
selectors."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.broker.controller.leader_selectors import (
    Election,
    ElectionFailed,
    ElectionNotNeeded,
    elect_controlled_shutdown,
    elect_new,
    elect_offline,
    elect_preferred,
    elect_reassigned,
    with_next_epoch,
    without_replica,
)
from kafka08.structs import LeaderAndIsr

CURRENT = LeaderAndIsr(leader=1, leader_epoch=4, isr=(1, 2, 3), zk_version=9, controller_epoch=6)
EPOCH = 7


def elected(leader: int, isr: tuple[int, ...]) -> LeaderAndIsr:
    """The result of an election from CURRENT: next leader epoch, this controller's epoch."""
    return LeaderAndIsr(leader, 5, isr, 9, EPOCH)


class TestNew:
    def test_1_2_3_first_live_replica_leads_and_all_live_ones_are_in_sync(self) -> None:
        """Rules 1 to 3 use the order of the assignment, not of the ids."""
        election = elect_new((3, 1, 2), {1, 2}, controller_epoch=EPOCH)
        assert election == Election(LeaderAndIsr(1, 0, (1, 2), -1, EPOCH), (1, 2))

    def test_4_no_live_replica(self) -> None:
        """A partition without a live replica gets no state."""
        with pytest.raises(ElectionFailed, match=r"\[3,1\].*\[2\]"):
            elect_new((3, 1), {2}, controller_epoch=EPOCH)


class TestOffline:
    def elect(
        self,
        assignment: tuple[int, ...],
        live: set[int],
        current: LeaderAndIsr = CURRENT,
        unclean: bool = True,
    ) -> Election:
        return elect_offline(
            assignment, live, current, controller_epoch=EPOCH, unclean_allowed=unclean
        )

    def test_1_first_in_assignment_order_leads_and_isr_keeps_its_own_order(self) -> None:
        """The leader is the first of the assignment. The ISR keeps its order."""
        assert self.elect((3, 2, 1), {2, 3}) == Election(elected(3, (2, 3)), (3, 2))

    def test_1_a_live_replica_outside_the_isr_is_passed_over(self) -> None:
        """While an ISR member lives, no other replica leads."""
        current = replace(CURRENT, isr=(1, 2))
        assert self.elect((3, 1, 2), {2, 3}, current) == Election(elected(2, (2,)), (3, 2))

    def test_2_unclean_takes_the_first_live_replica_alone(self) -> None:
        """If the whole ISR is dead, the result says that messages may be lost."""
        current = replace(CURRENT, isr=(1,))
        assert self.elect((1, 3, 2), {2, 3}, current) == Election(
            elected(3, (3,)), (3, 2), unclean=True
        )

    def test_3_unclean_not_allowed(self) -> None:
        """The partition waits for a member of its ISR."""
        with pytest.raises(ElectionFailed, match="unclean leader election is not allowed"):
            self.elect((1, 3), {3}, replace(CURRENT, isr=(1,)), unclean=False)

    def test_3_no_live_replica_even_if_unclean(self) -> None:
        """Without a live replica there is no leader."""
        with pytest.raises(ElectionFailed, match="no assigned replica"):
            self.elect((1, 3), {2}, replace(CURRENT, isr=()))


class TestReassigned:
    def test_1_2_first_new_replica_in_sync_leads_and_the_isr_stays(self) -> None:
        """The old replicas leave the ISR in a later step."""
        election = elect_reassigned((4, 3, 2), {2, 3, 4}, CURRENT, controller_epoch=EPOCH)
        assert election == Election(elected(3, (1, 2, 3)), (4, 3, 2))

    def test_3_none_in_sync(self) -> None:
        """A new replica must be in the ISR to lead."""
        with pytest.raises(ElectionFailed, match=r"\[4,5\]"):
            elect_reassigned((4, 5), {4, 5}, CURRENT, controller_epoch=EPOCH)

    def test_3_in_sync_but_dead(self) -> None:
        """A dead replica cannot lead."""
        with pytest.raises(ElectionFailed):
            elect_reassigned((3,), {1, 2}, CURRENT, controller_epoch=EPOCH)


class TestPreferred:
    def test_1_leads_already(self) -> None:
        """If the preferred replica leads already, nothing is written."""
        with pytest.raises(ElectionNotNeeded):
            elect_preferred((1, 2), {1, 2}, CURRENT, controller_epoch=EPOCH)

    def test_2_takes_over(self) -> None:
        """The ISR stays, and all assigned replicas get the request, dead ones too."""
        election = elect_preferred((2, 1, 3), {1, 2}, CURRENT, controller_epoch=EPOCH)
        assert election == Election(elected(2, (1, 2, 3)), (2, 1, 3))

    @pytest.mark.parametrize(("live", "isr"), [({1}, (1, 2)), ({1, 2}, (1,))])
    def test_3_dead_or_out_of_sync(self, live: set[int], isr: tuple[int, ...]) -> None:
        """The preferred replica must be alive and in the ISR."""
        with pytest.raises(ElectionFailed, match="preferred replica 2"):
            elect_preferred((2, 1), live, replace(CURRENT, isr=isr), controller_epoch=EPOCH)


class TestControlledShutdown:
    def test_1_2_head_of_the_remaining_isr_leads(self) -> None:
        """The stopping broker leaves the ISR and gets the request; dead replicas do not."""
        election = elect_controlled_shutdown(
            (1, 2, 3, 4), {1, 2, 3}, {1}, CURRENT, controller_epoch=EPOCH
        )
        assert election == Election(elected(2, (2, 3)), (1, 2, 3))

    def test_1_every_stopping_broker_leaves(self) -> None:
        """Two brokers may stop at once."""
        election = elect_controlled_shutdown(
            (1, 2, 3), {1, 2, 3}, {1, 2}, CURRENT, controller_epoch=EPOCH
        )
        assert election.state == elected(3, (3,))

    def test_1_one_that_has_stopped_does_not_lead(self) -> None:
        """A leader adds it to the ISR, unless it has noticed that it is gone."""
        election = elect_controlled_shutdown(
            (1, 2, 3), {1, 3}, {1}, CURRENT, controller_epoch=EPOCH
        )
        assert election == Election(elected(3, (2, 3)), (1, 3))
        with pytest.raises(ElectionFailed, match="no other live replica"):
            elect_controlled_shutdown((1, 2, 3), {1, 3}, {1, 3}, CURRENT, controller_epoch=EPOCH)

    def test_1_in_assignment_order(self) -> None:
        """From 0.10.1 on the ISR's order does not matter, only the assignment's; both take a member
        of the ISR that is alive."""
        state = replace(CURRENT, isr=(1, 3, 4, 2))
        for in_assignment_order, leader in ((False, 3), (True, 2)):
            election = elect_controlled_shutdown(
                (1, 5, 4, 2, 3),
                {1, 2, 3, 5},
                {1},
                state,
                controller_epoch=EPOCH,
                in_assignment_order=in_assignment_order,
            )
            assert election == Election(elected(leader, (3, 4, 2)), (1, 5, 2, 3))

    def test_3_no_other_replica_in_sync(self) -> None:
        """Without another ISR member the election fails and the leader stays."""
        with pytest.raises(ElectionFailed, match="besides shutting down brokers"):
            elect_controlled_shutdown(
                (1, 2), {1, 2}, {1}, replace(CURRENT, isr=(1,)), controller_epoch=EPOCH
            )


class TestWithoutReplica:
    def shrink(self, current: LeaderAndIsr, replica: int, unclean: bool = True) -> LeaderAndIsr:
        return without_replica(current, replica, controller_epoch=EPOCH, unclean_allowed=unclean)

    def test_0_not_in_the_isr_changes_nothing(self) -> None:
        """The result is the same object, so nothing is written."""
        assert self.shrink(CURRENT, 9) is CURRENT

    def test_1_the_leader_leaves_without_a_successor(self) -> None:
        """A separate decision elects the next leader."""
        assert self.shrink(CURRENT, 1) == elected(-1, (2, 3))

    def test_2_the_last_member_leaves_when_unclean_is_allowed(self) -> None:
        """The result is leader -1 and an empty ISR, as captured from 0.8.2.2."""
        assert self.shrink(replace(CURRENT, isr=(1,)), 1) == elected(-1, ())

    def test_2_the_last_member_stays_when_unclean_is_not_allowed(self) -> None:
        """The last member stays, so that it can lead again when it is back."""
        assert self.shrink(replace(CURRENT, isr=(1,)), 1, unclean=False) == elected(-1, (1,))

    def test_3_a_follower_leaves_and_the_epoch_rises(self) -> None:
        """leader_epoch rises to 1, as captured for fk-a/0 after broker 2 was gone."""
        assert self.shrink(CURRENT, 2) == elected(1, (1, 3))


def test_with_next_epoch_changes_nothing_else() -> None:
    """Leader and ISR stay; only the epochs change."""
    assert with_next_epoch(CURRENT, controller_epoch=EPOCH) == elected(1, (1, 2, 3))


replicas = st.lists(st.integers(0, 5), min_size=1, max_size=4, unique=True).map(tuple)


@given(
    assignment=replicas,
    isr=replicas,
    live=st.sets(st.integers(0, 5)),
    unclean=st.booleans(),
    leader=st.integers(-1, 5),
)
def test_an_offline_election_never_picks_a_dead_leader(
    assignment: tuple[int, ...],
    isr: tuple[int, ...],
    live: set[int],
    unclean: bool,
    leader: int,
) -> None:
    """For any input the leader is alive, assigned and in the new ISR. The new ISR is alive. A clean
    election only shrinks the ISR. The leader epoch rises by one."""
    current = replace(CURRENT, leader=leader, isr=isr)
    try:
        election = elect_offline(
            assignment, live, current, controller_epoch=EPOCH, unclean_allowed=unclean
        )
    except ElectionFailed:
        return
    state = election.state
    assert state.leader in live
    assert state.leader in assignment
    assert state.leader in state.isr
    assert set(state.isr) <= live
    assert election.unclean or set(state.isr) <= set(isr)
    assert unclean or not election.unclean
    assert state.leader_epoch == current.leader_epoch + 1
    assert set(election.receivers) == live & set(assignment)
