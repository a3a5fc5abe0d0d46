"""Change notes reach the section of CHANGELOG.md that their names say."""

from __future__ import annotations

import pytest

from scripts.change_notes import NOTES, ROOT, anchor, notes_of, with_notes

CHANGELOG = """# Changelog

## 0.2.0 (unreleased)

### Brokers

- One.

A sentence behind the list.

### Old consumers, two

- Two.

## 0.1.0 (2026-01-01)

### Brokers

- Older.
"""


def test_a_note_ends_the_list_of_its_section() -> None:
    """Notes follow the list's last item, in the newest version alone; the other lines stay."""
    notes = {"brokers": ["**A.** First\nline two."], "old-consumers-two": ["**B.**"]}
    expected = CHANGELOG.replace("- One.\n", "- One.\n- **A.** First\n  line two.\n")
    assert expected.replace("- Two.\n", "- Two.\n- **B.**\n") == with_notes(CHANGELOG, notes)


def test_an_unknown_section_is_an_error() -> None:
    """A misspelt name loses no note."""
    with pytest.raises(ValueError, match="no section brokrs"):
        with_notes(CHANGELOG, {"brokrs": ["x"]})


def test_the_notes_that_wait_fit() -> None:
    """Each note in changes/ has a section, and CHANGELOG.md takes them as it is."""
    sections = {path.name.partition(".")[0] for path in notes_of(NOTES)}
    page = (ROOT / "CHANGELOG.md").read_text()
    assert page == with_notes(page, {})
    with_notes(page, {section: ["x"] for section in sections})


def test_a_note_is_short_and_begins_with_its_subject() -> None:
    """What changed stands in bold at its beginning; a page is the place for more than that."""
    for path, text in notes_of(NOTES).items():
        assert text.startswith("**"), f"{path} does not begin with its subject in bold"
        assert len(text) < 900, f"{path} is longer than three sentences"


def test_anchors_are_those_of_links() -> None:
    """As a code host makes them."""
    assert anchor("Replication, elections, topics") == "replication-elections-topics"
