"""Configurations of brokers, as brokers from 0.11 on describe them and from 2.3 on change them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from kafka08.client.cluster import ClusterClient
from kafka08.errors import AdminError, error_of
from kafka08.protocol.describe_configs import (
    BROKER,
    NO_SOURCE,
    DescribeConfigsRequest,
    DescribedConfig,
    DescribedResource,
)
from kafka08.protocol.incremental_alter_configs import (
    DELETE,
    SET,
    ChangedResource,
    ConfigChange,
    IncrementalAlterConfigsRequest,
)
from kafka08.structs import Broker

ALL_BROKERS: Final = ""
"""The resource whose values are those of all brokers that have none of their own."""
FILE: Final = "file"
DEFAULT: Final = "default"
SOURCES: Final = {2: "broker", 3: "all brokers", 4: FILE, 5: DEFAULT}


class BrokerConfig(NamedTuple):
    """The value of a key at a broker.

    value         None for a password, and where there is none
    source        where it is set: broker or all brokers (changed at run time, which counts before
                  the broker's file), file, or default; "type 9" and the like for one that is later
                  than this client
    is_read_only  only the file can change it
    """

    value: str | None
    source: str
    is_read_only: bool


def describe(cluster: ClusterClient, broker: Broker | None) -> dict[str, BrokerConfig]:
    """All keys of a broker, sorted; None: those that are set for all brokers, from 1.1 on.
    AdminError, UnsupportedVersion before 0.11."""
    name = _name_of(broker)
    request = DescribeConfigsRequest([DescribedResource(BROKER, name, None)])
    versions = (0, 1) if broker is not None else (1, 1)
    (found,) = _ask(cluster, broker, request, versions).resources
    _check(name, found)
    return {
        one.key: BrokerConfig(one.value, _source(one), one.is_read_only)
        for one in sorted(found.configs, key=lambda one: one.key)
    }


def alter(
    cluster: ClusterClient,
    broker: Broker | None,
    config: Mapping[str, str],
    delete_config: Sequence[str],
    *,
    dry_run: bool,
) -> None:
    """Set some keys of a broker, or of all (None), and remove values of others. AdminError,
    UnsupportedVersion before 2.3."""
    name = _name_of(broker)
    changes = [ConfigChange(key, SET, value) for key, value in config.items()]
    changes += [ConfigChange(key, DELETE, None) for key in delete_config]
    request = IncrementalAlterConfigsRequest([ChangedResource(BROKER, name, changes)], dry_run)
    (result,) = _ask(cluster, broker, request, (0, 0)).resources
    _check(name, result)


def _name_of(broker: Broker | None) -> str:
    return ALL_BROKERS if broker is None else str(broker.id)


def _ask(
    cluster: ClusterClient, broker: Broker | None, request: Any, versions: tuple[int, int]
) -> Any:
    """A broker describes and changes only itself; any one what is set for all."""
    if broker is None:
        return cluster.ask_any(request, versions)
    return cluster.send(broker, request, versions)


def _check(name: str, result: Any) -> None:
    error = error_of(result.error_code)
    if error is not None:
        what = "all brokers" if name == ALL_BROKERS else f"broker {name}"
        raise AdminError(f"Configuration of {what}: {result.message or error}") from error


def _source(config: DescribedConfig) -> str:
    if config.source == NO_SOURCE:  # of a broker of 0.11 or 1.0
        return DEFAULT if config.is_default else FILE
    return SOURCES.get(config.source, f"type {config.source}")
