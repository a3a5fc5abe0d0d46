"""Small values used by every package. Plain data, with no behaviour but printing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTIONS_TOPIC: Final = "__transaction_state"
INTERNAL_TOPICS: Final = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC})

NO_LEADER: Final = -1
"""`leader` of a partition that has none."""
NO_CONTROLLER: Final = -1
"""Broker id of the controller while there is none: in Metadata before a controller has sent an
UpdateMetadata, and in /controller while no broker may become one (kafka08.embedded.elections)."""
LEADER_DURING_DELETE: Final = -2
"""`leader` in UpdateMetadata that means: drop this partition from the metadata cache."""

NO_LEADER_EPOCH: Final = -1
"""The epoch of a leader where none is known."""

LATEST_OFFSET: Final = -1
"""The `time` of an Offsets request that asks for the log end."""
EARLIEST_OFFSET: Final = -2
"""The `time` of an Offsets request that asks for the log start."""

ORDINARY_CONSUMER: Final = -1
"""`replica_id` of a Fetch or Offsets request from a consumer."""
DEBUGGING_CONSUMER: Final = -2
"""`replica_id` of a consumer that may read from any replica, not only the leader."""

NO_OFFSET: Final = -1
"""A committed offset that does not exist, or the offset of a failed produce."""


PLAINTEXT: Final = "PLAINTEXT"
"""The security protocol without encryption, and the name of the listener that is always there."""


class TopicPartition(NamedTuple):
    """One partition of one topic. Prints as Kafka does: `[topic,0]`."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"[{self.topic},{self.partition}]"


class ConsumerGroupMetadata(NamedTuple):
    """A group, and the member of it for which offsets are committed; by default none."""

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None


class Broker(NamedTuple):
    """A broker's address for clients. `host` is a name or an address, never empty."""

    id: int
    host: str
    port: int

    def __str__(self) -> str:
        return f"id:{self.id},host:{self.host},port:{self.port}"


def host_port(host: object, port: object) -> str:
    """The address as every option for one takes it: an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in str(host) else f"{host}:{port}"


def split_host_port(text: str) -> tuple[str, str | None]:
    """Host and port of HOST:PORT, as text; None for no port. An IPv6 address is in brackets, which
    are left out: without them the host is empty, or the port has a colon."""
    found = _HOST_PORT.fullmatch(text)
    return ("", None) if found is None else (found[1] or found[2] or "", found[3])


NOT_REGISTERED: Final = "not registered"
"""Tables show this as the address of a broker without a registration in ZooKeeper."""

_ENDPOINT: Final = re.compile(r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:([0-9]{1,5})")
_HOST_PORT: Final = re.compile(r"(?:\[([^\[\]]*)\]|([^:\[\]]*))(?::(.*))?")
_PORT_MAX: Final = 65_535


class Endpoint(NamedTuple):
    """The address of one listener of a broker. A `host` of None: all interfaces of this machine.
    Prints as Kafka does: `PLAINTEXT://host:9092`."""

    listener: str
    host: str | None
    port: int
    security_protocol: str = PLAINTEXT

    @classmethod
    def parse(cls, text: str, protocols: Mapping[str, str] | None = None) -> Endpoint:
        """Read `LISTENER://host:port`; an empty host is None, an IPv6 address may be in brackets.
        `protocols` is listener → security protocol; without it both have the same name. ValueError
        for another form, KeyError for a listener that is not in `protocols`."""
        match = _ENDPOINT.fullmatch(text)
        if match is None or int(match[3]) > _PORT_MAX:
            raise ValueError(f"{text!r} is not NAME://host:port with a port up to {_PORT_MAX}")
        listener = match[1].upper()
        protocol = listener if protocols is None else protocols[listener]
        return cls(listener, match[2] or None, int(match[3]), protocol)

    def __str__(self) -> str:
        return f"{self.listener}://{host_port(self.host or '', self.port)}"


@dataclass(frozen=True, slots=True)
class LeaderAndIsr:
    """A partition's leader and ISR, as in /brokers/topics/t/partitions/p/state.

    leader            broker id, or NO_LEADER
    leader_epoch      rises by one with every election; a broker obeys only a higher one
    isr               in-sync replicas, in the order the controller wrote them
    zk_version        version of the znode when it was read; the condition of an update
    controller_epoch  epoch of the controller that wrote the leader
    """

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    zk_version: int
    controller_epoch: int

    def __str__(self) -> str:
        isr = ",".join(map(str, self.isr))
        return (
            f"(Leader:{self.leader},ISR:{isr},LeaderEpoch:{self.leader_epoch},"
            f"ControllerEpoch:{self.controller_epoch})"
        )


@dataclass(frozen=True, slots=True)
class OffsetAndMetadata:
    """A committed offset: the next offset to read (NO_OFFSET: none), the committer's own text
    (None is kept apart from ""), and the commit's wall-clock time in ms (-1: not known).

    leader_epoch  of the leader that appended the message before the offset, or of a later one that
                  had it; it tells a log that was truncated since. Not compared
    """

    offset: int
    metadata: str | None = ""
    timestamp_ms: int = -1
    leader_epoch: int = field(default=NO_LEADER_EPOCH, compare=False)
