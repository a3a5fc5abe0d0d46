"""docs/configuration.md says what the code says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from scripts.configuration_keywords import CONFIGURATIONS, module, path_of
from scripts.configuration_reference import configurations, page

DOCS: Final = Path(__file__).parent.parent.parent / "docs"
PAGE: Final = DOCS / "configuration.md"
UNITS_MS: Final = {"": 1, " ms": 1, " s": 1000, " min": 60_000}


def test_the_page_equals_the_declared_keys() -> None:
    """The page is current; run scripts/configuration after a change to a key."""
    assert PAGE.read_text() == page() + "\n"


def test_every_key_is_explained() -> None:
    """Every key has a sentence."""
    assert {"BrokerConfig", "ConsumerConfig", "ProducerConfig"} <= {
        kind.__name__ for kind in configurations()
    }
    for kind in configurations():
        bare = [key for key, facts in kind.KEYS.items() if not facts.doc]
        assert not bare, f"{kind.__name__}: {bare}"


@pytest.mark.parametrize("package", list(CONFIGURATIONS))
def test_type_checkers_know_every_keyword(package: str) -> None:
    """Run scripts/configuration after a change to a key."""
    assert path_of(package).read_text() == module(package)


def test_the_defaults_of_timeouts_are_those_of_the_keys() -> None:
    """docs/concepts/timeouts.md has the default of a key behind it, in brackets."""
    defaults: dict[str, set[object]] = {}
    for kind in configurations():
        for key, facts in kind.KEYS.items():
            defaults.setdefault(key, set()).add(facts.default)
    page = (DOCS / "concepts" / "timeouts.md").read_text()
    shown = re.findall(r"`([a-z.]+)`(?: of [a-z ]+)? \((\d+)( ms| s| min|)\)", page)
    assert len(shown) > 15
    for key, number, unit in shown:
        assert int(number) * UNITS_MS[unit] in defaults[key], key
