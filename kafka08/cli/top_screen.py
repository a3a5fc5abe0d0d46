"""The screen of `kafka08 top`: its rows, and the effect of each key. No terminal, no cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, fields, replace
from typing import Any, Final

from rich.console import Group
from rich.table import Table
from rich.text import Text

from kafka08.exporter.summary import (
    BrokerRow,
    GroupPartitionRow,
    GroupRow,
    Summary,
    TopicRow,
)
from kafka08.listing import counted
from kafka08.printable import printable
from kafka08.structs import NOT_REGISTERED

BROKERS, TOPICS, GROUPS, LOGS = "brokers", "topics", "groups", "logs"
PAGES: Final = {"b": BROKERS, "t": TOPICS, "g": GROUPS, "l": LOGS}
HELP: Final = "b t g l page  ↑↓  enter open  esc back  s sort  / filter  space pause  q quit"
FIXED_LINES: Final = 5
"""Lines of a screen that are not rows: two of the head, the table's head and rule, the help."""
NAME_WIDTH: Final = 8
"""Characters of a name that are shown however narrow the terminal is."""
NAMES: Final = frozenset({"group", "topic", "address", "log", "directory"})
"""Columns that are narrowed before the others."""
IDS: Final = frozenset({"broker", "partition"})
"""Columns of numbers that are names."""
ROOMY_WIDTH: Final = 72
"""In a narrower terminal nothing would be left of them, so all columns are narrowed."""
UP, DOWN, ENTER, ESCAPE, BACKSPACE = "up", "down", "enter", "escape", "backspace"
COLOURS: Final = {"OK": "green", "WARN": "yellow", "WATCHING": "dim"}


@dataclass(frozen=True, slots=True)
class LogRow:
    """A partition in a log directory of this machine.

    not_compacted       bytes that the cleaner has not passed
    disk_free_percent   of the directory's disk
    """

    log: str
    directory: str
    bytes: int
    not_compacted: int
    segments: int
    disk_free_percent: float


ROW_TYPES: Final[dict[str, type[Any]]] = {
    BROKERS: BrokerRow,
    TOPICS: TopicRow,
    GROUPS: GroupRow,
    LOGS: LogRow,
}


@dataclass(frozen=True, slots=True)
class Screen:
    """The state of the screen.

    page       brokers, topics, groups or logs
    group      the group whose partitions are shown; None: the page is
    cursor     number of the row that is marked
    sort       number of the column that rows are sorted by; numbers fall, texts rise
    filter     only rows whose name has this in it
    typing     the filter is being typed
    """

    page: str = GROUPS
    group: str | None = None
    cursor: int = 0
    sort: int = 0
    filter: str = ""
    typing: bool = False
    paused: bool = False
    ended: bool = False

    def key(self, key: str, names: Sequence[str]) -> Screen:
        """The screen after a key, while rows of these `names` are shown. Pure."""
        if self.typing:
            return self._typed(key)
        if key in PAGES:
            return replace(self, page=PAGES[key], group=None, cursor=0, sort=0)
        moved = self._move(key, names)
        if moved is not None:
            return moved
        changes: dict[str, Callable[[], Screen]] = {
            "q": lambda: replace(self, ended=True),
            "s": lambda: replace(self, sort=(self.sort + 1) % len(self.columns)),
            " ": lambda: replace(self, paused=not self.paused),
            "/": lambda: replace(self, typing=True, filter=""),
            ESCAPE: lambda: replace(self, group=None, filter="", cursor=0, sort=0),
        }
        change = changes.get(key)
        return self if change is None else change()

    def _typed(self, key: str) -> Screen:
        if key in {ENTER, ESCAPE}:
            return replace(self, typing=False, filter=self.filter if key == ENTER else "")
        if key == BACKSPACE:
            return replace(self, filter=self.filter[:-1])
        return replace(self, filter=self.filter + key, cursor=0) if len(key) == 1 else self

    def _move(self, key: str, names: Sequence[str]) -> Screen | None:
        if key in {UP, DOWN}:
            step = 1 if key == DOWN else -1
            return replace(self, cursor=max(0, min(len(names) - 1, self.cursor + step)))
        if key == ENTER and self.page == GROUPS and self.group is None and names:
            chosen = names[min(self.cursor, len(names) - 1)]
            return replace(self, group=chosen, cursor=0, sort=0, filter="")
        return None

    @property
    def columns(self) -> list[str]:
        """Names of the columns shown."""
        row_type = GroupPartitionRow if self.group is not None else ROW_TYPES[self.page]
        return [field.name for field in fields(row_type)]

    def rows(
        self,
        summary: Summary,
        partitions: Sequence[GroupPartitionRow],
        logs: Sequence[LogRow] = (),
    ) -> list[Any]:
        """The rows that pass the filter, sorted."""
        of_page: dict[str, Sequence[Any]] = {
            BROKERS: summary.brokers,
            TOPICS: summary.topics,
            GROUPS: summary.groups,
            LOGS: logs,
        }
        rows: Sequence[Any] = of_page[self.page] if self.group is None else partitions
        kept = [row for row in rows if self.filter in name_of(row)]
        column = min(self.sort, len(self.columns) - 1)

        def rank(row: Any) -> tuple[int, Any]:
            value = astuple(row)[column]
            if value is None:
                return 2, 0
            return (1, value) if isinstance(value, str) else (0, -value)

        return sorted(kept, key=rank)


def name_of(row: Any) -> str:
    """The name of a row, which the filter searches, and which opens the row."""
    if isinstance(row, GroupPartitionRow):
        return f"{row.topic}-{row.partition}"
    return str(astuple(row)[0])


def cells_of(row: Any) -> list[str]:
    """The cells of a row."""
    return [
        str(value) if field.name in IDS else text_of(value)
        for field, value in zip(fields(row), astuple(row), strict=True)
    ]


def text_of(value: object) -> str:
    """A cell whose number is a count."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, float):
        return f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) else printable(str(value))


def render(
    screen: Screen,
    summary: Summary,
    rows: Sequence[Any],
    *,
    height: int,
    width: int,
    at: str,
    fault: str | None = None,
) -> Group:
    """The whole screen, never more than `height` lines: the rows around the cursor.

    fault   why what is shown is old; None: it is not
    """
    room = max(1, height - FIXED_LINES)
    cursor = max(0, min(screen.cursor, len(rows) - 1))
    first = max(0, min(cursor - room // 2, len(rows) - room))
    table = Table(expand=True, box=None, pad_edge=False, collapse_padding=True, header_style="bold")
    for number, name in enumerate(screen.columns):
        title = name.replace("_", " ") + (" ▼" if number == screen.sort else "")
        is_text = rows and isinstance(astuple(rows[0])[number], str)
        table.add_column(
            Text(title, no_wrap=True, overflow="ellipsis"),
            justify="left" if is_text else "right",
            # Columns that may wrap are narrowed first; their cells do not wrap.
            no_wrap=name not in NAMES or width < ROOMY_WIDTH,
            overflow="ellipsis",
            min_width=0 if number else NAME_WIDTH,
        )
    for number, row in enumerate(rows[first : first + room], first):
        cells = [
            Text(text, style=style_of(text), no_wrap=True, overflow="ellipsis")
            for text in cells_of(row)
        ]
        table.add_row(*cells, style="reverse" if number == cursor else "")
    now, page = head(screen, summary, len(rows), at)
    if fault is not None:
        now = Text(f"{at}  {printable(fault)}", style="bold red", no_wrap=True, overflow="ellipsis")
    return Group(now, page, table, Text(HELP[:width], style="dim"))


def style_of(text: str) -> str:
    """The style of a verdict."""
    verdicts = {*COLOURS, "STOP", "STALL", "REWIND", "BEYOND"}
    return COLOURS.get(text, "bold red") if text in verdicts else ""


def head(screen: Screen, summary: Summary, count: int, at: str) -> tuple[Text, Text]:
    bad = "bold red"
    first = Text(no_wrap=True, overflow="ellipsis")
    missing = sum(row.address == NOT_REGISTERED for row in summary.brokers)
    first.append(f"{at}  {len(summary.brokers) - missing} brokers  ")
    if missing:
        first.append(f"{missing} not registered  ", style=bad)
    if summary.has_zookeeper:
        first.append(
            f"controller {'none' if summary.controller is None else summary.controller}  ",
            style=bad if summary.controller is None else "",
        )
    for what, number in (
        ("under-replicated", summary.under_replicated),
        ("offline", summary.offline),
        ("failed requests", len(summary.failed_requests)),
    ):
        first.append(f"{what} {number}  ", style=bad if number else "")
    if summary.failed_requests:
        first.append(printable(summary.failed_requests[0]), style=bad)
    what = screen.page if screen.group is None else f"group {printable(screen.group)}"
    if screen.group is None:
        what = counted(count, what.removesuffix("s"))
    second = Text(what, style="bold", no_wrap=True, overflow="ellipsis")
    if screen.page == LOGS and not count and not screen.filter:
        second.append(": --log-dir gives a log directory of this machine")
    if screen.filter or screen.typing:
        second.append(f"  /{printable(screen.filter)}{'_' if screen.typing else ''}")
    if screen.paused:
        second.append("  paused", style="yellow")
    return first, second
