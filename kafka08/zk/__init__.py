"""The ZooKeeper room: every znode path, its text, the session and its adapters.

`paths` and `nodes` say what lies where (pure); `client.ZkClient` is a session; `store.ClusterStore`
and `group_store.GroupStore` put both together as typed reads and writes; `election` is the election
of the controller. Below the client an adapter has the connection (zookeeper.py): `kazoo_adapter`,
or the pure `model`. Start reading with nodes.py.
"""

from __future__ import annotations
