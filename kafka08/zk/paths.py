"""Every znode path, relative to the chroot. Source: kafka.utils.ZkUtils 0.8.2.2.

Contents of each znode: kafka08/zk/nodes.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from kafka08.config import INT_MAX, check_host, parse_port
from kafka08.errors import ConfigError
from kafka08.structs import host_port, split_host_port

ZOOKEEPER_PORT: Final = 2181
_ADDRESS_IN_CHROOT: Final = re.compile(r",[^,/]+:\d+(/|$)")

BROKER_IDS: Final = "/brokers/ids"
BROKER_SEQUENCE: Final = "/brokers/seqid"
BROKER_TOPICS: Final = "/brokers/topics"
CONTROLLER: Final = "/controller"
CONTROLLER_EPOCH: Final = "/controller_epoch"
DELETE_TOPICS: Final = "/admin/delete_topics"
REASSIGN_PARTITIONS: Final = "/admin/reassign_partitions"
PREFERRED_ELECTION: Final = "/admin/preferred_replica_election"
TOPIC_CONFIGS: Final = "/config/topics"
CONFIG_CHANGES: Final = "/config/changes"
CONFIG_CHANGE_PREFIX: Final = "config_change_"
ISR_CHANGES: Final = "/isr_change_notification"
ISR_CHANGE_PREFIX: Final = "isr_change_"
CLUSTER_ID: Final = "/cluster/id"
CONSUMERS: Final = "/consumers"
MIGRATIONS: Final = "/kafka08/migrations"
MIGRATION_SNAPSHOTS: Final = "/kafka08/migration_snapshots"
PROFILE: Final = "/kafka08/profile"

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
NUMBER: Final = re.compile(r"0|[1-9][0-9]{0,9}")
"""The name of a znode of a broker or partition: its id."""

COMMON: Final = (
    CONSUMERS,
    BROKER_IDS,
    BROKER_TOPICS,
    CONFIG_CHANGES,
    TOPIC_CONFIGS,
    DELETE_TOPICS,
)
"""The persistent paths that every broker creates at start."""
COMMON_LATER: Final = (
    "/config/clients",
    "/config/users",
    "/config/brokers",
    BROKER_SEQUENCE,
    ISR_CHANGES,
)
"""Those that it creates as well from level 0.9.0 on."""


def broker(broker_id: int) -> str:
    return f"{BROKER_IDS}/{broker_id}"


def topic(name: str) -> str:
    return f"{BROKER_TOPICS}/{name}"


def partitions(name: str) -> str:
    return f"{BROKER_TOPICS}/{name}/partitions"


def partition(name: str, number: int) -> str:
    return f"{BROKER_TOPICS}/{name}/partitions/{number}"


def partition_state(name: str, number: int) -> str:
    return f"{BROKER_TOPICS}/{name}/partitions/{number}/state"


def topic_config(name: str) -> str:
    return f"{TOPIC_CONFIGS}/{name}"


def delete_topic(name: str) -> str:
    return f"{DELETE_TOPICS}/{name}"


def config_change(sequence: int | None = None) -> str:
    """One change notification; without a number the prefix that ZooKeeper numbers."""
    number = "" if sequence is None else f"{sequence:010d}"
    return f"{CONFIG_CHANGES}/{CONFIG_CHANGE_PREFIX}{number}"


def isr_change(name: str = ISR_CHANGE_PREFIX) -> str:
    """One notification; without a name the prefix that ZooKeeper numbers."""
    return f"{ISR_CHANGES}/{name}"


def group(name: str) -> str:
    return f"{CONSUMERS}/{name}"


def can_be_group(name: str) -> bool:
    """Whether a group in ZooKeeper may have the name: one with a coordinator may have any."""
    return name not in {"", ".", ".."} and "/" not in name


def check_group(name: str) -> None:
    """ConfigError for a name that would be a path to other znodes. Clients other than 0.8.2.2's
    take any other name."""
    if not can_be_group(name):
        raise ConfigError(
            f"group.id: {name!r} cannot be the name of a group, which is one znode; kafka08 group "
            "list shows all groups"
        )


def consumer_ids(group_name: str) -> str:
    return f"{CONSUMERS}/{group_name}/ids"


def consumer_id(group_name: str, consumer: str) -> str:
    return f"{CONSUMERS}/{group_name}/ids/{consumer}"


def owners(group_name: str, topic_name: str | None = None) -> str:
    base = f"{CONSUMERS}/{group_name}/owners"
    return base if topic_name is None else f"{base}/{topic_name}"


def owner(group_name: str, topic_name: str, number: int) -> str:
    return f"{CONSUMERS}/{group_name}/owners/{topic_name}/{number}"


def offsets(group_name: str, topic_name: str | None = None) -> str:
    base = f"{CONSUMERS}/{group_name}/offsets"
    return base if topic_name is None else f"{base}/{topic_name}"


def offset(group_name: str, topic_name: str, number: int) -> str:
    return f"{CONSUMERS}/{group_name}/offsets/{topic_name}/{number}"


def numbers(names: Iterable[str]) -> list[int]:
    """The children that are ids of brokers or partitions, ascending; children with other names,
    which some client or person has created, are left out."""
    found = (int(name) for name in names if NUMBER.fullmatch(name))
    return sorted(number for number in found if number <= INT_MAX)


def migration(group_name: str) -> str:
    """The journal of an offset migration of ours; 0.8.2.2 does not know it."""
    return f"{MIGRATIONS}/{group_name}"


def migration_snapshot(group_name: str) -> str:
    """Its children are the parts of a snapshot that is too large for the journal."""
    return f"{MIGRATION_SNAPSHOTS}/{group_name}"


def migration_members(group_name: str) -> str:
    return f"{MIGRATIONS}/{group_name}/members"


def migration_confirmation(group_name: str, consumer: str) -> str:
    """Ephemeral: the step of the migration that a live member has carried out."""
    return f"{MIGRATIONS}/{group_name}/members/{consumer}"


def migration_mirror(group_name: str) -> str:
    """Ephemeral: a mirror commits to Kafka for members that cannot."""
    return f"{MIGRATIONS}/{group_name}/mirror"


def migration_copy(group_name: str) -> str:
    """Ephemeral: a tool copies offsets to Kafka."""
    return f"{MIGRATIONS}/{group_name}/copy"


def can_be_sent(path: str) -> bool:
    """Whether the path is UTF-8 text without the parts `.` and `..`. Fast for most paths."""
    if path.isascii() and "/." not in path:
        return True
    return not _SURROGATE.search(path) and {".", ".."}.isdisjoint(path.split("/"))


def parent(path: str) -> str:
    """The path above; "/" for a path of one part."""
    return path.rpartition("/")[0] or "/"


def split_connect(connect: str) -> tuple[str, str]:
    """`h1:1,h2:2/chroot` as ("h1:1,h2:2", "/chroot"); the chroot is "" when there is none, a port
    that is not given is 2181. ConfigError naming the part that is none of these."""
    scheme, named, rest = connect.partition("://")
    if named and "/" not in scheme:
        raise ConfigError(f"zookeeper.connect: {connect!r}: leave out {scheme}://, as in {rest}")
    hosts, slash, path = connect.partition("/")
    addresses = [part.strip() for part in hosts.split(",") if part.strip()]
    if not addresses:
        raise ConfigError(
            f"zookeeper.connect: {connect!r} names no server; give host:port,host:port"
        )
    chroot = path.strip("/")
    if chroot and ("//" in chroot or not can_be_sent(f"/{chroot}")):
        raise ConfigError(f"zookeeper.connect: '/{chroot}' cannot be the path of a znode")
    if _ADDRESS_IN_CHROOT.search(chroot):
        raise ConfigError(
            f"zookeeper.connect: {connect!r} has an address in its chroot; give the chroot once, "
            "behind the last address: host:port,host:port/chroot"
        )
    normal = ",".join(_address(part) for part in addresses)
    return normal, f"{slash}{chroot}" if chroot else ""


def _address(part: str) -> str:
    """`host:port`, with ZooKeeper's own port if there is none; an IPv6 host needs brackets."""
    host, port = split_host_port(part)
    if not host or (port is not None and ":" in port):
        raise ConfigError(f"zookeeper.connect: {part!r} is not of the form host:port")
    check_host(host, "zookeeper.connect")
    if port is None:
        return host_port(host, ZOOKEEPER_PORT)
    parse_port(port, f"zookeeper.connect: {part!r}")
    return host_port(host, port)
