"""The admin client that fits a cluster."""

from __future__ import annotations

from kafka08.admin.broker_admin import BrokerAdmin
from kafka08.admin.client import AdminClient
from kafka08.client import parse_bootstrap
from kafka08.observe.place import ClusterPlace
from kafka08.runtime import ClientRuntime


def admin_of(place: ClusterPlace, runtime: ClientRuntime) -> AdminClient | BrokerAdmin:
    """The one that uses ZooKeeper, if it is given. ZooKeeperError, ConfigError."""
    if place.zookeeper is not None:
        return AdminClient(place.zookeeper, is_patient=False, runtime=runtime)
    assert place.bootstrap is not None
    return BrokerAdmin(parse_bootstrap(place.bootstrap), security=place.security, runtime=runtime)
