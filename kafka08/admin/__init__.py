"""The verbs behind the topic tools; they talk to ZooKeeper alone, as 0.8.2.2's do.

`AdminClient` creates, lists, describes and deletes topics; `describe_lines` prints descriptions as
kafka-topics does. Start reading with client.py.
"""

from __future__ import annotations

from kafka08.admin.client import AdminClient
from kafka08.admin.description import (
    PartitionDescription,
    TopicDescription,
    describe_lines,
)

__all__ = ["AdminClient", "PartitionDescription", "TopicDescription", "describe_lines"]
