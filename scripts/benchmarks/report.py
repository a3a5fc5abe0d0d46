"""One row of figures: the JVM's, ours, their ratio, and whether the goal is met."""

from __future__ import annotations


def report(
    case: str, figure: str, unit: str, jvm: float, ours: float, bound: float, higher: bool
) -> dict[str, object]:
    """Print one row and return it."""
    ratio = ours / jvm if jvm else float("inf")
    met = ratio >= bound if higher else ratio <= bound
    sign = ">=" if higher else "<="
    print(
        f"{case:24} {figure:>9} {unit:>5}  jvm {jvm:10.2f}  ours {ours:10.2f}"
        f"  ratio {ratio:6.2f} (goal {sign} {bound:g}) {'ok' if met else 'MISSED'}",
        flush=True,
    )
    return {
        "case": case, "figure": figure, "unit": unit, "jvm": jvm, "ours": ours,
        "ratio": ratio, "goal": bound, "met": met,
    }  # fmt: skip
