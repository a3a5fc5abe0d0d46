"""Commits a stream's offsets for a group after every batch, from Spark's progress reports."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

from kafka08.arrow.committed import commit_offsets
from kafka08.arrow.connections import cluster_at
from kafka08.arrow.settings import ClusterAddress, ReadSettings, secrets_of
from kafka08.client.bootstrap import parse_bootstrap
from kafka08.client.requests import StorageName
from kafka08.client.security import SecureClientConfig
from kafka08.errors import KafkaError
from kafka08.spark.stream_offsets import StreamOffset, offset_in_progress

logger = logging.getLogger(__name__)


class GroupCommitListener(StreamingQueryListener):
    """Commits the end of each batch of a query for a group, including the last batch, for which
    Spark does not call `commitOffsets`. Spark still continues from its checkpoint; the commits
    show the query's progress to tools that read the group.

        GroupCommitListener(spark, "host:9092", "my-group", query_name="pages")

    The constructor adds it to `spark`. A failed commit is logged; the next batch commits again.

    query_name  the query to follow, as given by queryName(…); of its sources those of the format
                `kafka08` count
    security    Kafka's keys for TLS and SASL
    """

    def __init__(
        self,
        spark: SparkSession,
        bootstrap: str,
        group: str,
        storage: StorageName = "zookeeper",
        *,
        query_name: str,
        security: Mapping[str, str] = {},
    ) -> None:
        brokers = tuple(parse_bootstrap(bootstrap))
        keys = SecureClientConfig(security)
        keys.log_notes()
        address = ClusterAddress(brokers, secrets=secrets_of(keys))
        self._cluster = cluster_at(address, ReadSettings())
        self._group = group
        self._storage: StorageName = storage
        self._query_name = query_name
        spark.streams.addListener(self)

    def onQueryStarted(self, event: Any) -> None:
        pass

    def onQueryProgress(self, event: Any) -> None:
        if event.progress.name != self._query_name:
            return
        for source in event.progress.sources:
            if end := offset_in_progress(source, "endOffset"):
                self._commit(end)

    def onQueryIdle(self, event: Any) -> None:
        pass

    def onQueryTerminated(self, event: Any) -> None:
        pass

    def _commit(self, end: StreamOffset) -> None:
        try:
            commit_offsets(self._cluster, self._group, end.ends, self._storage)
        except KafkaError as error:
            logger.warning("Commit for %s in %s failed: %s", self._group, self._storage, error)
