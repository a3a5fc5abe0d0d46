"""Java patterns match the same topics as java.util.regex, and errors name what is not supported."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.consumer.java_pattern import compile_java_pattern
from kafka08.errors import ConfigError

MATCHES = [
    ("tt|uu", "tt uu", "t ttuu"),
    (".*", "a a.b", ""),
    ("test.*", "test test-1 testing", "atest"),
    (r"test\..*", "test.1", "test-1 testX"),
    ("[a-c]+", "abc c", "abcd"),
    ("[^a-c]+", "xyz", "xa"),
    ("[a.b-]+", "a.b- -", "c"),
    (r"[\w\-]+", "a_b-9", "a.b"),
    (r"\d{2}", "42", "4 423"),
    (r"\d{2,3}", "42 423", "4 4234"),
    (r"\d{2,}", "42 4234", "4"),
    ("a?b*?c+?", "abbc c bcc", "ab"),
    ("(a|b)(?:c|d)", "ac bd", "ab cd"),
    ("^tt$", "tt", "ttt"),
    ("(?!secret).*", "public", "secret secret.more"),
    ("(?=a)[ab]+", "ab a", "ba"),
    (r"\Aab\z", "ab", "abc"),
    ("a}b", "a}b", "ab"),
    ("a]b", "a]b", "ab"),
    ("日+", "日 日日", "a"),
]
REFUSED = [
    ("(a)\\1", "back reference"),
    ("(?i)abc", "inline flag"),
    ("(?<=a)b", "look-behind"),
    ("(?<name>a)", "named group"),
    ("(?>a)", "atomic"),
    ("a*+", "possessive"),
    ("a{2}+", "possessive"),
    ("[a&&b]", "intersection"),
    ("[a[b]]", "class inside a class"),
    ("[]a]", "first of a class"),
    (r"\p{Alpha}", "property"),
    (r"\Qa\E", "quoting"),
    (r"\u0041", "code point"),
    (r"\x41", "code point"),
    (r"\07", "octal"),
    (r"\y", "escape"),
    ("a{2|3}", "{n}"),
    ("{a", "{n}"),
    ("a**", "dangling"),
    ("*a", "dangling"),
    ("(a", "unclosed group"),
    ("a)", "unmatched"),
    ("[a", "unclosed character class"),
    ("[z-a]", "class that is not one"),
    ("a\\", "backslash"),
    ("a{5000000000}", "too large"),
    ("a{3,2}", "min repeat greater than max repeat"),
    ("(" * 2000 + "a" + ")" * 2000, "too deep"),
]


@pytest.mark.parametrize(("pattern", "yes", "no"), MATCHES)
def test_matches_whole_names_as_java_does(pattern: str, yes: str, no: str) -> None:
    """Each pattern matches exactly the names that java.util.regex matches."""
    compiled = compile_java_pattern(pattern)
    assert all(compiled.fullmatch(name) for name in yes.split())
    assert not any(compiled.fullmatch(name) for name in no.split())


@pytest.mark.parametrize(("pattern", "construct"), REFUSED)
def test_refuses_by_name(pattern: str, construct: str) -> None:
    """Syntax that is not supported is refused with its name and position."""
    with pytest.raises(ConfigError, match=re.escape(construct)):
        compile_java_pattern(pattern)


@given(st.text(st.characters(codec="ascii"), max_size=12))
def test_never_raises_anything_else(pattern: str) -> None:
    """Any text is translated or refused with ConfigError, and every translation compiles."""
    with suppress(ConfigError):
        compile_java_pattern(pattern)


@given(st.text("ab._-", min_size=1, max_size=8))
def test_escaped_text_matches_itself(name: str) -> None:
    """A topic name with its dots escaped matches this name alone."""
    compiled = compile_java_pattern(name.replace(".", "\\."))
    assert compiled.fullmatch(name)
    assert not compiled.fullmatch(name + "x")
