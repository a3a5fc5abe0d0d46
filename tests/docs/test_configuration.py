"""docs/configuration.md says what the code says."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.configuration_keywords import CONFIGURATIONS, module, path_of
from scripts.configuration_reference import configurations, page

PAGE = Path(__file__).parent.parent.parent / "docs" / "configuration.md"


def test_the_page_is_what_the_code_declares() -> None:
    """Run scripts/configuration after a change to a key."""
    assert PAGE.read_text() == page() + "\n"


def test_every_key_is_explained() -> None:
    """A sentence each."""
    assert {"BrokerConfig", "ConsumerConfig", "ProducerConfig"} <= {
        kind.__name__ for kind in configurations()
    }
    for kind in configurations():
        bare = [key for key, facts in kind.KEYS.items() if not facts.doc]
        assert not bare, f"{kind.__name__}: {bare}"


@pytest.mark.parametrize("room", list(CONFIGURATIONS))
def test_type_checkers_know_every_keyword(room: str) -> None:
    """Run scripts/configuration after a change to a key."""
    assert path_of(room).read_text() == module(room)
