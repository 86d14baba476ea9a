"""Randomised schedules of the loop: the settings of a run and the faults that befall it.

Does not cover living through one: ``lives.py``.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fault_lists import ENDING, Fault, drawn_faults

from engine.core import Feature, Problem
from engine.problem import load_problem
from engine.search.mixes import MIXES
from engine.search.novelty import NOVELTY
from engine.search.widths import WIDTHS, WidthSettings
from engine.settings import RunSettings

NEAR_COPIES = NOVELTY.read({"policy": "cosine", "threshold": 0.999})
AMPLE = 1 << 20
"""Room in the context for whatever a prompt is to show."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Schedule:
    """What chance has decided about a run beforehand.

    Attributes:
        settings: of the run.
        stages: of the problem.
        context: tokens of the model's context.
        step: the most seconds that a step of the model takes.
        verdict: the same of an evaluation that is not late.
        ended: share of the answers' beginnings that are called complete.
        faults: that befall it, in their order.
    """

    settings: RunSettings
    stages: int
    context: int
    step: float
    verdict: float
    ended: float
    faults: tuple[Fault, ...]

    @property
    def is_clean(self) -> bool:
        """Whether nothing cuts it short."""
        return not any(fault.kind in ENDING for fault in self.faults)


def small_problem(defaults: RunSettings) -> Problem:
    """Return the default problem with a task that any schedule's context has room for."""
    whole = load_problem(Path(defaults.problem))
    quick = replace(whole.stages[0], name="quick")
    return replace(
        whole,
        statement="Do.",
        entry_point="f",
        stages=(quick, *whole.stages),
        features=(Feature(name="score", low=0, high=1, bins=8),),
    )


def drawn(seed: int, defaults: RunSettings) -> Schedule:
    """Return a schedule."""
    rng, others = random.Random(seed), random.Random(f"archive of {seed}")
    operators = _operators(seed)
    settings = replace(
        defaults,
        search=replace(
            defaults.search,
            k=rng.randint(1, 6),
            novelty=rng.choice([None, None, None, NEAR_COPIES]),
            failures=rng.randint(0, 2),
            archive=others.choice(["none", "none", "problem"]),
            **operators,
        ),
        width=_width(rng, operators),
        islands=replace(
            defaults.islands,
            count=rng.randint(1, 4),
            migrate_every=rng.randint(0, 3),
            migrants=rng.randint(1, 2),
        ),
        pipeline=replace(
            defaults.pipeline,
            overlap=rng.random() < 0.85,
            speculate=rng.choice([True, False, True, True]),
            ahead=rng.randint(1, 3),
            children=rng.choice([None, rng.randint(1, 12)]),
            candidates=rng.choice([None, rng.randint(1, 8)]),
            adaptive=rng.random() < 0.5,
        ),
        prompts=replace(
            defaults.prompts,
            layout=rng.choice(["classic", "stable", "transcript"]),
            history_tokens=rng.choice([0, 300, 2000]),
            growth_tokens=rng.choice([0, 200]),
            align=rng.random() < 0.5,
        ),
        budget=replace(
            defaults.budget,
            candidates=rng.randint(5, 40),
            seconds=0.03 if rng.random() < 0.08 else None,
        ),
        evaluation=replace(defaults.evaluation, workers=rng.randint(1, 3)),
        seed=seed,
    )
    drawn = Schedule(
        settings=settings,
        stages=rng.randint(1, 2),
        context=rng.choice([AMPLE, AMPLE, AMPLE, 2500]),
        step=rng.choice([0.0, 0.0002, 0.001]),
        verdict=rng.choice([0.0, 0.001, 0.004, 0.02]),
        ended=rng.choice([0.0, 0.05]),
        faults=drawn_faults(rng),
    )
    return _guessing(drawn) if seed % 5 == 0 else drawn


def _guessing(schedule: Schedule) -> Schedule:
    """Return the schedule with verdicts so slow that guesses go ahead of guesses."""
    settings = schedule.settings
    pipeline = replace(settings.pipeline, overlap=True, speculate=True, ahead=3, candidates=None)
    settings = replace(
        settings,
        pipeline=pipeline,
        islands=replace(settings.islands, count=1),
        prompts=replace(settings.prompts, history_tokens=2000),
    )
    return replace(schedule, settings=settings, context=AMPLE, step=0.0, verdict=0.1)


def _width(rng: random.Random, operators: Mapping[str, Any]) -> WidthSettings:
    policy = rng.choice(["fixed", "turboevolve", "cost_aware"])
    if policy == "cost_aware" and "verbalized" not in operators["operators"]:
        return WIDTHS.read({"policy": policy, "k_max": 6})
    return WIDTHS.read({"policy": policy.replace("cost_aware", "fixed")})


def _operators(seed: int) -> dict[str, Any]:
    """Return a mix: of all that the model can follow, of some, or of one."""
    rng, lists = random.Random(f"operators of {seed}"), random.Random(f"lists of {seed}")
    others = {"crossover": 0.5, "repair": 0.5} if rng.random() < 0.5 else {}
    if lists.random() < 0.4:
        others["verbalized"] = lists.choice([0.5, 4.0])
    return {
        "operators": {"rewrite": 1.0, **others},
        "mix": MIXES.read({"policy": rng.choice(["fixed", "kl_ucb"])}),
    }
