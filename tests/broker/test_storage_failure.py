"""A failing disk stops the broker, on every path. What is not the disk's stops nothing."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from kafka08.errors import FileRefused, NotLeaderForPartition, StorageError, UnknownError
from kafka08.protocol import message_set
from kafka08.protocol.codec import encode_request
from kafka08.protocol.fetch import FetchPartition, FetchRequest, FetchTopic
from kafka08.protocol.leader_and_isr import LeaderAndIsrRequest, PartitionStateInfo
from kafka08.protocol.metadata import BrokerEndpoint
from kafka08.protocol.produce import ProducePartition, ProduceRequest, ProduceTopic
from kafka08.protocol.stop_replica import StopReplicaPartition, StopReplicaRequest
from kafka08.protocol.types import Request
from kafka08.protocol.update_metadata import LiveBroker, UpdateMetadataRequest
from kafka08.runtime.uncaught import uncaught
from tests.broker.fake_runtime import FakeRuntime, Halted
from tests.broker.world import CONTROLLER_EPOCH, World
from tests.log.refusing_disk import RefusingDisk

if TYPE_CHECKING:
    from kafka08.runtime.disk import Disk


def fail(*_: Any, **__: Any) -> Any:
    raise StorageError("cannot write t-0: No space left on device")


def no_space(*_: Any) -> Any:
    raise OSError(errno.ENOSPC, "No space left on device")


def produce(*partitions: int) -> ProduceRequest:
    data = message_set.encode([(None, b"m")])
    parts = [ProducePartition(number, data) for number in partitions]
    return ProduceRequest(1, 1000, [ProduceTopic("t", parts)])


def fetch(*partitions: int) -> FetchRequest:
    parts = [FetchPartition(number, 0, 1000) for number in partitions]
    return FetchRequest(-1, 0, 1, [FetchTopic("t", parts)])


@pytest.mark.parametrize(
    "request_", [produce(0), produce(0, 1), fetch(0), fetch(0, 1)], ids=lambda r: type(r).__name__
)
def test_the_process_ends_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request_: Request
) -> None:
    """The process ends at once, for one partition or several, and no client gets a response."""
    world = World(tmp_path)
    world.lead("t", 2)
    log = world.partition("t").log
    world.partition("t").append(bytearray(message_set.encode([(None, b"m")])), 1)
    assert log is not None
    monkeypatch.setattr(log.active_segment, "write", no_space)
    monkeypatch.setattr(log.active_segment, "descriptor", -1)
    monkeypatch.setattr(log, "read", fail)
    with pytest.raises(Halted):
        world.client.send(encode_request(request_, 1, "test"))
    assert [] == world.client.frames()


LONG = "x" * 254
"""Legal, but `<name>-0` is longer than the name of a file may be."""


def stray_file(directory: Path) -> None:
    (directory / "t-0").touch()


def lead_request(*topics: str) -> LeaderAndIsrRequest:
    states = [PartitionStateInfo(t, 0, CONTROLLER_EPOCH, 1, 0, [1], 0, [1]) for t in topics]
    return LeaderAndIsrRequest(9, CONTROLLER_EPOCH, states, [BrokerEndpoint(1, "127.0.0.1", 19091)])


@pytest.mark.parametrize(
    ("topic", "prepare"), [(LONG, lambda _: None), ("t", stray_file)], ids=["name", "stray file"]
)
def test_a_name_or_a_stray_file_refuses_one_partition(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, topic: str, prepare: Callable[[Path], None]
) -> None:
    """A client names a topic, and each of its replicas halted, again after each restart."""
    world = World(tmp_path)
    prepare(tmp_path)
    response = world.client.call(lead_request(topic, "other"))
    codes = {one.topic: one.error_code for one in response.partitions}
    assert {topic: UnknownError.code, "other": 0} == codes
    assert f"Broker 1 refuses partition [{topic},0]: cannot" in caplog.text
    assert "Remove the cause" in caplog.text
    for name, code in ((topic, NotLeaderForPartition.code), ("other", 0)):
        data = message_set.encode([(None, b"m")])
        request_ = ProduceRequest(1, 1000, [ProduceTopic(name, [ProducePartition(0, data)])])
        [answered] = world.client.call(request_).topics[0].partitions
        assert code == answered.error_code


def test_refused_partitions_are_answered_in_their_order(tmp_path: Path) -> None:
    """Their order was that of a set, so one seed made two runs of a simulated cluster."""
    world = World(tmp_path)
    names = [letter * 255 for letter in "hgfedcba"]
    response = world.client.call(lead_request(*names))
    assert [one.topic for one in response.partitions] == names


def test_the_partition_is_accepted_once_the_cause_is_gone(tmp_path: Path) -> None:
    """The same state is applied then: its leader epoch was not adopted."""
    world = World(tmp_path)
    stray_file(tmp_path)
    world.client.call(lead_request("t"))
    (tmp_path / "t-0").unlink()
    [state] = world.client.call(lead_request("t")).partitions
    assert 0 == state.error_code
    assert world.partition("t").is_leader


def test_a_refused_state_is_tried_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The controller sends it once, so the broker applies it as soon as the cause is gone, and logs
    the cause once."""
    world = World(tmp_path)
    stray_file(tmp_path)
    world.client.call(lead_request("t"))
    for _ in range(2):
        world.replica_manager.retry_refused()
    assert not world.partition("t").is_leader
    assert 1 == caplog.text.count("refuses partition")
    (tmp_path / "t-0").unlink()
    world.replica_manager.retry_refused()
    assert world.partition("t").is_leader


def stop_replica(world: World) -> None:
    part = StopReplicaPartition("t", 0)
    world.client.call(StopReplicaRequest(9, CONTROLLER_EPOCH, False, [part]))


def announce_another(world: World) -> None:
    state = PartitionStateInfo("t", 0, CONTROLLER_EPOCH, 2, 1, [2], 1, [2])
    live = [LiveBroker.plaintext(2, "127.0.0.1", 19092)]
    world.client.call(UpdateMetadataRequest(9, CONTROLLER_EPOCH, [state], live))


@pytest.mark.parametrize("then", [stop_replica, announce_another])
def test_a_state_that_was_replaced_is_not_tried_again(
    tmp_path: Path, then: Callable[[World], None]
) -> None:
    """The controller has stopped the replica since, or elected another leader."""
    world = World(tmp_path)
    stray_file(tmp_path)
    world.client.call(lead_request("t"))
    then(world)
    (tmp_path / "t-0").unlink()
    world.replica_manager.retry_refused()
    assert not world.partition("t").is_leader


def test_a_late_request_replaces_no_refused_state(tmp_path: Path) -> None:
    """The state of the latest leader epoch is applied."""
    world = World(tmp_path)
    stray_file(tmp_path)
    newer, older = lead_request("t"), lead_request("t")
    newer.partition_states[0].leader_epoch = 7
    world.client.call(newer)
    (tmp_path / "t-0").unlink()
    world.client.call(older)
    assert 0 == world.partition("t").leader_epoch
    world.replica_manager.retry_refused()
    assert 7 == world.partition("t").leader_epoch


def test_a_leader_that_cannot_flush_what_it_copied_leads_nothing(tmp_path: Path) -> None:
    """It led without an ISR, in an epoch that the controller does not send again, and the other
    partitions of the request had no leader."""
    disk = RefusingDisk()
    world = World(tmp_path, disk=cast("Disk", disk))
    world.lead("t", 2, {"flush.messages": "1"}, leader=2, isr=(1, 2), replicas=(1, 2))
    for number in range(2):
        copied = bytearray(message_set.encode([(None, b"m")]))
        world.partition("t", number).append_as_follower(copied, 0)
    states = [
        PartitionStateInfo("t", number, CONTROLLER_EPOCH, 1, 9, [1], 9, [1, 2])
        for number in range(2)
    ]
    leaders = [BrokerEndpoint(1, "127.0.0.1", 19091)]
    elected = LeaderAndIsrRequest(9, CONTROLLER_EPOCH, states, leaders)
    disk.refuses = lambda path: path.name == "t-0"
    response = world.client.call(elected)
    assert [UnknownError.code, 0] == [one.error_code for one in response.partitions]
    assert [False, True] == [world.partition("t", number).is_leader for number in range(2)]
    disk.refuses = lambda _: False
    world.replica_manager.retry_refused()
    assert world.partition("t").is_leader


def test_a_deletion_that_is_refused_is_the_partitions_error(tmp_path: Path) -> None:
    """The controller keeps the topic, and the broker its other partitions."""
    disk = RefusingDisk()
    world = World(tmp_path, disk=cast("Disk", disk))
    world.lead("t", 2)
    disk.refuses = lambda path: path.name == "t-0"
    partitions = [StopReplicaPartition("t", number) for number in range(2)]
    request_ = StopReplicaRequest(9, CONTROLLER_EPOCH, True, partitions)
    response = world.client.call(request_)
    assert [UnknownError.code, 0] == [one.error_code for one in response.partitions]


def test_a_root_that_is_refused_a_file_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    """A checkpoint with the descriptor table full is written at the next interval: the broker
    exited. It is no bug, so its line has no stack."""
    error = FileRefused("cannot write c.tmp: Too many open files")
    uncaught(FakeRuntime(), error, logging.getLogger("x"), "In task '%s'", "checkpoint")
    [record] = caplog.records
    assert "In task 'checkpoint': cannot write c.tmp: Too many open files" == record.message
    assert record.exc_info is None


def test_what_is_refused_is_no_change_of_leaders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A client gets NotLeaderForPartition, which the broker does not count as a failure, and says
    in one line with others. The operator needs the cause: an error, and a count."""
    world = World(tmp_path)
    world.lead("t", 2)
    refusal = FileRefused("cannot open x: Too many open files")

    def refuse(*_: Any, **__: Any) -> Any:
        raise refusal

    partition = world.partition("t")
    assert partition.log is not None
    partition.append(bytearray(message_set.encode([(None, b"m")])), 1)
    monkeypatch.setattr(partition.log, "append", refuse)
    monkeypatch.setattr(partition.log, "read", refuse)
    partition.log.active_segment.takes_plain_sets = False
    [appended] = world.client.call(produce(0)).topics[0].partitions
    [fetched] = world.client.call(fetch(0)).topics[0].partitions
    assert {NotLeaderForPartition.code} == {appended.error_code, fetched.error_code}
    assert (1, 1) == (partition.failed_produce_requests, partition.failed_fetch_requests)
    errors = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert 2 == len(errors)
    for record in errors:
        assert "Too many open files" in record.getMessage()
        assert record.exc_info is None
