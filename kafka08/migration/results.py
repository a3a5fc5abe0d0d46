"""Results that come for many at once, each of them a value or an error; and the error that says why
a step was refused, with all reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from kafka08.errors import KafkaError, MigrationError

T = TypeVar("T")


def raised(result: T | KafkaError) -> T:
    """The result; an error is raised."""
    if isinstance(result, KafkaError):
        raise result
    return result


def errors_of(results: Mapping[str, object]) -> dict[str, KafkaError]:
    """group → its error, of those that met one."""
    return {group: result for group, result in results.items() if isinstance(result, KafkaError)}


def refuse(step: str, group: str, reasons: Sequence[str]) -> None:
    """Raises the refusal of a step, if there is a reason not to do it."""
    if (error := refusal(step, group, reasons)) is not None:
        raise error


def refusal(step: str, group: str, reasons: Sequence[str]) -> MigrationError | None:
    """Every reason not to do a step; None if there is none."""
    if not reasons:
        return None
    text = "\n".join(f"  - {reason}" for reason in reasons)
    return MigrationError(f"{step} of group {group} refused:\n{text}")
