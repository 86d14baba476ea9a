"""The experiments that ``table.yaml`` declares, and the runs that each consists of.

Does not cover making the runs (``lanes``) or what follows from them (``comparison``).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from bench.options import model_arguments, number, whole_number, whole_numbers
from engine import config
from engine.core import UserError
from engine.documents import read_yaml
from engine.problem import shipped
from engine.settings import RunSettings

TABLE = Path(__file__).with_name("table.yaml")
BUDGETS = ("seconds", "candidates", "evaluations")
_NEEDED = {"question", "source", "arms", "baseline", "problems", "seeds", "budget"}
_KEYS = {*_NEEDED, "answer", "shared", "cores"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """One run.

    Attributes:
        experiment: name of its experiment.
        problem: the instance's name in the table.
        arm: the arm's.
        seed: of the run.
        budget: the one limit that ends it: ``seconds``, ``candidates``, or ``evaluations`` as
            TurboEvolve counts them (see `results.is_evaluation`).
        amount: of that.
        overrides: the arguments of ``engine.run`` that make its instance and its arm. The folder of
            the results is written as ``{out}`` in them.
        cores: that it has.
    """

    experiment: str
    problem: str
    arm: str
    seed: int
    budget: str
    amount: float
    overrides: tuple[str, ...]
    cores: int

    @property
    def key(self) -> dict[str, Any]:
        """What tells its result from others'."""
        return {**asdict(self), "overrides": list(self.overrides)}

    @property
    def name(self) -> str:
        """Of its folder. Two runs that differ in anything have different ones."""
        digest = hashlib.sha256(json.dumps(self.key, sort_keys=True).encode()).hexdigest()
        return f"{self.problem}-{self.arm}-s{self.seed}-{digest[:8]}"

    def settings(self, out: Path) -> RunSettings:
        """Return the run's settings, for the cores that this process has; its limit alone ends it.

        Raises:
            UserError: an override is wrong.
        """
        limits = {"seconds": "null", "candidates": "null"}
        if self.budget in limits:
            limits[self.budget] = _written(self.amount)
        else:  # the runner counts; a run has to have a limit, which this is far beyond
            limits["candidates"] = _written(10 * self.amount)
        return config.resolve(
            [
                f"runs={config.quoted(str(out / 'runs'))}",
                *(f"name={self.name}", f"seed={self.seed}"),
                *(f"budget.{name}={value}" for name, value in limits.items()),
                *(each.replace("{out}", str(out)) for each in self.overrides),
            ]
        )


def _written(number: float) -> str:
    return str(int(number)) if number == int(number) else repr(number)


@dataclass(frozen=True, kw_only=True, slots=True)
class Experiment:
    """A question, and the runs that are to answer it.

    Attributes:
        name: of it.
        question: in one sentence.
        source: where it comes from.
        baseline: the arm that the others are compared with.
        arms: the overrides of each.
        problems: the overrides of each instance.
        seeds: of the runs.
        budget: which of `BUDGETS` ends each run.
        amount: of that.
        cores: for each run.
        answer: what was found, in plain words; empty if nothing yet.
    """

    name: str
    question: str
    source: str
    baseline: str
    arms: Mapping[str, tuple[str, ...]]
    problems: Mapping[str, tuple[str, ...]]
    seeds: tuple[int, ...]
    budget: str
    amount: float
    cores: int
    answer: str

    @property
    def jobs(self) -> list[Job]:
        """All runs, the arms in turns: seed by seed, problem by problem."""
        return [
            Job(
                experiment=self.name,
                problem=problem,
                arm=arm,
                seed=seed,
                budget=self.budget,
                amount=self.amount,
                overrides=(*instance, *own),
                cores=self.cores,
            )
            for seed in self.seeds
            for problem, instance in self.problems.items()
            for arm, own in self.arms.items()
        ]


def read_table(path: Path = TABLE) -> dict[str, Experiment]:
    """Return the experiments by name, in their order.

    Raises:
        UserError: the table is not as it should be.
    """
    try:
        found = read_yaml(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise UserError(f"table={path} can't be read as YAML: {reason}") from error
    if not isinstance(found, Mapping):
        raise UserError(f"table={path} is no mapping of experiments by name; see {TABLE.name}")
    return {name: _experiment(name, each) for name, each in found.items()}


def _experiment(name: str, found: Mapping[str, Any]) -> Experiment:
    """Return what an entry of the table declares."""
    if not isinstance(found, Mapping):
        raise UserError(f"experiment {name} is no mapping; see {TABLE.name}")
    if unknown := set(found) - _KEYS:
        raise UserError(f"experiment {name} has no key {sorted(unknown)[0]!r}")
    if missing := sorted(_NEEDED - set(found)):
        raise UserError(f"experiment {name} lacks {missing[0]!r}; see {TABLE.name}")
    for key, kind, what in (
        ("arms", Mapping, "a mapping of arms by name"),
        ("budget", Mapping, f"a number of one of {', '.join(BUDGETS)}"),
        ("seeds", int, "a number"),
    ):
        if not isinstance(found[key], kind) or (key == "budget" and len(found[key]) != 1):
            raise UserError(f"experiment {name}: {key} must be {what}")
    instances = found["problems"]
    if not isinstance(instances, Mapping):
        instances = dict.fromkeys(instances)
    problems = {instance: tuple(own or ()) for instance, own in instances.items()}
    for instance, own in problems.items():
        if not any(each.startswith("problem=") for each in own):
            if instance not in shipped():
                raise UserError(f"experiment {name}: {instance} is none of {', '.join(shipped())}")
            problems[instance] = (f"problem={instance}", *own)
    ((budget, amount),) = found["budget"].items()
    arms, shared = found["arms"], tuple(found.get("shared", ()))
    if budget not in BUDGETS or found["baseline"] not in arms:
        raise UserError(f"experiment {name}: budget is one of {BUDGETS}, baseline one of its arms")
    return Experiment(
        name=name,
        question=found["question"],
        source=found["source"],
        baseline=found["baseline"],
        arms={arm: (*shared, *(own or ())) for arm, own in arms.items()},
        problems=problems,
        seeds=tuple(range(found["seeds"])),
        budget=budget,
        amount=amount,
        cores=found.get("cores", 1),
        answer=found.get("answer", ""),
    )


def narrowed(experiment: Experiment, options: Mapping[str, str]) -> Experiment:
    """Return an experiment with only the problems, arms and seeds that a command line names.

    An arm that names a model keeps it. No other seeds than the table's: their runs would be in no
    result, which has those of the whole table.

    Raises:
        UserError: it has none of that name, or a number is none that makes sense.
    """
    changed: dict[str, Any] = {}
    for key in ("problems", "arms"):
        known: Mapping[str, tuple[str, ...]] = getattr(experiment, key)
        names = options[key].split(",") if options[key] else list(known)
        if unknown := [each for each in names if each not in known]:
            raise UserError(f"{key}={unknown[0]} is none of {', '.join(known)}")
        changed[key] = {each: known[each] for each in names}
    if options["seeds"]:
        seeds = tuple(whole_numbers(options, "seeds", least=0))
        if others := [seed for seed in seeds if seed not in experiment.seeds]:
            known_seeds = ", ".join(map(str, experiment.seeds))
            raise UserError(
                f"seeds={others[0]} is none of {known_seeds}, which {experiment.name} has"
            )
        changed["seeds"] = seeds
    if options["model"]:
        asked = model_arguments(options)
        changed["arms"] = {
            arm: own if any(each.startswith("model=") for each in own) else (*asked, *own)
            for arm, own in (changed["arms"]).items()
        }
    if options["amount"]:
        changed["amount"] = number(options, "amount")
    if options["cores"]:
        changed["cores"] = whole_number(options, "cores")
    return replace(experiment, **changed)


def chosen(names: Sequence[str], table: Mapping[str, Experiment]) -> list[Experiment]:
    """Return the experiments of these names.

    Raises:
        UserError: there is none of a name.
    """
    if unknown := [each for each in names if each not in table]:
        raise UserError(f"name={unknown[0]} is none of {', '.join(table)}")
    return [table[each] for each in names]
