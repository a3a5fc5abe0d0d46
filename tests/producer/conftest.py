"""Scripted brokers, which most tests here use."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.producer.tcp_cluster import TcpCluster


@pytest.fixture
def cluster() -> Iterator[TcpCluster]:
    """Two brokers: 1 leads [t,0], 2 leads [t,1] and [u,0]."""
    with TcpCluster({"t": {0: 1, 1: 2}, "u": {0: 2}}) as cluster:
        yield cluster
