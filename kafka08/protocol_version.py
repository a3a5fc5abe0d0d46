"""ProtocolVersion: the values of `inter.broker.protocol.version` and `log.message.format.version`.

The first sets the versions of requests to other brokers and of the registration in ZooKeeper, so
that brokers of several releases form one cluster during a rolling upgrade; the second, and a
topic's `message.format.version`, set the message format of logs. The APIs that a broker serves
depend on its level alone. Source: kafka.api.ApiVersion 0.9.0.1, 0.10.2.2 and 0.11.0.2.
"""

from __future__ import annotations

import enum
from typing import Final

from kafka08.errors import ConfigError
from kafka08.levels import ByLevel, Level


class ProtocolVersion(enum.IntEnum):
    """A version of the protocol between brokers. Compare by age; `str` is the text of Kafka."""

    V0_8_0 = 0
    V0_8_1 = 1
    V0_8_2 = 2
    V0_9_0 = 3
    V0_10_0_IV0 = 4
    """Message timestamps: magic 1."""
    V0_10_0_IV1 = 5
    """Racks."""
    V0_10_1_IV0 = 6
    """The rebalance timeout of a group member."""
    V0_10_1_IV1 = 7
    """A size limit for a whole Fetch response."""
    V0_10_1_IV2 = 8
    """Offsets by message timestamp."""
    V0_10_2_IV0 = 9
    """Listeners by name."""
    V0_11_0_IV0 = 10
    """Record batches: magic 2."""
    V0_11_0_IV1 = 11
    """Followers say where their logs start."""
    V0_11_0_IV2 = 12
    """Followers ask where leader epochs end."""

    def __str__(self) -> str:
        return _TEXTS[self]

    @property
    def release(self) -> str:
        """The first three numbers, such as 0.10.2, which as a value are the newest such version."""
        return ".".join(str(self).partition("-")[0].split(".")[:3])

    @property
    def magic(self) -> int:
        """The newest message format that brokers of this version understand."""
        return int(self >= ProtocolVersion.V0_10_0_IV0) + int(self >= ProtocolVersion.V0_11_0_IV0)


_TEXTS: Final = {
    ProtocolVersion.V0_8_0: "0.8.0.X",
    ProtocolVersion.V0_8_1: "0.8.1.X",
    ProtocolVersion.V0_8_2: "0.8.2.X",
    ProtocolVersion.V0_9_0: "0.9.0.X",
    ProtocolVersion.V0_10_0_IV0: "0.10.0-IV0",
    ProtocolVersion.V0_10_0_IV1: "0.10.0-IV1",
    ProtocolVersion.V0_10_1_IV0: "0.10.1-IV0",
    ProtocolVersion.V0_10_1_IV1: "0.10.1-IV1",
    ProtocolVersion.V0_10_1_IV2: "0.10.1-IV2",
    ProtocolVersion.V0_10_2_IV0: "0.10.2-IV0",
    ProtocolVersion.V0_11_0_IV0: "0.11.0-IV0",
    ProtocolVersion.V0_11_0_IV1: "0.11.0-IV1",
    ProtocolVersion.V0_11_0_IV2: "0.11.0-IV2",
}
_NAMES: Final = {
    **{text.removesuffix(".X"): version for version, text in _TEXTS.items()},
    "0.10.0": ProtocolVersion.V0_10_0_IV1,
    "0.10.1": ProtocolVersion.V0_10_1_IV2,
    "0.10.2": ProtocolVersion.V0_10_2_IV0,
    "0.11.0": ProtocolVersion.V0_11_0_IV2,
}
LATEST: Final = ByLevel(
    {
        Level.V0_8_2: ProtocolVersion.V0_8_2,
        Level.V0_9_0: ProtocolVersion.V0_9_0,
        Level.V0_10_2: ProtocolVersion.V0_10_2_IV0,
        Level.V0_11_0: ProtocolVersion.V0_11_0_IV2,
    }
)
"""The newest version that brokers of a level know, which is their default."""


def parse_protocol_version(key: str, text: str, level: Level) -> ProtocolVersion:
    """The version with the first three numbers of `text`; ConfigError with `key` if there is none,
    or if brokers of the level do not know it."""
    version = _NAMES.get(".".join(text.split(".")[:3]))
    if version is None or version > LATEST[level]:
        known = ", ".join(name for name, known in _NAMES.items() if known <= LATEST[level])
        raise ConfigError(f"{key}: {text!r} is not one of {known} (api.level {level})")
    return version
