"""The contents of znodes: one value class and one pair encode_x / decode_x for each.

Writers give exactly the text of 0.8.2.2: no blanks, the key order its Scala maps have, every long
number as a string (its reader parses each JSON number as a 32-bit int and fails on others), strings
as they are. Order carries no meaning; it is kept so that znodes can be compared byte for byte.

Readers are liberal: unknown keys are ignored, null and empty data are the same "nothing", and what
later versions add is understood where it concerns us. Text that cannot be read, whose numbers and
names would not fit into a request, or that exceeds the bounds below, raises ZooKeeperError: a
client that can write to ZooKeeper must not be able to stop its readers. Source:
kafka.utils.ZkUtils, kafka.utils.Json 0.8.2.2; captured znodes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kafka08.assignment import REPLICAS_MAX
from kafka08.config import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN
from kafka08.errors import ZooKeeperError
from kafka08.levels import ByLevel, Level
from kafka08.structs import NO_LEADER, PLAINTEXT, Broker, Endpoint, LeaderAndIsr, TopicPartition

STATIC: Final = "static"
WHITE_LIST: Final = "white_list"
BLACK_LIST: Final = "black_list"

STREAMS_MAX: Final = 1000
"""Most streams of a member for one topic or pattern. Each one is a thread in 0.8.2.2."""
MEMBER_STREAMS_MAX: Final = 100_000
"""Most streams of a member for all its topics together."""
TEXT_BYTES_MAX: Final = 32_767
"""Most bytes of any text in a znode: as many as a string of a request has."""
HOST_BYTES_MAX: Final = 255
ENDPOINT_BYTES_MAX: Final = 1000
"""Most bytes of `LISTENER://host:port`."""
ENDPOINTS_MAX: Final = 100
PORT_MAX: Final = 65_535


@dataclass(frozen=True, slots=True)
class BrokerRegistration:
    """/brokers/ids/<id>: how to reach a broker. Ephemeral; lives as long as its session.

    host, port     None and -1 when a newer broker has no PLAINTEXT listener
    endpoints      from version 2 on: `LISTENER://host:port` of each listener
    version        1 (0.8), 2 (0.9), 3 (0.10), 4 (0.10.2); 0: not read in ZooKeeper
    rack           from version 3 on; None: not said
    protocols      from version 4 on: listener → security protocol; else they have the same name
    """

    host: str | None
    port: int
    jmx_port: int = -1
    timestamp_ms: int = -1
    version: int = 1
    endpoints: tuple[str, ...] = ()
    rack: str | None = None
    protocols: Mapping[str, str] = field(default_factory=dict)

    @property
    def level(self) -> Level:
        """The release that the broker registers as; one with an older inter.broker.protocol.version
        registers as that."""
        return {1: Level.V0_8_2, 2: Level.V0_9_0}.get(self.version, Level.V0_10_2)

    def broker(self, broker_id: int, listener: str = PLAINTEXT) -> Broker:
        """The address of a listener; of PLAINTEXT, the one that a client of 0.8 uses.
        ZooKeeperError when there is none."""
        if listener == PLAINTEXT and self.host is not None:
            return Broker(broker_id, self.host, self.port)
        for endpoint in self.listeners():
            if endpoint.listener == listener and endpoint.host is not None:
                return Broker(broker_id, endpoint.host, endpoint.port)
        raise ZooKeeperError(
            f"broker {broker_id} has no {listener} listener, only {', '.join(self.endpoints)}"
        )

    def listeners(self) -> tuple[Endpoint, ...]:
        """Every listener. ZooKeeperError if an endpoint cannot be read."""
        if self.version == 1:
            return (Endpoint(PLAINTEXT, self.host, self.port),)
        try:
            return tuple(Endpoint.parse(text, self.protocols or None) for text in self.endpoints)
        except (ValueError, KeyError) as error:
            raise ZooKeeperError(f"broker registration: endpoint {error} cannot be read") from None


@dataclass(frozen=True, slots=True)
class Advertised:
    """The fields of a registration besides the address: see BrokerRegistration. `level` is the
    release whose form is written."""

    level: Level = Level.V0_8_2
    version: int = 1
    endpoints: tuple[Endpoint, ...] = ()
    rack: str | None = None


ADDRESS_ALONE: Final = Advertised()
"""A broker of 0.8 advertises nothing else."""


@dataclass(frozen=True, slots=True)
class ControllerNode:
    """/controller: which broker is controller. Ephemeral; each broker watches it.

    timestamp_ms is -1 when an old broker wrote its bare id.
    """

    broker_id: int
    timestamp_ms: int = -1


@dataclass(frozen=True, slots=True)
class ConsumerRegistration:
    """/consumers/<g>/ids/<consumer>: the subscription of a group member. Ephemeral.

    pattern         STATIC: subscription is {topic: streams}; WHITE_LIST or BLACK_LIST: it is
                    {regular expression: streams} with one entry
    kafka08         the keys of its configuration that an offset migration needs; None for members
                    that run another client, which neither write nor read it
    """

    subscription: Mapping[str, int]
    pattern: str = STATIC
    timestamp_ms: int = -1
    version: int = 1
    kafka08: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """/config/changes/config_change_N: the entity whose configuration was altered.

    entity_type is "topics"; in the forms of 0.9 and 0.10 also "clients", "users" or "brokers",
    which are never written here. Brokers of 0.8 ignore the form of 0.9, and the other way round.
    """

    name: str
    entity_type: str = "topics"


_REGISTRATION_ORDER: Final = ByLevel(
    {
        Level.V0_8_2: ("jmx_port", "timestamp", "host", "version", "port"),
        Level.V0_9_0: ("jmx_port", "timestamp", "endpoints", "host", "version", "port"),
        Level.V0_10_2: (
            *("listener_security_protocol_map", "endpoints", "rack", "jmx_port"),
            *("host", "timestamp", "port", "version"),
        ),
    }
)


def encode_broker(registration: BrokerRegistration, level: Level = Level.V0_8_2) -> str:
    """Encode a registration like a broker of `level`. A rack of None is left out."""
    r = registration
    fields = {
        "jmx_port": r.jmx_port,
        "timestamp": str(r.timestamp_ms),
        "host": r.host,
        "version": r.version,
        "port": r.port,
    }
    if r.version >= 2:
        fields["endpoints"] = list(r.endpoints)
    if r.version >= 3 and r.rack is not None:
        fields["rack"] = r.rack
    if r.version >= 4:
        fields["listener_security_protocol_map"] = r.protocols
    return _object(*((name, fields[name]) for name in _REGISTRATION_ORDER[level] if name in fields))


def decode_broker(text: str | None) -> BrokerRegistration:
    what = "broker registration"
    fields = _parse_object(text, what)
    host, rack = fields.get("host"), fields.get("rack")
    endpoints = _list(fields.get("endpoints", []), what)
    protocols = _mapping(fields.get("listener_security_protocol_map", {}), what)
    if max(len(endpoints), len(protocols)) > ENDPOINTS_MAX:
        raise ZooKeeperError(f"{what}: more than {ENDPOINTS_MAX} listeners")
    return BrokerRegistration(
        host=_text(host, f"{what}, host", most=HOST_BYTES_MAX) if host else None,
        port=_int(fields.get("port"), what, least=-1, most=PORT_MAX),
        jmx_port=_int(fields.get("jmx_port", -1), what),
        timestamp_ms=_timestamp(fields),
        version=_int(fields.get("version", 1), what),
        endpoints=tuple(
            _text(endpoint, f"{what}, endpoint", most=ENDPOINT_BYTES_MAX) for endpoint in endpoints
        ),
        rack=None if rack is None else _text(rack, f"{what}, rack"),
        protocols=_texts(protocols, what),
    )


def encode_assignment(assignment: Mapping[int, Iterable[int]]) -> str:
    """/brokers/topics/<t>: partition → replicas, the preferred one first."""
    partitions = {str(number): list(replicas) for number, replicas in assignment.items()}
    return _object(("version", 1), ("partitions", partitions))


def decode_assignment(text: str | None) -> dict[int, tuple[int, ...]]:
    """partition → replicas, in the order of the text; {} for a topic znode without data."""
    what = "topic assignment"
    if not text:
        return {}
    partitions = _mapping(_parse_object(text, what).get("partitions", {}), what)
    return {
        _number(name, what): _broker_ids(replicas, f"{what}, partition {name}")
        for name, replicas in partitions.items()
    }


def encode_leader_and_isr(state: LeaderAndIsr) -> str:
    """/brokers/topics/<t>/partitions/<p>/state. Written conditionally on its version."""
    return _object(
        ("controller_epoch", state.controller_epoch),
        ("leader", state.leader),
        ("version", 1),
        ("leader_epoch", state.leader_epoch),
        ("isr", list(state.isr)),
    )


def decode_leader_and_isr(text: str | None, zk_version: int) -> LeaderAndIsr:
    what = "partition state"
    fields = _parse_object(text, what)
    return LeaderAndIsr(
        leader=_int(fields.get("leader"), what, least=NO_LEADER),
        leader_epoch=_int(fields.get("leader_epoch"), what, least=0),
        isr=_broker_ids(fields.get("isr"), what),
        zk_version=zk_version,
        controller_epoch=_int(fields.get("controller_epoch"), what, least=0),
    )


def encode_controller(node: ControllerNode) -> str:
    return _object(
        ("version", 1), ("brokerid", node.broker_id), ("timestamp", str(node.timestamp_ms))
    )


def decode_controller(text: str | None) -> ControllerNode:
    """Also reads the bare id that brokers before 0.8.1 wrote."""
    what = "controller"
    if text and text.strip().isdecimal():
        return ControllerNode(_number(text, what))
    fields = _parse_object(text, what)
    return ControllerNode(_int(fields.get("brokerid"), what), _timestamp(fields))


def encode_controller_epoch(epoch: int) -> str:
    return str(epoch)


def decode_controller_epoch(text: str | None) -> int:
    """Below INT_MAX, so that a next epoch exists."""
    return _number(text or "", "controller epoch", most=INT_MAX - 1)


def encode_consumer(registration: ConsumerRegistration) -> str:
    wildcard = registration.pattern != STATIC
    # 0.8: the regular expression of a wildcard is escaped as JSON, "/" included, other text is not.
    subscription = {
        _escape(name) if wildcard else name: streams
        for name, streams in registration.subscription.items()
    }
    entries = ",".join(f'"{name}":{streams}' for name, streams in subscription.items())
    ours = "" if registration.kafka08 is None else f',"kafka08":{_encode(registration.kafka08)}'
    return (
        f'{{"version":1,"subscription":{{{entries}}},"pattern":"{registration.pattern}",'
        f'"timestamp":"{registration.timestamp_ms}"{ours}}}'
    )


def decode_consumer(text: str | None) -> ConsumerRegistration:
    """Extra keys, as pykafka writes them, are ignored; without a pattern it is static."""
    what = "consumer registration"
    fields = _parse_object(text, what)
    subscription = {
        _text(name, what): _int(streams, f"{what}, streams", most=STREAMS_MAX)
        for name, streams in _mapping(fields.get("subscription", {}), what).items()
    }
    if sum(subscription.values()) > MEMBER_STREAMS_MAX:
        raise ZooKeeperError(f"{what}: more than {MEMBER_STREAMS_MAX} streams")
    ours = fields.get("kafka08")
    return ConsumerRegistration(
        subscription=subscription,
        pattern=_text(fields.get("pattern", STATIC), what),
        timestamp_ms=_timestamp(fields),
        version=_int(fields.get("version", 1), what),
        kafka08=None if ours is None else _texts(_mapping(ours, what), what),
    )


def encode_topic_config(config: Mapping[str, str]) -> str:
    """/config/topics/<t>: overrides, every value a string; {} when there are none."""
    return _object(("version", 1), ("config", {k: str(v) for k, v in config.items()}))


def decode_topic_config(text: str | None) -> dict[str, str]:
    """The overrides; {} for a znode without data. A version other than 1 is an error."""
    what = "topic configuration"
    if not text:
        return {}
    fields = _parse_object(text, what)
    if fields.get("version") != 1:
        raise ZooKeeperError(f"{what}: version {fields.get('version')!r} is not 1")
    return _texts(_mapping(fields.get("config"), what), what)


def encode_config_change(change: ConfigChange) -> str:
    """The notification that brokers of 0.8 read."""
    return _string(change.name)


def encode_later_config_change(change: ConfigChange) -> str:
    """The notification that brokers of 0.9 and later read."""
    return _object(
        ("version", 1), ("entity_type", change.entity_type), ("entity_name", change.name)
    )


def decode_config_change(text: str | None) -> ConfigChange:
    """Reads the quoted name of 0.8, the object of 0.9, and that of 0.10.1 with its path."""
    what = "configuration change"
    parsed = _parse(text, what)
    if isinstance(parsed, str):
        return ConfigChange(_text(parsed, what))
    fields = _mapping(parsed, what)
    if "entity_path" in fields:
        entity_type, _, name = _text(fields["entity_path"], what).partition("/")
        return ConfigChange(name, entity_type)
    if "entity_name" not in fields:
        raise ZooKeeperError(f"{what}: no entity_name in {_shown(text)}")
    name = _text(fields["entity_name"], what)
    return ConfigChange(name, _text(fields.get("entity_type", "topics"), what))


def encode_reassignment(replicas: Mapping[TopicPartition, Iterable[int]]) -> str:
    """/admin/reassign_partitions: partition → its target replicas."""
    entries = [
        {"topic": tp.topic, "partition": tp.partition, "replicas": list(wanted)}
        for tp, wanted in replicas.items()
    ]
    return _object(("version", 1), ("partitions", entries))


def decode_reassignment(text: str | None) -> dict[TopicPartition, tuple[int, ...]]:
    """If a partition is listed twice, the last entry wins, as in 0.8.2.2."""
    what = "partition reassignment"
    return {
        _topic_partition(entry, what): tuple(
            _int(r, what) for r in _list(entry.get("replicas"), what)
        )
        for entry in _entries(text, what)
    }


def encode_preferred_election(partitions: Iterable[TopicPartition]) -> str:
    """/admin/preferred_replica_election: the partitions whose preferred replica should lead."""
    entries = [{"topic": tp.topic, "partition": tp.partition} for tp in partitions]
    return _object(("version", 1), ("partitions", entries))


def decode_preferred_election(text: str | None) -> tuple[TopicPartition, ...]:
    what = "preferred replica election"
    return tuple(_topic_partition(entry, what) for entry in _entries(text, what))


def encode_isr_changes(partitions: Iterable[TopicPartition]) -> str:
    """/isr_change_notification/isr_change_N: the partitions whose ISR a leader has changed."""
    return encode_preferred_election(partitions)


def decode_isr_changes(text: str | None) -> tuple[TopicPartition, ...]:
    what = "ISR change notification"
    return tuple(_topic_partition(entry, what) for entry in _entries(text, what))


def encode_delete_topic() -> str:
    """/admin/delete_topics/<t>: its existence is the request."""
    return ""


def encode_cluster_id(cluster_id: str) -> str:
    """/cluster/id of 0.10.1 and later: 22 characters of URL-safe base64."""
    return _object(("version", "1"), ("id", cluster_id))


def decode_cluster_id(text: str | None) -> str:
    what = "cluster id"
    return _text(_parse_object(text, what).get("id", ""), what)


def encode_offset(offset: int) -> str:
    """/consumers/<g>/offsets/<t>/<p>: the next offset to read, plain decimal."""
    return str(offset)


def decode_offset(text: str | None) -> int:
    return _number(text or "", "offset", least=LONG_MIN, most=LONG_MAX)


_ESCAPES = {'"': '\\"', "\\": "\\\\", "/": "\\/", "\b": "\\b", "\f": "\\f"} | {
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
}


def _escape(text: str) -> str:
    """kafka.utils.Utils.JSONEscapeString."""
    return "".join(
        _ESCAPES.get(c) or (f"\\u{ord(c):04x}" if c < " " or "\x7f" <= c <= "\x9f" else c)
        for c in text
    )


def _string(text: str) -> str:
    # 0.8 writes every string as it is, which for a quote, a backslash or a control character makes
    # text that no reader can parse; only those are escaped here.
    if any(c in '"\\' or c < " " for c in text):
        return json.dumps(text, ensure_ascii=False)
    return f'"{text}"'


def _encode(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, Mapping):
        return _object(*value.items())
    if isinstance(value, list):
        return f"[{','.join(map(_encode, value))}]"
    return str(value)


def _object(*pairs: tuple[str, Any]) -> str:
    return "{" + ",".join(f"{_string(k)}:{_encode(v)}" for k, v in pairs) + "}"


def _parse(text: str | None, what: str) -> Any:
    """Its strings can be encoded as UTF-8."""
    try:
        parsed = json.loads(text or "")
        # Half a surrogate pair, as in "\ud800", fits into no request and no znode.
        if text and ("\\u" in text or not text.isascii()):
            json.dumps(parsed, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        # The text is of a file, too.
        where = f" ({error})" if text and isinstance(error, json.JSONDecodeError) else ""
        raise ZooKeeperError(f"{what}: cannot be read: {_shown(text)}{where}") from None
    return parsed


def _parse_object(text: str | None, what: str) -> Mapping[str, Any]:
    return _mapping(_parse(text, what), what)


def _entries(text: str | None, what: str) -> list[Mapping[str, Any]]:
    if not text:
        return []
    partitions = _list(_parse_object(text, what).get("partitions", []), what)
    return [_mapping(entry, what) for entry in partitions]


def _topic_partition(entry: Mapping[str, Any], what: str) -> TopicPartition:
    topic = entry.get("topic")
    if not isinstance(topic, str):
        raise ZooKeeperError(f"{what}: no topic in {_shown(entry)}")
    return TopicPartition(_text(topic, what), _int(entry.get("partition"), what))


def _mapping(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ZooKeeperError(f"{what}: expected an object, not {_shown(value)}")
    return value


def _list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise ZooKeeperError(f"{what}: expected a list, not {_shown(value)}")
    return value


def _int(value: Any, what: str, *, least: int = INT_MIN, most: int = INT_MAX) -> int:
    if type(value) is not int or not least <= value <= most:
        raise ZooKeeperError(
            f"{what}: expected a number from {least} to {most}, not {_shown(value)}"
        )
    return value


def _broker_ids(value: Any, what: str) -> tuple[int, ...]:
    """Brokers, each once. Source: AdminUtils refuses to assign one twice."""
    ids = tuple(_int(broker_id, what, least=0) for broker_id in _list(value, what))
    if len(ids) > REPLICAS_MAX:
        raise ZooKeeperError(f"{what}: {len(ids)} brokers, the limit is {REPLICAS_MAX}")
    if len(set(ids)) < len(ids):
        raise ZooKeeperError(f"{what}: a broker is listed twice in {_shown(list(ids))}")
    return ids


def _text(value: Any, what: str, *, most: int = TEXT_BYTES_MAX) -> str:
    """A string or number as text of at most `most` bytes."""
    if not isinstance(value, str | int | float):
        raise ZooKeeperError(f"{what}: expected text, not {_shown(value)}")
    text = str(value)
    if len(text) > most or len(text.encode()) > most:
        raise ZooKeeperError(
            f"{what}: {_shown(text)} has {len(text)} characters, the limit is {most} bytes"
        )
    return text


def _texts(values: Mapping[str, Any], what: str) -> dict[str, str]:
    return {
        _text(name, what): _text(value, f"{what}, {_shown(name)}") for name, value in values.items()
    }


def _number(text: str, what: str, *, least: int = 0, most: int = INT_MAX) -> int:
    try:
        number = int(text)
    except ValueError:
        raise ZooKeeperError(f"{what}: expected a number, not {_shown(text)}") from None
    if not least <= number <= most:
        raise ZooKeeperError(
            f"{what}: expected a number from {least} to {most}, not {_shown(text)}"
        )
    return number


def _timestamp(fields: Mapping[str, Any]) -> int:
    """Milliseconds; a string as 0.8 writes it or a number as others do; -1 when it is neither."""
    value = fields.get("timestamp")
    if type(value) is int and 0 <= value <= LONG_MAX:
        return value
    if isinstance(value, str) and value.isdecimal() and len(value) < 20:
        return int(value)
    return -1


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}…"
