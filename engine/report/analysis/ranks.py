"""``analysis=ranks``: from which ranks parents are chosen and improve, and which places do.

Covers two profiles. *Parents*: the rank of each call's parent by score among all valid programs
that its run knew when the call was recorded, on whatever island, 1 for the best; equal scores share
the better rank. *Places*: what became of the first, second, ... child of a call, TurboEvolve's
rank profile (section 6.2); the places of children that were sampled one by one are in the order
of their temperatures, those of programs that one answer lists in the answer's.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from engine.core import Direction
from engine.report.analysis.distance import distance_to_parent
from engine.report.analysis.rates import COLUMNS, NOTE, rate_of
from engine.report.analysis.runs import RunRecord, Trial
from engine.report.analysis.statistics import median
from engine.report.analysis.table import Findings, Table, percent
from engine.store import Call, Verdict

_SHARES = (0.1, 0.25, 0.5, 0.75, 1.0)
_BEST = "the best"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Choice:
    """A call, the rank of its parent among ``known`` programs, and its children."""

    run: str
    call: Call
    rank: int
    known: int
    trials: Sequence[Trial]

    @property
    def group(self) -> str:
        """The best; or the share of the programs that are at least as good."""
        if self.rank == 1:
            return _BEST
        return _group(next(each for each in _SHARES if self.rank <= each * self.known))


def ranks(runs: Sequence[RunRecord]) -> Findings:
    """Rank the parents and the children of all runs."""
    choices = [choice for run in runs for choice in _choices(run)]
    by_parent = _by_parent(choices)
    by_place = _by_place(runs)
    calls = [
        {
            "run": each.run,
            "iteration": each.call.iteration,
            "rank": each.rank,
            "known": each.known,
            "children": len(each.trials),
            "improved": sum(trial.is_better for trial in each.trials),
        }
        for each in choices
    ]
    return Findings(
        figures={"parents": by_parent, "places": by_place, "calls": calls},
        tables=(_parents_table(by_parent), _places_table(by_place)),
    )


def _choices(run: RunRecord) -> list[_Choice]:
    of_call: dict[int, list[Trial]] = {}
    for trial in run.trials:
        of_call.setdefault(trial.call.iteration, []).append(trial)
    sign = 1 if run.direction is Direction.MINIMISE else -1
    known: list[float] = []  # scores, better ones smaller, in order
    choices = []
    for recorded in run.events:
        event = recorded.event
        if isinstance(event, Verdict) and event.score is not None:
            bisect.insort(known, sign * event.score)
        elif isinstance(event, Call):
            parent = run.history.verdicts.get(event.parent)
            if parent is None or parent.score is None:
                continue  # it has no child, or the log would have been refused
            choices.append(
                _Choice(
                    run=run.name,
                    call=event,
                    rank=bisect.bisect_left(known, sign * parent.score) + 1,
                    known=len(known),
                    trials=of_call.get(event.iteration, ()),
                )
            )
    return choices


def _by_parent(choices: Sequence[_Choice]) -> list[dict[str, Any]]:
    improved = sum(trial.is_better for each in choices for trial in each.trials)
    rows = []
    for group in (_BEST, *map(_group, _SHARES)):
        inside = [each for each in choices if each.group == group]
        rate = rate_of([trial for each in inside for trial in each.trials])
        rows.append(
            {
                "rank": group,
                "calls": len(inside),
                "share_of_calls": len(inside) / len(choices) if choices else None,
                "share_of_improved": rate.improved / improved if improved else None,
                **rate.figures(),
            }
        )
    return rows


def _by_place(runs: Sequence[RunRecord]) -> list[dict[str, Any]]:
    places: dict[int, list[tuple[RunRecord, Trial]]] = {}
    for run in runs:
        for trial in run.trials:
            places.setdefault(trial.place, []).append((run, trial))
    rows = []
    for place, members in sorted(places.items()):
        trials = [trial for _, trial in members]
        between = [distance_to_parent(run, trial) for run, trial in members]
        rows.append(
            {
                "place": place,
                **rate_of(trials).figures(),
                "median_gain": median([each.gain for each in trials if each.gain is not None]),
                "median_distance": median([each for each in between if each is not None]),
            }
        )
    return rows


def _group(share: float) -> str:
    return f"up to {share:.0%}"


def _parents_table(rows: Sequence[dict[str, Any]]) -> Table:
    columns = ("rank of the parent", "calls", "of calls", "of improved", *COLUMNS[:8])
    return Table(
        title="Rank of the parent among the programs known",
        columns=columns,
        rows=[
            (
                *(row["rank"], row["calls"]),
                *map(percent, (row["share_of_calls"], row["share_of_improved"])),
                *(row["children"], row["evaluated"], row["valid"], row["improved"]),
                *map(percent, (row["rate"], *row["interval_95"])),
                row["new_bests"],
            )
            for row in rows
        ],
        note=NOTE,
    )


def _places_table(rows: Sequence[dict[str, Any]]) -> Table:
    return Table(
        title="Place among the children of a call",
        columns=("place", *COLUMNS[:8], "median gain", "median distance"),
        rows=[
            (
                *(row["place"], row["children"], row["evaluated"], row["valid"], row["improved"]),
                *map(percent, (row["rate"], *row["interval_95"])),
                *(row["new_bests"], row["median_gain"], row["median_distance"]),
            )
            for row in rows
        ],
        note="gain: score over the parent's, of valid children; distance: from the parent.",
    )
