"""The verbs behind the topic tools; they talk to ZooKeeper alone, as 0.8.2.2's do.

`AdminClient` creates, lists, describes, alters and deletes topics, and has partitions and leaders
moved; `moves` has the files of such moves. `describe_lines` prints descriptions as kafka-topics
does, `select` has its filters. Start reading with client.py.
"""

from __future__ import annotations

from kafka08.admin.brokers import BrokerDescription
from kafka08.admin.client import AdminClient
from kafka08.admin.description import (
    PartitionDescription,
    TopicDescription,
    describe_lines,
    select,
)
from kafka08.admin.moves import MoveStatus

__all__ = [
    "AdminClient",
    "BrokerDescription",
    "MoveStatus",
    "PartitionDescription",
    "TopicDescription",
    "describe_lines",
    "select",
]
