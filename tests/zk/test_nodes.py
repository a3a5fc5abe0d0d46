"""kafka08.zk.nodes against znodes captured from live brokers, and against damaged ones."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka08.errors import ZooKeeperError
from kafka08.structs import Broker, LeaderAndIsr, TopicPartition
from kafka08.zk import nodes
from scripts.fuzzing.targets import DECODE_NODE

DATA = Path(__file__).parent.parent / "data"


def captured(name: str) -> list[tuple[str, str]]:
    """(path, text) of every znode with data in a captured file, of all its phases."""
    content = json.loads((DATA / f"{name}.json").read_text())
    trees = [content, *content.values()] if "controller" not in name else []
    trees += list(content.get("znodes", {}).values())
    return [
        (path, node["data"])
        for tree in trees
        if isinstance(tree, dict)
        for path, node in tree.items()
        if isinstance(node, dict) and isinstance(node.get("data"), str) and node["data"]
    ]


def read_state(text: str) -> LeaderAndIsr:
    return nodes.decode_leader_and_isr(text, 0)


def rewritten(path: str, text: str) -> str | None:
    """The text after one decode and encode by the functions for its path, or None for other
    znodes."""
    patterns: list[tuple[str, Callable[[str], str]]] = [
        (r"/brokers/ids/\d+", lambda t: nodes.encode_broker(nodes.decode_broker(t))),
        (r"/brokers/topics/[^/]+", lambda t: nodes.encode_assignment(nodes.decode_assignment(t))),
        (
            r".*/partitions/\d+/state",
            lambda t: nodes.encode_leader_and_isr(nodes.decode_leader_and_isr(t, 0)),
        ),
        ("/controller", lambda t: nodes.encode_controller(nodes.decode_controller(t))),
        (
            "/controller_epoch",
            lambda t: nodes.encode_controller_epoch(nodes.decode_controller_epoch(t)),
        ),
        (".*/ids/.+", lambda t: nodes.encode_consumer(nodes.decode_consumer(t))),
        (".*/offsets/.+", lambda t: nodes.encode_offset(nodes.decode_offset(t))),
        ("/config/topics/.+", lambda t: nodes.encode_topic_config(nodes.decode_topic_config(t))),
        (
            "/config/changes/.+",
            lambda t: nodes.encode_config_change(nodes.decode_config_change(t)),
        ),
        (
            "/admin/reassign_partitions",
            lambda t: nodes.encode_reassignment(nodes.decode_reassignment(t)),
        ),
        (".*/owners/.+", str),
    ]
    for pattern, again in patterns:
        if re.fullmatch(pattern, path):
            return again(text)
    return None


@pytest.mark.parametrize(
    "name", ["znodes-0.8.2.2-live", "znodes-0.8.2.2-consumers", "controller-0.8.2.2"]
)
def test_captured_texts_are_written_back_byte_for_byte(name: str) -> None:
    """For the same values we write the text that 0.8.2.2 wrote, with the keys in the same order."""
    found = captured(name)
    assert len(found) > 10
    for path, text in found:
        assert rewritten(path, text) == text, path


def test_a_broker_reads_as_registered() -> None:
    """The captured registration of broker 1 has the captured address and time."""
    text = dict(captured("znodes-0.8.2.2-live"))["/brokers/ids/1"]
    registration = nodes.decode_broker(text)
    assert registration == nodes.BrokerRegistration("127.0.0.1", 19091, -1, 1795230513075)
    assert str(registration.broker(1)) == "id:1,host:127.0.0.1,port:19091"


@pytest.mark.parametrize(
    ("name", "version"), [("controller-0.9.0.1", 2), ("controller-0.10.2.2", 4)]
)
def test_registrations_of_later_brokers_are_read(name: str, version: int) -> None:
    """Registrations of 0.9 and 0.10 have endpoints and more. Host and port are those of the
    PLAINTEXT listener."""
    registration = nodes.decode_broker(dict(captured(name))["/brokers/ids/1"])
    assert registration.version == version
    assert registration.endpoints == ("PLAINTEXT://127.0.0.1:19390",)
    assert registration.broker(1) == Broker(1, "127.0.0.1", 19390)


def test_a_broker_without_plaintext_has_no_address_for_us() -> None:
    """A broker without PLAINTEXT has host null and port -1. The error for its address says why it
    has none."""
    text = '{"endpoints":["SSL://h:9"],"host":null,"version":3,"port":-1}'
    registration = nodes.decode_broker(text)
    assert (registration.host, registration.port) == (None, -1)
    with pytest.raises(ZooKeeperError, match="broker 7 has no PLAINTEXT listener, only SSL"):
        registration.broker(7)


def test_the_captured_cluster_id_is_written_back() -> None:
    """/cluster/id of a live 0.10 has the same form as ours."""
    text = dict(captured("controller-0.10.2.2"))["/cluster/id"]
    assert nodes.encode_cluster_id(nodes.decode_cluster_id(text)) == text


def test_old_controllers_wrote_their_bare_id() -> None:
    """Before 0.8.1, /controller had just the broker's id."""
    assert nodes.decode_controller("3") == nodes.ControllerNode(3)


def test_a_partition_state_carries_the_version_it_was_read_at() -> None:
    """zk_version is the version of the znode; every other field comes from its text."""
    text = '{"controller_epoch":4,"leader":-1,"version":1,"leader_epoch":7,"isr":[]}'
    state = nodes.decode_leader_and_isr(text, 12)
    assert state == LeaderAndIsr(-1, 7, (), 12, 4)
    assert nodes.encode_leader_and_isr(state) == text


@pytest.mark.parametrize("pattern", [nodes.WHITE_LIST, nodes.BLACK_LIST])
def test_a_wildcard_is_escaped_as_json(pattern: str) -> None:
    """A regular expression is written as JSONEscapeString does, and is read back unchanged."""
    registration = nodes.ConsumerRegistration({'a\\d+/"b\x7f': 2}, pattern, 5)
    text = nodes.encode_consumer(registration)
    assert '{"a\\\\d+\\/\\"b\\u007f":2}' in text
    assert nodes.decode_consumer(text) == registration


def test_other_clients_add_keys_to_their_registration() -> None:
    """Unknown keys and a numeric timestamp are accepted. A missing pattern means static."""
    registration = nodes.decode_consumer(
        '{"version":1,"subscription":{"t":1},"timestamp":9,"x":[]}'
    )
    assert registration == nodes.ConsumerRegistration({"t": 1}, nodes.STATIC, 9)


def test_null_data_means_nothing() -> None:
    """A znode that was created as a parent has null data, and reads as an empty one."""
    for empty in (None, ""):
        assert nodes.decode_assignment(empty) == {}
        assert nodes.decode_topic_config(empty) == {}
        assert nodes.decode_reassignment(empty) == {}
        assert nodes.decode_preferred_election(empty) == ()
        with pytest.raises(ZooKeeperError, match="controller: cannot be read"):
            nodes.decode_controller(empty)


def test_a_topic_configuration_of_another_version_is_refused() -> None:
    """`version` is checked in /config/topics alone, as in 0.8.2.2."""
    with pytest.raises(ZooKeeperError, match="version 2 is not 1"):
        nodes.decode_topic_config('{"version":2,"config":{}}')


def test_text_that_would_break_the_json_is_escaped() -> None:
    """0.8 writes a quote in a value unescaped and then cannot read it. Our text stays readable."""
    config = {"a": 'say "hi"\n', "ö": "ü"}
    text = nodes.encode_topic_config(config)
    assert text == '{"version":1,"config":{"a":"say \\"hi\\"\\n","ö":"ü"}}'
    assert nodes.decode_topic_config(text) == config


def test_a_config_change_is_read_in_both_forms() -> None:
    """0.8 writes the topic in quotes, 0.9 an object with a type. Both are read."""
    assert nodes.decode_config_change('"tt"') == nodes.ConfigChange("tt")
    newer = '{"version":1,"entity_type":"clients","entity_name":"c"}'
    assert nodes.decode_config_change(newer) == nodes.ConfigChange("c", "clients")
    assert nodes.encode_config_change(nodes.ConfigChange("tt")) == '"tt"'


def test_elections_and_reassignments_list_partitions() -> None:
    """Both admin requests list partitions as the reference shows."""
    tp = TopicPartition("fk-a", 1)
    election = '{"version":1,"partitions":[{"topic":"fk-a","partition":1}]}'
    assert nodes.encode_preferred_election([tp]) == election
    assert nodes.decode_preferred_election(election) == (tp,)
    move = '{"version":1,"partitions":[{"topic":"fk-a","partition":1,"replicas":[2,3]}]}'
    assert nodes.encode_reassignment({tp: (2, 3)}) == move
    assert nodes.decode_reassignment(move) == {tp: (2, 3)}


def test_a_cluster_id_has_its_version_as_text() -> None:
    """In /cluster/id of 0.10.1 the version is a string."""
    text = '{"version":"1","id":"rVp1fIJ2T0y0hgTLbRHLTg"}'
    assert nodes.encode_cluster_id("rVp1fIJ2T0y0hgTLbRHLTg") == text
    assert nodes.decode_cluster_id(text) == "rVp1fIJ2T0y0hgTLbRHLTg"


@pytest.mark.parametrize(
    ("decode", "text"),
    [
        (nodes.decode_assignment, '{"partitions":{"0":[1,2147483648]}}'),
        (nodes.decode_assignment, '{"partitions":{"0":[-1]}}'),
        (nodes.decode_assignment, '{"partitions":{"2147483648":[1]}}'),
        (nodes.decode_reassignment, nodes.encode_reassignment({TopicPartition("t", 0): [2**31]})),
        (
            nodes.decode_preferred_election,
            nodes.encode_preferred_election([TopicPartition("t", 2**31)]),
        ),
        (nodes.decode_controller_epoch, "2147483647"),
        (nodes.decode_controller, "9" * 20),
        (nodes.decode_broker, '{"host":"h","port":70000}'),
        (nodes.decode_consumer, '{"subscription":{"t":1000000000}}'),
        (read_state, nodes.encode_leader_and_isr(LeaderAndIsr(1, -1, (1,), 0, 1))),
        (read_state, nodes.encode_leader_and_isr(LeaderAndIsr(1, 1, (1, -1), 0, 1))),
        (read_state, nodes.encode_leader_and_isr(LeaderAndIsr(-2, 1, (1,), 0, 1))),
        (nodes.decode_offset, "9223372036854775808"),
    ],
)
def test_a_number_that_fits_into_no_request_is_refused(
    decode: Callable[[str], Any], text: str
) -> None:
    """A number that does not fit into a request's field is an error when it is read, with its
    value, and not later when it is sent."""
    with pytest.raises(ZooKeeperError, match="expected a number from"):
        decode(text)


@pytest.mark.parametrize(
    ("decode", "text", "fault"),
    [
        (nodes.decode_assignment, nodes.encode_assignment({7: [1] * 300_000}), "300000 brokers"),
        (nodes.decode_assignment, nodes.encode_assignment({7: [1, 2, 1]}), "partition 7: a broker"),
        (read_state, nodes.encode_leader_and_isr(LeaderAndIsr(1, 1, (1, 1), 0, 1)), "listed twice"),
        (
            nodes.decode_consumer,
            nodes.encode_consumer(
                nodes.ConsumerRegistration({f"t{n}": nodes.STREAMS_MAX for n in range(101)})
            ),
            "more than 100000 streams",
        ),
    ],
)
def test_too_large_values_are_refused(decode: Callable[[str], Any], text: str, fault: str) -> None:
    """The number of partitions, replicas and streams is limited, since the controller sends all
    replicas and a group's member makes a name for each stream. The error shows a shortened
    value."""
    with pytest.raises(ZooKeeperError, match=fault) as refused:
        decode(text)
    assert len(str(refused.value)) < 400


EVERY_KEY: dict[Callable[[str], Any], str] = {
    nodes.decode_broker: '{"jmx_port":-1,"timestamp":"17","endpoints":["A://h:1","B://h:2"],'
    '"host":"h","version":4,"port":9092,"rack":"r","listener_security_protocol_map":{"A":"SSL"}}',
    nodes.decode_assignment: '{"version":1,"partitions":{"0":[1,2]}}',
    read_state: '{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1]}',
    nodes.decode_controller: '{"version":1,"brokerid":1,"timestamp":"17"}',
    nodes.decode_consumer: '{"version":1,"subscription":{"t":1},"pattern":"static",'
    '"timestamp":"17","kafka08":{"k":"v"}}',
    nodes.decode_topic_config: '{"version":1,"config":{"segment.bytes":"5000"}}',
    nodes.decode_config_change: '{"version":1,"entity_type":"topics","entity_name":"t"}',
    nodes.decode_reassignment: '{"partitions":[{"topic":"t","partition":0,"replicas":[1]}]}',
    nodes.decode_preferred_election: '{"partitions":[{"topic":"t","partition":0}]}',
    nodes.decode_isr_changes: '{"partitions":[{"topic":"t","partition":0}]}',
    nodes.decode_cluster_id: '{"version":"1","id":"i"}',
}
"""Decoder → a text with every key that it reads."""


def with_each_string(value: Any, replacement: str) -> Iterator[Any]:
    """Copies of a JSON value, each with another string or key replaced."""
    if isinstance(value, str):
        yield replacement
    for key, item in value.items() if isinstance(value, dict) else ():
        yield {replacement if k == key else k: v for k, v in value.items()}
        yield from ({**value, key: other} for other in with_each_string(item, replacement))
    for i, item in enumerate(value) if isinstance(value, list) else ():
        for other in with_each_string(item, replacement):
            yield [*value[:i], other, *value[i + 1 :]]


@pytest.mark.parametrize("decode", EVERY_KEY)
@pytest.mark.parametrize("string", ["\ud800", "x" * 40_000, "é" * 20_000])
def test_no_decoded_string_is_too_large_for_a_request(
    decode: Callable[[str], Any], string: str
) -> None:
    """Half a surrogate pair, or a text above 32767 bytes, in any place of a znode: it is refused
    with a short error, or it is not in the result. A controller that sent it would fail for
    ever."""
    for changed in with_each_string(json.loads(EVERY_KEY[decode]), string):
        try:
            found = repr(decode(json.dumps(changed)))
        except ZooKeeperError as refused:
            found = str(refused)
            assert len(found) < 500  # which texts are refused is not the property
        else:
            assert repr(string)[1:-1] not in found


def test_every_decoder_has_a_text_with_every_key() -> None:
    """A decoder that is added is tested for its strings too."""
    without_strings = {nodes.decode_controller_epoch, nodes.decode_offset}
    decoders = {f for name, f in vars(nodes).items() if name.startswith("decode_")}
    assert decoders - without_strings == set(EVERY_KEY) - {read_state} | {
        nodes.decode_leader_and_isr
    }


def test_a_registration_has_a_limit_of_listeners() -> None:
    """Each listener is sent to every broker."""
    endpoints = ",".join(['"A://h:1"'] * 101)
    with pytest.raises(ZooKeeperError, match="more than 100 listeners"):
        nodes.decode_broker(f'{{"host":"h","port":1,"endpoints":[{endpoints}]}}')


@pytest.mark.parametrize("decode", DECODE_NODE)
def test_any_text_parses_or_raises_zookeeper_error(decode: Callable[[str], Any]) -> None:
    """Captured texts that are cut or changed at each character, and unusual JSON, parse or raise
    ZooKeeperError, and nothing else."""
    texts = {text for _, text in captured("controller-0.8.2.2")} | {
        '{"partitions":{"x":[1]}}',
        '{"partitions":[1]}',
        '{"partitions":[{"topic":1}]}',
        "[]",
        "1.5",
        "{}",
        "[" * 100,
    }
    for text in texts:
        for i in range(len(text) + 1):
            for damaged in (text[:i], text[:i] + "x" + text[i + 1 :], text[:i] + '"' + text[i:]):
                try:
                    decode(damaged)
                except ZooKeeperError:
                    continue


@pytest.mark.parametrize(
    ("path", "change"),
    [
        ("topics/t", nodes.ConfigChange("t")),
        ("users/u/clients/c", nodes.ConfigChange("u/clients/c", "users")),
    ],
)
def test_a_configuration_change_of_0_10_has_a_path(path: str, change: nodes.ConfigChange) -> None:
    """A change that the tools of 0.10 announce is read: it has a path
    (AdminUtils.getConfigChangeZnodeData 0.10.2.2)."""
    assert change == nodes.decode_config_change(f'{{"version":2,"entity_path":"{path}"}}')
