"""Which kernel is chosen, and what is said about it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import ModuleType

import pytest

from kafka08 import __version__, kernel
from kafka08.kernel import _python, choice
from kafka08.kernel.choice import choose, digest, use_build, why_not_native


def missing() -> ModuleType:
    raise ImportError("nothing was compiled")


def stale() -> ModuleType:
    native = ModuleType("stale")
    native.INTERFACE = _python.INTERFACE + 1  # type: ignore[attr-defined]
    return native


def fitting() -> ModuleType:
    native = ModuleType("fitting")
    native.INTERFACE = _python.INTERFACE  # type: ignore[attr-defined]
    return native


def test_native_is_preferred() -> None:
    """The compiled kernel is used if it is there and of this version."""
    assert choose("", fitting).__name__ == "fitting"


def test_twin_runs_where_nothing_was_compiled() -> None:
    """An installation without a compiled kernel uses the twin, without error or warning."""
    assert choose("", missing) is _python


def test_twin_can_be_forced() -> None:
    """KAFKA08_KERNEL=python selects the twin even beside a compiled kernel."""
    assert choose("python", fitting) is _python


def test_native_can_be_demanded() -> None:
    """With KAFKA08_KERNEL=native a missing compiled kernel fails the import, instead of making
    everything slow silently."""
    with pytest.raises(ImportError, match="nothing was compiled"):
        choose("native", missing)
    with pytest.raises(ImportError, match="interface"):
        choose("native", stale)


def test_stale_build_gives_the_twin_and_a_warning() -> None:
    """A compiled kernel of another version is not used, and a warning gives the reason."""
    with pytest.warns(RuntimeWarning, match="rebuild"):
        assert choose("", stale) is _python


def test_unknown_name_is_refused() -> None:
    """The ImportError has the value of KAFKA08_KERNEL."""
    with pytest.raises(ImportError, match="'rust'"):
        choose("rust")


@pytest.mark.parametrize("name", ["python", "native"])
def test_environment_decides(name: str) -> None:
    """The import reads KAFKA08_KERNEL; NAME is the kernel that runs."""
    if name == "native":
        pytest.importorskip("kafka08.kernel._native")
    printed = subprocess.run(
        [sys.executable, "-c", "from kafka08 import kernel; print(kernel.NAME)"],
        env={"KAFKA08_KERNEL": name, "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert printed.stdout.strip() == name


@pytest.mark.parametrize(
    ("forced", "load", "why"),
    [
        ("", fitting, ""),
        ("native", fitting, ""),
        ("python", fitting, "is set"),
        ("", missing, "nothing was compiled; install a wheel"),
        ("", stale, "install again to rebuild it"),
    ],
)
def test_the_reason_for_the_twin(forced: str, load: Callable[[], ModuleType], why: str) -> None:
    """The reason says what to do, and is empty when the native kernel runs."""
    said = why_not_native(forced, load)
    assert why in said
    assert bool(said) == bool(why)


def test_a_checkout_that_hides_an_install_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An install with a compiled kernel is elsewhere on the path: no compiler is missing then."""
    build = tmp_path / "kafka08" / "kernel" / f"_native{EXTENSION_SUFFIXES[0]}"
    build.parent.mkdir(parents=True)
    build.touch()
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    said = why_not_native("", missing)
    assert f"hides the install in {tmp_path} that has it" in said
    assert "compiler" not in said
    # As a zip file of Spark's --py-files: it is there on purpose.
    monkeypatch.setattr(choice, "PACKAGE", tmp_path / "kafka08.zip" / "kafka08")
    assert "hides" not in why_not_native("", missing)


@pytest.mark.parametrize("forced", ["python", ""])
def test_an_install_says_which_kernel_it_has(forced: str) -> None:
    """`python -m kafka08.kernel` prints it without any extra, as `kafka08 --version` does."""
    done = subprocess.run(
        [sys.executable, "-m", "kafka08.kernel"],
        env={**os.environ, "KAFKA08_KERNEL": forced},
        capture_output=True,
        text=True,
        check=True,
    )
    kind = forced or kernel.NAME
    assert done.stdout.startswith(f"kafka08 {__version__} ({kind} kernel, Python 3.")


@pytest.mark.parametrize(
    ("built_from", "name", "rules", "expected"),
    [
        ("present", "native", "", "a build"),
        ("present", "native", "source", "the source"),
        ("present", "python", "", "the source"),
        ("edited since", "native", "", "the source"),
        (None, "native", "", "the source"),
    ],
)
def test_rules_run_as_their_source_says(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    built_from: str | None,
    name: str,
    rules: str,
    expected: str,
) -> None:
    """A build runs only if it is of the present text, beside the compiled kernel; an edited source
    is never hidden by it."""
    (tmp_path / "ruled").mkdir()
    source = tmp_path / "ruled" / "rule.py"
    source.write_text('said = "the source"')
    (tmp_path / "ruled" / "__init__.py").touch()
    if built_from is not None:
        of = digest(source) if built_from == "present" else built_from
        source.with_name("_rule.py").write_text(f'SOURCE = "{of}"; said = "a build"')
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(kernel, "NAME", name)
    monkeypatch.setenv("KAFKA08_RULES", rules)
    try:
        use_build("ruled.rule")
        assert expected == import_module("ruled.rule").said
    finally:
        for module in ("ruled", "ruled.rule", "ruled._rule"):
            sys.modules.pop(module, None)
