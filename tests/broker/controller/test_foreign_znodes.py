"""A controller among znodes that other clients write, as they like, while it runs: it keeps its
term. A term that ends at such a znode ends again in each broker that follows."""

from __future__ import annotations

import gc
import json
import random
from typing import Any, Final

import pytest

from kafka08.broker.controller.term import Term
from kafka08.errors import ZooKeeperError
from kafka08.structs import TopicPartition
from kafka08.zk import nodes, paths
from kafka08.zk.operations import Create
from tests.broker.controller.conftest import AT_0_10_2, Cluster
from tests.broker.controller.holds import Holds
from tests.cpu_speed import slowdown
from tests.memory import resident_bytes
from tests.waiting import until

STEPS: Final = 300
HOLD_S: Final = 0.05
GROWTH_BYTES_MAX: Final = 2 << 20
"""In the second half."""
TOPICS: Final = ("t", "u")
ODD: Final[tuple[Any, ...]] = (
    *(None, True, -1, 0, 1, 2, 3, 2**31, 1.5, "", "t", "1", "\ud800", "x" * 40_000),
    *([], [1], [2, 1], [1, 1], [-1], {}, {"0": [1]}, {"x": 1}, [{"topic": "t", "partition": 0}]),
)
"""What stands in the place of a value."""
TEXTS: Final = {
    paths.broker(2): '{"jmx_port":-1,"timestamp":"1","host":"127.0.0.1","version":4,"port":1,'
    '"endpoints":["PLAINTEXT://127.0.0.1:1"],"rack":"r",'
    '"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"}}',
    **{paths.topic(t): nodes.encode_assignment({0: (1, 2), 1: (1,)}) for t in TOPICS},
    **{paths.topic_config(t): '{"version":1,"config":{"cleanup.policy":"delete"}}' for t in TOPICS},
    paths.REASSIGN_PARTITIONS: nodes.encode_reassignment(
        {TopicPartition("t", 0): (2, 1), TopicPartition("u", 1): (1,)}
    ),
    paths.PREFERRED_ELECTION: nodes.encode_preferred_election([TopicPartition("t", 0)]),
    paths.isr_change("isr_change_0000000001"): nodes.encode_isr_changes([TopicPartition("t", 0)]),
    **{paths.delete_topic(t): "" for t in (*TOPICS, "absent")},
    **{
        paths.partition_state(t, number): '{"controller_epoch":1,"leader":1,"version":1,'
        '"leader_epoch":0,"isr":[1]}'
        for t in TOPICS
        for number in (0, 1)
    },
}
"""A znode → a text that a client of Kafka writes there."""


def altered(choice: random.Random, value: Any) -> Any:
    """A JSON value of which one part is another."""
    if not isinstance(value, dict | list) or not value or choice.random() < 0.2:
        return choice.choice(ODD)
    keys = list(value) if isinstance(value, dict) else range(len(value))
    key = choice.choice(list(keys))
    copy = value.copy()
    copy[key] = altered(choice, value[key])
    return copy


def text_for(choice: random.Random, path: str) -> str | None:
    """As written by a client of Kafka, by a damaged one, or by another program."""
    kind = choice.random()
    text = TEXTS[path]
    if kind < 0.4:
        return text
    if kind < 0.8 and text:
        return json.dumps(altered(choice, json.loads(text)))
    return choice.choice([None, "", "no json", "[" * 2000, "7", '"t"', text[: len(text) // 2]])


def write(cluster: Cluster, choice: random.Random) -> str:
    """One write of another client, and what it was."""
    zk, path = cluster.zk, choice.choice(list(TEXTS))
    kind = choice.random()
    if kind < 0.6:
        text = text_for(choice, path)
        zk.put(path, text)
        return f"put {path} {text!r:.300}"
    if kind < 0.75:
        zk.delete_recursive(path)
        return f"delete {path}"
    if kind < 0.85:
        zk.delete_recursive(path)
        zk.create(path, TEXTS[path], ephemeral=True)
        return f"ephemeral {path}"
    zk.pipeline([Create(f"{path}/other/below", "x")])
    return f"below {path}"


@pytest.fixture(params=[{}, AT_0_10_2], ids=["0.8.2", "0.10.2"])
def keys(request: pytest.FixtureRequest) -> dict[str, Any]:
    return dict(request.param)


def test_no_znode_ends_the_term(cluster: Cluster, keys: dict[str, Any], holds: Holds) -> None:
    """Texts of other clients, sound and damaged, znodes below them, ephemeral ones, and deletions:
    the controller stays the first one, and elects leaders for a new topic. So does one that begins
    among them. None holds the event loop, and memory does not grow."""
    cluster.broker(1)
    keys |= {"delete_topic_enable": True, "unclean_leader_election_enable": True}
    controller = cluster.active_controller(1, runtime=holds, **keys)
    choice, done, sizes = random.Random(1), [], []
    for number in range(STEPS):
        try:
            done.append(write(cluster, choice))
        except ZooKeeperError as refused:
            done.append(str(refused))
        if number % 20 == 19:
            cluster.create_topic(f"good-{number}", {0: (1,)})
            state = cluster.wait_for_state(f"good-{number}", 0, 1, (1,))
            assert 1 == state.controller_epoch, "\n".join(done[-25:])
            held, holds.longest = holds.longest, 0.0
            assert held < HOLD_S or held / slowdown() < HOLD_S, "\n".join(done[-25:])
            gc.collect()
            sizes.append(resident_bytes())
    assert sizes[-1] - sizes[len(sizes) // 2] < GROWTH_BYTES_MAX, sizes
    assert controller.is_active
    assert (1, 0) == cluster.store.controller_epoch()

    cluster.stop(controller)
    cluster.active_controller(2, **keys)
    cluster.create_topic("good", {0: (1,)})
    assert 2 == cluster.wait_for_state("good", 0, 1, (1,)).controller_epoch


def live_terms() -> int:
    gc.collect()
    return sum(isinstance(found, Term) for found in gc.get_objects())


def test_a_term_that_has_ended_holds_nothing(cluster: Cluster) -> None:
    """After many terms one is in memory, with the cluster's state: the watches of the others, of
    topics that never change, stay with the session and do not refer to them."""
    cluster.broker(1)
    before = live_terms()
    controller = cluster.active_controller(1)
    cluster.create_topic("t", {0: (1,)})
    cluster.wait_for_state("t", 0, 1, (1,))
    for ended in range(1, 20):
        cluster.zk.delete(paths.CONTROLLER)
        until(lambda n=ended: (controller.epoch or 0) > n, "the next term")  # type: ignore[misc]
    until(lambda: live_terms() == before + 1, "the end of the former terms", seconds=30)
