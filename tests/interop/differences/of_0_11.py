"""Requests of 0.11: throttle times, configurations, access control, record batches, producers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from kafka08.levels import Level
from kafka08.protocol.alter_configs import AlterConfigsRequest, AlteredResource, ConfigEntry
from kafka08.protocol.codec import encode_request
from kafka08.protocol.create_acls import AclCreation, CreateAclsRequest
from kafka08.protocol.create_topics import CreateTopicsRequest, NewTopic, TopicConfigEntry
from kafka08.protocol.delete_acls import AclFilter, DeleteAclsRequest
from kafka08.protocol.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kafka08.protocol.delete_topics import DeleteTopicsRequest
from kafka08.protocol.describe_acls import DescribeAclsRequest
from kafka08.protocol.describe_configs import TOPIC, DescribeConfigsRequest, DescribedResource
from kafka08.protocol.describe_groups import DescribeGroupsRequest
from kafka08.protocol.fetch import FetchPartition, FetchRequest, FetchTopic
from kafka08.protocol.heartbeat import HeartbeatRequest
from kafka08.protocol.init_producer_id import InitProducerIdRequest
from kafka08.protocol.join_group import JoinGroupProtocol, JoinGroupRequest
from kafka08.protocol.leave_group import LeaveGroupRequest
from kafka08.protocol.list_groups import ListGroupsRequest
from kafka08.protocol.metadata import MetadataRequest
from kafka08.protocol.offset_commit import (
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitTopic,
)
from kafka08.protocol.offset_fetch import OffsetFetchRequest, OffsetFetchTopic
from kafka08.protocol.offset_for_leader_epoch import (
    OffsetForLeaderEpochPartition,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochTopic,
)
from kafka08.protocol.offsets import OffsetsPartition, OffsetsRequest, OffsetsTopic
from kafka08.protocol.produce import ProducePartition, ProduceRequest, ProduceTopic
from kafka08.protocol.sasl_handshake import SaslHandshakeRequest
from kafka08.protocol.sync_group import SyncGroupRequest
from kafka08.protocol.types import Request
from tests.interop.differences.sequence import sequence
from tests.interop.differences.talk import Talk

SINCE = Level.V0_11_0


def case(name: str, *requests: Request) -> None:
    """Declares a sequence of these requests."""

    @sequence(f"0.11, {name}", since=SINCE, until=SINCE)
    def _(talk: Talk) -> None:
        for request in requests:
            talk.ask(encode_request(request, 7, "c"))


def listed(time_ms: int, isolation: int, topic: str = "t") -> OffsetsRequest:
    wanted = [OffsetsTopic(topic, [OffsetsPartition(0, time_ms, 1)])]
    return OffsetsRequest(-1, wanted, isolation, version=2)


def described(topic: str, *names: str) -> DescribeConfigsRequest:
    return DescribeConfigsRequest([DescribedResource(TOPIC, topic, list(names) or None)])


def altered(topic: str, *pairs: tuple[str, str | None], validates: bool = False) -> Request:
    entries = [ConfigEntry(*pair) for pair in pairs]
    return AlterConfigsRequest([AlteredResource(TOPIC, topic, entries)], validates)


def created(name: str, partitions: int = 1, **configs: str | None) -> CreateTopicsRequest:
    entries = [TopicConfigEntry(key.replace("_", "."), text) for key, text in configs.items()]
    return CreateTopicsRequest([NewTopic(name, partitions, 1, [], entries)], 8000, version=2)


case("metadata", MetadataRequest(["t"], version=3), MetadataRequest(["t", "old"], version=4))
case(
    "metadata of a topic that must not be created",
    MetadataRequest(["unborn"], allow_auto_topic_creation=False, version=4),
    MetadataRequest(["dead"], allow_auto_topic_creation=False, version=4),
)
case("ends of a log", *(listed(time, level) for time in (-1, -2, 0) for level in (0, 1)))
case("ends of an unknown topic", listed(-1, 1, "nosuch"))
case("sasl", SaslHandshakeRequest("PLAIN"))
case(
    "offsets of a group",
    OffsetCommitRequest(
        "g11", [OffsetCommitTopic("t", [OffsetCommitPartition(0, 5, "m")])], version=3
    ),
    OffsetFetchRequest("g11", [OffsetFetchTopic("t", [0, 1])], version=3),
    OffsetFetchRequest("g11", None, version=3),
)
case(
    "groups without members",
    DescribeGroupsRequest(["nosuch"], version=1),
    HeartbeatRequest("nosuch", 1, "m", version=1),
    LeaveGroupRequest("nosuch", "m", version=1),
    SyncGroupRequest("nosuch", 1, "m", [], version=1),
    JoinGroupRequest("g12", 1, 1, "", "consumer", [JoinGroupProtocol("r", b"")], version=2),
    JoinGroupRequest("", 9999, 9999, "", "consumer", [JoinGroupProtocol("r", b"")], version=2),
)
case("groups", ListGroupsRequest(version=1))
case(
    "topics",
    created("made"),
    created("made"),
    created("bad name"),
    created(""),
    created("x" * 250),
    created("made2", 0),
    created("made3", retention_ms="abc"),
    created("made4", retention_ms=None),
    created("made5", no_such="1"),
    DeleteTopicsRequest(["made", "nosuch"], 8000, version=1),
)
case(
    "configurations of topics",
    described("t"),
    described("compacted"),
    described("old", "message.format.version", "retention.ms"),
    described("nosuch", "cleanup.policy"),
    described("bad name"),
    DescribeConfigsRequest([DescribedResource(0, "x", None), DescribedResource(4, "7", None)]),
    DescribeConfigsRequest([DescribedResource(4, " 1", None), DescribedResource(4, "7", None)]),
)
case(
    "configurations are replaced",
    altered("narrow", ("max.message.bytes", "100"), ("retention.ms", "5000")),
    described("narrow", "max.message.bytes", "retention.ms", "segment.ms"),
    altered("narrow", ("max.message.bytes", "100")),
    described("narrow", "max.message.bytes", "retention.ms"),
    altered("narrow", ("retention.ms", "77"), validates=True),
    described("narrow", "retention.ms"),
    altered("narrow", ("cleanup.policy", "nonsense")),
    altered("narrow", ("min.cleanable.dirty.ratio", "2")),
    altered("narrow", ("no.such", "1")),
    altered("narrow", ("retention.ms", None)),
    altered("nosuch", ("retention.ms", "1")),
    altered("bad name", ("retention.ms", "1")),
)
case(
    "access control",
    DescribeAclsRequest(1, None, None, None, 1, 1),
    CreateAclsRequest([AclCreation(2, "t", "User:a", "*", 3, 3)] * 2),
    CreateAclsRequest([]),
    DeleteAclsRequest([AclFilter(2, "t", None, None, 3, 3)]),
)
case(
    "epochs of a log without any",
    OffsetForLeaderEpochRequest(
        [
            OffsetForLeaderEpochTopic("t", [OffsetForLeaderEpochPartition(0, epoch)])
            for epoch in (0,)
        ]
    ),
    OffsetForLeaderEpochRequest(
        [OffsetForLeaderEpochTopic("nosuch", [OffsetForLeaderEpochPartition(0, 0)])]
    ),
)

CAPTURED: Final = {
    one["name"]: one
    for one in json.loads(
        (Path(__file__).parents[2] / "data" / "0.11-api-data.json").read_text(encoding="utf-8")
    )
}


def captured(name: str) -> bytes:
    """The set of a captured Produce."""
    (topic,) = CAPTURED[name]["request"]["body"]["topics"]
    return bytes.fromhex(topic["parts"][0]["set"]["hex"])


def produced(topic: str, data: bytes, acks: int = -1) -> Request:
    wanted = [ProduceTopic(topic, [ProducePartition(0, data)])]
    return ProduceRequest(acks, 1000, wanted, version=3)


def fetched(topic: str, version: int, offset: int = 0, isolation: int = 0) -> Request:
    wanted = [FetchTopic(topic, [FetchPartition(0, offset, 1 << 20)])]
    return FetchRequest(-1, 0, 1, wanted, isolation_level=isolation, version=version)


PLAIN: Final = captured("produce-v3-plain")
OF_FIVE: Final = {
    *("produce-idem-duplicate-older", "produce-idem-six-repeat-0", "produce-idem-six-repeat-4")
}
REFUSED = (
    *("base-5", "bad-crc", "count-2-of-3", "count-4", "count-0", "count-neg", "control"),
    *("codec-4", "lz4-old-hc", "append-bit-set"),
)
TAKEN = (
    *("plain", "no-ts", "headers", "gzip", "snappy", "lz4", "wrong-maxts", "lep-set"),
    *("attr-high", "trailing"),
)
case(
    "batches that are taken",
    created("taken"),
    *(produced("taken", captured(f"produce-v3-{name}")) for name in TAKEN),
    *(fetched("taken", version, isolation=level) for version in (4, 5) for level in (0, 1)),
    *(fetched("taken", 5, offset) for offset in (1, 4, 100, -1)),
    listed(-1, 1, "taken"),
    OffsetForLeaderEpochRequest(
        [
            OffsetForLeaderEpochTopic("taken", [OffsetForLeaderEpochPartition(0, epoch)])
            for epoch in (0,)
        ]
    ),
)
case(
    "batches that are refused",
    created("refused"),
    *(produced("refused", captured(f"produce-v3-{name}")) for name in REFUSED),
    produced("nosuch", PLAIN),
    fetched("refused", 4),
)
for name, data in (
    ("none", b""),
    ("two", PLAIN + PLAIN),
    ("a part", PLAIN[:-1]),
    ("an old message", bytes(12) + PLAIN[12:16] + b"\1" + PLAIN[17:]),
):
    case(f"not one batch: {name}", produced("t", data), fetched("t", 4))
case(
    "a batch for old consumers",
    created("down"),
    produced("down", PLAIN),
    produced("down", captured("produce-v3-no-ts")),
    *(fetched("down", version, offset) for version in range(4) for offset in (0, 1, 3)),
)
case(
    "batches for older formats",
    created("old1", message_format_version="0.10.2"),
    created("old0", message_format_version="0.9.0"),
    *(
        produced(topic, captured(f"produce-v3-{name}"))
        for topic in ("old1", "old0")
        for name in ("plain", "headers", "to-m1-idem", "to-m1-txn")
    ),
    *(fetched(topic, 4) for topic in ("old1", "old0")),
)
case(
    "producers",
    created("sequences"),
    InitProducerIdRequest(None, 1000),
    InitProducerIdRequest(None, -1),
    *(
        produced("sequences", captured(name))
        for name in CAPTURED
        # Ours recognizes five batches, not one.
        if name.startswith("produce-idem-") and name not in OF_FIVE
    ),
    fetched("sequences", 5),
)


def deleted(topic: str, before: int, partition: int = 0, timeout_ms: int = 8000) -> Request:
    wanted = [DeleteRecordsTopic(topic, [DeleteRecordsPartition(partition, before)])]
    return DeleteRecordsRequest(wanted, timeout_ms)


case(
    "records are deleted",
    created("shorter"),
    *(produced("shorter", PLAIN) for _ in range(3)),
    deleted("shorter", 0),
    deleted("shorter", 4),
    deleted("shorter", 2),
    *(listed(time, 0, "shorter") for time in (-1, -2, 0)),
    OffsetsRequest(
        -1, [OffsetsTopic("shorter", [OffsetsPartition(0, time, 9) for time in (-1,)])], version=0
    ),
    OffsetsRequest(
        -1, [OffsetsTopic("shorter", [OffsetsPartition(0, time, 9) for time in (-2,)])], version=0
    ),
    *(fetched("shorter", version, offset) for version in (0, 2, 3, 5) for offset in (3, 4)),
    *(fetched("shorter", 5, offset, 1) for offset in (3, 4)),
    deleted("shorter", 3, timeout_ms=0),
    deleted("shorter", -1),
    *(fetched("shorter", version, 9) for version in (1, 4, 5)),
    listed(0, 0, "shorter"),
    produced("shorter", PLAIN),
    fetched("shorter", 5, 9),
    OffsetForLeaderEpochRequest(
        [OffsetForLeaderEpochTopic("shorter", [OffsetForLeaderEpochPartition(0, 0)])]
    ),
)
case(
    "deletions of records that are refused",
    created("kept"),
    created("keyed", cleanup_policy="compact"),
    created("both", cleanup_policy="compact,delete"),
    produced("kept", PLAIN),
    deleted("kept", 4),
    deleted("kept", -2),
    deleted("kept", 0, partition=1),
    deleted("kept", 0, partition=-1),
    deleted("nosuch", 0),
    deleted("bad name", 0),
    deleted("keyed", 1),
    deleted("keyed", 0),
    deleted("both", 0),
    deleted("__consumer_offsets", 0),
    DeleteRecordsRequest([], 0),
    DeleteRecordsRequest([DeleteRecordsTopic("kept", [])], 0),
    listed(-2, 0, "kept"),
)
