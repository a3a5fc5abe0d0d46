"""Watch: what was read of a cluster last, the time before, and how it moved since the start."""

from __future__ import annotations

from kafka08.exporter.histories import Histories
from kafka08.exporter.reader import ClusterReader
from kafka08.exporter.summary import GroupPartitionRow, Summary, group_partitions, summary_of
from kafka08.exporter.view import ClusterView
from kafka08.lifecycle import Closeable
from kafka08.runtime import ClientRuntime
from kafka08.runtime.threads import THREADS


class Watch(Closeable):
    """Connects at the first look. One thread may `read` while another looks at what was added.

    earlier   a view that was kept, as if it was the last one
    """

    def __init__(
        self,
        zookeeper: str,
        *,
        earlier: ClusterView | None = None,
        runtime: ClientRuntime = THREADS,
    ) -> None:
        self._zookeeper = zookeeper
        self._runtime = runtime
        self._reader: ClusterReader | None = None
        self.before: ClusterView | None = None
        self.view: ClusterView | None = None
        self.histories = Histories()
        if earlier is not None:
            self.add(earlier)

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()

    def read(self) -> ClusterView:
        """What there is now. In any one thread; raises ZooKeeperError."""
        if self._reader is None:
            self._reader = ClusterReader(self._zookeeper, runtime=self._runtime)
        return self._reader.read_view()

    def read_twice(self) -> list[ClusterView]:
        """A second apart, for rates."""
        first = self.read()
        self._runtime.sleep(1.0)
        return [first, self.read()]

    def add(self, view: ClusterView) -> None:
        """Remember what was read."""
        self.histories.add(view)
        self.before, self.view = self.view, view

    def summary(self, since: ClusterView | None = None) -> Summary:
        """Rates since `since`; default: since the view before."""
        assert self.view is not None, "nothing was read yet"
        return summary_of(self.view, since or self.before, self.histories)

    def partitions_of(self, group: str) -> list[GroupPartitionRow]:
        assert self.view is not None, "nothing was read yet"
        return group_partitions(self.view, self.histories, group)
