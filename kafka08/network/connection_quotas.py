"""ConnectionQuotas: the connections to a broker from each address, on all of its listeners, and
their limits.

Source: kafka.network.ConnectionQuotas 0.8.2.2.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping

logger = logging.getLogger("kafka.network.Processor")


class ConnectionQuotas:
    """Counts connections by address.

    default_max   connections allowed from one address (max.connections.per.ip)
    overrides     other limits, by host name or address (max.connections.per.ip.overrides)
    resolve       host → address; OSError
    """

    def __init__(
        self, default_max: int, overrides: Mapping[str, int], resolve: Callable[[str], str]
    ) -> None:
        self._default_max = default_max
        self._overrides = resolved(overrides, resolve)
        self._counts: Counter[str] = Counter()

    def limit(self, address: str) -> int:
        return self._overrides.get(address, self._default_max)

    def is_full(self, address: str) -> bool:
        """Whether no further connection from that address is allowed."""
        return self._counts[address] >= self.limit(address)

    def add(self, address: str) -> None:
        """A connection is open."""
        self._counts[address] += 1

    def remove(self, address: str) -> None:
        """A connection has closed."""
        self._counts[address] -= 1
        if not self._counts[address]:
            del self._counts[address]


def resolved(limits: Mapping[str, int], resolve: Callable[[str], str]) -> dict[str, int]:
    """Limits by address, for limits by host name or address."""
    found = {}
    for host, limit in limits.items():
        try:
            found[resolve(host)] = limit
        except OSError as error:
            logger.warning("max.connections.per.ip.overrides: cannot resolve %s: %s", host, error)
    return found
