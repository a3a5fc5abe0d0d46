"""One table of options and what they mean or why they are refused (reference: KafkaSourceProvider
of Spark 4, and reference/spark.md section 2)."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from kafka08.arrow.bounds import Committed, Extreme, Offsets, Times
from kafka08.arrow.options import (
    Assignment,
    ReadOptions,
    TopicPattern,
    Topics,
    parse_read_options,
)
from kafka08.arrow.ranges import OffsetRange
from kafka08.errors import ConfigError
from kafka08.structs import TopicPartition

BASE = {"kafka.bootstrap.servers": "b1:9092,b2:9093", "subscribe": "t"}
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def parse(*, streaming: Any = False, without: str = "", **given: str) -> ReadOptions:
    """BASE and `given`, whose names are written with _ for a dot."""
    options = BASE | {name.replace("_", "."): value for name, value in given.items()}
    options.pop(without, None)
    return parse_read_options(options, streaming=streaming)


@pytest.mark.parametrize(
    ("given", "field", "meaning"),
    [
        ({}, "subscription", Topics(("t",))),
        ({"subscribe": "u, t,u"}, "subscription", Topics(("t", "u"))),
        ({}, "start", Extreme.EARLIEST),
        ({}, "end", Extreme.LATEST),
        ({"startingOffsets": "EARLIEST"}, "start", Extreme.EARLIEST),
        (
            {"startingOffsets": '{"t":{"0":23,"1":-2}}'},
            "start",
            Offsets({T0: 23, T1: -2}),
        ),
        ({"endingOffsets": '{"t":{"0":23,"1":-1}}'}, "end", Offsets({T0: 23, T1: -1})),
        (
            {"startingOffsets": "committed", "kafka_group_id": "g"},
            "start",
            Committed(None),
        ),
        (
            {
                "startingOffsets": "committed",
                "committedFallback": "earliest",
                "kafka_group_id": "g",
            },
            "start",
            Committed(Extreme.EARLIEST),
        ),
        ({"kafka_offsets_storage": "kafka"}, "storage", "kafka"),
        ({}, "storage", "zookeeper"),
        (
            {"startingTimestamp": "5", "timestampGranularity": "segment"},
            "start",
            Times(None, 5, by_segment=True),
        ),
        ({"startingTimestamp": "5"}, "start", Times(None, 5)),
        ({"endingOffsetsByTimestamp": '{"t":{"0":1}}'}, "end", Times({T0: 1})),
        (
            {
                "startingOffsetsByTimestamp": '{"t":{"0":7}}',
                "startingOffsets": "earliest",
                "startingOffsetsByTimestampStrategy": "latest",
                "timestampGranularity": "segment",
            },
            "start",
            Times({T0: 7}, 0, True, True),
        ),
        (
            {"endingTimestamp": "9", "endingOffsets": "latest", "timestampGranularity": "segment"},
            "end",
            Times(None, 9, by_segment=True),
        ),
        ({"minPartitions": "12"}, "min_partitions", 12),
        ({"maxRecordsPerPartition": "1000"}, "max_records_per_partition", 1000),
        ({"includeHeaders": "true"}, "include_headers", True),
        ({"MINPARTITIONS": "3"}, "min_partitions", 3),
        ({"groupIdPrefix": "x"}, "group", ""),
        ({"pushFilters": "true"}, "push_filters", True),
    ],
)
def test_meaning(given: dict[str, str], field: str, meaning: Any) -> None:
    """Each option of a batch has the meaning that Spark's own connector gives it; names ignore
    case."""
    assert getattr(parse(**given), field) == meaning


@pytest.mark.parametrize(
    ("given", "field", "meaning"),
    [
        ({}, "start", Extreme.LATEST),
        ({"startingOffsets": '{"t":{"0":-1}}'}, "start", Offsets({T0: -1})),
        ({"maxOffsetsPerTrigger": "10"}, "max_offsets_per_trigger", 10),
        (
            {"minOffsetsPerTrigger": "10", "maxOffsetsPerTrigger": "10"},
            "min_offsets_per_trigger",
            10,
        ),
        ({}, "max_trigger_delay_ms", 900_000),
        ({"maxTriggerDelay": "2h"}, "max_trigger_delay_ms", 7_200_000),
        ({"maxTriggerDelay": "1500"}, "max_trigger_delay_ms", 1500),
        ({"commitOffsets": "kafka", "kafka_group_id": "g"}, "commit_to", "kafka"),
        ({"commitOffsets": "kafka", "kafka_group_id": "g"}, "storage", "zookeeper"),
        ({"checkpointLocation": "/x", "kafka_offsets_storage": "kafka"}, "commit_to", None),
    ],
)
def test_meaning_in_a_stream(given: dict[str, str], field: str, meaning: Any) -> None:
    """A stream starts at the latest offset by default, and has limits."""
    assert getattr(parse(streaming=True, **given), field) == meaning


def test_exact_ranges_replace_a_subscription() -> None:
    """With offsetRanges there is no subscription."""
    parsed = parse(without="subscribe", offsetRanges='[["t",0,1,2],["t",0,5,5]]')
    assert parsed.ranges == (OffsetRange("t", 0, 1, 2), OffsetRange("t", 0, 5, 5))
    assert parsed.subscription is None


def test_limits_of_a_trigger_are_noted_in_a_batch(caplog: pytest.LogCaptureFixture) -> None:
    """They have no effect there, as in Spark's own connector; the note says so. Message is the
    default grain of times."""
    parse_read_options(BASE | {"maxOffsetsPerTrigger": "5", "timestampGranularity": "message"})
    assert "maxOffsetsPerTrigger: without effect in a batch" in caplog.text


def test_assignment_and_pattern() -> None:
    """assign names partitions, subscribePattern is a Java pattern of whole names."""
    assigned = parse(without="subscribe", assign='{"t":[1,0,1]}')
    assert assigned.subscription == Assignment((T0, T1))
    pattern = parse(without="subscribe", subscribePattern="web\\..*").subscription
    assert pattern == TopicPattern("web\\..*")
    assert isinstance(pattern, TopicPattern)
    assert pattern.compiled().fullmatch("web.log")
    assert not pattern.compiled().fullmatch("a-web.log")


@pytest.mark.parametrize(
    ("subscribed", "is_read"),
    [
        ({"subscribePattern": "web.*"}, True),
        ({"subscribePattern": "logs"}, False),
        ({"subscribe": "web"}, True),
        ({"subscribe": "logs,webs"}, False),
        ({"assign": '{"web":[0]}'}, True),
    ],
)
def test_which_topics_a_read_may_read(subscribed: dict[str, str], is_read: bool) -> None:
    """Only leaders of such topics are asked for their versions."""
    given = {"kafka.bootstrap.servers": "h:1", **subscribed}
    assert parse_read_options(given).topic_filter()("web") == is_read


def test_cluster_and_settings() -> None:
    """kafka.* keys have 0.8's names; max.partition.fetch.bytes is an alias."""
    parsed = parse(
        kafka_max_partition_fetch_bytes="1000",
        kafka_client_id="me",
        kafka_socket_timeout_ms="900",
        failOnDataLoss="false",
        kafkaConsumer_pollTimeoutMs="5000",
        maxFetchBytes="2000",
    )
    assert parsed.address.bootstrap == (("b1", 9092), ("b2", 9093))
    assert parsed.settings.fetch_bytes == 1000
    assert parsed.settings.max_fetch_bytes == 2000
    assert parsed.settings.client_id == "me"
    assert parsed.settings.socket_timeout_ms == 900
    assert parsed.settings.poll_timeout_ms == 5000
    assert not parsed.settings.fail_on_data_loss


@pytest.mark.parametrize("name", ["zookeeper_connect", "kafka_zookeeper_connect"])
def test_cluster_by_zookeeper(name: str) -> None:
    """zookeeper.connect replaces the brokers' addresses."""
    parsed = parse(without="kafka.bootstrap.servers", **{name: "z:2181/k"})
    assert parsed.address.zookeeper == "z:2181/k"


REFUSED: list[tuple[dict[str, str], str, str]] = [
    ({}, "subscribe", "exactly one of assign, subscribe, subscribePattern or offsetRanges"),
    ({"assign": '{"t":[0]}'}, "", "not assign and subscribe"),
    ({"subscribe": " , "}, "", "subscribe: ',' names no topic"),
    ({"subscribePattern": "("}, "subscribe", "("),
    ({"assign": '{"t":0}'}, "subscribe", "assign: "),
    ({"assign": '{"t":[-1]}'}, "subscribe", "assign: "),
    ({"assign": "{}"}, "subscribe", "names no partition"),
    ({"startingOffsets": "latest"}, "", "a batch query cannot start at latest"),
    ({"startingOffsets": '{"t":{"0":-1}}'}, "", "-1 (latest) is for streams"),
    ({"startingOffsets": '{"t":{"0":-3}}'}, "", "-3 of [t,0]"),
    ({"startingOffsets": '{"t":{"a":1}}'}, "", "'a' is not a partition"),
    ({"startingOffsets": "soon"}, "", "startingOffsets: 'soon' is not earliest, committed or "),
    ({"startingOffsets": '{"t":'}, "", "startingOffsets: '{\"t\":' is not JSON"),
    ({"startingOffsets": '{"t":' * 50_000}, "", "is not JSON: maximum recursion depth"),
    ({"endingOffsets": "now"}, "", "endingOffsets: 'now' is not latest or offsets like"),
    ({"endingOffsets": "earliest"}, "", "a query cannot end at earliest"),
    ({"endingOffsets": '{"t":{"0":-2}}'}, "", "-2 (earliest) cannot be where a query ends"),
    (
        {"startingOffsets": '{"t":{"0":9}}', "endingOffsets": '{"t":{"0":8}}'},
        "",
        "[t,0]: startingOffsets has 9, endingOffsets 8",
    ),
    (
        {"assign": '{"t":[0,1]}', "startingOffsets": '{"t":{"0":9,"2":1}}'},
        "subscribe",
        "missing: [t,1]; not subscribed: [t,2]",
    ),
    (
        {
            "assign": '{"t":[0,1]}',
            "endingOffsetsByTimestamp": '{"t":{"0":9}}',
            "timestampGranularity": "segment",
        },
        "subscribe",
        "endingOffsetsByTimestamp must name exactly the subscribed partitions; missing: [t,1]",
    ),
    ({"startingTimestamp": str(2**63), "timestampGranularity": "segment"}, "", "is above 92233720"),
    ({"startingOffsets": f'{{"t":{{"0":{2**63}}}}}'}, "", "is not a number from -2 to 92233720"),
    ({"maxFetchBytes": str(2**31)}, "", "maxFetchBytes: '2147483648' is above 2147483647"),
    ({"timestampGranularity": "day"}, "", "is not one of message, segment"),
    ({"splitBy": "bytes"}, "", "splitBy=bytes needs minPartitions"),
    ({"minPartitions": "0"}, "", "minPartitions: '0' is below 1"),
    ({"maxRecordsPerPartition": "many"}, "", "is not a whole number"),
    ({"failOnDataLoss": "maybe"}, "", "neither 'true' nor 'false'"),
    ({"startingOffsets": "committed"}, "", "startingOffsets=committed needs kafka.group.id"),
    ({"commitOffsets": "kafka", "kafka_group_id": "g"}, "", "commitOffsets is for streams"),
    ({"kafka_auto_offset_reset": "smallest"}, "", "kafka.auto.offset.reset is not supported"),
    ({"kafka_key_deserializer": "x"}, "", "kafka.key.deserializer is not supported"),
    ({"kafka_enable_auto_commit": "true"}, "", "kafka.enable.auto.commit is not supported"),
    ({"kafka_interceptor_classes": "x"}, "", "kafka.interceptor.classes is not supported"),
    ({"kafka_socket_timeout_ms": "0"}, "", "socket.timeout.ms: '0' is outside the range"),
    ({"maxOffsetPerTrigger": "5"}, "", "unknown option maxoffsetpertrigger; valid are"),
    ({"maxOffsetPerTrigger": "5"}, "", "and kafka.*; did you mean maxOffsetsPerTrigger?"),
    ({"zookeeper_connect": "z:2181"}, "", "give one of kafka.bootstrap.servers"),
    ({}, "kafka.bootstrap.servers", "give one of kafka.bootstrap.servers"),
    ({"kafka_bootstrap_servers": "b1"}, "", "kafka.bootstrap.servers: 'b1'"),
    ({"offsetRanges": "[]"}, "", "offsetRanges excludes subscribe: ranges say what is read"),
    (
        {"offsetRanges": "[]", "startingOffsets": "earliest"},
        "subscribe",
        "offsetRanges excludes startingOffsets",
    ),
    ({"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "8"}, "", "9 is above"),
]


@pytest.mark.parametrize(("given", "without", "fault"), REFUSED)
def test_refusals(given: dict[str, str], without: str, fault: str) -> None:
    """Options that contradict each other, or make no sense in a batch, are a ConfigError that says
    what to change."""
    with pytest.raises(ConfigError) as refused:
        parse(without=without, **given)
    assert fault in str(refused.value)


@pytest.mark.parametrize(
    ("given", "without", "fault"),
    [
        ({"endingOffsets": "latest"}, "", "endingOffsets is not valid in a stream"),
        ({"endingTimestamp": "1"}, "", "endingTimestamp is not valid in a stream"),
        ({"offsetRanges": "[]"}, "subscribe", "offsetRanges is not valid in a stream"),
        ({"commitOffsets": "kafka"}, "", "commitOffsets needs kafka.group.id"),
        ({"maxTriggerDelay": "soon"}, "", "is not a time like"),
    ],
)
def test_refusals_in_a_stream(given: dict[str, str], without: str, fault: str) -> None:
    """Ends, exact ranges and commits without a group are a ConfigError in a stream."""
    with pytest.raises(ConfigError) as refused:
        parse(streaming=True, without=without, **given)
    assert fault in str(refused.value)


SECURED = {
    "kafka.security.protocol": "SASL_PLAINTEXT",
    "kafka.sasl.mechanism": "PLAIN",
    "kafka.sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="alice" password="alice-secret";',
}


def test_security_goes_to_the_workers_and_is_not_shown() -> None:
    """What Spark sends them is pickled, and cached by its value; what it shows is the repr."""
    options = parse(**SECURED)
    assert "alice-secret" not in repr(options)
    received = pickle.loads(pickle.dumps(options)).address
    assert received == options.address
    assert received.security.protocol == "SASL_PLAINTEXT"
    assert received.security is options.address.security
    assert parse(**{**SECURED, "kafka.security.protocol": "PLAINTEXT"}).address.secrets == ()


def test_security_needs_the_addresses_of_brokers() -> None:
    """ZooKeeper has those of PLAINTEXT listeners."""
    found = {**SECURED, "kafka.zookeeper.connect": "z:2181"}
    with pytest.raises(ConfigError, match="needs the addresses of brokers"):
        parse(without="kafka.bootstrap.servers", **found)
    with pytest.raises(ConfigError, match=r"sasl\.mechanism: 'PLANE' is not one of"):
        parse(**{**SECURED, "kafka.sasl.mechanism": "PLANE"})


def test_options_of_a_permanent_table_are_missed() -> None:
    """Spark does not pass them on; the error says what to write instead."""
    with pytest.raises(ConfigError, match="CREATE TEMPORARY VIEW"):
        parse_read_options({})
