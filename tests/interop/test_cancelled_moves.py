"""A move on the JVM's brokers whose target dies is cancelled by our tool."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka08.admin import AdminClient, MoveStatus
from kafka08.structs import TopicPartition
from tests.interop.jvm import POM, POM_0_10_2, JvmKafka
from tests.waiting import until

TP = TopicPartition("t", 0)
KEYS = {"zookeeper.session.timeout.ms": "6000"}


@pytest.mark.parametrize("pom", [POM, POM_0_10_2], ids=["0.8.2", "0.10.2"])
def test_the_jvms_controller_lets_the_partition_stay(tmp_path: Path, pom: Path) -> None:
    """It continues with the changed request once it is elected again, and ends the move."""
    with (
        JvmKafka(tmp_path, KEYS, brokers=3, pom=pom) as kafka,
        AdminClient(kafka.zookeeper) as admin,
    ):
        admin.create_topic("t", assignment={0: [1, 2]})
        admin.await_leaders("t")
        kafka.brokers[2].pause()
        moves = {TP: (3, 2)}
        admin.move_partitions(moves)
        until(lambda: set(admin.assigned([TP])[TP]) == {1, 2, 3}, "the move to begin")
        kafka.brokers[2].kill()
        until(lambda: list(admin.live_brokers()) == [1, 2], "the end of broker 3")
        assert admin.move_statuses(moves) == {TP: MoveStatus.IN_PROGRESS}
        back = admin.cancelled_moves()
        assert set(back[TP]) == {1, 2}
        admin.cancel_moves(back)
        until(lambda: admin.move_statuses(back) == {TP: MoveStatus.COMPLETED}, "its end")
        assert admin.assigned([TP]) == back
