"""Former names of public methods and functions, which keep working for one release."""

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
