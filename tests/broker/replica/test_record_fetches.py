"""Fetches of followers: what a leader records of them, and which HWs they raise."""

from __future__ import annotations

import random
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from kafka08.broker.replica.replica_state import UNKNOWN_LOG_END
from tests.broker.replica.conftest import BUILDS, build_of
from tests.kernel.tails import File, a_tail

FOLLOWER_FIELDS = ("last_fetch", "last_caught_up", "log_end_offset", "leader_log_end")


def a_leader(kernel: ModuleType, name: str = "t-0", **fields: Any) -> Any:
    """Broker 1, which leads with the followers 2 and 3 and the LEO 40."""
    leader = kernel.LeaderState()
    values = {
        "topic_partition": name,
        "log": SimpleNamespace(active_segment=a_tail(kernel, File())),
        "is_queued": False,
        "high_watermark_max": 2**63 - 1,
        "followers": {n: kernel.FollowerReplica(n, 1.0) for n in (2, 3)},
        "isr": (1, 2, 3),
        "maximal_isr": (1, 2, 3),
        "is_leader": True,
        "high_watermark": 10,
    }
    for field, value in (values | fields).items():
        setattr(leader, field, value)
    return leader


def follower(leader: Any, broker_id: int) -> tuple[Any, ...]:
    return tuple(getattr(leader.followers[broker_id], field) for field in FOLLOWER_FIELDS)


def test_a_new_follower_is_unknown(kernel: ModuleType) -> None:
    """It counts as caught up when it was announced."""
    assert (1.0, 1.0, UNKNOWN_LOG_END, UNKNOWN_LOG_END) == follower(a_leader(kernel), 2)


def test_the_last_follower_raises_the_high_watermark(kernel: ModuleType) -> None:
    """To the smallest LEO of all; an offset that is known already is no news."""
    leader = a_leader(kernel)
    assert (["t-0"], [], []) == kernel.record_fetches([leader], [40], 2, 2.0)
    assert (["t-0"], ["t-0"], []) == kernel.record_fetches([leader], [33], 3, 3.0)
    assert ([], [], []) == kernel.record_fetches([leader], [33], 3, 4.0)
    assert 33 == leader.high_watermark


def test_the_log_start_of_a_follower_is_recorded(kernel: ModuleType) -> None:
    """Unknown at first, and after a fetch of a version without the field."""
    leader = a_leader(kernel)
    assert -1 == leader.followers[2].log_start_offset
    kernel.record_fetches([leader], [40], 2, 2.0, [12])
    assert 12 == leader.followers[2].log_start_offset
    kernel.record_fetches([leader], [40], 2, 3.0)
    assert -1 == leader.followers[2].log_start_offset
    with pytest.raises(ValueError, match="as many log starts"):
        kernel.record_fetches([leader], [40], 2, 3.0, [])


def test_a_follower_outside_the_isr_limits_nothing(kernel: ModuleType) -> None:
    """It is named, so that it may join."""
    leader = a_leader(kernel, isr=(1, 2), maximal_isr=(1, 2))
    assert (["t-0"], [], [leader]) == kernel.record_fetches([leader], [20], 3, 2.0)
    assert (["t-0"], ["t-0"], []) == kernel.record_fetches([leader], [30], 2, 2.0)
    assert 30 == leader.high_watermark


def test_a_follower_at_the_log_end_is_caught_up(kernel: ModuleType) -> None:
    """So it is, at its former fetch, with what the leader had then."""
    leader = a_leader(kernel)
    kernel.record_fetches([leader], [40], 2, 2.0)
    assert (2.0, 2.0, 40, 40) == follower(leader, 2)
    leader.log.active_segment.end_offset = 50
    kernel.record_fetches([leader], [41], 2, 3.0)
    assert (3.0, 2.0, 41, 50) == follower(leader, 2)
    leader.log.active_segment.end_offset = 60
    kernel.record_fetches([leader], [50], 2, 4.0)
    assert (4.0, 3.0, 50, 60) == follower(leader, 2)


@pytest.mark.parametrize(
    "fields",
    [
        {"is_leader": False},
        {"high_watermark_max": 10},
        {"high_watermark": 40},
        {"maximal_isr": (1, 2, 3, 4), "followers": None},
    ],
    ids=["no leader", "an fsync is under way", "nothing above the HW", "a member is missing"],
)
def test_the_high_watermark_stays(kernel: ModuleType, fields: dict[str, Any]) -> None:
    """Fetches of followers raise it only on a leader whose whole maximal ISR is past it, and never
    beyond the limit of an fsync."""
    if "followers" in fields:
        fields = fields | {"followers": {n: kernel.FollowerReplica(n, 1.0) for n in (2, 3, 4)}}
    leader = a_leader(kernel, **fields)
    before = leader.high_watermark
    for broker_id in (2, 3):
        moved, raised, _ = kernel.record_fetches([leader], [40], broker_id, 2.0)
        assert (["t-0"], []) == (moved, raised)
    assert before == leader.high_watermark


def test_an_owner_may_move_the_high_watermark_itself(kernel: ModuleType) -> None:
    """The rules call the owner's method."""

    class Owner(kernel.LeaderState):  # type: ignore[misc, name-defined]
        def maybe_raise_high_watermark(self) -> bool:
            self.high_watermark = 39
            return True

    owner = Owner()
    like = a_leader(kernel)
    for field in ("topic_partition", "log", "followers", "isr", "is_leader", "high_watermark"):
        setattr(owner, field, getattr(like, field))
    assert ["t-0"] == kernel.record_fetches([owner], [40], 2, 2.0)[1]
    assert 39 == owner.high_watermark


def test_an_unknown_follower_is_an_error(kernel: ModuleType) -> None:
    """The caller has checked that it is a replica."""
    with pytest.raises(KeyError):
        kernel.record_fetches([a_leader(kernel)], [40], 9, 2.0)


def test_all_builds_record_the_same() -> None:
    """Three hundred fetches of two followers while two logs grow."""
    draw = random.Random(7)
    kernels = [build_of(name) for name in BUILDS]
    leaders = [[a_leader(kernel, name) for name in "ab"] for kernel in kernels]
    for now in range(300):
        offsets = [draw.randrange(30, 45 + now) for _ in "ab"]
        broker_id, grown = draw.choice((2, 3)), draw.randrange(3)
        isr = draw.choice(((1, 2, 3), (1, 2), (1,)))
        results = []
        for kernel, pair in zip(kernels, leaders, strict=True):
            for leader in pair:
                leader.log.active_segment.end_offset += grown
                leader.isr = leader.maximal_isr = isr
            moved, raised, outside = kernel.record_fetches(pair, offsets, broker_id, float(now))
            state = [(one.high_watermark, follower(one, 2), follower(one, 3)) for one in pair]
            results.append((moved, raised, [one.topic_partition for one in outside], state))
        assert results[0] == results[1] == results[2]


def test_a_parked_follower_hears_of_any_change(kernel: ModuleType) -> None:
    """Of a longer or shorter log, the end of the leadership, and the loss of the log."""
    same, other = a_leader(kernel), a_leader(kernel)
    assert not kernel.has_news([same, other], [40, 40])
    assert not kernel.has_news([], [])
    assert kernel.has_news([same, other], [40, 39])
    assert kernel.has_news([same, other], [41, 40])
    assert kernel.has_news([same, a_leader(kernel, is_leader=False)], [40, 40])
    assert kernel.has_news([a_leader(kernel, log=None), same], [40, 40])
    with pytest.raises(ValueError):
        kernel.has_news([same, other], [40])
