"""Islands as runs: the settings of each, and its log.

Each island has an equal share of the run's candidates, tokens and money, so a budget is met exactly
without anybody counting over all of them. The worker that founds them settles what a machine
decides, the format of the model's numbers, and the run goes on with that.
"""

import shutil
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from engine import config
from engine.beginning import archive_features, begun_session, check_first, first_events
from engine.cluster.places import island_folder
from engine.core import Event, Feature, Problem, Seed, UserError, Verdict
from engine.parts import Parts, settled
from engine.pool import read_pool
from engine.search.features import cell_of
from engine.settings import BudgetSettings, RunSettings
from engine.store import create_run, drop_database
from engine.syntax import read

_ISLANDS = 6  # fourth word of what derives from a run's seed: `engine.search.choice.chance_of`


def check_cluster(settings: RunSettings) -> None:
    """Check that a run's islands can have runs of their own.

    Raises:
        UserError: what is asked for needs all islands in one place.
    """
    for key, value, allowed in (
        ("islands.schedule", settings.islands.schedule, None),
        ("advisor.enabled", settings.advisor.enabled, False),
        ("tactics.when", settings.tactics.when, "none"),
        ("budget.patience", settings.budget.patience, None),
    ):
        if value != allowed:
            raise UserError(
                f"{key} is {value!r}; with a cluster, whose islands have a run each, it must be "
                f"{'null' if allowed is None else str(allowed).lower()}"
            )
    prefillers = settings.cluster.prefillers
    if prefillers and settings.cache.kind == "none":
        raise UserError(
            f"cluster.prefillers is {prefillers}; they hand prompts over through cache=lmcache"
        )


def island_settings(settings: RunSettings, number: int) -> RunSettings:
    """Return the settings of one island's run."""
    seed = np.random.SeedSequence([settings.seed, number, 0, _ISLANDS]).generate_state(1, np.uint64)
    return replace(
        settings,
        seed=int(seed[0] >> np.uint64(1)),
        islands=replace(settings.islands, count=1),
        # The islands of a process overlap each other, and a guess could not wait for migrants.
        pipeline=replace(settings.pipeline, speculate=False),
        budget=_share(settings.budget, number, of=settings.islands.count),
    )


def found(
    settings: RunSettings,
    problem: Problem,
    *,
    parts: Parts,
    folder: Path,
) -> None:
    """Evaluate what a run begins with, and make the runs of its islands: all of them or none.

    Args:
        settings: the whole run's.
        problem: the run's.
        parts: of any worker.
        folder: of the whole run.

    Raises:
        UserError: the run can't begin, or a log can't be made.
    """
    pool = settings.pool
    reading = read_pool(pool.sources, problem=problem, most_of_run=pool.most_of_run)
    events = first_events(settings, parts, reading)
    check_first(settings, problem, events)
    settings = settled(settings)  # a run that goes on does so in the format it began with
    with ExitStack() as made:
        for number in range(settings.islands.count):
            island, own = island_folder(folder, number), island_settings(settings, number)
            features = archive_features(own, problem)
            create_run(
                island,
                write_config=partial(config.save, own),
                events=[begun_session(0, problem), *_of_island(events, number, features)],
                url=settings.store,
            )
            made.callback(shutil.rmtree, island)
            made.callback(drop_database, island)
        made.pop_all()


def with_format(settings: RunSettings, folder: Path) -> RunSettings:
    """Return a run's settings with the format of the model's numbers that it was founded with.

    Args:
        settings: of the whole run.
        folder: the run's, whose islands are founded.

    Raises:
        UserError: the settings of an island can't be read.
    """
    dtype = config.load_run(island_folder(folder, 0)).model.dtype
    return replace(settings, model=replace(settings.model, dtype=dtype))


def _of_island(
    events: Iterable[Event], number: int, features: Sequence[Feature] | None
) -> Iterable[Event]:
    """Yield the first events that concern an island, in whose log it has number 0.

    Their cells are those of the island's archive, which may follow from its seed.
    """
    programs = dict[str, str]()
    for event in events:
        if isinstance(event, Seed):
            if number in event.islands:
                programs[event.candidate] = event.program
                yield replace(event, islands=(0,))
        elif not isinstance(event, Verdict):
            yield event
        elif (text := programs.get(event.candidate, event.program)) is not None:
            yield replace(event, cell=cell_of(read(text), event.evaluation, features=features))


def _share(budget: BudgetSettings, number: int, *, of: int) -> BudgetSettings:
    def whole(amount: int | None) -> int | None:
        return None if amount is None else amount // of + (number < amount % of)

    money = None if budget.money is None else budget.money / of
    return replace(
        budget, candidates=whole(budget.candidates), tokens=whole(budget.tokens), money=money
    )


def neighbours_of(settings: RunSettings, number: int) -> Sequence[int]:
    """Return the islands that send an island migrants, in their order."""
    count = settings.islands.count
    topology = settings.islands.topology.make(islands=count)
    return [each for each in range(count) if number in topology.targets(each)]
