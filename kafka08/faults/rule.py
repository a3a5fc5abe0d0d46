"""Rule: which requests it matches, and what happens to those that it hits. Pure.

As JSON it is one flat object:

    {"api": "Produce", "topic": "orders", "times": 2, "error": "NOT_LEADER_FOR_PARTITION"}
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final

from kafka08.errors import CODES, NO_ERROR, ApiError, ConfigError
from kafka08.faults.names import groups_in, keys_named, partitions_in, transactional_id_in
from kafka08.levels import Level
from kafka08.nearest import did_you_mean
from kafka08.protocol.api import Api
from kafka08.protocol.apis import APIS
from kafka08.protocol.codec import RequestHeader
from kafka08.protocol.served import SERVED
from kafka08.protocol.types import Request
from kafka08.structs import split_host_port
from kafka08.topic_name import fault_of

TIME_MS_MAX: Final = 600_000
COUNT_MAX: Final = 1_000_000_000
CUT_BYTES_MAX: Final = 1 << 20
TEXT_MAX: Final = 32_767
ALIASES: Final = {
    "ListOffsets": "Offsets",
    "GroupCoordinator": "ConsumerMetadata",
    "FindCoordinator": "ConsumerMetadata",
}
"""Names of APIs in other releases of Kafka."""
WITH_ADDRESSES: Final = frozenset({"Metadata", "ConsumerMetadata"})
"""APIs whose responses have the addresses of brokers."""
NAMED: Final = ("topic", "partition", "group", "transactional_id", "client_id")
"""Keys that match what a request names."""
PORT: Final = re.compile("[0-9]{1,5}")
HOST_CHARACTERS_MAX: Final = 255


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One rule. A request matches it if it has every value given here; of the matches, in their
    order over all brokers, some are hit, and exactly one thing happens to those.

    Which requests match:

    api            the API's name; "ListOffsets" and "FindCoordinator" are understood too
    version        the version in the request
    broker         the id of the broker that receives it
    topic          a topic that the request names, perhaps among others
    partition      a partition of that topic which it names
    group          a group that it names
    transactional_id   the transactional id that it names; FindCoordinator for one names it, too
    client_id      the client id of its sender; followers have "ReplicaFetcherThread-…"

    Which matches are hit:

    skip           so many matches pass before the first hit
    times          so many hits at most; None: no limit
    probability    each match is hit with this probability, above 0, at most 1
    seed           draws differ between seeds, and repeat with the same one

    What happens:

    error          the broker does nothing, and this error code is in every place of its response
                   that has one. A code, or its name as in Kafka: NOT_LEADER_FOR_PARTITION
    delay_ms       the broker receives the request so much later
    close          the connection closes: "before" the request took effect, or "after"
    drop           True: the request takes effect, and its response never comes
    throttle_ms    the response comes so much later, and says so where its version has that field
    cut_bytes      only so many bytes of the response are sent, then the connection closes
    addresses      broker id → "host:port": what Metadata and FindCoordinator say about it
    """

    api: str | None = None
    version: int | None = None
    broker: int | None = None
    topic: str | None = None
    partition: int | None = None
    group: str | None = None
    transactional_id: str | None = None
    client_id: str | None = None
    skip: int = 0
    times: int | None = None
    probability: float = 1.0
    seed: int = 0
    error: int | None = None
    delay_ms: int | None = None
    close: str | None = None
    drop: bool | None = None
    throttle_ms: int | None = None
    cut_bytes: int | None = None
    addresses: Mapping[int, str] | None = field(default=None, hash=False)

    @classmethod
    def of(cls, values: Mapping[str, Any], level: Level, brokers: Collection[int]) -> Rule:
        """The rule with these values, for brokers of that level with these ids. ConfigError for a
        value that is not legal, and for a rule that no request can match."""
        rule = cls.from_json(values)
        _check_action(rule)
        _check_against(rule, level, brokers)
        return rule

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Rule:
        """The rule with these values; None stands for no value. ConfigError for an illegal one."""
        for name in values:
            if name not in CHECKS:
                raise ConfigError(f"{name}: a rule has no such key{did_you_mean(name, CHECKS)}")
        given = {name: value for name, value in values.items() if value is not None}
        return cls(**{name: CHECKS[name](name, value) for name, value in given.items()})

    @property
    def apis(self) -> tuple[Api, ...]:
        """The APIs whose requests may match it."""
        return tuple(api for api in APIS if self.api in (None, api.name))

    def matches(self, broker: int, header: RequestHeader, request: Request) -> bool:
        """Whether a request that this broker received matches. Its key is that of one of `apis`."""
        if self.version not in (None, header.version) or self.broker not in (None, broker):
            return False
        if self.client_id not in (None, header.client_id):
            return False
        if self.group is not None and self.group not in groups_in(request):
            return False
        if self.transactional_id not in (None, transactional_id_in(request)):
            return False
        return self.topic is None or any(
            topic == self.topic and self.partition in (None, partition)
            for topic, partition in partitions_in(request)
        )

    def to_json(self) -> dict[str, Any]:
        """The values that differ from the defaults; an error has its name."""
        values = {of.name: getattr(self, of.name) for of in fields(self)}
        if self.error is not None:
            values["error"] = error_name(CODES[self.error])
        return {of.name: values[of.name] for of in fields(self) if values[of.name] != of.default}

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.to_json().items())


def error_name(error: type[ApiError]) -> str:
    """The name of an error code as Kafka's documentation writes it."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", error.__name__).upper()


ERROR_NAMES: Final = {error_name(error): code for code, error in CODES.items()}
ACTIONS: Final = (
    *("error", "delay_ms", "close", "drop", "throttle_ms", "cut_bytes", "addresses"),
)  # fmt: skip
"""Exactly one of these keys is given."""

Check = Callable[[str, Any], Any]


def _number(lowest: int, highest: int) -> Check:
    def check(name: str, value: Any) -> int:
        if type(value) is not int or not lowest <= value <= highest:
            raise ConfigError(f"{name}: {value!r} is not a number from {lowest} to {highest}")
        return value

    return check


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or len(value) > TEXT_MAX:
        raise ConfigError(f"{name}: {value!r:.100} is not a text of at most {TEXT_MAX} characters")
    return value


def _api(name: str, value: Any) -> str:
    known = {api.name: api.name for api in APIS} | ALIASES
    by_key = {api.key: api.name for api in APIS}
    found = by_key.get(value) if type(value) is int else known.get(_text(name, value))
    if found is None:
        suggestion = did_you_mean(str(value), known)
        raise ConfigError(f"{name}: there is no API {value!r:.100}{suggestion}")
    return found


def _topic(name: str, value: Any) -> str:
    if (fault := fault_of(_text(name, value))) is not None:
        raise ConfigError(f"{name}: no topic is called {value!r:.300}: {fault}")
    return str(value)


def _probability(name: str, value: Any) -> float:
    if type(value) not in (int, float) or not 0 < value <= 1:
        raise ConfigError(f"{name}: {value!r} is not above 0 and at most 1")
    return float(value)


def _error(name: str, value: Any) -> int:
    if type(value) is int:
        code: int | None = value if value in CODES and value != NO_ERROR else None
    else:
        code = ERROR_NAMES.get(_text(name, value).upper())
    if code is None:
        suggestion = did_you_mean(str(value), ERROR_NAMES)
        raise ConfigError(f"{name}: there is no error code {value!r:.100}{suggestion}")
    return code


def _close(name: str, value: Any) -> str:
    if value not in ("before", "after"):
        raise ConfigError(f"{name}: {value!r:.100} is neither 'before' nor 'after'")
    return str(value)


def _true(name: str, value: Any) -> bool:
    if value is not True:
        raise ConfigError(f"{name}: {value!r:.100} is not true; leave it out otherwise")
    return True


def _addresses(name: str, value: Any) -> dict[int, str]:
    if not isinstance(value, Mapping) or not value:
        raise ConfigError(f"{name}: {value!r:.100} is not a mapping of broker ids to host:port")
    found = {}
    for broker, address in value.items():
        # Keys of a JSON object are texts.
        number = int(broker) if isinstance(broker, str) and broker.isdecimal() else broker
        if type(number) is not int:
            raise ConfigError(f"{name}: {broker!r:.100} is not a broker id")
        split_address(name, address)
        found[number] = address
    return found


def split_address(name: str, value: Any) -> tuple[str, int]:
    """Host and port of "host:port". ConfigError."""
    host, port = split_host_port(value) if isinstance(value, str) else ("", None)
    number = int(port) if port and PORT.fullmatch(port) else 0
    if not 0 < len(host) <= HOST_CHARACTERS_MAX or not 0 < number < 1 << 16:
        raise ConfigError(f"{name}: {value!r:.300} is not host:port")
    return host, number


CHECKS: Final[dict[str, Check]] = {
    "api": _api,
    "version": _number(0, 100),
    "broker": _number(0, (1 << 31) - 1),
    "topic": _topic,
    "partition": _number(0, (1 << 31) - 1),
    "group": _text,
    "transactional_id": _text,
    "client_id": _text,
    "skip": _number(0, COUNT_MAX),
    "times": _number(1, COUNT_MAX),
    "probability": _probability,
    "seed": _number(-(1 << 63), (1 << 63) - 1),
    "error": _error,
    "delay_ms": _number(1, TIME_MS_MAX),
    "close": _close,
    "drop": _true,
    "throttle_ms": _number(1, TIME_MS_MAX),
    "cut_bytes": _number(0, CUT_BYTES_MAX),
    "addresses": _addresses,
}
"""Key of a rule → what makes its value of a given one, or raises ConfigError."""


def _check_action(rule: Rule) -> None:
    given = [name for name in ACTIONS if getattr(rule, name) is not None]
    if len(given) != 1:
        raise ConfigError(
            f"a rule does one thing, and this one {' and '.join(given) or 'none'}: give one of "
            f"{', '.join(ACTIONS)}"
        )


def _check_against(rule: Rule, level: Level, brokers: Collection[int]) -> None:
    """ConfigError if no request to these brokers can match, or what is to happen cannot."""
    rows = [
        (api, row)
        for api in rule.apis
        for row in api.versions
        if SERVED[level].rows.get((api.key, row.version)) is row
    ]
    if not rows:
        raise ConfigError(f"api: brokers of level {level} have no {rule.api}")
    if rule.version is not None:
        found = [(api, row) for api, row in rows if row.version == rule.version]
        if not found:
            served = ", ".join(str(row.version) for _, row in rows) if rule.api else "others"
            raise ConfigError(
                f"version: {rule.version}, but brokers of level {level} serve {served}"
            )
        rows = found
    if rule.broker is not None and rule.broker not in brokers:
        raise ConfigError(f"broker: {rule.broker} is none of {', '.join(map(str, brokers))}")
    if rule.partition is not None and rule.topic is None:
        raise ConfigError("partition: it needs the topic, as key topic")
    _check_names(rule, level, [keys_named(api, row) for api, row in rows])
    if rule.addresses is not None:
        if rule.api not in WITH_ADDRESSES:
            raise ConfigError("addresses: it needs api Metadata or FindCoordinator")
        for broker in rule.addresses:
            if broker not in brokers:
                raise ConfigError(f"addresses: {broker} is none of {', '.join(map(str, brokers))}")


def _check_names(rule: Rule, level: Level, named: Collection[set[str]]) -> None:
    """ConfigError if no request names all that the rule wants to be named. named: the keys of each
    kind of request that it may match."""
    wanted = [name for name in NAMED if getattr(rule, name) is not None]
    version = None if rule.version is None else f"version {rule.version}"
    which = " ".join(filter(None, (rule.api, version)))
    requests = f"requests of {which} at level {level}" if which else f"requests at level {level}"
    for name in wanted:
        if not any(name in keys for keys in named):
            raise ConfigError(f"{name}: {requests} name none, so none would match")
    if not any(keys.issuperset(wanted) for keys in named):
        raise ConfigError(f"{' and '.join(wanted)}: no {requests} name all of these")
