"""Endpoints: the texts of `listeners`, `advertised.listeners` and their map of protocols.

    NAME://host:port,NAME://[::1]:port     an empty host: all interfaces

Source: kafka.cluster.EndPoint, kafka.utils.CoreUtils.listenerListToEndPoints 0.10.2.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from kafka08.errors import ConfigError
from kafka08.structs import PLAINTEXT, Endpoint

SECURITY_PROTOCOLS: Final = (PLAINTEXT, "SSL", "SASL_PLAINTEXT", "SASL_SSL")
EVERY_PROTOCOL: Final = {name: name for name in SECURITY_PROTOCOLS}
"""The listeners that need no entry in listener.security.protocol.map."""


def parse_endpoints(key: str, text: str, protocols: Mapping[str, str]) -> tuple[Endpoint, ...]:
    """The endpoints in a value of `key`; `protocols` is listener → security protocol. ConfigError
    for another form, an unknown listener, a protocol other than PLAINTEXT, or a duplicate name or
    port."""
    found = tuple(_endpoint(key, item, protocols) for item in _items(text))
    if not found:
        raise ConfigError(f"{key}: {text!r} has no listener; the form is PLAINTEXT://host:port")
    _check_distinct(key, text, "name", [endpoint.listener for endpoint in found])
    _check_distinct(key, text, "port", [endpoint.port for endpoint in found if endpoint.port])
    return found


def _endpoint(key: str, item: str, protocols: Mapping[str, str]) -> Endpoint:
    try:
        endpoint = Endpoint.parse(item, protocols)
    except KeyError as unknown:
        (listener,) = unknown.args
        raise ConfigError(
            f"{key}: no security protocol defined for listener {listener}. Add "
            f"{listener}:PLAINTEXT to listener.security.protocol.map"
        ) from None
    except ValueError as error:
        raise ConfigError(f"{key}: {error}") from None
    if endpoint.security_protocol != PLAINTEXT:
        raise ConfigError(
            f"{key}: {item!r}: {endpoint.security_protocol} is not supported, only PLAINTEXT is"
        )
    return endpoint


def _check_distinct(key: str, text: str, what: str, values: list[str] | list[int]) -> None:
    if len(set(values)) < len(values):
        raise ConfigError(f"{key}: each listener must have a different {what}: {text!r}")


def parse_protocol_map(key: str, text: str) -> dict[str, str]:
    """listener → security protocol, from `NAME:PROTOCOL,...`; ConfigError for another form."""
    found = {}
    for item in _items(text):
        name, separator, protocol = item.rpartition(":")
        if not separator or protocol not in SECURITY_PROTOCOLS:
            raise ConfigError(
                f"{key}: {item!r} is not NAME:PROTOCOL with one of {', '.join(SECURITY_PROTOCOLS)}"
            )
        found[name.upper()] = protocol
    return found


def _items(text: str) -> Iterable[str]:
    return [item for part in text.split(",") if (item := part.strip())]
