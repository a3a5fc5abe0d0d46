"""Java regular expressions, as far as topic patterns use them, translated to Python's `re`.

Supported: literals, `.`, escapes of punctuation, `\\d \\w \\s` and their opposites (ASCII, as in
Java), classes `[a-z]` and `[^...]`, `|`, groups `(...)` and `(?:...)`, look-ahead `(?=...)` and
`(?!...)`, anchors `^ $ \\b \\B \\A \\z`, and the quantifiers `* + ? {n} {n,m}`, greedy or
reluctant. An error names any other construct of Java: members of one group that understood a
pattern differently would claim each other's partitions. Syntax: java.util.regex.Pattern.
"""

from __future__ import annotations

import re
from typing import Final

from kafka08.errors import ConfigError

_SHORTHANDS: Final = frozenset("dDwWsS")
_ANCHORS: Final = {"b": r"\b", "B": r"\B", "A": r"\A", "z": r"\Z"}
_GROUPS: Final = ("?:", "?=", "?!")
_CONTROLS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_REFUSED_ESCAPES: Final = {
    "Q": "quoting \\Q...\\E",
    "E": "quoting \\Q...\\E",
    "p": "a character property \\p{...}",
    "P": "a character property \\P{...}",
    "u": "a code point escape \\u",
    "x": "a code point escape \\x",
    "0": "an octal escape \\0",
    "c": "a control escape \\c",
    "k": "a back reference \\k",
    "G": "the anchor \\G",
    "Z": "the anchor \\Z",
    "R": "the linebreak matcher \\R",
    "X": "the grapheme matcher \\X",
    "h": "the blank class \\h",
    "H": "the blank class \\H",
    "v": "the blank class \\v",
    "V": "the blank class \\V",
    "N": "a character name \\N",
}
_REPEAT: Final = re.compile(r"\{(\d+)(,(\d*))?\}")


def compile_java_pattern(pattern: str) -> re.Pattern[str]:
    """A compiled `re` pattern that matches the same topic names (use `fullmatch`).

    ConfigError names the pattern, the construct and its position when it is not understood.
    """
    translated = _Translator(pattern).translate()
    try:
        return re.compile(translated, re.ASCII)
    except RecursionError:
        raise ConfigError(f"topic pattern {pattern!r}: groups are nested too deeply") from None
    except (OverflowError, re.error) as error:
        raise ConfigError(f"topic pattern {pattern!r}: {error}") from None


class _Translator:
    """One pass from left to right; `_out` holds the translated pieces."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._out: list[str] = []
        self._depth = 0
        self._quantifiable = False
        """Whether a quantifier may follow at this position."""

    def translate(self) -> str:
        while self._at < len(self._pattern):
            self._step(self._pattern[self._at])
        if self._depth:
            raise self._refuse("an unclosed group")
        return "".join(self._out)

    def _step(self, char: str) -> None:
        if char == "\\":
            self._escape()
        elif char == "[":
            self._emit(self._character_class(), quantifiable=True)
        elif char == "(":
            self._open_group()
        elif char == ")":
            if not self._depth:
                raise self._refuse("an unmatched ')'")
            self._depth -= 1
            self._take(1, ")", quantifiable=True)
        elif char in "*+?{":
            self._quantifier(char)
        elif char in "|^$":
            self._take(1, char, quantifiable=False)
        elif char == ".":
            self._take(1, ".", quantifiable=True)
        else:
            self._take(1, re.escape(char), quantifiable=True)

    def _open_group(self) -> None:
        inner = self._pattern[self._at + 1 : self._at + 3]
        if inner.startswith("?") and inner not in _GROUPS:
            kind = {"?<": "look-behind or a named group", "?>": "an atomic group"}
            raise self._refuse(kind.get(inner, "an inline flag or special group"))
        opening = f"({inner}" if inner in _GROUPS else "("
        self._depth += 1
        self._take(len(opening), opening, quantifiable=False)

    def _quantifier(self, char: str) -> None:
        text = char
        if char == "{":
            repeat = _REPEAT.match(self._pattern, self._at)
            if repeat is None:
                # 0.8: the commas of a subscription become '|', so {2,3} cannot be written there.
                raise self._refuse("a '{' that does not open {n} or {n,m}")
            text = repeat[0]
        if not self._quantifiable:
            raise self._refuse(f"a dangling {text}")
        after = self._pattern[self._at + len(text) : self._at + len(text) + 1]
        if after == "+":
            raise self._refuse(f"a possessive quantifier {text}+")
        if after == "?":
            text += "?"
        self._take(len(text), text, quantifiable=False)

    def _escape(self) -> None:
        char = self._escaped()
        if char in _ANCHORS:
            self._take(2, _ANCHORS[char], quantifiable=False)
        elif char.isdigit() and char != "0":
            raise self._refuse(f"a back reference \\{char}")
        else:
            self._emit(self._literal(char), quantifiable=True)

    def _character_class(self) -> str:
        out = ["["]
        self._at += 1
        if self._peek() == "^":
            out.append("^")
            self._at += 1
        if self._peek() == "]":
            raise self._refuse("a ']' as the first of a class")
        while (char := self._peek()) != "]":
            if char == "":
                raise self._refuse("an unclosed character class")
            if char == "[":
                raise self._refuse("a class inside a class")
            if char == "&" and self._pattern[self._at + 1 : self._at + 2] == "&":
                raise self._refuse("an intersection of classes &&")
            if char == "\\":
                out.append(self._literal(self._escaped()))
            else:
                out.append("-" if char == "-" else re.escape(char))
                self._at += 1
        self._at += 1
        text = f"{''.join(out)}]"
        try:
            re.compile(text)
        except re.error:
            raise self._refuse(f"a class that is not one: {text}") from None
        return text

    def _literal(self, char: str) -> str:
        """Consume an escape of one character (or a shorthand class)."""
        if char in _REFUSED_ESCAPES:
            raise self._refuse(_REFUSED_ESCAPES[char])
        if char in _SHORTHANDS:
            text = f"\\{char}"
        elif char in _CONTROLS:
            text = re.escape(_CONTROLS[char])
        elif char.isalnum():
            raise self._refuse(f"the escape \\{char}")
        else:
            text = re.escape(char)
        self._at += 2
        return text

    def _escaped(self) -> str:
        char = self._pattern[self._at + 1 : self._at + 2]
        if not char:
            raise self._refuse("a backslash at the end")
        return char

    def _peek(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _take(self, size: int, text: str, *, quantifiable: bool) -> None:
        self._at += size
        self._emit(text, quantifiable=quantifiable)

    def _emit(self, text: str, *, quantifiable: bool) -> None:
        self._out.append(text)
        self._quantifiable = quantifiable

    def _refuse(self, construct: str) -> ConfigError:
        return ConfigError(
            f"topic pattern {self._pattern!r}: {construct} at position {self._at} is not supported"
        )
