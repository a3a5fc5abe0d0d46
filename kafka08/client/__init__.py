"""The shared parts of producers and consumers: metadata, leaders, connections and retries.

Start with `cluster.ClusterClient`. `metadata` is its view of the cluster. `requests` translates
between `{TopicPartition: …}` and the wire; `committed` interprets responses about a group's
offsets; all three are pure. `coordinators` asks for the offsets of many groups at once. `pool`
keeps the connections; `run_concurrently` asks several brokers at once.
"""

from __future__ import annotations

from kafka08.client.bootstrap import parse_bootstrap
from kafka08.client.cluster import ClusterClient
from kafka08.client.metadata import ClusterMetadata, PartitionInfo, TopicInfo
from kafka08.client.retry import RetryPolicy
from kafka08.network.session import PLAINTEXT, Security

__all__ = [
    "PLAINTEXT",
    "ClusterClient",
    "ClusterMetadata",
    "PartitionInfo",
    "RetryPolicy",
    "Security",
    "TopicInfo",
    "parse_bootstrap",
]
