"""What the first m children of a call are worth: TurboEvolve's top-m replay (section 6.1).

Where K is chosen as a run goes, larger where it stalls, calls of different K do not compare. The
replay takes calls of one K and asks of each what it would have brought with only its first m
children: whether any is better than the parent (*improving*), and by how much the best of them is,
below 0 where all are worse (*gain*). The source says nothing of calls whose first children have no
score. Here the gain is over the calls whose first child has one: for each m the same, so that it
can only rise with m, as it does within a call.

Calls are cut into five *tiers* by the best score among the inspirations in their prompt, quintiles
of all calls of that K, 1 the lowest; calls of equal scores share a tier. Inspirations are the
programs with a score that the prompt shows besides the parent. A prompt without any counts by its
parent, which then is all that it shows. Figures are means over a run's calls first, and rows have
their medians over the runs, with quartiles. ``tier`` 0 has the calls of all tiers.

The order of the children is that of ``ranks``. Only calls count whose children were all judged.
"""

import bisect
from collections.abc import Iterable, Sequence
from typing import Any

from engine.report.analysis.figures import Table, grouped, mean, quartiles
from engine.report.analysis.runs import RunRecord, Trial

TIERS = 5
ALL = 0
"""The tier under which all calls stand."""

Row = dict[str, Any]
Event = Sequence[Trial]
"""The children of a call, in their order."""


def top_m(runs: Sequence[RunRecord]) -> Table:
    """Replay the whole calls of all runs, of one problem, with only their first children."""
    events = [(run, event) for run in runs for event in _whole(run)]
    rows = [
        row
        for k, same in grouped((len(event), (run, event)) for run, event in events).items()
        for row in _rows(k, same)
    ]
    return Table(
        title="What the first m children of a call are worth",
        rows=rows,
        note="m: the first children in the order of the temperatures, or of the answer where one "
        "lists several programs; tier: fifth of the calls of that K by the best score among the "
        "other programs that the prompt shows, or by the parent's where it shows none, 5 the best, "
        "0 for all calls; improving: calls with at least one of the m "
        "better than the parent; gain: of the best of the m, over the calls whose first child has "
        "a score. Within a run, then the median over the runs, with quartiles.",
    )


def _whole(run: RunRecord) -> list[Event]:
    """Return the calls of a run whose children are all there and judged."""
    by_call = grouped((trial.call.iteration, trial) for trial in run.judged).values()
    return [
        sorted(trials, key=lambda each: each.child.index)
        for trials in by_call
        if len(trials) == trials[0].call.k
    ]


def _rows(k: int, events: Sequence[tuple[RunRecord, Event]]) -> list[Row]:
    """Return the rows of the calls with K children."""
    signals = [_signal(run, event) for run, event in events]
    ordered = sorted(signals)
    tiers = [1 + TIERS * bisect.bisect_left(ordered, each) // len(ordered) for each in signals]
    listed = [
        (tier, (id(run), event))
        for own, (run, event) in zip(tiers, events, strict=True)
        for tier in (ALL, own)
    ]
    rows = []
    for tier, same in grouped(listed).items():
        by_run = [*grouped(same).values()]
        rows += [{"K": k, "tier": tier, "m": m, **_worth(by_run, m)} for m in range(1, k + 1)]
    return rows


def _signal(run: RunRecord, event: Event) -> float:
    """Return the best score among a call's inspirations, larger for better."""
    verdicts, call = run.history.verdicts, event[0].call

    def values(names: Iterable[str]) -> list[float]:
        scores = [verdicts[each].score for each in names if each in verdicts]
        return [-run.history.direction.key(each) for each in scores if each is not None]

    return max(values(run.inspirations(call)) or values([call.parent]))


def _worth(by_run: Sequence[Sequence[Event]], m: int) -> Row:
    """Return what the first m children of calls brought, as each run has it and over all runs."""
    improving = [
        sum(any(each.is_better for each in event[:m]) for event in own) / len(own) for own in by_run
    ]
    gains = [
        mean([max(_gains(event[:m])) for event in own if event[0].gain is not None])
        for own in by_run
    ]
    middle, low, high = quartiles(improving)
    gain, gain_low, gain_high = quartiles([each for each in gains if each is not None])
    return {
        "calls": sum(map(len, by_run)),
        "runs": len(by_run),
        **{"improving": middle, "improving_q1": low, "improving_q3": high},
        **{"gain": gain, "gain_q1": gain_low, "gain_q3": gain_high},
    }


def _gains(trials: Sequence[Trial]) -> list[float]:
    return [each.gain for each in trials if each.gain is not None]
