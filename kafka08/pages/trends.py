"""Trends: a few numbers of a cluster over time, for charts. Pure.

A series has at most POINTS_MAX points. When it is full, its older half loses every second point: so
it reaches back to the first one, at a falling resolution. The SERIES_MAX groups with the most lag
have a series.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kafka08.exporter.summary import Summary

POINTS_MAX: Final = 240
SERIES_MAX: Final = 500

Point = tuple[int, float]
"""(time in ms, value)"""


class Trends:
    """incoming   messages per second of the whole cluster, over time
    lags       group → its lag over time
    """

    def __init__(self) -> None:
        self.incoming: list[Point] = []
        self.lags: dict[str, list[Point]] = {}

    def add(self, now_ms: int, summary: Summary) -> None:
        """Add a view. Drops groups that no longer exist; an unknown value adds no point."""
        rates = [row.per_second for row in summary.topics if row.per_second is not None]
        if rates or not summary.topics:
            append(self.incoming, (now_ms, round(sum(rates), 3)))
        worst = sorted(summary.groups, key=lambda row: (-(row.lag or 0), row.group))[:SERIES_MAX]
        self.lags = {row.group: self.lags.get(row.group, []) for row in worst}
        for row in worst:
            if row.lag is not None:
                append(self.lags[row.group], (now_ms, row.lag))

    def as_dict(self) -> dict[str, Any]:
        return {"incoming": self.incoming, "lags": self.lags}

    @classmethod
    def of_dict(cls, found: Mapping[str, Any]) -> Trends:
        """Decodes the result of `as_dict` after JSON. ValueError, TypeError or KeyError for
        anything else; drops series and points beyond the limits."""
        trends = cls()
        trends.incoming = points_of(found["incoming"])
        trends.lags = {
            str(name): points_of(points)
            for name, points in list(dict(found["lags"]).items())[:SERIES_MAX]
        }
        return trends


def append(points: list[Point], point: Point) -> None:
    points.append(point)
    if len(points) > POINTS_MAX:
        half = POINTS_MAX // 2
        del points[1:half:2]


def points_of(found: Sequence[Sequence[float]]) -> list[Point]:
    return [(int(time_ms), float(value)) for time_ms, value in found[-POINTS_MAX:]]
