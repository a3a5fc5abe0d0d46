"""ControllerElection on a real ZooKeeper and on the model: there is never more than one
controller."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka08.errors import ZooKeeperError
from kafka08.zk import nodes, paths
from kafka08.zk.election import ControllerElection
from kafka08.zk.faults import expire_session
from kafka08.zk.session import SessionEvent
from tests.zk.conftest import WAIT_S, Inbox, Sessions


class Candidate:
    """The part of a broker that takes part in the election. The test takes its events from a
    queue."""

    def __init__(self, sessions: Sessions, broker_id: int) -> None:
        self.events: Inbox[str] = sessions.inbox()
        self.history: list[str] = []
        self.zk = sessions.client()
        self.zk.add_session_listener(self._on_session)
        self.zk.start()
        self.fails = False
        self.election = ControllerElection(
            self.zk,
            broker_id,
            post=lambda: self.events.put("changed"),
            on_elected=self._elected,
            on_resigned=lambda: self.history.append("resigned"),
        )

    def _on_session(self, event: SessionEvent) -> None:
        if event is SessionEvent.EXPIRED:
            self.events.put("expired")

    def _elected(self) -> None:
        if self.fails:
            raise ZooKeeperError("cannot")
        self.history.append("elected")

    def handle_until(self, wanted: bool) -> None:
        """Handles events, as a broker does, until this candidate is the controller, or no longer
        is."""
        while self.election.is_controller is not wanted:
            event = self.events.get(timeout=WAIT_S)
            if event == "expired":
                self.election.session_expired()
            else:
                self.election.refresh()


@pytest.fixture
def candidates(sessions: Sessions) -> Iterator[tuple[Candidate, Candidate]]:
    pair = Candidate(sessions, 1), Candidate(sessions, 2)
    yield pair
    for candidate in pair:
        candidate.zk.close()


def test_the_first_is_elected_and_the_second_knows_it(
    candidates: tuple[Candidate, Candidate],
) -> None:
    """The znode has the text of 0.8.2.2; the second candidate learns the controller's id."""
    first, second = candidates
    assert first.election.refresh() is True
    assert second.election.refresh() is False
    assert second.election.controller_id == 1
    node = nodes.decode_controller(first.zk.get(paths.CONTROLLER).data)
    assert node.broker_id == 1
    assert first.history == ["elected"]


def test_the_second_follows_when_the_first_goes(candidates: tuple[Candidate, Candidate]) -> None:
    """The second candidate's watch fires when the session of the first ends."""
    first, second = candidates
    first.election.refresh()
    second.election.refresh()
    first.zk.close()
    second.handle_until(True)
    assert second.history == ["elected"]


def test_a_controller_whose_session_expires_resigns(
    candidates: tuple[Candidate, Candidate],
) -> None:
    """A controller whose session expires resigns once. It may be elected again if no other broker
    is faster."""
    first, _ = candidates
    first.election.refresh()
    expire_session(first.zk)
    while first.history != ["elected", "resigned", "elected"]:
        event = first.events.get(timeout=WAIT_S)
        if event == "expired":
            first.election.session_expired()
        else:
            first.election.refresh()
    assert first.election.is_controller


def test_an_election_in_the_new_session_survives_late_news_of_the_expiry(
    candidates: tuple[Candidate, Candidate],
) -> None:
    """The event of /controller may arrive before the expiry. A broker that was elected again by
    then used to resign for good, and its own znode blocked every election."""
    first, _ = candidates
    first.election.refresh()
    expire_session(first.zk)
    while first.events.get(timeout=WAIT_S) != "expired":
        pass
    first.election.refresh()
    assert first.history == ["elected", "resigned", "elected"]
    assert first.election.session_expired() is True
    assert first.history == ["elected", "resigned", "elected"]


def test_a_znode_deleted_by_hand_forces_a_new_election(
    candidates: tuple[Candidate, Candidate],
) -> None:
    """Operators delete /controller to move the controller. The old one resigns before another is
    elected."""
    first, second = candidates
    first.election.refresh()
    second.election.refresh()
    first.zk.delete(paths.CONTROLLER)
    second.handle_until(True)
    first.handle_until(False)
    assert first.history == ["elected", "resigned"]
    assert first.election.controller_id == 2


def test_resigning_lets_the_other_in(candidates: tuple[Candidate, Candidate]) -> None:
    """resign() deletes the broker's own znode, never another's, and reports no event to the broker
    itself."""
    first, second = candidates
    first.election.refresh()
    second.election.refresh()
    second.election.resign()
    assert first.zk.exists(paths.CONTROLLER)
    first.election.resign()
    second.handle_until(True)
    assert first.history == ["elected"]


def test_a_broker_that_cannot_become_controller_resigns(
    candidates: tuple[Candidate, Candidate],
) -> None:
    """A broker that fails to start as controller resigns, so that another one can be elected."""
    first, second = candidates
    first.fails = True
    assert first.election.refresh() is False
    assert second.election.refresh() is True


def test_a_znode_of_our_id_from_an_earlier_session_is_not_ours(
    sessions: Sessions, candidates: tuple[Candidate, Candidate]
) -> None:
    """After a restart the znode of the earlier session may still exist. The broker becomes
    controller only after it is gone."""
    first, _ = candidates
    earlier = sessions.client()
    earlier.start()
    earlier.create(
        paths.CONTROLLER, nodes.encode_controller(nodes.ControllerNode(1, 5)), ephemeral=True
    )
    assert first.election.refresh() is False
    assert first.election.controller_id == 1
    earlier.close()
    first.handle_until(True)


def test_an_unreadable_controller_is_somebody(candidates: tuple[Candidate, Candidate]) -> None:
    """A /controller that cannot be read does not count as missing."""
    first, _ = candidates
    first.zk.create(paths.CONTROLLER, "what?")
    assert first.election.refresh() is False
    assert first.election.controller_id is None
