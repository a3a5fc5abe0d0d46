"""scripts/mutants makes defects that Python accepts, where the code is, and finds their tests."""

from __future__ import annotations

import ast
from pathlib import Path

from scripts.mutation import ROOT, mutants_of, nodeid_of

CODE = """\
def check(a, b):
    if not a and b > 1:  # ü
        log(a)
    return a + b
"""
PATH = Path("kafka08/x.py")


def test_each_kind_of_defect() -> None:
    """Comparisons, conditions, numbers, calls and results change, each alone."""
    made = {(m.old, m.new) for m in mutants_of(PATH, CODE)}
    assert made == {
        ("not a and b > 1", "((not a) or (b > 1))"),
        ("not a and b > 1", "True"),
        ("not a and b > 1", "False"),
        ("not a", "(a)"),
        ("b > 1", "(b >= 1)"),
        ("1", "2"),
        ("log(a)", "pass"),
        ("a + b", "None"),
    }


def test_a_mutant_is_code() -> None:
    """Each mutant of a real file can be compiled, and differs from it."""
    path = ROOT / "kafka08/log/names.py"
    text = path.read_text()
    for mutant in mutants_of(path, text):
        end = mutant.start + len(mutant.old.encode())
        changed = text.encode()[: mutant.start] + mutant.new.encode() + text.encode()[end:]
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(text)), str(mutant)


def test_contexts_are_tests() -> None:
    """Coverage's name of a test function becomes pytest's; other functions are none."""
    assert nodeid_of("tests.log.test_log.test_x") == "tests/log/test_log.py::test_x"
    assert nodeid_of("tests.log.test_log.TestA.test_x") == "tests/log/test_log.py::TestA::test_x"
    assert nodeid_of("tests.conftest.zk") is None
    assert nodeid_of("") is None
