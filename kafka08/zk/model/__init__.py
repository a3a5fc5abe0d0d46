"""A model of ZooKeeper: requests and times in, replies and events out.

`server.Server` is one logical ZooKeeper (an ensemble that agrees at once): `tree` has the znodes,
`sessions` the sessions, `watches` the watches, `messages` the messages of a connection. It uses no
socket, thread, clock or randomness, so it can run behind a simulated network or ZooKeeper's wire
protocol. `session` is a client's session on it, a `ZooKeeper` for `ZkClient`. Simulated clusters
and tests drive both.

It behaves as ZooKeeper 3.9; tests/zk/model/test_against_zookeeper.py compares the two. Not
modelled: quotas, containers and TTLs, persistent watches, reconfiguration, lagging followers.
"""

from __future__ import annotations
