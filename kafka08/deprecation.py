"""Former names of public functions, parameters and attributes, which work for one more release."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])


def renamed(old: str, new: F) -> F:
    """`new` under its former name `old`: works the same, with a DeprecationWarning."""

    @wraps(new)
    def alias(*args: Any, **kwargs: Any) -> Any:
        name = f"{new.__module__}.{new.__qualname__}"
        text = f"{old} is renamed to {name}; the old name goes in the next release"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return new(*args, **kwargs)

    return cast("F", alias)


def renamed_parameter(old: str, new: str) -> Callable[[F], F]:
    """The decorated function also takes its keyword `new` under the former name `old`, with a
    DeprecationWarning."""

    def decorate(function: F) -> F:
        @wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if old in kwargs:
                name = f"{function.__module__}.{function.__qualname__}"
                text = f"{old} of {name} is renamed to {new}; the old name goes in the next release"
                warnings.warn(text, DeprecationWarning, stacklevel=2)
                kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return cast("F", wrapper)

    return decorate


def renamed_attribute(old: str, new: str) -> Any:
    """A property: the attribute `new` under its former name `old`, with a DeprecationWarning."""

    def read(self: object) -> Any:
        owner = type(self).__name__
        text = f"{owner}.{old} is renamed to {owner}.{new}; the old name goes in the next release"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return getattr(self, new)

    return property(read)
