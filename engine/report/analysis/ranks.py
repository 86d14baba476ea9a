"""``analysis=ranks``: which ranks parents have, which of them improve, and which children do.

Covers two profiles. *Parents*: the rank of each call's parent by score among all valid programs
that its run knew on any island when the call was recorded, 1 for the best; equal scores share the
better rank. *Places*: what became of the first, second, ... child of a call, TurboEvolve's rank
profile (section 6.2). Children with an answer of their own are in the order of their temperatures;
programs that one answer lists are in the order of the answer.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from engine.report.analysis.distance import distance_to_parent
from engine.report.analysis.rates import NOTE, OUTCOMES, rate_of
from engine.report.analysis.runs import RunRecord, Trial
from engine.report.analysis.statistics import grouped, median
from engine.report.analysis.table import Findings, Table, share
from engine.store import Call, Verdict

_SHARES = (0.1, 0.25, 0.5, 0.75, 1.0)
_BEST = "the best"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Choice:
    """A call, the rank of its parent among ``known`` programs, and its children."""

    run: str
    iteration: int
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
            "iteration": each.iteration,
            "rank": each.rank,
            "known": each.known,
            "children": len(each.trials),
            "improved": sum(trial.is_better for trial in each.trials),
        }
        for each in choices
    ]
    shares = (("of calls", share("share_of_calls")), ("of improved", share("share_of_improved")))
    return Findings(
        figures={"parents": by_parent, "places": by_place, "calls": calls},
        tables=(
            Table(
                title="Rank of the parent among the programs known",
                columns=(("rank of the parent", "rank"), "calls", *shares, *OUTCOMES),
                rows=by_parent,
                note=NOTE,
            ),
            Table(
                title="Place among the children of a call",
                columns=("place", *OUTCOMES, "median_gain", "median_distance"),
                rows=by_place,
                note="gain: score over the parent's, of valid children; distance: from the parent.",
            ),
        ),
    )


def _choices(run: RunRecord) -> Iterator[_Choice]:
    of_call = grouped((trial.call.iteration, trial) for trial in run.trials)
    key = run.direction.key
    known: list[float] = []  # keys of scores, in order
    for recorded in run.events:
        event = recorded.event
        if isinstance(event, Verdict) and event.score is not None:
            bisect.insort(known, key(event.score))
        elif isinstance(event, Call):
            parent = run.history.verdicts.get(event.parent)
            if parent is None or parent.score is None:
                continue  # it has no child, or the log would have been refused
            yield _Choice(
                run=run.name,
                iteration=event.iteration,
                rank=bisect.bisect_left(known, key(parent.score)) + 1,
                known=len(known),
                trials=of_call.get(event.iteration, ()),
            )


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
                "share_of_improved": rate["improved"] / improved if improved else None,
                **rate,
            }
        )
    return rows


def _by_place(runs: Sequence[RunRecord]) -> list[dict[str, Any]]:
    places = grouped((trial.place, (run, trial)) for run in runs for trial in run.trials)
    rows = []
    for place, members in places.items():
        between = [distance_to_parent(run, trial) for run, trial in members]
        rows.append(
            {
                "place": place,
                **rate_of([trial for _, trial in members]),
                "median_gain": median([each.gain for _, each in members if each.gain is not None]),
                "median_distance": median([each for each in between if each is not None]),
            }
        )
    return rows


def _group(share_of_known: float) -> str:
    return f"up to {share_of_known:.0%}"
