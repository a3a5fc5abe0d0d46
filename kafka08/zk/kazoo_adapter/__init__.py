"""Sessions with a real ZooKeeper through kazoo; the only place that imports it.

`on_threads` and `on_gevent` make sessions (session.py). `handlers` and `green_handler` wait for
sockets; `failures` turns kazoo's errors into ours; `last_heard` and `patience` reach into kazoo's
connection, which is why setup.cfg bounds kazoo's version.
"""

from __future__ import annotations

from kafka08.zk.kazoo_adapter.session import on_gevent, on_threads

__all__ = ["on_gevent", "on_threads"]
