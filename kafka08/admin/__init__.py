"""The functions behind the tools that change topics, partitions and offsets.

`AdminClient` creates, lists, describes, alters and deletes topics, moves partitions and elects
leaders, through ZooKeeper alone, as 0.8.2.2's tools do. `BrokerAdmin` does what brokers offer as
requests from 0.10.1 on. `moves` reads and writes the files of moves. `describe_lines` prints
descriptions as kafka-topics does, `select` has its filters. Start reading with client.py.
`GroupOffsets` (group_offsets.py) gets and sets the offsets of stopped groups.
"""

from __future__ import annotations

from kafka08.admin.acls import Acl
from kafka08.admin.broker_admin import BrokerAdmin
from kafka08.admin.broker_configs import BrokerConfig
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
    "Acl",
    "AdminClient",
    "BrokerAdmin",
    "BrokerConfig",
    "BrokerDescription",
    "MoveStatus",
    "PartitionDescription",
    "TopicDescription",
    "describe_lines",
    "select",
]
