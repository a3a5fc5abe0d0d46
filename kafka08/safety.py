"""Keys that ask for safety which kafka08 does not have, such as ACLs and transactions.

Where Kafka's own client or broker would act on the value, dropping it with a warning would leave
what was to be safe without it. So it is an error, unless `kafka08.allow.less.safety` names the
key. A key that Kafka would ignore there too (`ssl.*` under PLAINTEXT, an authorizer's key without
an authorizer) is a note like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from kafka08.errors import ConfigError
from kafka08.nearest import did_you_mean

ALLOW: Final = "kafka08.allow.less.safety"
ALLOW_DOC: Final = (
    "Comma list of keys whose value asks for safety that kafka08 does not have, and may be ignored."
)


class Safety(NamedTuple):
    """asks     whether a value of the key asks for it
    instead  what happens here, for the error
    """

    asks: Callable[[str], bool]
    instead: str


def _is_true(value: str) -> bool:
    return value.strip().lower() == "true"


def _is_named(value: str) -> bool:
    return bool(value.strip())


OF_PRODUCERS: Final[Mapping[str, Safety]] = {
    "enable.idempotence": Safety(_is_true, "a retry may store a record twice"),
    "transactional.id": Safety(_is_named, "there are no transactions"),
}
OF_BROKERS: Final[Mapping[str, Safety]] = {
    "authorizer.class.name": Safety(_is_named, "every client may do everything"),
    "zookeeper.set.acl": Safety(_is_true, "everybody may change its znodes"),
}
_NAMES: Final = sorted({*OF_PRODUCERS, *OF_BROKERS, "isolation.level"})
"""The last needs no permission any more; files may still give it."""


def allowed_keys(text: str) -> frozenset[str]:
    """The keys that a value of kafka08.allow.less.safety names. A file that several clients share
    may name those of others. ConfigError for a key that asks for nothing."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in _NAMES:
            raise ConfigError(
                f"{ALLOW}: {name!r} is not one of {', '.join(_NAMES)}{did_you_mean(name, _NAMES)}"
            )
    return frozenset(names)


def refusal(name: str, value: str, safety: Safety) -> ConfigError:
    """The error for a value that asks for more than there is."""
    return ConfigError(
        f"{name}: {value!r} asks for safety that kafka08 does not have: {safety.instead}. Remove "
        f"the key, or accept that with {ALLOW}={name}"
    )
