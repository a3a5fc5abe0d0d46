"""meta.properties: the id of the broker that owns a log directory. One file in each, from 0.9 on.

    #
    #Sat Nov 21 03:34:06 UTC 2026
    broker.id=1
    version=0

A broker with another broker.id refuses to start; one without broker.id takes the id in the file,
or a new one. 0.8.2.2 neither reads nor writes the file. Source: KafkaServer.getBrokerId,
kafka.server.BrokerMetadataCheckpoint 0.9.0.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from kafka08.broker.settings.config import BrokerConfig
from kafka08.broker.settings.config_keys import NO_BROKER_ID
from kafka08.config import parse_properties
from kafka08.errors import ConfigError
from kafka08.levels import Level
from kafka08.log.files import exists, read_file, replace_file
from kafka08.runtime import Disk

FILE: Final = "meta.properties"
VERSION: Final = "0"


def claim_broker_id(
    config: BrokerConfig, new_id: Callable[[], int], now: float, disk: Disk
) -> BrokerConfig:
    """The configuration with the broker's own id, which is in each log directory on return. 0.8:
    the configured id, and no file. `now`: the wall-clock time in seconds. ConfigError if a
    directory has another id."""
    if config.level < Level.V0_9_0:
        return config
    stored = {Path(name): read_id(disk, Path(name)) for name in config.log_directories}
    found = sorted({broker_id for broker_id in stored.values() if broker_id is not None})
    if len(found) > 1:
        raise ConfigError(
            f"log.dirs: the directories belong to several brokers, {', '.join(map(str, found))} by "
            f"their {FILE}. Give each broker its own directories"
        )
    broker_id = choose(config.broker_id, found, new_id)
    unknown = [directory for directory, known in stored.items() if known is None]
    write(disk, unknown, broker_id, now)
    if broker_id == config.broker_id:
        return config
    # A drawn id lies above the range that a configured one must be in.
    return config.with_changes(broker_id=broker_id, broker_id_generation_enable=False)


def choose(configured: int, found: Iterable[int], new_id: Callable[[], int]) -> int:
    """The id of a broker whose directories have the ids `found` (at most one)."""
    for broker_id in found:
        if configured not in {NO_BROKER_ID, broker_id}:
            raise ConfigError(
                f"broker.id: {configured} is not the id {broker_id} in {FILE} of log.dirs. Set "
                f"broker.id={broker_id}, or give broker {configured} its own log.dirs"
            )
        return broker_id
    return new_id() if configured == NO_BROKER_ID else configured


def read_id(disk: Disk, directory: Path) -> int | None:
    """The id in the directory's file; None without a file. ConfigError if it has no valid id."""
    path = directory / FILE
    if not exists(disk, path):
        return None
    properties = parse_properties(read_file(disk, path).decode("latin-1"))
    text = properties.get("broker.id", "")
    if properties.get("version") != VERSION or not (text.isascii() and text.isdigit()):
        raise ConfigError(
            f"{path}: broker.id {text!r} of version {properties.get('version')!r} is not an id of "
            f"version {VERSION}. Remove the file if the directory is this broker's"
        )
    return int(text)


def write(disk: Disk, directories: Iterable[Path], broker_id: int, now: float) -> None:
    """Write each directory's file; all are on disk on return. StorageError."""
    text = render(broker_id, datetime.fromtimestamp(now, UTC))
    for directory in directories:
        replace_file(disk, directory / FILE, text)


def render(broker_id: int, now: datetime) -> str:
    """The text of the file, as java.util.Properties writes it."""
    date = now.strftime("%a %b %d %H:%M:%S UTC %Y")
    return f"#\n#{date}\nbroker.id={broker_id}\nversion={VERSION}\n"
