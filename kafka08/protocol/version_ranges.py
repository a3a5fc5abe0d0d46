"""VersionRanges: the versions of each API that a broker serves, and the one that a client uses.

Brokers of 0.10 and later report them by ApiVersions. Those of 0.8 and 0.9 do not respond to that;
they have the rows of their level.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kafka08.errors import UnsupportedVersion
from kafka08.levels import Level
from kafka08.protocol.api import DECLARED, Api
from kafka08.protocol.api_versions import ApiVersionRange
from kafka08.protocol.types import Request

NOT_SERVED: Final = (0, -1)
PRODUCE: Final = 0
FETCH: Final = 1
FIRST_FETCH_OF_4_0: Final = 4
FIRST_PRODUCE_OF_4_0: Final = 3


class VersionRanges:
    """Immutable. Without `apis`, the versions of a broker of `level`."""

    def __init__(
        self, apis: Iterable[ApiVersionRange] | None = None, level: Level = Level.V0_9_0
    ) -> None:
        self._level = level if apis is None else None
        self._ranges = {api.key: (api.min_version, api.max_version) for api in apis or ()}
        """By API key; those of a level as they are asked for."""
        if self._ranges.get(FETCH, NOT_SERVED)[0] >= FIRST_FETCH_OF_4_0:
            # 4.0 lists Produce 0 for a client that would not start without it, and closes the
            # connection that sends a version below 3.
            lowest, highest = self._ranges.get(PRODUCE, NOT_SERVED)
            self._ranges[PRODUCE] = (max(lowest, FIRST_PRODUCE_OF_4_0), highest)

    def highest(self, request: type[Request], low: int, high: int) -> int:
        """The highest version from `low` to `high` (the client's) that the broker serves.
        UnsupportedVersion without one."""
        api = DECLARED[request]
        first, last = self._range(api)
        version = min(high, last)
        if version < max(low, first):
            speaks = f"version {low}" if low == high else f"versions {low} to {high}"
            serves = f"versions {first} to {last}" if last >= first else "no version"
            raise UnsupportedVersion(
                f"{request.__name__}: this client speaks {speaks}, the broker serves {serves}"
            )
        return version

    def lowest(self, request: type[Request], low: int, high: int) -> int:
        """The lowest version from `low` to `high` that the broker serves. UnsupportedVersion
        without one."""
        self.highest(request, low, high)
        return max(low, self._range(DECLARED[request])[0])

    def check(self, request: Request) -> None:
        """UnsupportedVersion for a request on which a broker that lists its versions would close
        the connection."""
        if self._level is None:
            self.highest(type(request), request.version, request.version)

    def serves(self, request: type[Request], version: int) -> bool:
        """Whether the broker serves this version."""
        first, last = self._range(DECLARED[request])
        return first <= version <= last

    def serves_beyond(self, request: type[Request], version: int) -> bool:
        """Whether the broker serves a later version."""
        return self._range(DECLARED[request])[1] > version

    def _range(self, api: Api) -> tuple[int, int]:
        found = self._ranges.get(api.key)
        if found is None:
            found = NOT_SERVED if self._level is None else at_level(api, self._level)
            self._ranges[api.key] = found
        return found


def at_level(api: Api, level: Level) -> tuple[int, int]:
    """The range of an API at a level."""
    served = [row.version for row in api.versions if row.exists_at(level)]
    return (min(served), max(served)) if served else NOT_SERVED


OF_0_8: Final = VersionRanges(level=Level.V0_8_2)
OF_0_9: Final = VersionRanges(level=Level.V0_9_0)
"""The versions that brokers of these releases serve."""
