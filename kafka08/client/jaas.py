"""sasl.jaas.config: the login module and its options, as Java reads them."""

from __future__ import annotations

import re
from typing import Final

from kafka08.errors import ConfigError

BLANK: Final = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)+", re.DOTALL)
TOKEN: Final = re.compile(
    r"""(?P<word>[A-Za-z_$.-][\w$.-]*)|(?P<mark>[=;])|"(?P<double>(?:[^"\\\n]|\\.)*)"
    |'(?P<single>(?:[^'\\\n]|\\.)*)'""",
    re.VERBOSE,
)
ESCAPE: Final = re.compile(r"\\([0-3]?[0-7]{1,2}|.)")
ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
FLAGS: Final = frozenset({"required", "requisite", "sufficient", "optional"})
FORM: Final = '<login module> required username="…" password="…";'


def parse_jaas(text: str) -> tuple[str, dict[str, str]]:
    """(login module, its options). ConfigError, which shows no value of an option."""
    tokens, position = [], 0
    while True:
        if blank := BLANK.match(text, position):
            position = blank.end()
        if position == len(text):
            break
        found = TOKEN.match(text, position)
        if found is None:
            raise _wrong(f"character {position + 1} begins neither a name nor a quoted value")
        quoted = found["double"] if found["double"] is not None else found["single"]
        is_quoted = quoted is not None
        tokens.append((ESCAPE.sub(_escaped, quoted) if is_quoted else found[0], is_quoted))
        position = found.end()
    words = [word for word, _ in tokens]
    if len(words) < 2 or words[1].lower() not in FLAGS:
        raise _wrong("it does not begin with a login module and `required`")
    if tokens[-1] != (";", False):
        raise _wrong("there is no ; at its end")
    options = {}
    rest = tokens[2:-1]
    for place in range(0, len(rest), 3):
        name, *behind = rest[place : place + 3]
        if len(behind) != 2 or behind[0] != ("=", False) or name[1] or behind[1] == (";", False):
            raise _wrong(f"option {place // 3 + 1} is not of the form name=value")
        options[name[0]] = behind[1][0]
    return words[0], options


def _escaped(found: re.Match[str]) -> str:
    what = found[1]
    return chr(int(what, 8)) if what[0] in "01234567" else ESCAPES.get(what, what)


def _wrong(why: str) -> ConfigError:
    return ConfigError(
        f"sasl.jaas.config: {why}. The form is {FORM} with values in quotes, unless they are names"
    )
