"""``analysis=distance``: how far a parent is from what is shown beside it, and what that brings.

TurboEvolve's interaction of distance and K (section 6.3). For each call there is the distance of
the parent from its inspirations, cut into deciles within each run. For each decile and K the table
says how often any child is better than the parent, and by how much the best one is. Calls are
averaged within a run first and then over the runs, so that siblings do not count as independent.

Inspirations are the programs with a score that the prompt shows besides the parent, as the call's
event lists them. The distance is the mean of the distances from each (`program_distance`).
Calls without inspirations are left out, and children that nobody judged. As the source says, K
depends on how the run goes, so the table describes, and does not compare widths.
"""

import bisect
import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from engine.report.analysis.figures import Share, Table, grouped, mean, median, quartiles
from engine.report.analysis.runs import RunRecord
from engine.store import Call

_DECILES = 10
_SHINGLE = 3  # tokens
_TOKEN = re.compile(r"\w+|[^\w\s]")  # of whatever text: a child need not be a valid program
_KEPT = 4096  # programs whose shingles are kept: most are asked about with their children


@dataclass(frozen=True, kw_only=True, slots=True)
class _Told:
    """A call with inspirations: their distance, whether a child improved, and the best gain."""

    k: int
    distance: float
    improves: bool
    best_gain: float | None


def distance(runs: Sequence[RunRecord]) -> dict[str, Table]:
    """Compare the calls of all runs that show something, by decile of the distance and K."""
    cells: list[tuple[tuple[int, int], list[_Told]]] = []  # calls of a run
    for run in runs:
        told = list(_told(run))
        distances = sorted(each.distance for each in told)
        deciles = (
            _DECILES * bisect.bisect_left(distances, each.distance) // len(distances)
            for each in told
        )
        of_run = (((decile, each.k), each) for decile, each in zip(deciles, told, strict=True))
        cells += grouped(of_run).items()
    table = Table(
        title="Improving calls by distance of the parent from what is shown beside it, and K",
        rows=[_row(decile, k, calls) for (decile, k), calls in grouped(cells).items()],
        note="decile: of the distance within the run, 1 for the nearest; improving: share of the "
        "calls with a child better than the parent; best gain: of a call's best child, mean; both "
        "within a run, the median over the runs, with quartiles.",
        empty=_why_empty(runs),
    )
    return {"by_shown": table}


def _why_empty(runs: Sequence[RunRecord]) -> str:
    """Return what to say where no call has inspirations; of a small model's runs none has."""
    shows_none = bool(runs) and all(run.settings.prompts.history_tokens == 0 for run in runs)
    why = " (prompts.history_tokens=0)" if shows_none else ""
    return f"nothing to show, since no call shows another program with a score{why}"


def program_distance(program: str, other: str) -> float:
    """Return how far apart two programs are, from 0 to 1, without running them.

    The Jaccard distance of their shingles: 1 - |A and B| / |A or B|, where A and B are the sets of
    runs of three tokens that stand in each (Broder, "On the resemblance and containment of
    documents", 1997, section 2). 0 means the same shingles, 1 none in common. Layout does not
    count; comments do.
    """
    own, others = _shingles(program), _shingles(other)
    either = len(own | others)
    return 1 - len(own & others) / either if either else 0.0


@functools.lru_cache(maxsize=_KEPT)
def _shingles(program: str) -> frozenset[tuple[str, ...]]:
    """Return the runs of three tokens; all tokens as one run where there are fewer."""
    tokens = _TOKEN.findall(program)
    last = max(1, len(tokens) - _SHINGLE + 1) if tokens else 0
    return frozenset(tuple(tokens[i : i + _SHINGLE]) for i in range(last))


def _told(run: RunRecord) -> Iterator[_Told]:
    for trials in grouped((trial.call.iteration, trial) for trial in run.judged).values():
        call = trials[0].call
        from_shown = _distance(run, call)
        if from_shown is not None:
            gains = [each.gain for each in trials if each.gain is not None]
            yield _Told(
                k=call.k,
                distance=from_shown,
                improves=any(each.is_better for each in trials),
                best_gain=max(gains, default=None),
            )


def _distance(run: RunRecord, call: Call) -> float | None:
    verdicts, program_of = run.history.verdicts, run.history.program_of
    shown = [each for each in run.inspirations(call) if verdicts[each].score is not None]
    parent = program_of(call.parent)
    return mean([program_distance(parent, program_of(each)) for each in shown])


def _row(decile: int, k: int, runs: Sequence[Sequence[_Told]]) -> dict[str, Any]:
    gains = [
        mean([each.best_gain for each in calls if each.best_gain is not None]) for calls in runs
    ]
    improving, low, high = quartiles([mean([e.improves for e in calls]) or 0.0 for calls in runs])
    gain, gain_low, gain_high = quartiles([each for each in gains if each is not None])
    return {
        "decile": decile + 1,
        "K": k,
        "distance": median([each.distance for calls in runs for each in calls]),
        "calls": sum(map(len, runs)),
        "runs": len(runs),
        **{"improving": Share(improving or 0.0), "improving_q1": low, "improving_q3": high},
        **{"best_gain": gain, "best_gain_q1": gain_low, "best_gain_q3": gain_high},
    }
