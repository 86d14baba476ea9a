"""The pictures of experiments: the best score of each arm, as the report of runs draws it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import vl_convert

from engine.core import Direction, KnownScore
from engine.report.figures.figure import Figure
from engine.report.figures.progress import Aims, progress

_WIDTH = 760


def pictures(found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the name and the SVG of each picture of an experiment's figures."""
    for problem in found["problems"]:
        spec = best_scores(found, problem).whole(width=_WIDTH) | {"background": "white"}
        yield f"{found['experiment']}-{problem}", vl_convert.vegalite_to_svg(spec)


def best_scores(found: Mapping[str, Any], problem: str) -> Figure:
    """Return the best score of all runs on a problem against what they were given equal shares of.

    Evaluations are drawn as candidates, which the report has an axis for.
    """
    runs = [each for each in found["runs"] if each["problem"] == problem]
    names = {number: f"{run['arm']} {run['seed']}" for number, run in enumerate(runs)}
    bests = [
        {"run": names[number], "best": point["score"], **point}
        for number, run in enumerate(runs)
        for point in run["curve"]
    ]
    ends = [
        {
            "run": names[number],
            "best": run["best_score"],
            "seconds": run["seconds"],
            "candidates": run["candidates"],
            "tokens": run["generated_tokens"],
        }
        for number, run in enumerate(runs)
    ]
    one = found["problems"][problem]
    known = one["best_known"]
    figures = progress(
        bests,
        ends,
        direction=Direction(one["direction"]),
        aims=Aims(known=[] if known is None else [KnownScore(score=known, source="published")]),
        series={names[number]: run["arm"] for number, run in enumerate(runs)},
    )
    axis = "seconds" if "seconds" in found["budget"] else "candidates"
    return next(each for each in figures if each.name == f"best-by-{axis}")
