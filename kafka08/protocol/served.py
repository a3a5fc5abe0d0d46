"""Served: the (key, version) pairs that a broker of a level serves, and what it does with others.

Made from the rows of all APIs. The real brokers check versions differently:

    0.8.2   checks only the version of OffsetCommit; any other key has one layout. Closes the
            connection after an unsupported request
    0.9.0   checks the versions of keys 8 and 10 to 16, not of 0 to 7 and 9. Does not respond to an
            unsupported request, and keeps the connection
    0.10.2  checks every version except those of ControlledShutdown and ApiVersions. Closes the
            connection after an unsupported request; ApiVersions responds with error 35
    0.11.0  as 0.10.2

Source: kafka.network.RequestChannel, kafka.api.RequestKeys 0.8.2.2 and 0.9.0.1, and RequestChannel
0.10.2.2 and 0.11.0.2.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final

from kafka08.errors import NO_ERROR, ProtocolError, UnsupportedVersion
from kafka08.levels import ByLevel, Level
from kafka08.protocol.api import Api, ApiVersion
from kafka08.protocol.api_versions import ApiVersionRange, ApiVersionsResponse
from kafka08.protocol.apis import APIS
from kafka08.protocol.compiler import DECODERS, STRICT_DECODERS

OFFSET_COMMIT_KEY: Final = 8
OFFSET_FETCH_KEY: Final = 9
API_VERSIONS_KEY: Final = 18
KEYS_UNCHECKED: Final = ByLevel(
    {
        Level.V0_8_2: frozenset(range(13)) - {OFFSET_COMMIT_KEY, OFFSET_FETCH_KEY},
        Level.V0_9_0: frozenset(range(8)),
        Level.V0_10_2: frozenset({7, API_VERSIONS_KEY}),
    }
)
"""Keys whose unsupported versions are read as the nearest supported one."""


class UnknownApi(ProtocolError):
    """The level does not have the key of a request."""


class UnservedVersion(ProtocolError):
    """The level has the key of a request, but not the version."""


class Served:
    """The APIs of one level: the rows of `apis` that exist there.

    rows                     (key, version) → row
    names                    key → name of the API
    decoders                 decoders of request bodies: strict ones since 0.10.2
    closes_on_unsupported    whether an unsupported request closes the connection; else it gets no
                             response
    """

    def __init__(self, level: Level, apis: Collection[Api] = APIS) -> None:
        self.level = level
        self.rows: Final[Mapping[tuple[int, int], ApiVersion]] = {
            (api.key, row.version): row
            for api in apis
            for row in api.versions
            if row.exists_at(level)
        }
        served = {key for key, _ in self.rows}
        self.names: Final[Mapping[int, str]] = {
            api.key: api.name
            for api in apis
            if api.key in served and any(row.exists_at(level) for row in api.versions)
        }
        self.decoders: Final = STRICT_DECODERS if level >= Level.V0_10_2 else DECODERS
        self.closes_on_unsupported = level != Level.V0_9_0
        self._read_as = self._version_rules()

    def row(self, key: int, version: int) -> ApiVersion:
        """The row for decoding a request; its version may differ from the requested one.
        UnknownApi, UnservedVersion."""
        rule = self._read_as.get(key)
        row = self.rows.get((key, version if rule is None else rule(version)))
        if row is not None:
            return row
        if key not in self.names:
            raise UnknownApi(f"request key {key} is not an API of {self.level}")
        versions = ", ".join(str(served) for of, served in sorted(self.rows) if of == key)
        raise UnservedVersion(
            f"{self.names[key]} version {version} is not served at level {self.level}, which has "
            f"{versions}"
        )

    def _version_rules(self) -> dict[int, Callable[[int], int]]:
        rules: dict[int, Callable[[int], int]] = {}
        for key in KEYS_UNCHECKED[self.level]:
            versions = [version for of, version in self.rows if of == key]
            if key == API_VERSIONS_KEY and versions:
                rules[key] = _known_or_zero(frozenset(versions))
            elif versions:
                rules[key] = _nearest(min(versions), max(versions))
        if self.level < Level.V0_10_2:
            rules[OFFSET_FETCH_KEY] = _zero_or_one
        return rules


def _nearest(lowest: int, highest: int) -> Callable[[int], int]:
    return lambda version: max(lowest, min(version, highest))


def _known_or_zero(versions: frozenset[int]) -> Callable[[int], int]:
    return lambda version: version if version in versions else 0


def _zero_or_one(version: int) -> int:
    """OffsetFetch before 0.10: version 0 reads ZooKeeper, any other the offsets topic."""
    return 0 if version == 0 else 1


SERVED: Final[Mapping[Level, Served]] = {level: Served(level) for level in Level}


def api_versions(served: Served, version: int) -> ApiVersionsResponse:
    """The response to ApiVersions of `version`: the range of each listed API by key, or error 35
    and no APIs if that version is not served."""
    if (API_VERSIONS_KEY, version) not in served.rows:
        return ApiVersionsResponse(UnsupportedVersion.code, [])
    return ApiVersionsResponse(NO_ERROR, listed_ranges(served))


def listed_ranges(served: Served) -> list[ApiVersionRange]:
    """The range of each listed API by key."""
    listed: dict[int, list[int]] = {}
    for (key, number), row in sorted(served.rows.items()):
        if row.listed:
            listed.setdefault(key, []).append(number)
    return [ApiVersionRange(key, found[0], found[-1]) for key, found in listed.items()]
