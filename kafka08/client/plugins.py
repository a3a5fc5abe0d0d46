"""Plugins that a configuration names: by the Java class of one that Kafka has, or as
`module:callable` for your own."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final, TypeVar, cast

from kafka08.errors import ConfigError

C = TypeVar("C")
T = TypeVar("T")

BY_OWN_NAME: Final = re.compile(r"[\w.]+:[\w.]+")


def plugin(key: str, value: str, known: Mapping[str, Callable[[C], T]], config: C) -> T:
    """The plugin named `value` by configuration key `key`: `known[value](config)`, or imported.

    ConfigError with key and value if it is neither known nor can be imported and called.
    """
    if value in known:
        return known[value](config)
    if not BY_OWN_NAME.fullmatch(value):
        names = f"is none of {', '.join(sorted(known))}, and " if known else ""
        raise ConfigError(f"{key}: {value!r} {names}does not have the form module:callable")
    module, _, attribute = value.partition(":")
    try:
        found: Any = import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"{key}: {value!r} cannot be imported: {error}") from error
    if not callable(found):
        raise ConfigError(f"{key}: {value!r} is not callable")
    return cast(T, found)
