"""ProducerIds: the producer ids that a broker gives out, from blocks that it reserves in ZooKeeper.

    /latest_producer_id_block   {"version":1,"broker":1,"block_start":"1000","block_end":"1999"}

A block is reserved by a conditional update, so no two brokers have the same, and no id is given out
twice; the rest of a block is lost when its broker stops. Source:
kafka.coordinator.transaction.ProducerIdManager 0.11.0.2.
"""

from __future__ import annotations

import json
from typing import Final, NamedTuple

from kafka08.config import LONG_MAX
from kafka08.errors import BadVersion, NodeExists, NoNode, ZooKeeperError
from kafka08.zk.client import ZkClient

PATH: Final = "/latest_producer_id_block"
VERSION: Final = 1
BLOCK_SIZE: Final = 1000
DIGITS_MAX: Final = 19


class ProducerIdBlock(NamedTuple):
    """The ids from `start` to `end`, both included, of one broker."""

    broker_id: int
    start: int
    end: int

    def encode(self) -> str:
        """The text of the znode, as the JVM writes it: ids are texts."""
        return (
            f'{{"version":{VERSION},"broker":{self.broker_id},"block_start":"{self.start}",'
            f'"block_end":"{self.end}"}}'
        )

    @classmethod
    def decode(cls, text: str | None) -> ProducerIdBlock:
        """ZooKeeperError for a text that is none. To guess would be to give out ids again."""
        try:
            fields = json.loads(text or "")
            broker_id, ends = fields["broker"], (fields["block_start"], fields["block_end"])
        except (ValueError, TypeError, KeyError, RecursionError):
            raise ZooKeeperError(f"{PATH}: {(text or '')[:200]!r} is not a block of ids") from None
        for end in ends:
            if not (isinstance(end, str) and end.isascii() and end.isdigit()):
                raise ZooKeeperError(f"{PATH}: {str(end)[:30]!r} is not the text of an id")
            if len(end) > DIGITS_MAX or int(end) > LONG_MAX:
                raise ZooKeeperError(f"{PATH}: {end[:30]} is above the largest id")
        return cls(broker_id if isinstance(broker_id, int) else -1, int(ends[0]), int(ends[1]))


class ProducerIds:
    """The ids of one broker. `next_id` may switch."""

    def __init__(self, zk: ZkClient, broker_id: int) -> None:
        self._zk = zk
        self._broker_id = broker_id
        self._block = ProducerIdBlock(broker_id, 0, -1)
        self._next = 0

    def next_id(self) -> int:
        """An id that nobody has. ZooKeeperError if a new block is needed and cannot be reserved."""
        while self._next > self._block.end:
            # Tasks that come here together each reserve a block, and the last one is used.
            self._block = self._reserve()
            self._next = self._block.start
        self._next += 1
        return self._next - 1

    def _reserve(self) -> ProducerIdBlock:
        while True:
            node = self._zk.get_or_none(PATH)
            last = -1 if node is None else ProducerIdBlock.decode(node.data).end
            if last > LONG_MAX - BLOCK_SIZE:
                raise ZooKeeperError(f"{PATH}: no producer ids are left behind {last}")
            block = ProducerIdBlock(self._broker_id, last + 1, last + BLOCK_SIZE)
            try:
                if node is None:
                    self._zk.create(PATH, block.encode())
                else:
                    self._zk.set(PATH, block.encode(), node.version)
            except (BadVersion, NodeExists, NoNode):
                continue  # another broker was faster
            return block
