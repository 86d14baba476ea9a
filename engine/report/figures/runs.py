"""All figures of a run, and those of several runs beside each other."""

from collections.abc import Mapping, Sequence

from engine.core import INITIAL
from engine.report.analysis import RunRecord, learning, progress
from engine.report.figures.archive import archive
from engine.report.figures.comparison import comparison
from engine.report.figures.figure import Figure
from engine.report.figures.islands import islands
from engine.report.figures.learning import learning as steps_of_training
from engine.report.figures.programs import by_time, lineage
from engine.report.figures.progress import Aims
from engine.report.figures.progress import progress as best_scores
from engine.report.figures.rates import improvement, widths, yields
from engine.report.figures.spans import busy, outcomes, prompts
from engine.report.tables import arrivals, calls, operators
from engine.report.tables import islands as island_bests
from engine.report.tables import widths as width_rates
from engine.report.tables.archives import archive_of
from engine.report.tables.busy import busy_of
from engine.report.tables.programs import Row, of_run
from engine.report.tables.spans import outcomes_of, prompts_of


def figures_of(
    run: RunRecord, *, aims: Aims, programs: Sequence[Row] | None = None
) -> list[Figure]:
    """Return the figures of one run, those left out that have nothing to show.

    Args:
        run: as it stands.
        aims: scores worth reaching.
        programs: its rows of `engine.report.tables.programs`, if they are at hand.

    Raises:
        UserError: its timeline can't be read.
    """
    direction = run.history.direction
    programs = of_run(run) if programs is None else programs
    of_calls = calls([run]).rows
    found = [
        *_progress([run], aims, {run.name: run.name}),
        lineage(programs, direction=direction, path=path_of(run)),
        by_time(programs, direction=direction),
        outcomes(outcomes_of(run)),
        yields(of_calls),
        *(prompts(prompts_of(run)) if run.settings.model.kind != "mutation" else ()),
        busy(busy_of(run)),
        widths(of_calls),
        _by_width(run),
        improvement(operators([run]).rows, key="operator", name="operators", words="operator"),
        islands(
            island_bests([run]).rows,
            arrivals([run]).rows,
            end=run.end["candidates"],
            direction=direction,
        ),
        archive(archive_of(run), direction=direction),
        *steps_of_training(learning([run])["updates"].rows),
    ]
    return [figure for figure in found if figure is not None]


def figures_across(
    runs: Sequence[RunRecord], *, aims: Aims, series: Mapping[str, str]
) -> list[Figure]:
    """Return the figures of several runs, by the group of each; none for a single one."""
    if len(runs) < 2:
        return []
    ends = progress(runs)["ends"].rows
    direction = runs[0].history.direction
    return [*_progress(runs, aims, series), comparison(ends, direction=direction, series=series)]


def path_of(run: RunRecord) -> list[str]:
    """Return the ids of the best program and its ancestors, the first one first."""
    best = run.history.best
    return run.history.lineage(INITIAL if best is None else best.candidate)


def _progress(runs: Sequence[RunRecord], aims: Aims, series: Mapping[str, str]) -> list[Figure]:
    tables = progress(runs)
    return best_scores(
        tables["points"].rows,
        tables["ends"].rows,
        direction=runs[0].history.direction,
        aims=aims,
        series=series,
    )


def _by_width(run: RunRecord) -> Figure | None:
    found = width_rates([run]).rows
    return improvement(found, key="k", name="widths", words="K") if len(found) > 1 else None
