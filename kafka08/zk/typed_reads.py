"""Znodes read in bursts and decoded, with the path in the error of a text that cannot be read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from kafka08.errors import ZooKeeperError
from kafka08.zk.client import ZkClient
from kafka08.zk.errors import unless_gone
from kafka08.zk.operations import Get, Node, WatchCallback, Watcher

T = TypeVar("T")
Key = TypeVar("Key")


def read_one(zk: ZkClient, path: str, decode: Callable[[str | None], T]) -> T | None:
    """The decoded znode; None if it does not exist."""
    node = zk.get_or_none(path)
    return None if node is None else decode_at(path, decode, node.data)


def read_all(
    zk: ZkClient, wanted: Mapping[Key, str], on_change: WatchCallback | None = None
) -> dict[Key, Node]:
    """key → node for each path that exists, in the order of `wanted`. `on_change` is called once at
    the next change of each znode that is there."""
    results = zk.pipeline(
        [Get(path, on_change and Watcher(path, on_change)) for path in wanted.values()]
    )
    read = {key: unless_gone(r, None) for key, r in zip(wanted, results, strict=True)}
    return {key: node for key, node in read.items() if node is not None}


def decode_at(path: str, decode: Callable[[str | None], T], text: str | None) -> T:
    """The text of this znode as a value. ZooKeeperError names the path."""
    try:
        return decode(text)
    except ZooKeeperError as error:
        raise ZooKeeperError(f"{path}: {error}") from error
