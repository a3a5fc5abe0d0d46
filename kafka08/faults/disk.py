"""DiskFault: how the disk of a broker fails. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from kafka08.errors import ConfigError
from kafka08.nearest import did_you_mean

DELAY_MS_MAX: Final = 60_000


@dataclass(frozen=True, kw_only=True)
class DiskFault:
    """A fault of every write of a broker.

    full            files cannot grow: no space is left (ENOSPC). What exists can be overwritten
    failing_fsync   every fsync fails (EIO), which a broker with log.flush.interval.messages=1
                    meets at the next message, and any other one at its next checkpoint or roll
    delay_ms        every write and fsync takes so much longer, from 0 to DELAY_MS_MAX. Like a real
                    slow disk, it holds up whatever the broker does in the same thread
    """

    full: bool = False
    failing_fsync: bool = False
    delay_ms: int = 0

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> DiskFault:
        """The fault with these values. ConfigError for an illegal one, and if nothing is wrong."""
        names = [of.name for of in fields(cls)]
        for name, value in values.items():
            if name not in names:
                raise ConfigError(f"{name}: a disk has no such fault{did_you_mean(name, names)}")
            if name == "delay_ms":
                if type(value) is not int or not 0 <= value <= DELAY_MS_MAX:
                    raise ConfigError(f"{name}: {value!r} is not a number from 0 to {DELAY_MS_MAX}")
            elif type(value) is not bool:
                raise ConfigError(f"{name}: {value!r:.100} is neither true nor false")
        fault = cls(**values)
        if fault == cls():
            raise ConfigError(f"a fault of a disk needs one of {', '.join(names)}")
        return fault

    @property
    def is_fatal(self) -> bool:
        """Whether a broker halts when it meets it."""
        return self.full or self.failing_fsync

    def to_json(self) -> dict[str, Any]:
        """The values that differ from the defaults."""
        return {
            of.name: getattr(self, of.name)
            for of in fields(self)
            if getattr(self, of.name) != of.default
        }

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.to_json().items())
