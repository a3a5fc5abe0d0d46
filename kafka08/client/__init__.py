"""What both sides of a client share: where the brokers are, who leads what, and asking again.

Start with `cluster.ClusterClient`. `metadata` is its picture of the cluster and `requests` the
translation between `{TopicPartition: …}` and the wire, both pure; so is `committed`, what answers
about a group's offsets mean. `pool` keeps the connections.
"""

from __future__ import annotations

from kafka08.client.bootstrap import parse_bootstrap
from kafka08.client.cluster import ClusterClient
from kafka08.client.metadata import ClusterMetadata, PartitionInfo, TopicInfo
from kafka08.client.retry import RetryPolicy

__all__ = [
    "ClusterClient",
    "ClusterMetadata",
    "PartitionInfo",
    "RetryPolicy",
    "TopicInfo",
    "parse_bootstrap",
]
