"""The ZooKeeper room: every znode path, its text, the session, and the one home of kazoo.

`paths` and `nodes` say what lies where (pure); `client.ZkClient` is a session; `store.ClusterStore`
puts both together as typed reads and writes; `election` is the election of the controller. Start
reading with nodes.py.
"""

from __future__ import annotations
