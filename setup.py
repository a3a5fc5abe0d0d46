"""What setup.cfg cannot say: the compiled kernel and rules, and a README for the page of a package
index.

KAFKA08_REPOSITORY=URL   where this repository can be read: where the page's links lead
KAFKA08_NATIVE=1         without a C compiler, fail instead of installing without the kernel
"""

from __future__ import annotations

import ast
import os
import re
import sys
from hashlib import sha256
from pathlib import Path

from setuptools import Extension, setup

ROOT = Path(__file__).parent
LINK = re.compile(r"(?P<picture>!?)\[(?P<text>[^\]]*)\]\((?!https?:|#|mailto:)(?P<path>[^)\s]+)\)")
"""A link or a picture whose target is a file of this repository."""

RULES = ("kafka08/broker/replica/replica_state.py",)
"""Sources that also run compiled, with the types of the .pxd beside them."""
KERNEL_TYPES = "kafka08/kernel/_native.pxd"
STRIPPED = ["-Wl,--strip-all"] if sys.platform == "linux" else []
"""Four fifths of a build are what a debugger reads."""


def version() -> str:
    """The version; kafka08/__init__.py is its one place."""
    for statement in ast.parse((ROOT / "kafka08/__init__.py").read_text()).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets) == "__version__":
            return str(ast.literal_eval(statement.value))
    raise SystemExit("kafka08/__init__.py has no __version__")


def page(readme: str, repository: str, tag: str) -> str:
    """The README with links that work elsewhere: to the files of that tag in the repository.
    Without a repository links become their text and pictures are left out: none is broken."""

    def absolute(link: re.Match[str]) -> str:
        picture, text, path = link.group("picture", "text", "path")
        if not repository:
            return "" if picture else text
        return f"{picture}[{text}]({repository}/{'raw' if picture else 'blob'}/{tag}/{path})"

    return LINK.sub(absolute, readme)


def project_urls(repository: str, tag: str) -> dict[str, str]:
    """Empty without a repository."""
    if not repository:
        return {}
    return {
        "Source": repository,
        "Documentation": f"{repository}/blob/{tag}/README.md#documentation",
        "Changelog": f"{repository}/blob/{tag}/CHANGELOG.md",
    }


def compiled(source: str) -> Extension:
    """The extension `_module` of a source file: of a copy with its digest, by which
    kafka08.kernel.choice knows whether it is the present one."""
    original = ROOT / source
    copy = ROOT / "build" / "rules" / original.relative_to(ROOT).with_name(f"_{original.name}")
    copy.parent.mkdir(parents=True, exist_ok=True)
    digest = sha256(original.read_bytes()).hexdigest()
    text = original.read_text(encoding="utf-8")
    copy.write_text(f'{text}\n\nSOURCE = "{digest}"\n', encoding="utf-8")
    extension = Extension(
        source.replace("/", ".").removesuffix(original.name) + copy.stem,
        [str(copy.relative_to(ROOT))],
        depends=[source.removesuffix(original.name) + f"{copy.stem}.pxd", KERNEL_TYPES],
        optional=not os.environ.get("KAFKA08_NATIVE"),
        extra_link_args=STRIPPED,
    )
    extension.cython_include_dirs = ["."]
    extension.cython_directives = {
        "annotation_typing": False,
        "language_level": 3,
        "nonecheck": True,
    }
    return extension


if __name__ == "__main__":
    repository, tag = os.environ.get("KAFKA08_REPOSITORY", "").rstrip("/"), f"v{version()}"
    setup(
        version=version(),
        long_description=page((ROOT / "README.md").read_text(encoding="utf-8"), repository, tag),
        long_description_content_type="text/markdown",
        project_urls=project_urls(repository, tag),
        # optional: without a C compiler the install succeeds and kafka08.kernel uses its Python
        # twin; `python -m kafka08.kernel` says which one runs.
        ext_modules=[
            Extension(
                "kafka08.kernel._native",
                ["kafka08/kernel/_native.pyx"],
                depends=sorted(
                    f"kafka08/kernel/{file.name}"
                    for pattern in ("*.h", "*.pxi", "*.pxd")
                    for file in (ROOT / "kafka08/kernel").glob(pattern)
                ),
                optional=not os.environ.get("KAFKA08_NATIVE"),
                extra_link_args=STRIPPED,
            ),
            *map(compiled, RULES),
        ],
    )
