"""Both kernels have the names of `kernel.__all__`, as type checkers see them in the twin."""

from __future__ import annotations

import inspect

import pytest

from kafka08 import kernel as chosen
from kafka08.kernel import _python, types
from tests.kernel.conftest import native_or_skip

NAMES = [name for name in chosen.__all__ if name not in vars(types)]
FUNCTIONS = [name for name in NAMES if inspect.isroutine(getattr(_python, name))]
CLASSES = [name for name in NAMES if inspect.isclass(getattr(_python, name))]


def parameters_of(function: object) -> list[tuple[str, object]]:
    """(name, default) of each parameter."""
    assert callable(function)
    found = inspect.signature(function).parameters.values()
    return [(parameter.name, parameter.default) for parameter in found]


def members_of(cls: type) -> list[str]:
    """The public methods, properties and fields of a class of the twin."""
    slots = [name for one in cls.__mro__ for name in getattr(one, "__slots__", ())]
    named = {*vars(cls), *vars(cls).get("__annotations__", ()), *slots}
    return sorted(name for name in named if not name.startswith("_"))


def test_the_kernel_has_functions_and_classes() -> None:
    """Every name of the list is a function or a class, but that of the kernel."""
    assert {*NAMES} - {*FUNCTIONS, *CLASSES} == {"NAME"}
    assert len(FUNCTIONS) > 40
    assert len(CLASSES) > 10


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_have_the_twins_parameters(name: str) -> None:
    """Parameters agree in name, order and default."""
    native = native_or_skip()
    assert parameters_of(getattr(_python, name)) == parameters_of(getattr(native, name))


@pytest.mark.parametrize("name", CLASSES)
def test_classes_have_the_twins_members(name: str) -> None:
    """Methods with their parameters, properties and fields agree."""
    twin, native = getattr(_python, name), getattr(native_or_skip(), name)
    for member in members_of(twin):
        assert hasattr(native, member), member
        if inspect.isfunction(vars(twin).get(member)):
            assert parameters_of(getattr(twin, member)) == parameters_of(getattr(native, member))
