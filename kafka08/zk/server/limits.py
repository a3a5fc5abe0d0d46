"""Limits of a server for tests: it has no data that must last, and serves no other machine."""

from __future__ import annotations

from typing import Final

WARNING: Final = (
    "WARNING: this ZooKeeper server is for tests. It never syncs to disk, so a crash of the "
    "machine loses its data: use Apache's ZooKeeper for data that must last."
)
NOT_LOOPBACK: Final = (
    "host: {host} is not a loopback address, and whoever reaches a ZooKeeper server for tests may "
    "do anything with it. Use 127.0.0.1, or allow it (--any-address, any_address=True)"
)
