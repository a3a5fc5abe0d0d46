"""Consumer groups in ZooKeeper as typed values: partition owners and committed offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kafka08.errors import NodeExists, NoNode, ZooKeeperError
from kafka08.structs import TopicPartition
from kafka08.zk import nodes, paths
from kafka08.zk.client import ZkClient
from kafka08.zk.operations import Create, Operation, Set
from kafka08.zk.typed_reads import decode_at, read_all


class GroupStore:
    """Typed access to the groups' znodes through a started client."""

    def __init__(self, zk: ZkClient) -> None:
        self.zk = zk

    def groups(self) -> list[str]:
        return self.zk.children_or_empty(paths.CONSUMERS)

    def owners(self, group: str, topic: str) -> dict[int, str]:
        """partition → consumer thread id that owns it."""
        numbers = paths.numbers(self.zk.children_or_empty(paths.owners(group, topic)))
        found = read_all(self.zk, {n: paths.owner(group, topic, n) for n in numbers})
        return {number: node.data or "" for number, node in found.items()}

    def offsets(
        self, group: str, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """partition → committed offset; partitions without one are left out."""
        found = read_all(self.zk, {tp: paths.offset(group, *tp) for tp in partitions})
        return {
            tp: decode_at(paths.offset(group, *tp), nodes.decode_offset, node.data)
            for tp, node in found.items()
        }

    def commit_offsets(
        self, group: str, offsets: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, ZooKeeperError]:
        """Write offsets, creating missing znodes; the errors, by partition."""
        data = {tp: nodes.encode_offset(offset) for tp, offset in offsets.items()}
        failed = self._write_all({tp: Set(paths.offset(group, *tp), data[tp]) for tp in data})
        new = [tp for tp, error in failed.items() if isinstance(error, NoNode)]
        failed |= self._write_all({tp: Create(paths.offset(group, *tp), data[tp]) for tp in new})
        raced = [tp for tp in new if isinstance(failed[tp], NodeExists)]
        failed |= self._write_all({tp: Set(paths.offset(group, *tp), data[tp]) for tp in raced})
        return {tp: error for tp, error in failed.items() if error is not None}

    def _write_all(
        self, operations: Mapping[TopicPartition, Operation]
    ) -> dict[TopicPartition, ZooKeeperError | None]:
        results = self.zk.pipeline(operations.values())
        return {
            key: result if isinstance(result, ZooKeeperError) else None
            for key, result in zip(operations, results, strict=True)
        }
