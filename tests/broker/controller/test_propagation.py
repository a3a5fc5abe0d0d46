"""Propagation: which UpdateMetadata a controller of each level sends, and to which brokers."""

from __future__ import annotations

import pytest

from kafka08.broker.controller.context import ControllerContext
from kafka08.broker.controller.propagation import OF_0_8_2, Propagation, propagation_of
from kafka08.broker.controller.request_batch import RequestBatch
from kafka08.broker.controller.term import listed
from kafka08.broker.settings.config import BrokerConfig
from kafka08.protocol.update_metadata import ListenerEndpoint, LiveBroker, LiveBrokerV0
from kafka08.structs import Broker
from kafka08.zk.nodes import BrokerRegistration


def of(level: str, pinned: str | None = None) -> Propagation:
    keys = {} if pinned is None else {"inter.broker.protocol.version": pinned}
    if level == "0.10.2" and pinned is not None:
        keys["log.message.format.version"] = pinned
    config = BrokerConfig({"broker.id": 1, "zookeeper.connect": "z:1", "api.level": level, **keys})
    return propagation_of(config)


@pytest.mark.parametrize(
    ("level", "pinned", "version"),
    [
        ("0.8.2", None, 0),
        ("0.9.0", None, 1),
        ("0.9.0", "0.8.2", 0),
        ("0.10.2", None, 3),
        ("0.10.2", "0.10.0", 2),
        ("0.10.2", "0.9.0", 1),
        ("0.10.2", "0.8.2", 0),
    ],
)
def test_the_version_is_that_of_the_oldest_broker(
    level: str, pinned: str | None, version: int
) -> None:
    """The version is that of the oldest broker (ControllerBrokerRequestBatch 0.9.0.1 and
    0.10.2.2)."""
    assert version == of(level, pinned).update_metadata


@pytest.mark.parametrize(("told", "expected"), [(OF_0_8_2, []), (of("0.9.0", "0.8.2"), [1, 2])])
def test_a_cluster_without_topics_gets_update_metadata_from_0_9_on(
    told: Propagation, expected: list[int]
) -> None:
    """From 0.9 on a cluster without topics sends UpdateMetadata too. Otherwise the first topic of
    an empty mixed cluster loses the new broker from its ISR."""
    context = ControllerContext(epoch=5, propagation=told)
    context.brokers = {1: Broker(1, "a", 1), 2: Broker(2, "b", 2)}
    batch = RequestBatch(context, 1)
    batch.add_update_metadata()
    requests = batch.requests()
    assert expected == [sent.broker_id for sent in requests]
    assert all(2 == len(sent.request.live_brokers) for sent in requests)  # type: ignore[attr-defined]


def test_all_listeners_and_the_rack_are_sent() -> None:
    """All listeners and the rack are sent as registered. Version 0 has room for the first PLAINTEXT
    listener alone."""
    registration = BrokerRegistration(
        "h",
        9092,
        version=4,
        endpoints=("INTERNAL://i:1", "CLIENT://[::1]:2"),
        rack="r",
        protocols={"INTERNAL": "SSL", "CLIENT": "PLAINTEXT"},
    )
    endpoints = [ListenerEndpoint(1, "i", "INTERNAL", 1), ListenerEndpoint(2, "::1", "CLIENT", 0)]
    live = LiveBroker(7, endpoints, "r")
    assert {7: live} == listed({7: registration}, [7])
    assert (7, "::1", 2) == tuple(
        getattr(LiveBrokerV0.show(live), name) for name in ("broker_id", "host", "port")
    )


def test_a_registration_with_unreadable_endpoints_is_sent_with_its_address() -> None:
    """A registration whose endpoints cannot be parsed is sent with its host and port. A client that
    writes to ZooKeeper must not stop the controller."""
    broken = BrokerRegistration("h", 9092, version=2, endpoints=("nonsense",))
    context = ControllerContext(brokers={7: Broker(7, "h", 9092)}, listed=listed({7: broken}, [7]))
    assert [LiveBroker.plaintext(7, "h", 9092)] == context.live_brokers()
