"""Rules: which are legal, and which requests match them."""

from __future__ import annotations

from typing import Any

import pytest

from kafka08.errors import CODES, ConfigError
from kafka08.faults.rule import ERROR_NAMES, Rule
from kafka08.levels import Level
from kafka08.protocol.add_offsets_to_txn import AddOffsetsToTxnRequest
from kafka08.protocol.add_partitions_to_txn import AddPartitionsToTxnRequest, TxnTopic
from kafka08.protocol.apis import APIS
from kafka08.protocol.codec import RequestHeader
from kafka08.protocol.consumer_metadata import TRANSACTION, ConsumerMetadataRequest
from kafka08.protocol.describe_groups import DescribeGroupsRequest
from kafka08.protocol.end_txn import EndTxnRequest
from kafka08.protocol.fetch import FetchPartition, FetchRequest, FetchTopic
from kafka08.protocol.init_producer_id import InitProducerIdRequest
from kafka08.protocol.metadata import MetadataRequest
from kafka08.protocol.offset_fetch import OffsetFetchRequest, OffsetFetchTopic
from kafka08.protocol.produce import ProducePartition, ProduceRequest, ProduceTopic
from kafka08.protocol.served import SERVED
from kafka08.protocol.stop_replica import StopReplicaPartition, StopReplicaRequest
from kafka08.protocol.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetTopic
from kafka08.protocol.types import Request
from kafka08.protocol.write_txn_markers import TxnMarker, WriteTxnMarkersRequest
from tests.in_turn import in_turn

BROKERS = (0, 1, 2)


def rule(**values: Any) -> Rule:
    return Rule.of({"drop": True, **values}, Level.V0_11_0, BROKERS)


def fault_of(level: Level = Level.V0_10_2, **values: Any) -> str:
    with pytest.raises(ConfigError) as raised:
        Rule.of(values, level, BROKERS)
    return str(raised.value)


def header(key: int, version: int = 0, client_id: str | None = "client") -> RequestHeader:
    return RequestHeader(key, version, 7, client_id)


FETCH = FetchRequest(-1, 0, 1, [FetchTopic("t", [FetchPartition(2, 0, 1000)])])
REQUESTS: list[tuple[Request, list[dict[str, Any]], list[dict[str, Any]]]] = [
    (FETCH, [{}, {"topic": "t"}, {"topic": "t", "partition": 2}],
     [{"topic": "u"}, {"topic": "t", "partition": 1}, {"group": "g"}]),
    (MetadataRequest(["t"]), [{"topic": "t"}], [{"topic": "u"}, {"topic": "t", "partition": 0}]),
    (MetadataRequest(None), [{}], [{"topic": "t"}]),
    (OffsetFetchRequest("g", [OffsetFetchTopic("t", [1])]),
     [{"group": "g"}, {"group": "g", "topic": "t", "partition": 1}],
     [{"group": "h"}, {"topic": "t", "partition": 0}]),
    (DescribeGroupsRequest(["g", "h"]), [{"group": "h"}], [{"group": "i"}]),
    (StopReplicaRequest(0, 1, 0, [StopReplicaPartition("t", 3)]),
     [{"topic": "t", "partition": 3}], [{"topic": "t", "partition": 4}]),
    (InitProducerIdRequest("x", 1), [{"transactional_id": "x"}], [{"transactional_id": "y"}]),
    (InitProducerIdRequest(None, 1), [{}], [{"transactional_id": "x"}]),
    (AddPartitionsToTxnRequest("x", 1, 0, [TxnTopic("t", [1])]),
     [{"transactional_id": "x", "topic": "t", "partition": 1}],
     [{"transactional_id": "y", "topic": "t"}, {"transactional_id": "x", "topic": "u"}]),
    (AddOffsetsToTxnRequest("x", 1, 0, "g"), [{"transactional_id": "x", "group": "g"}],
     [{"transactional_id": "g"}, {"group": "x"}]),
    (TxnOffsetCommitRequest("x", "g", 1, 0, [TxnOffsetTopic("t", [])]),
     [{"transactional_id": "x", "group": "g"}], [{"transactional_id": "y", "group": "g"}]),
    (EndTxnRequest("x", 1, 0, True), [{"transactional_id": "x"}], [{"transactional_id": "y"}]),
    (ProduceRequest(-1, 1, [ProduceTopic("t", [ProducePartition(0, b"")])], "x"),
     [{"transactional_id": "x", "topic": "t"}], [{"transactional_id": "y"}]),
    (ProduceRequest(-1, 1, []), [{}], [{"transactional_id": "x"}]),
    (ConsumerMetadataRequest("x", TRANSACTION), [{"transactional_id": "x"}], [{"group": "x"}]),
    (ConsumerMetadataRequest("g"), [{"group": "g"}], [{"transactional_id": "g"}]),
    (WriteTxnMarkersRequest([TxnMarker(1, 0, True, [TxnTopic("t", [1])], 0)]),
     [{"topic": "t", "partition": 1}], [{"topic": "u"}, {"topic": "t", "partition": 0}]),
]  # fmt: skip


@in_turn("case", REQUESTS)
def test_a_request_matches_what_it_names(
    case: tuple[Request, list[dict[str, Any]], list[dict[str, Any]]],
) -> None:
    """A request matches a rule with a topic, partition, group or transactional id that it names,
    among others too, and no rule with one that it does not."""
    request, matching, others = case
    for values in matching:
        assert rule(**values).matches(0, header(1), request), values
    for values in others:
        assert not rule(**values).matches(0, header(1), request), values


def test_a_request_matches_by_its_header_and_broker() -> None:
    """Version, client id and receiving broker are compared too."""
    assert rule(version=2, client_id="client", broker=1).matches(1, header(1, 2), FETCH)
    assert not rule(broker=1).matches(0, header(1, 2), FETCH)
    assert not rule(version=1).matches(1, header(1, 2), FETCH)
    assert not rule(client_id="client").matches(1, header(1, 2, None), FETCH)


def test_names_of_other_releases() -> None:
    """An API is also found by its key, and by the name that other releases have for it."""
    assert rule(api="ListOffsets").api == rule(api=2).api == "Offsets"
    assert rule(api="FindCoordinator").api == "ConsumerMetadata"


def test_errors_have_the_names_of_kafkas_documentation() -> None:
    """Each code has one name, as the protocol guide writes it, and the number is understood too."""
    assert len(ERROR_NAMES) == len(CODES)
    assert ERROR_NAMES["NOT_LEADER_FOR_PARTITION"] == 6
    made = Rule.of({"api": "Produce", "error": "Not_Enough_Replicas"}, Level.V0_9_0, BROKERS)
    assert made.error == 19 == Rule.of({"error": 19}, Level.V0_9_0, BROKERS).error


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"drop": True, "topik": "t"}, "topik: a rule has no such key; did you mean topic?"),
    ({"api": "Produse", "drop": True}, "there is no API 'Produse'; did you mean Produce?"),
    ({"api": 99, "drop": True}, "there is no API 99"),
    ({"api": "Produce"}, "a rule does one thing, and this one none"),
    ({"drop": True, "delay_ms": 5}, "this one delay_ms and drop"),
    ({"error": "NOT_LEADER"}, "there is no error code 'NOT_LEADER'"),
    ({"error": 0}, "there is no error code 0"),
    ({"delay_ms": 0}, "delay_ms: 0 is not a number from 1 to 600000"),
    ({"delay_ms": True}, "delay_ms: True is not a number"),
    ({"drop": False}, "drop: False is not true"),
    ({"close": "later"}, "close: 'later' is neither 'before' nor 'after'"),
    ({"drop": True, "probability": 0}, "probability: 0 is not above 0"),
    ({"drop": True, "times": 0}, "times: 0 is not a number from 1"),
    ({"drop": True, "topic": "a/b"}, "topic: no topic is called 'a/b'"),
    ({"drop": True, "partition": 1}, "partition: it needs the topic"),
    ({"drop": True, "broker": 7}, "broker: 7 is none of 0, 1, 2"),
    ({"drop": True, "api": "Fetch", "version": 9}, "version: 9, but brokers of level 0.10.2"),
    ({"drop": True, "api": "Heartbeat", "topic": "t"}, "topic: requests of Heartbeat at"),
    ({"drop": True, "api": "Metadata", "topic": "t", "partition": 1}, "partition: requests of"),
    ({"drop": True, "api": "Fetch", "group": "g"}, "group: requests of Fetch at level"),
    ({"drop": True, "transactional_id": "x"}, "transactional_id: requests at level 0.10.2 name"),
    ({"drop": True, "version": 2, "transactional_id": "x"}, "requests of version 2 at level"),
    (
        {"drop": True, "api": "ControlledShutdown", "version": 0, "client_id": "x"},
        "client_id: requests of ControlledShutdown version 0 at level 0.10.2 name none",
    ),
    ({"drop": True, "api": "OffsetCommit", "transactional_id": "x"}, "of OffsetCommit at level"),
    ({"api": "Fetch", "addresses": {0: "h:1"}}, "addresses: it needs api Metadata"),
    ({"api": "Metadata", "addresses": {0: "h"}}, "addresses: 'h' is not host:port"),
    ({"api": "Metadata", "addresses": {0: "h:65536"}}, "is not host:port"),
    ({"api": "Metadata", "addresses": {5: "h:1"}}, "addresses: 5 is none of 0, 1, 2"),
    ({"api": "Metadata", "addresses": {}}, "is not a mapping"),
    ({"drop": True, "client_id": "x" * 40_000}, "client_id: "),
]


@in_turn("case", REFUSED)
def test_a_rule_that_can_hit_nothing_is_refused(case: tuple[dict[str, Any], str]) -> None:
    """An error names the key, what is wrong with its value, and what was probably meant."""
    values, text = case
    assert text in fault_of(**values)


def test_an_api_that_the_level_lacks_is_refused() -> None:
    """Brokers of 0.8.2 have no SyncGroup, so no request could match."""
    assert "brokers of level 0.8.2 have no SyncGroup" in fault_of(
        Level.V0_8_2, api="SyncGroup", drop=True
    )


def test_an_api_has_rules_where_it_is_served() -> None:
    """A level may have the rows of an API, and serve none of them yet."""
    for level in Level:
        served = {key for key, _ in SERVED[level].rows}
        for api in APIS:
            if api.key in served:
                assert Rule.of({"api": api.key, "drop": True}, level, BROKERS).api == api.name
            else:
                assert f"have no {api.name}" in fault_of(level, api=api.key, drop=True)


def test_a_version_without_a_transactional_id_is_refused() -> None:
    """Older versions of an API name none, so the level must have a newer one."""
    assert rule(api="Produce", transactional_id="x", version=3)
    assert rule(transactional_id="x")
    for level, values in (
        (Level.V0_11_0, {"api": "Produce", "version": 2}),
        (Level.V0_11_0, {"api": "FindCoordinator", "version": 0}),
        (Level.V0_11_0, {"api": "Fetch"}),
        (Level.V0_10_2, {"api": "Produce"}),
        (Level.V0_8_2, {}),
    ):
        assert fault_of(level, drop=True, transactional_id="x", **values).startswith(
            "transactional_id: requests"
        )


def test_keys_that_no_request_names_together_are_refused() -> None:
    """Each of them is named by some request of that version, and all by none."""
    assert rule(transactional_id="x", group="g", topic="t")
    assert fault_of(Level.V0_11_0, drop=True, transactional_id="x", topic="t", version=1) == (
        "topic and transactional_id: no requests of version 1 at level 0.11.0 name all of these"
    )


def test_json_has_what_differs_from_the_defaults() -> None:
    """A rule as JSON makes the same rule again."""
    made = rule(api="Metadata", topic="t", skip=1, drop=None, addresses={"1": "h:9092"})
    assert made.to_json() == {
        "api": "Metadata", "topic": "t", "skip": 1, "addresses": {1: "h:9092"}
    }  # fmt: skip
    assert Rule.of(made.to_json(), Level.V0_10_2, BROKERS) == made
