"""``analysis=ranks``: what each place among the children of a call brings, for each K.

TurboEvolve's rank profile (section 6.2). K may be chosen as a run goes, larger where it stalls, so
calls of different K are never put together. For each K and place there is the share of children
with a score, the share better than the parent, the gain of those with a score, and how far they
went: the distance between child and parent in cells of the archive, |b_1 - b'_1| + |b_2 - b'_2| +
... over the bins of its features, and that of their texts (`program_distance`). Each figure is
taken within a run first; rows have its median over the runs, with quartiles, so a run with few
calls of that K weighs as much as one with many. Children that nobody judged are left out.

*Parts* group the places into head, middle and tail. The source has 1-2, 3-5 and 6-7 of K = 7; with
another K the head and the tail are the next whole number to 2/7 of it, at least one place.

*Novelty* correlates, over the children with a score, how far each went with what it gained
(Spearman's rank correlation within a run), which the source finds to be weak.

Children with an answer of their own are placed in the order of their temperatures; programs that
one answer lists in the order of the answer, which is the source's rank.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from scipy.stats import spearmanr

from engine.core import Cell, Feature
from engine.report.analysis.curves import cell_at, shared_features
from engine.report.analysis.distance import program_distance
from engine.report.analysis.figures import Key, Table, grouped, mean, quartiles
from engine.report.analysis.rates import places
from engine.report.analysis.runs import RunRecord, Trial

PARTS = ("head", "middle", "tail")
_LEAST = 3  # pairs without which a correlation says nothing


@dataclass(frozen=True, kw_only=True, slots=True)
class Placed:
    """A child of a call, and how far it went: ``cells`` and ``text``, None without a program."""

    trial: Trial
    cells: float | None
    text: float | None


def ranks(runs: Sequence[RunRecord]) -> dict[str, Table]:
    """Profile the places of all runs' calls."""
    features = shared_features(runs) if any(run.trials for run in runs) else ()
    placed = [[_placed(run, each, features) for each in run.judged] for run in runs]
    note = (
        "place: in the order of the temperatures, or of the answer where one lists several "
        "programs; valid: has a score; improving: better than the parent, of all children; gain: "
        "over the parent, of valid ones; cells, distance: from the parent, of valid ones. Each "
        "within a run, then the median over the runs, with quartiles."
    )

    def part(each: Placed) -> tuple[int, int, str]:
        k = each.trial.call.k
        number = part_of(each.trial.place, k)
        return k, number, PARTS[number]

    return {
        "places": places(runs),
        "profile": Table(
            title="Places among the children of a call, over runs",
            rows=[
                {"K": k, "place": place, **_row(by_run)}
                for (k, place), by_run in _by_run(
                    placed, lambda each: (each.trial.call.k, each.trial.place)
                )
            ],
            note=note,
        ),
        "parts": Table(
            title="Head, middle and tail of the calls, over runs",
            rows=[
                {"K": k, "part": name, **_row(by_run)}
                for (k, _, name), by_run in _by_run(placed, part)
            ],
            note=note,
        ),
        "novelty": Table(
            title="How far valid children went, against what they gained",
            rows=[
                {"K": k, "runs": len(found), **_spread("correlation", found)}
                for k, by_run in _by_run(placed, lambda each: each.trial.call.k)
                if (found := [rho for own in by_run if (rho := _correlation(own)) is not None])
            ],
            note="Spearman's rank correlation of distance and gain within a run.",
        ),
    }


def part_of(place: int, k: int) -> int:
    """Return which of `PARTS` a place of a call with K children belongs to.

    Args:
        place: from 1.
        k: of the call.
    """
    ends = max(1, round(2 * k / 7))
    if place <= ends:
        return 0
    return 2 if place > max(ends, k - ends) else 1


def _placed(run: RunRecord, trial: Trial, features: tuple[Feature, ...]) -> Placed:
    program = trial.child.program
    if program is None or trial.score is None:
        return Placed(trial=trial, cells=None, text=None)
    own, parents = (cell_at(run, each, features) for each in (trial.child.id, trial.child.parent))
    return Placed(
        trial=trial,
        cells=None if own is None or parents is None else _between(own, parents),
        text=program_distance(program.text, trial.parent_program),
    )


def _by_run(
    placed: Sequence[Sequence[Placed]], key: Callable[[Placed], Key]
) -> Iterable[tuple[Key, list[list[Placed]]]]:
    """Return the children of each key, those of a run together."""
    groups = (
        (name, own)
        for children in placed
        for name, own in grouped((key(each), each) for each in children).items()
    )
    return grouped(groups).items()


def _between(cell: Cell, other: Cell) -> float:
    return float(sum(abs(one - two) for one, two in zip(cell, other, strict=True)))


def _row(by_run: Sequence[Sequence[Placed]]) -> dict[str, float | None]:
    """Return the figures of children in the same place, as each run has them and over all runs."""
    return {
        "runs": len(by_run),
        "children": sum(map(len, by_run)),
        **_spread("valid", [_mean(each.trial.score is not None for each in own) for own in by_run]),
        **_spread("improving", [_mean(each.trial.is_better for each in own) for own in by_run]),
        **_spread("gain", _means(by_run, lambda each: each.trial.gain)),
        **_spread("cells", _means(by_run, lambda each: each.cells)),
        **_spread("distance", _means(by_run, lambda each: each.text)),
    }


def _mean(values: Iterable[bool]) -> float:
    found = [*map(float, values)]
    return sum(found) / len(found)


def _means(
    by_run: Sequence[Sequence[Placed]], value: Callable[[Placed], float | None]
) -> list[float]:
    """Return each run's mean of a figure, of the runs that have it."""
    means = (mean([v for each in own if (v := value(each)) is not None]) for own in by_run)
    return [each for each in means if each is not None]


def _spread(name: str, values: Sequence[float]) -> dict[str, float | None]:
    """Return the median over the runs as ``name``, and the quartiles beside it."""
    middle, low, high = quartiles(values)
    return {name: middle, f"{name}_q1": low, f"{name}_q3": high}


def _correlation(own: Sequence[Placed]) -> float | None:
    """Return the correlation of distance and gain; None where one of them hardly varies."""
    pairs = [
        (each.text, each.trial.gain)
        for each in own
        if each.text is not None and each.trial.gain is not None
    ]
    if len(pairs) < _LEAST or any(len(set(column)) < 2 for column in zip(*pairs, strict=True)):
        return None
    return float(spearmanr(*zip(*pairs, strict=True)).statistic)
