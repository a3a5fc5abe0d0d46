"""Watch: the latest view of a cluster, the one before it, and the histories since the start."""

from __future__ import annotations

from kafka08.client import PLAINTEXT, Security
from kafka08.exporter.histories import Histories
from kafka08.exporter.summary import GroupPartitionRow, Summary, group_partitions, summary_of
from kafka08.lifecycle import Closeable
from kafka08.observe.place import ClusterPlace
from kafka08.observe.reader import ClusterReader
from kafka08.observe.snapshot import ClusterView
from kafka08.runtime import ClientRuntime
from kafka08.runtime.threads import THREADS


class Watch(Closeable):
    """Connects at the first read. One thread may `read_view` while another uses the views.

    zookeeper, bootstrap, security   as ClusterReader's
    earlier                          a stored view that serves as the previous one
    """

    def __init__(
        self,
        zookeeper: str | None,
        bootstrap: str | None = None,
        security: Security = PLAINTEXT,
        *,
        earlier: ClusterView | None = None,
        runtime: ClientRuntime = THREADS,
    ) -> None:
        self._place = ClusterPlace(zookeeper, bootstrap, security)
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

    def read_view(self) -> ClusterView:
        """A view of now. In one thread at a time; raises as ClusterReader.read_view."""
        if self._reader is None:
            self._reader = ClusterReader(*self._place, runtime=self._runtime)
        return self._reader.read_view()

    def read_twice(self) -> list[ClusterView]:
        """Two views a second apart, for rates."""
        first = self.read_view()
        self._runtime.sleep(1.0)
        return [first, self.read_view()]

    def add(self, view: ClusterView) -> None:
        """Take a view as the latest."""
        self.histories.add(view)
        self.before, self.view = self.view, view

    def summary(self, since: ClusterView | None = None) -> Summary:
        """The rows of the latest view. Rates are since `since`; default: the view before."""
        assert self.view is not None, "nothing was read yet"
        return summary_of(self.view, since or self.before, self.histories)

    def partitions_of(self, group: str) -> list[GroupPartitionRow]:
        assert self.view is not None, "nothing was read yet"
        return group_partitions(self.view, self.histories, group)
