"""The checks before a release is built. Decisions on texts; no I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from kafka08.listing import some_of

MAX_WHEEL_BYTES: Final = 3 << 20
_SECTION: Final = re.compile(r"^## (\S+) \((.*)\)$", re.MULTILINE)
_IMAGE: Final = re.compile(r"^\s*(?:image: |ARG KAFKA08=)(kafka08(?:-spark)?):(\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class Source:
    """The source that a release would be built from.

    version     of kafka08/__init__.py
    changes     git's list of files that are not as committed, a line each
    tags        those of the commit that is checked out
    changelog, compose, spark_image   the texts of CHANGELOG.md, docker-compose.yml and
                image/spark.Dockerfile
    notes       names of the change notes that wait in changes/
    """

    version: str
    changes: str
    tags: frozenset[str]
    changelog: str
    compose: str
    spark_image: str = ""
    notes: tuple[str, ...] = ()


def problems(source: Source) -> Iterator[str]:
    """The reasons why this cannot be released as it stands, each with its cure."""
    if source.changes:
        names = some_of([line[3:] for line in source.changes.splitlines()])
        yield f"the working tree is not clean ({names}): commit or remove that"
    if (tag := f"v{source.version}") not in source.tags:
        yield f"the commit has no tag {tag}: git tag -a {tag}"
    sections = dict(_SECTION.findall(source.changelog))
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", sections.get(source.version, "")):
        yield f"CHANGELOG.md has no section '## {source.version} (YYYY-MM-DD)': date it"
    if source.notes:
        yield f"change notes wait ({some_of(source.notes)}): scripts/changes moves them"
    for file, text in (
        ("docker-compose.yml", source.compose),
        ("image/spark.Dockerfile", source.spark_image),
    ):
        for image, version in sorted(set(_IMAGE.findall(text))):
            if version != source.version:
                yield f"{file} has the image {image}:{version}: set {source.version}"


def sdist_problems(tracked: Iterable[str], archived: Iterable[str]) -> Iterator[str]:
    """The files of the source that the sdist lacks.

    tracked    the files that git knows, as paths below the root
    archived   the members of the archive, whose first directory is the release's name
    """
    lacking = set(tracked) - {name.partition("/")[2] for name in archived}
    if lacking:
        yield f"the sdist lacks {some_of(sorted(lacking))}: name them in MANIFEST.in"


def wheel_problems(name: str, size: int, *, linux: bool) -> Iterator[str]:
    """The reasons why this wheel should not be published.

    name   of the file
    size   of the file in bytes
    linux  whether it was built for Linux, where an index takes only wheels with a standard's tag
    """
    if size > MAX_WHEEL_BYTES:
        yield f"{name} has {size} bytes, more than {MAX_WHEEL_BYTES}: see what has come into it"
    if linux and not re.search(r"-(many|musl)linux", name):
        yield f"{name} has no manylinux or musllinux tag: run auditwheel show on it"
