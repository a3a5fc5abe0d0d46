"""Both kernels are what `_native.pyi` tells type checkers, under the names of `kernel.__all__`."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from types import ModuleType

import pytest

from kafka08 import kernel as chosen
from kafka08.kernel import types

NATIVE = "kafka08.kernel._native"
STUB = ast.parse((Path(chosen.__file__).parent / "_native.pyi").read_text())
FUNCTIONS = {node.name: node for node in STUB.body if isinstance(node, ast.FunctionDef)}
CLASSES = {node.name: node for node in STUB.body if isinstance(node, ast.ClassDef)}
VARIABLES = {
    node.target.id
    for node in STUB.body
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
}


def parameters(function: ast.FunctionDef) -> list[tuple[str, object]]:
    """(name, default) of each parameter in the stub."""
    names = [argument.arg for argument in function.args.args]
    defaults = [ast.literal_eval(default) for default in function.args.defaults]
    return list(
        zip(names, [inspect.Parameter.empty] * (len(names) - len(defaults)) + defaults, strict=True)
    )


def parameters_of(function: object) -> list[tuple[str, object]]:
    """The same of a function that is there."""
    assert callable(function)
    found = inspect.signature(function).parameters.values()
    return [(parameter.name, parameter.default) for parameter in found]


def test_the_stub_has_the_names_of_the_list() -> None:
    """The stub has all names and no other, except those that both kernels take from types.py."""
    shared = {name for name in chosen.__all__ if name in vars(types)} - {"INTERFACE"}
    assert set(chosen.__all__) == {*FUNCTIONS, *CLASSES, *VARIABLES, *shared}
    assert not shared & {*FUNCTIONS, *CLASSES, *VARIABLES}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_have_the_stubs_parameters(kernel: ModuleType, name: str) -> None:
    """Parameters agree in name, order and default."""
    assert parameters(FUNCTIONS[name]) == parameters_of(getattr(kernel, name))


@pytest.mark.parametrize("name", CLASSES)
def test_classes_have_the_stubs_members(kernel: ModuleType, name: str) -> None:
    """Methods with their parameters, properties and fields agree."""
    found = getattr(kernel, name)
    for member in CLASSES[name].body:
        if isinstance(member, ast.AnnAssign):
            assert isinstance(member.target, ast.Name)
            assert has_field(found, member.target.id), member.target.id
        elif isinstance(member, ast.FunctionDef):
            there = getattr(found, member.name)
            if not member.decorator_list and not member.name.startswith("__"):
                assert parameters(member) == parameters_of(there), member.name


def has_field(of_class: type, name: str) -> bool:
    """A compiled class and one with slots say so; others set it when they are made."""
    if hasattr(of_class, name) or of_class.__module__ == NATIVE:
        return hasattr(of_class, name)
    return re.search(rf"self\.{name}\b", inspect.getsource(of_class)) is not None
