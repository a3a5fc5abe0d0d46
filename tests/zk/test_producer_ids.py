"""Producer ids: blocks that brokers reserve in ZooKeeper."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka08.config import LONG_MAX
from kafka08.errors import ZooKeeperError
from kafka08.zk.client import ZkClient
from kafka08.zk.model.server import Server
from kafka08.zk.producer_ids import BLOCK_SIZE, PATH, ProducerIdBlock, ProducerIds
from tests.zk.in_process import InProcessWorld

DATA = Path(__file__).parents[1] / "data" / "0.11-api-admin.json"


@pytest.fixture
def zk() -> Iterator[ZkClient]:
    world = InProcessWorld(Server(tick_ms=500))
    with ZkClient("model:2181", adapter=world.connect, clock=world) as client:
        yield client


def test_the_znode_is_the_captured_one() -> None:
    """Decoded and encoded back to the text of 0.11.0.3."""
    entries = json.loads(DATA.read_text(encoding="utf-8"))
    (text,) = (one["data"] for one in entries if one["name"].startswith("znode-latest"))
    block = ProducerIdBlock.decode(text)
    assert ProducerIdBlock(1, 1000, 1999) == block
    assert text == block.encode()


def test_no_two_brokers_have_an_id(zk: ZkClient) -> None:
    """Each has a block of its own, over several blocks, and after a restart another one."""
    one, other = ProducerIds(zk, 1), ProducerIds(zk, 2)
    found = [ids.next_id() for _ in range(BLOCK_SIZE + 5) for ids in (one, other)]
    found.append(ProducerIds(zk, 1).next_id())
    assert len(found) == len(set(found))
    assert [0, 1000] == found[:2]
    assert ProducerIdBlock(1, 4000, 4999) == ProducerIdBlock.decode(zk.get(PATH).data)


def test_a_broker_that_was_faster_keeps_its_block(
    zk: ZkClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The update is on condition of what was read: the slower one takes the next block."""
    slow, fast = ProducerIds(zk, 1), ProducerIds(zk, 2)
    fast.next_id()
    read = zk.get_or_none
    taken = list[int]()

    def read_and_lose(path: str) -> object:
        node = read(path)
        if not taken:
            taken.append(0)  # before the next line reads, too
            taken[0] = ProducerIds(zk, 2).next_id()
        return node

    monkeypatch.setattr(zk, "get_or_none", read_and_lose)
    assert 2000 == slow.next_id()
    assert [1000] == taken


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"version":1,"broker":1,"block_start":0,"block_end":999}',
        '{"version":1,"broker":1,"block_start":"0","block_end":"-1"}',
        '{"version":1,"broker":1,"block_start":"0","block_end":"' + "9" * 5000 + '"}',
        '{"version":1,"broker":1,"block_start":"0","block_end":"' + str(LONG_MAX + 1) + '"}',
        "[" * 100_000,
    ],
)
def test_a_text_that_is_no_block_gives_no_ids(zk: ZkClient, text: str) -> None:
    """A guess would give out ids again."""
    zk.create(PATH, text)
    with pytest.raises(ZooKeeperError, match=PATH):
        ProducerIds(zk, 1).next_id()


def test_the_last_ids_are_not_exceeded(zk: ZkClient) -> None:
    """There are 2^63 - 1."""
    zk.create(PATH, ProducerIdBlock(1, 0, LONG_MAX - 5).encode())
    with pytest.raises(ZooKeeperError, match="no producer ids are left"):
        ProducerIds(zk, 1).next_id()
