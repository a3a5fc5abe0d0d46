"""VersionRanges: the versions of each API that a broker serves, and the one that a client uses.

Brokers of 0.10 and later report them by ApiVersions. A broker of 0.9 does not respond to that; it
has the rows of level 0.9.0.
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


class VersionRanges:
    """Immutable. Without `apis`, the versions of a broker of 0.9."""

    def __init__(self, apis: Iterable[ApiVersionRange] | None = None) -> None:
        self._ranges: dict[int, tuple[int, int]] | None = None
        if apis is not None:
            self._ranges = {api.key: (api.min_version, api.max_version) for api in apis}

    def highest(self, request: type[Request], low: int, high: int) -> int:
        """The highest version from `low` to `high` (the client's) that the broker serves.
        UnsupportedVersion without one."""
        api = DECLARED[request]
        first, last = of_0_9(api) if self._ranges is None else self._ranges.get(api.key, NOT_SERVED)
        version = min(high, last)
        if version < max(low, first):
            serves = f"versions {first} to {last}" if last >= first else "no version"
            raise UnsupportedVersion(
                f"{request.__name__}: this client speaks versions {low} to {high}, the broker "
                f"serves {serves}"
            )
        return version


def of_0_9(api: Api) -> tuple[int, int]:
    """The range of an API at level 0.9.0."""
    served = [row.version for row in api.versions if row.exists_at(Level.V0_9_0)]
    return (min(served), max(served)) if served else NOT_SERVED


OF_0_9: Final = VersionRanges()
"""The versions that brokers of 0.9 serve."""
