"""A ZooKeeper of values: requests and time in, replies and events out.

`server.Server` is one logical ZooKeeper (an ensemble that agrees at once): `tree` has the znodes,
`sessions` the sessions, `watches` the watches, `messages` what goes over a connection. No socket,
no thread, no clock, no chance: it can run behind a simulated network or ZooKeeper's wire protocol.
`session` is a client's session on it, a `ZooKeeper` for `ZkClient`; `in_process` drives both.

Right means: as ZooKeeper 3.9 does, held by tests/zk/model/test_against_zookeeper.py. Left out:
access lists (ignored), quotas, containers and TTLs, persistent watches, reconfiguration, followers
that lag.
"""

from __future__ import annotations
