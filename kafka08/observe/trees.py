"""The owners and offsets of groups in ZooKeeper: two trees of one shape below each group's znode.

Many groups are read together, each level of their trees in one pipeline.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from kafka08.errors import ZooKeeperError
from kafka08.observe.snapshot import Committed, Owner
from kafka08.structs import TopicPartition
from kafka08.zk import nodes, paths
from kafka08.zk.client import ZkClient
from kafka08.zk.errors import unless_gone
from kafka08.zk.operations import Children, Node
from kafka08.zk.typed_reads import read_all

T = TypeVar("T")

THREAD_ID_MAX: Final = 1000
"""The most characters kept of an owner's thread id: enough for any group, host and number."""


@dataclass(slots=True)
class Tree(Generic[T]):
    """The content of /consumers/<group>/<kind>/<topic>/<partition>.

    topics       all topics that have a znode, with or without partitions below it
    strays       paths of znodes whose names are not partition numbers
    unreadable   partition → why its znode's text cannot be understood, with its path
    """

    topics: set[str]
    values: dict[TopicPartition, T] = field(default_factory=dict)
    strays: list[str] = field(default_factory=list)
    unreadable: dict[TopicPartition, str] = field(default_factory=dict)


def read_owners(zk: ZkClient, groups: Sequence[str]) -> dict[str, Tree[Owner]]:
    """group → the owners of its partitions. Raises ZooKeeperError if ZooKeeper does not respond."""
    return _read(zk, groups, paths.owners, _owner)


def read_commits(
    zk: ZkClient,
    groups: Sequence[str],
    read: Callable[[Sequence[str]], Mapping[str, Node]] | None = None,
) -> dict[str, Tree[Committed]]:
    """group → its committed offsets with the versions of their znodes; a commit raises these. A
    member of 0.8.2.2 that has no position commits NO_OFFSET: that is none.

    read   paths → those of them that exist, with their znodes; None: by pipelines
    """
    found = _read(zk, groups, paths.offsets, _committed, read)
    for tree in found.values():
        tree.values = {tp: at for tp, at in tree.values.items() if at.offset >= 0}
    return found


def _committed(node: Node) -> Committed:
    return Committed(nodes.decode_offset(node.data), node.version)


def _owner(node: Node) -> Owner:
    thread_id = node.data or ""
    if len(thread_id) > THREAD_ID_MAX:
        thread_id = f"{thread_id[:THREAD_ID_MAX]}…"  # matches no thread
    return Owner(thread_id, node.ephemeral_owner)


def _read(
    zk: ZkClient,
    groups: Sequence[str],
    path: Callable[..., str],
    decode: Callable[[Node], T],
    read_leaves: Callable[[Sequence[str]], Mapping[str, Node]] | None = None,
) -> dict[str, Tree[T]]:
    """`path` of a group and, where there is one, a topic; None: by pipelines."""
    listed = zk.pipeline([Children(path(group)) for group in groups])
    found: dict[str, Tree[T]] = {
        group: Tree(set(unless_gone(names, [])))
        for group, names in zip(groups, listed, strict=True)
    }
    topics = [(group, topic) for group, tree in found.items() for topic in sorted(tree.topics)]
    numbers = zk.pipeline([Children(path(*one)) for one in topics])
    leaves = []
    for (group, topic), names in zip(topics, numbers, strict=True):
        for name in unless_gone(names, []):
            leaf = f"{path(group, topic)}/{name}"
            if paths.NUMBER.fullmatch(name):
                leaves.append((group, TopicPartition(topic, int(name)), leaf))
            else:
                found[group].strays.append(leaf)
    wanted = [leaf for _, _, leaf in leaves]
    read = read_leaves(wanted) if read_leaves else read_all(zk, {leaf: leaf for leaf in wanted})
    for group, tp, leaf in leaves:
        there = read.get(leaf)
        if there is None:
            continue
        try:
            found[group].values[tp] = decode(there)
        except ZooKeeperError as error:
            found[group].unreadable[tp] = f"{leaf}: {error}"
    return found
