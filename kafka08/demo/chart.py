"""Draws identifier counts: the largest modules, each with its most frequent names."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Final

from kafka08.demo.identifiers import Counts

MODULES: Final = 8
NAMES: Final = 6
COLUMNS: Final = 4
LEFT_OUT: Final = ("self", "cls")
"""Names that lead in nearly every module and say nothing about it."""
INCHES: Final = (10.0, 5.4)
DOTS_PER_INCH: Final = 100
INK, MUTED, BAR, BAR_OF_TESTS = "#24292f", "#57606a", "#3b7dd8", "#8c959f"


def largest(counts: Counts) -> list[tuple[str, int, list[tuple[str, int]]]]:
    """(module, number of its occurrences, its most frequent names and their counts) for the modules
    with the most occurrences, in descending order; ties by name."""
    modules: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for (module, name), occurrences in counts.items():
        modules[module][name] = occurrences
    chosen = sorted(modules, key=lambda module: (-modules[module].total(), module))[:MODULES]
    return [
        (
            module,
            modules[module].total(),
            sorted(
                (item for item in modules[module].items() if item[0] not in LEFT_OUT),
                key=lambda item: (-item[1], item[0]),
            )[:NAMES],
        )
        for module in chosen
    ]


def draw(counts: Counts, title: str, path: Path) -> None:
    """Write a PNG of 1000 by 540 pixels to `path`: a panel for each of the largest modules."""
    from matplotlib.figure import Figure  # not pyplot, which would look for a display
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    rows = largest(counts)
    figure = Figure(figsize=INCHES, dpi=DOTS_PER_INCH, facecolor="white")
    figure.set_layout_engine(ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.1, hspace=0.04))
    figure.suptitle(title, fontsize=15, fontweight="bold", color=INK)
    figure.supxlabel(
        "occurrences (in brackets: of all identifiers in the module); "
        f"{' and '.join(LEFT_OUT)} left out; each panel has its own scale",
        fontsize=10,
        color=MUTED,
    )
    columns = min(COLUMNS, max(len(rows), 1))
    panels = figure.subplots(-(-len(rows) // columns) or 1, columns, squeeze=False).flat
    for (module, total, names), axes in zip(rows, panels, strict=False):
        labels = [name if len(name) <= 14 else f"{name[:13]}…" for name, _ in names]
        bars = axes.barh(
            range(len(names)),
            [occurrences for _, occurrences in names],
            color=BAR_OF_TESTS if module == "test" else BAR,
            height=0.72,
        )
        axes.bar_label(bars, fmt="{:,.0f}", padding=3, fontsize=9, color=MUTED)
        axes.set_yticks(range(len(names)), labels, fontsize=10, color=INK)
        axes.set_ylim(NAMES - 0.5, -0.5)
        axes.set_xlim(0, 1.35 * max((occurrences for _, occurrences in names), default=1))
        axes.set_xticks([])
        axes.tick_params(left=False)
        axes.spines[["top", "right", "bottom"]].set_visible(False)
        axes.spines["left"].set_color("#d0d7de")
        axes.set_title(f"{module}  ({total:,})", loc="left", fontsize=11, color=INK)
    for axes in panels:
        axes.set_axis_off()
    figure.savefig(path, pil_kwargs={"optimize": True})
