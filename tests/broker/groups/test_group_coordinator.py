"""GroupCoordinator on real logs: records, loads, moves to another broker and expiry, at both
levels.

The offsets topic has one partition here, which stores every group."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka08.broker.groups import coordinated_group, offset_loader
from kafka08.broker.groups.append_codes import code_of_commit, code_of_group_record
from kafka08.errors import ProtocolError
from kafka08.kernel.types import STRING_BYTES_MAX
from kafka08.levels import Level
from kafka08.log_limit import CHARACTERS_MAX, KEYS_MAX, LINES_MAX, LineLimit
from kafka08.profile import SAFE
from kafka08.protocol import message_set
from kafka08.protocol.codec import decode_response, encode_request
from kafka08.protocol.describe_groups import DescribeGroupsRequest
from kafka08.protocol.group_records import decode_group
from kafka08.protocol.heartbeat import HeartbeatRequest
from kafka08.protocol.join_group import JoinGroupProtocol, JoinGroupRequest, JoinGroupResponse
from kafka08.protocol.leave_group import LeaveGroupRequest
from kafka08.protocol.list_groups import ListGroupsRequest
from kafka08.protocol.offset_commit import (
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitTopic,
)
from kafka08.protocol.offset_fetch import OffsetFetchRequest
from kafka08.protocol.offset_records import GroupKey, OffsetKey, decode_key, decode_offset_value
from kafka08.protocol.sync_group import SyncGroupAssignment, SyncGroupRequest
from kafka08.structs import OFFSETS_TOPIC, TopicPartition
from tests.broker.world import Client, World

LEVELS = (Level.V0_9_0, Level.V0_10_2)
CHECK_MS = 60_000
MINUTE_MS = 60_000


class Broker:
    """A World that leads the offsets topic, and requests of members."""

    def __init__(self, directory: Path, level: Level = Level.V0_10_2, **config: Any) -> None:
        self.level = level
        config.setdefault("offsets_retention_check_interval_ms", CHECK_MS)
        self.world = World(
            directory, api_level=str(level), offsets_topic_num_partitions=1, **config
        )
        self.world.lead("t", 2)
        self.lead()

    def lead(self, isr: tuple[int, ...] = (1,)) -> None:
        self.world.lead(OFFSETS_TOPIC, isr=isr, replicas=(1, 2))

    def follow(self) -> None:
        self.world.lead(OFFSETS_TOPIC, leader=2, isr=(2,), replicas=(1, 2))

    def call(self, request: Any) -> Any:
        return Client(self.world).call(request)

    def park(self, request: Any) -> Client:
        client = Client(self.world)
        client.send(encode_request(request, 1, "c"))
        assert client.parked
        return client

    def join(self, member_id: str = "", group: str = "g", session_ms: int = 10_000) -> Any:
        return self.call(join_request(member_id, group, session_ms))

    def sync(self, joined: JoinGroupResponse, group: str = "g") -> Any:
        return self.call(sync_request(joined, group))

    def settle(self, group: str = "g") -> JoinGroupResponse:
        """A stable group of one member."""
        joined: JoinGroupResponse = self.join(group=group)
        assert 0 == self.sync(joined, group).error_code
        return joined

    def commit(self, group: str, joined: JoinGroupResponse | None = None, **fields: Any) -> int:
        version = fields.pop("version", 2)
        timestamp = fields.pop("timestamp_ms", -1)
        topics = [OffsetCommitTopic("t", [OffsetCommitPartition(0, 7, None, timestamp)])]
        generation, member = (-1, "") if joined is None else (joined.generation, joined.member_id)
        request = OffsetCommitRequest(group, topics, generation, member, **fields, version=version)
        code: int = self.call(request).topics[0].partitions[0].error_code
        return code

    def offsets(self, group: str) -> list[int]:
        version = 2 if self.level is Level.V0_10_2 else 1
        request = OffsetFetchRequest(group, None if version == 2 else [], version=version)
        response = self.call(request)
        assert 0 == response.error_code
        return [item.offset for topic in response.topics for item in topic.partitions]

    def state(self, group: str = "g") -> str:
        (described,) = self.call(DescribeGroupsRequest([group])).groups
        state: str = described.state
        return state

    def records(self) -> list[tuple[Any, bytes | None]]:
        """Key and value of each record of the offsets topic."""
        log = self.world.partition(OFFSETS_TOPIC).log
        data = bytes(log.read(log.log_start_offset, 1 << 20).bytes())
        return [
            (decode_key(m.key or b""), None if m.value is None else bytes(m.value))
            for m in message_set.decode(data)
        ]

    def advance(self, ms: float) -> None:
        self.world.runtime.advance(ms / 1000)


def join_request(
    member_id: str = "", group: str = "g", session_ms: int = 10_000
) -> JoinGroupRequest:
    protocols = [JoinGroupProtocol("range", b"m")]
    return JoinGroupRequest(group, session_ms, session_ms, member_id, "consumer", protocols)


def sync_request(joined: JoinGroupResponse, group: str = "g") -> SyncGroupRequest:
    plan = [SyncGroupAssignment(member.member_id, b"a") for member in joined.members]
    return SyncGroupRequest(group, joined.generation, joined.member_id, plan)


@pytest.fixture(params=LEVELS, ids=str)
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Broker:
    return Broker(tmp_path, request.param)


# What is stored


def test_a_generation_is_one_record(broker: Broker) -> None:
    """A generation is one record with a key of version 2. The value has version 0 at 0.9 and 1 at
    0.10.2."""
    joined = broker.settle()
    ((key, value),) = broker.records()
    assert GroupKey("g") == key
    assert value is not None
    assert (broker.level is Level.V0_10_2) == bool(value[1])
    stored = decode_group(value)
    assert ("consumer", 1, "range", joined.member_id) == (
        stored.protocol_type,
        stored.generation,
        stored.protocol,
        stored.leader,
    )
    (member,) = stored.members
    assert ("test", "/test", 10_000, b"m", b"a") == (
        member.client_id,
        member.client_host,
        member.session_timeout_ms,
        member.subscription,
        member.assignment,
    )


def test_a_pinned_broker_writes_the_older_version(tmp_path: Path) -> None:
    """Below inter.broker.protocol.version 0.10.1 the value has version 0."""
    broker = Broker(
        tmp_path,
        inter_broker_protocol_version="0.10.0",
        log_message_format_version="0.10.0",
    )
    broker.settle()
    assert b"\0\0" == broker.records()[0][1][:2]  # type: ignore[index]


def test_the_record_is_in_the_isr_before_a_sync_is_answered(broker: Broker) -> None:
    """The sync's response waits until the follower's fetch acknowledges the record."""
    broker.lead(isr=(1, 2))
    joined = broker.join()
    client = broker.park(sync_request(joined))
    assert "AwaitingSync" == broker.state()
    broker.world.replica_manager.record_follower_fetches(
        [broker.world.replica_manager.partition(TopicPartition(OFFSETS_TOPIC, 0))], [1], 2
    )
    assert not client.parked
    assert "Stable" == broker.state()


def test_a_record_without_acknowledgement_begins_a_rebalance(broker: Broker) -> None:
    """After offsets.commit.timeout.ms without acknowledgement the sync gets 27."""
    broker.lead(isr=(1, 2))
    client = broker.park(sync_request(broker.join()))
    broker.advance(broker.world.config.offsets_commit_timeout_ms + 10)
    (frame,) = client.frames()
    assert b"\0\x1b" == frame[4:6]
    assert "PreparingRebalance" == broker.state()


def test_a_commit_says_when_it_expires(broker: Broker) -> None:
    """A commit is a record of version 1 with the broker's time. The retention counts from the time
    of a version 1 request, if it has one. Null metadata is stored as ""."""
    now = broker.world.runtime.time_ms()
    default_ms = broker.world.config.offsets_retention_minutes * MINUTE_MS
    assert 0 == broker.commit("a")
    assert 0 == broker.commit("b", retention_ms=5)
    assert 0 == broker.commit("c", version=1, timestamp_ms=1000)
    expiries = []
    for key, value in broker.records():
        assert isinstance(key, OffsetKey)
        assert value is not None
        stored = decode_offset_value(value)
        assert (b"\0\1", now, "") == (
            value[:2],
            stored.committed.timestamp_ms,
            stored.committed.metadata,
        )
        expiries.append(stored.expire_ms)
    assert [now + default_ms, now + 5, 1000 + default_ms] == expiries


@pytest.mark.parametrize(
    ("append", "commit", "group"),
    [(3, 15, 15), (6, 16, 16), (7, 7, 27), (10, 28, -1), (18, 28, -1), (4, 28, -1), (2, 2, 2)],
)
@pytest.mark.parametrize("level", LEVELS)
def test_codes_of_failed_appends(level: Level, append: int, commit: int, group: int) -> None:
    """Commit and sync have tables of codes of their own. Codes that a table does not have are sent
    unchanged."""
    assert commit == code_of_commit(append, level)
    assert group == code_of_group_record(append, level)


def test_too_few_replicas_has_another_code_at_each_level() -> None:
    """0.10.2 sends 15 instead of 19 and 20; 0.9 sends them unchanged."""
    for code in (19, 20):
        assert (
            15 == code_of_commit(code, Level.V0_10_2) == code_of_group_record(code, Level.V0_10_2)
        )
        assert code == code_of_commit(code, Level.V0_9_0)
        assert code == code_of_group_record(code, Level.V0_9_0)
        assert code == code_of_commit(code, Level.V0_8_2)


# The end of a group


def test_the_last_leave_of_0_9_deletes_the_record(tmp_path: Path) -> None:
    """In 0.9 the last leave deletes the group's record at once. Its offsets stay."""
    broker = Broker(tmp_path, Level.V0_9_0)
    joined = broker.settle()
    broker.commit("g", joined)
    broker.call(LeaveGroupRequest("g", joined.member_id))
    assert (GroupKey("g"), None) == broker.records()[-1]
    assert "Dead" == broker.state()
    assert [] == broker.call(ListGroupsRequest()).groups
    assert [7] == broker.offsets("g")


def test_a_group_of_0_10_2_stays_as_long_as_its_offsets(tmp_path: Path) -> None:
    """In 0.10.2 the expiry of offsets removes the last offset and the group, with tombstones."""
    broker = Broker(tmp_path)
    joined = broker.settle()
    broker.commit("g", joined, retention_ms=MINUTE_MS)
    broker.call(LeaveGroupRequest("g", joined.member_id))
    assert "Empty" == broker.state()
    broker.advance(CHECK_MS - 10)
    assert "Empty" == broker.state()
    broker.advance(CHECK_MS + 20)
    assert "Dead" == broker.state()
    assert [(OffsetKey("g", "t", 0), None), (GroupKey("g"), None)] == broker.records()[-2:]


def test_compressed_tombstones_of_very_many_groups(tmp_path: Path) -> None:
    """With offsets.topic.compression.codec a set is one message, which has a largest size. (The
    tombstones of all groups were one set, which was refused at each expiry.)"""
    broker = Broker(tmp_path, offsets_topic_compression_codec=1)
    log = broker.world.partition(OFFSETS_TOPIC).log
    count = 20_000
    chance = random.Random(1)
    names = [f"console-consumer-{chance.getrandbits(512):0128x}" for _ in range(count)]
    broker.world.context.offset_manager.append_group_tombstones(0, names)
    assert count == log.log_end_offset


def test_a_group_with_offsets_alone_has_no_record_to_delete(tmp_path: Path) -> None:
    """A group with offsets alone is listed without a protocol type, and ends with its offsets."""
    broker = Broker(tmp_path)
    broker.commit("g", retention_ms=1)
    assert [("g", "")] == [
        (group.group, group.protocol_type) for group in broker.call(ListGroupsRequest()).groups
    ]
    broker.advance(CHECK_MS + 10)
    assert "Dead" == broker.state()
    assert (OffsetKey("g", "t", 0), None) == broker.records()[-1]


def test_offsets_of_a_live_group_expire_too(broker: Broker) -> None:
    """Offsets expire while the group has members, as in every release before 2.1."""
    joined = broker.settle()
    broker.commit("g", joined, retention_ms=1)
    for _ in range(13):
        broker.advance(CHECK_MS / 12)
        assert 0 == broker.call(HeartbeatRequest("g", 1, joined.member_id)).error_code
    assert [] == broker.offsets("g")
    assert "Stable" == broker.state()


@pytest.mark.parametrize(("level", "left"), [(Level.V0_9_0, [7]), (Level.V0_10_2, [])], ids=str)
def test_offsets_of_a_deleted_topic(tmp_path: Path, level: Level, left: list[int]) -> None:
    """0.10.2 deletes the offsets of a topic with the topic; in 0.9 they expire."""
    broker = Broker(tmp_path, level)
    broker.commit("g")
    gone = [TopicPartition("t", 0), TopicPartition("t", 1)]
    broker.world.context.group_coordinator.forget_partitions(gone)
    assert left == broker.offsets("g")
    if not left:
        assert "Dead" == broker.state()


def test_a_topic_that_is_deleted_during_the_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its offsets are deleted after the load, also for the next leader. (They stayed, and a topic
    of the same name began at them.)"""
    broker = Broker(tmp_path)
    broker.commit("g")
    broker.follow()
    load = offset_loader.OffsetLoader._load_log

    def delete(self: Any, *args: Any) -> int:
        gone = [TopicPartition("t", 0), TopicPartition("t", 1)]
        broker.world.context.group_coordinator.forget_partitions(gone)
        return load(self, *args)

    with monkeypatch.context() as during:
        during.setattr(offset_loader.OffsetLoader, "_load_log", delete)
        broker.lead()
    for _ in range(2):
        assert ([], "Dead") == (broker.offsets("g"), broker.state())
        broker.follow()
        broker.lead()


def test_a_topic_that_is_deleted_while_another_broker_may_lead(tmp_path: Path) -> None:
    """In the safe profile a coordinator that is cut off appends nothing. If it still leads
    afterwards, the next expiry deletes the offsets, except those committed since then, of another
    topic of the name."""
    broker = Broker(tmp_path, kafka08_profile=SAFE)
    broker.world.lead(OFFSETS_TOPIC, replicas=(1,))
    for name in ("g", "goes on"):
        assert 0 == broker.commit(name)
    broker.lead(isr=(1, 2))
    broker.world.store.may_have_session = False
    broker.world.partition(OFFSETS_TOPIC).begin_isr_change((1,))
    broker.world.context.group_coordinator.forget_partitions([TopicPartition("t", 0)])
    broker.world.store.may_have_session = True
    broker.world.lead(OFFSETS_TOPIC, replicas=(1,))
    assert 0 == broker.commit("goes on")
    assert [7] == broker.offsets("g")
    broker.advance(CHECK_MS + 10)
    assert [] == broker.offsets("g")
    assert [7] == broker.offsets("goes on")


# Leadership


def test_members_continue_at_a_new_coordinator(broker: Broker) -> None:
    """The new coordinator loads generation, assignment and offsets from its log. Sessions begin
    again."""
    joined = broker.settle()
    broker.commit("g", joined)
    broker.advance(9000)
    broker.follow()
    assert 16 == broker.call(HeartbeatRequest("g", 1, joined.member_id)).error_code
    broker.lead()
    broker.advance(9000)
    assert 0 == broker.call(HeartbeatRequest("g", 1, joined.member_id)).error_code
    assert b"a" == bytes(broker.sync(joined).assignment)
    assert [7] == broker.offsets("g")
    broker.advance(10_001)
    assert "Stable" != broker.state()


def test_no_timer_survives_a_move(broker: Broker) -> None:
    """A timer from before a move never removes a member of the group as loaded again."""
    joined = broker.settle()
    waiting = broker.park(join_request())
    broker.follow()
    assert not waiting.parked
    broker.lead()
    for _ in range(5):
        broker.advance(9000)
        assert 0 == broker.call(HeartbeatRequest("g", 1, joined.member_id)).error_code


def test_a_deleted_group_does_not_come_back(broker: Broker) -> None:
    """The last record of a key counts, so a deleted group stays deleted."""
    joined = broker.settle()
    broker.call(LeaveGroupRequest("g", joined.member_id))
    broker.advance(CHECK_MS + 10)
    broker.follow()
    broker.lead()
    assert "Dead" == broker.state()


def test_members_that_join_again_and_again_do_not_fill_the_log(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    """A group logs the lines of one generation per second, however many rebalances it has, with the
    generation before."""

    def lines(rebalances: int) -> int:
        caplog.clear()
        for _ in range(rebalances):
            assert 0 == broker.sync(broker.join(member_id)).error_code
        return sum(record.name == coordinated_group.__name__ for record in caplog.records)

    member_id = broker.settle().member_id
    caplog.set_level("INFO")
    broker.advance(coordinated_group.LOGGED_EVERY_MS + 1)
    assert 3 == lines(1)
    assert "Preparing to restabilize group g with old generation 1" in caplog.messages
    assert 0 == lines(20)
    broker.advance(coordinated_group.LOGGED_EVERY_MS + 1)
    assert 3 == lines(20)


@pytest.mark.parametrize("groups", [1, 300])
def test_members_that_join_and_leave_do_not_fill_the_log(
    broker: Broker, caplog: pytest.LogCaptureFixture, groups: int
) -> None:
    """Members of one group, which 0.9 forgets each time, or of many with long names."""
    caplog.set_level("INFO")
    for number in range(max(groups, 30)):
        name = f"{number % groups}" * 2000
        joined = broker.settle(name)
        assert 0 == broker.call(LeaveGroupRequest(name, joined.member_id)).error_code
    lines = [record for record in caplog.records if record.name == coordinated_group.__name__]
    limit = LineLimit(10)
    written = [record.getMessage() for record in lines if limit.filter(record)]
    places = len({record.lineno for record in lines})
    assert len(written) <= LINES_MAX * places + (0 if groups == 1 else KEYS_MAX)
    assert max(map(len, written)) < CHARACTERS_MAX + 50


def test_a_record_that_cannot_be_read_costs_its_group_alone(broker: Broker) -> None:
    """A record that cannot be parsed leaves out its group alone. The JVM broker stops the load and
    keeps nothing of the partition."""
    broker.settle("before")
    records = [(b"\0\2\0\1g", b"\0\x63"), (b"\0\x63", b""), (b"\0\2", b"")]
    broker.world.appender.append_internal(
        TopicPartition(OFFSETS_TOPIC, 0),
        records,
        codec=0,
        required_acks=1,
        timeout_ms=0,
        done=lambda _: None,
    )
    broker.settle("after")
    broker.follow()
    broker.lead()
    assert ["Stable", "Dead", "Stable"] == [broker.state(g) for g in ("before", "g", "after")]


def test_responses_during_a_load(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """During a load a request gets 14, a heartbeat 0 and a sync 16. The list is partial, with code
    14."""
    joined = broker.settle()
    broker.follow()
    seen: dict[str, int] = {}

    def ask(self: object, *args: object) -> None:
        seen.update(
            join=broker.join(joined.member_id).error_code,
            sync=broker.sync(joined).error_code,
            heartbeat=broker.call(HeartbeatRequest("g", 1, joined.member_id)).error_code,
            leave=broker.call(LeaveGroupRequest("g", joined.member_id)).error_code,
            commit=broker.commit("g"),
            describe=broker.call(DescribeGroupsRequest(["g"])).groups[0].error_code,
            list=broker.call(ListGroupsRequest()).error_code,
        )
        hand_over(self, *args)

    hand_over: Callable[..., None] = offset_loader.OffsetLoader._hand_over
    monkeypatch.setattr(offset_loader.OffsetLoader, "_hand_over", ask)
    broker.lead()
    wanted = dict.fromkeys(("join", "leave", "commit", "describe", "list"), 14)
    assert {**wanted, "sync": 16, "heartbeat": 0} == seen
    assert "Stable" == broker.state()


def test_a_stopping_broker_says_so(broker: Broker) -> None:
    """A broker that stops responds with error 15 to every request."""
    joined = broker.settle()
    broker.world.context.group_coordinator.shutdown()
    assert 15 == broker.join().error_code
    assert 15 == broker.call(HeartbeatRequest("g", 1, joined.member_id)).error_code
    assert 15 == broker.commit("g", joined)
    assert 15 == broker.call(ListGroupsRequest()).error_code


# Requests


def test_a_refused_first_join_leaves_no_group(broker: Broker) -> None:
    """After a first join with an illegal session timeout, or without protocols, no group exists."""
    longest = broker.world.config.group_max_session_timeout_ms
    for session_ms, code in ((5999, 26), (longest + 1, 26), (6000, 0), (longest, 0)):
        assert code == broker.join(group=f"s{session_ms}", session_ms=session_ms).error_code
    request = JoinGroupRequest("none", 6000, 6000, "", "consumer", [])
    assert 23 == broker.call(request).error_code
    listed = {group.group for group in broker.call(ListGroupsRequest()).groups}
    assert {"s6000", f"s{longest}"} == listed


def test_a_client_that_leaves_before_it_has_a_member_id(broker: Broker) -> None:
    """Nobody can be that member: the group goes on without it at once, and keeps nothing of it. (It
    kept 80 MB of 4 MB for five minutes, and each rebalance waited for it.)"""
    known = broker.settle()
    broker.park(join_request("", "g")).close()
    joined = broker.join(known.member_id)
    assert [known.member_id] == [member.member_id for member in joined.members]


def test_a_member_whose_connection_breaks_stays(broker: Broker) -> None:
    """It has its id, and its session: it may come back over another connection."""
    known = broker.settle()
    other = broker.park(join_request("", "g"))
    broker.sync(broker.join(known.member_id))
    (frame,) = other.frames()
    other_id = decode_response(JoinGroupRequest, frame)[1].member_id
    broker.park(join_request(known.member_id, "g")).close()
    _, group = broker.world.context.group_coordinator.find("g")
    assert group is not None
    assert {known.member_id, other_id} == set(group.members)


def test_protocols_are_bounded(broker: Broker) -> None:
    """The coordinator keeps those of each member."""
    known = broker.settle()
    for member_id in ("", known.member_id):
        request = join_request(member_id, "g")
        request.protocols *= 1001
        client = Client(broker.world)
        with pytest.raises(ProtocolError, match="more than 1000 items"):
            client.send(encode_request(request, 1, "c"))


@pytest.mark.parametrize("kind", ["group", "protocol type", "commit"])
def test_names_that_no_response_can_have_make_no_group(broker: Broker, kind: str) -> None:
    """Each byte that is no UTF-8 takes three in a response. One such group would make ListGroups
    fail for all, and end a run of the expiry."""
    name = "x" * 11_000
    request: Any = join_request()
    if kind == "commit":
        topics = [OffsetCommitTopic("t", [OffsetCommitPartition(0, 7, None)])]
        request = OffsetCommitRequest(name, topics, -1, "", version=2)
    elif kind == "group":
        request.group = name
    else:
        request.protocol_type = name
    broker.settle("other")
    client = Client(broker.world)
    client.send(encode_request(request, 1, "c").replace(name.encode(), b"\xff" * len(name)))
    (frame,) = client.frames()
    response = decode_response(type(request), frame, request.version)[1]
    found = response.topics[0].partitions[0] if kind == "commit" else response
    assert (23 if kind == "protocol type" else 24) == found.error_code
    assert ["other"] == [group.group for group in broker.call(ListGroupsRequest()).groups]
    broker.advance(CHECK_MS * 2)
    assert [] == [group.group for group in broker.call(ListGroupsRequest()).groups]


def test_a_refused_first_join_at_0_9_leaves_offsets_alone(tmp_path: Path) -> None:
    """At 0.9 offsets alone are no group, also after a join that is refused: a commit of a member
    has an illegal generation. (A group in the state Empty stayed, which 0.9 does not have.)"""
    broker = Broker(tmp_path, Level.V0_9_0)
    assert 0 == broker.commit("g")
    assert 23 == broker.call(JoinGroupRequest("g", 6000, 6000, "", "consumer", [])).error_code
    assert ([], "Dead") == (broker.call(ListGroupsRequest()).groups, broker.state())
    assert 22 == broker.commit("g", JoinGroupResponse(0, 5, "range", "m", "m", []))
    assert [7] == broker.offsets("g")


@pytest.mark.parametrize("length", [32_730, 32_731])
def test_a_client_id_that_is_too_long_for_a_member_id(broker: Broker, length: int) -> None:
    """A member id has 37 characters more than the client id. A join that would have one too long
    for a response is refused, and the group goes on. (It became a member whose group no response
    could have: the other members could not join, until it expired.)"""
    first = broker.settle()
    client = Client(broker.world)
    client.send(encode_request(join_request(), 1, "x" * length))
    broker.advance(9000)
    if length + 37 > STRING_BYTES_MAX:
        (frame,) = client.frames()
        assert -1 == decode_response(JoinGroupRequest, frame)[1].error_code
        assert "Stable" == broker.state()
    else:
        assert client.parked
        assert 2 == len(broker.join(first.member_id).members)
    assert 0 == broker.call(DescribeGroupsRequest(["g"])).groups[0].error_code


def test_a_refused_join_leaves_a_group_that_was_there(tmp_path: Path) -> None:
    """A commit makes a group at 0.10.2, also one that finds too few replicas in sync; a join that
    is refused does not end it."""
    broker = Broker(tmp_path, min_insync_replicas=2)
    assert 15 == broker.commit("g")
    assert "Empty" == broker.state()
    assert 25 == broker.join("unknown").error_code
    assert "Empty" == broker.state()


def test_requests_in_one_write_are_handled_in_order(broker: Broker) -> None:
    """The response to a parked join makes the connection's next request, a leave, run within it.
    The group stays consistent."""
    first = broker.settle()
    client = broker.park(join_request())
    client.send(encode_request(LeaveGroupRequest("g", "unknown"), 2, "c"))
    rejoined = broker.join(first.member_id)
    assert 2 == rejoined.generation
    assert 2 == len(client.frames())
    assert 0 == broker.sync(rejoined).error_code
    broker.advance(9000)
    broker.call(HeartbeatRequest("g", 2, first.member_id))
    broker.advance(9000)
    assert "PreparingRebalance" == broker.state(), "the silent second member has expired"


def test_a_member_id_is_the_client_id_and_a_random_uuid(broker: Broker) -> None:
    """A member id is the client id and a random UUID of version 4, a new one for each member."""
    ids = {broker.join(group=f"g{number}").member_id for number in range(50)}
    assert 50 == len(ids)
    for member_id in ids:
        name, *parts = member_id.split("-")
        assert "test" == name
        assert [8, 4, 4, 4, 12] == [len(part) for part in parts]
        assert ("4", True) == (parts[2][0], parts[3][0] in "89ab")


@pytest.mark.parametrize("field", ["protocol_type", "member_id", "client_id", "client_host"])
def test_a_stored_text_that_no_response_can_have_closes_no_connection(
    broker: Broker, field: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A record that another broker has written, with bytes that are no UTF-8: as U+FFFD they would
    be longer than a field of a response. ListGroups and DescribeGroups list every other group, and
    the members of this one join again."""
    texts = dict.fromkeys(("protocol_type", "member_id", "client_id", "client_host"), b"x")
    texts[field] = b"\xff" * 20_000

    def text(name: str) -> bytes:
        return len(texts[name]).to_bytes(2, "big") + texts[name]

    member = text("member_id") + text("client_id") + text("client_host") + bytes(4) + bytes(8)
    value = b"\0\0" + text("protocol_type") + (3).to_bytes(4, "big") + b"\0\1r" + b"\0\1x"
    value += (1).to_bytes(4, "big") + member
    key = b"\0\2" + b"\0\3bad"
    broker.settle("good")
    magic = 1 if broker.level is Level.V0_10_2 else 0
    data = message_set.encode([(key, value)], magic=magic, timestamps=[1] if magic else None)
    broker.world.partition(OFFSETS_TOPIC).append(bytearray(data), 1)
    broker.follow()
    broker.lead()
    listed = broker.call(ListGroupsRequest())
    assert "good" in [group.group for group in listed.groups]
    assert broker.call(DescribeGroupsRequest(["bad"])).groups
    assert "skipped the record of group bad" in caplog.text
    assert 0 == broker.join(group="bad").error_code
