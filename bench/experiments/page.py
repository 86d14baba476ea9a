"""Writes docs/experiments.md: what is asked, by which runs, and what was found.

Questions, arms and answers are those of ``table.yaml``, figures those of the JSON that
``python -m bench.experiments`` leaves. So are the budget, the cores and the arms where there are
any, for the table may have changed since the runs. An experiment without is said not to have been
run.

Usage: python -m bench.experiments.page [results=bench/results/experiments] [to=docs]
       [table=bench/experiments/table.yaml]
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.experiments.figures import pictures
from bench.experiments.table import TABLE, Experiment, read_table
from bench.options import read_options, run_as_command
from engine.core import Direction
from engine.durable import write_whole

DEFAULTS = {"results": "bench/results/experiments", "to": "docs", "table": str(TABLE)}
IMAGES = "images/experiments"
_UNITS = {
    "seconds": "wall seconds",
    "candidates": "evaluated candidates",
    "evaluations": "evaluations (failed ones counted)",
}
_HEAD = Path(__file__).with_name("head.md")


def page(table: Mapping[str, Experiment], results: Mapping[str, Any]) -> str:
    """Return the page.

    Args:
        table: the experiments.
        results: what was found, by the experiment's name.
    """
    parts = [_HEAD.read_text(encoding="utf-8")]
    for name, experiment in table.items():
        parts.append("\n".join(_section(experiment, results.get(name))))
    return "\n".join(parts)


def _section(declared: Experiment, found: Mapping[str, Any] | None) -> Iterator[str]:
    experiment = declared if found is None else _as_run(declared, found)
    yield f"## {experiment.name}\n"
    yield f"{' '.join(experiment.question.split())} Asked by {experiment.source}.\n"
    unit = _UNITS[experiment.budget]
    cores = "core" if experiment.cores == 1 else "cores"
    problems = "" if len(declared.problems) == 1 else "s"
    yield (
        f"`python -m bench.experiments name={experiment.name}`: "
        f"{_part(len(experiment.problems), of=len(declared.problems))} problem{problems}, "
        f"{_part(len(experiment.seeds), of=len(declared.seeds))} seeds; "
        f"each run {experiment.amount:g} {unit} on {experiment.cores} {cores}.\n"
    )
    yield from _rows(
        ["arm", "settings"],
        [
            [_named(arm, experiment), " ".join(f"`{each}`" for each in own) or "the defaults"]
            for arm, own in experiment.arms.items()
        ],
    )
    if found is None:
        yield "**Not run yet.**\n"
        return
    answer = " ".join(experiment.answer.split())
    yield f"**{answer}**\n" if answer else "**Run, and not yet put in words.**\n"
    yield from _over(found)
    if len(experiment.arms) == 1:
        yield from _reached(found)
    for problem, each in found["problems"].items():
        yield from _problem(experiment, problem, each)
        path = f"{IMAGES}/{experiment.name}-{problem}.svg"
        yield f"![{experiment.name} on {problem}: best score of each arm]({path})\n"
    machines = "; ".join(
        f"{each['processor']}, {each['cores']} cores, {each['memory_gib']} GiB"
        for each in found["machines"]
    )
    yield f"Commit {', '.join(found['commits'])}; {machines}.\n"


def _as_run(experiment: Experiment, found: Mapping[str, Any]) -> Experiment:
    """Return an experiment as its runs were made, with only the arms that have some."""
    ((budget, amount),) = found["budget"].items()
    arms = {arm for each in found["problems"].values() for arm in each["arms"]}
    return replace(
        experiment,
        baseline=found["baseline"],
        # Older results also hold settings of arms without runs.
        arms={arm: tuple(own) for arm, own in found["arms"].items() if arm in arms},
        problems={problem: experiment.problems.get(problem, ()) for problem in found["problems"]},
        seeds=tuple(sorted({run["seed"] for run in found["runs"]})),
        budget=budget,
        amount=amount,
        cores=found["cores"],
    )


def _part(count: int, *, of: int) -> str:
    return f"{count} of {of}" if count < of else str(count)


def _over(found: Mapping[str, Any]) -> Iterator[str]:
    """Tell the gains over all problems; with one problem there is nothing to tell."""
    if len(found["problems"]) < 2:
        return
    rows = [
        [
            axis,
            arm,
            f"{test['mean']:+.1%} ({_interval(test['interval_95'])})",
            f"{test['wins']} : {test['losses']} of {test['pairs']}",
            _p(test["holm_wilcoxon_p"]),
            f"{test['problems_ahead']} of {test['problems']}",
            _p(test["holm_problems_p"]),
        ]
        for axis, tests in found["over_problems"].items()
        for arm, test in tests.items()
    ]
    if rows:
        head = ["equal", "arm", "gain over all problems (95 %)", "pairs won : lost", "p"]
        yield from _rows([*head, "problems ahead", "p over problems"], rows)


def _reached(found: Mapping[str, Any]) -> Iterator[str]:
    """Set what the one arm has reached beside what was published."""
    rows = []
    for problem, each in found["problems"].items():
        (arm,) = each["arms"].values()
        known, better = each["best_known"], Direction(each["direction"]).better
        reached = "-" if known is None else "no" if better(known, than=arm["best_of"]) else "yes"
        rows.append(
            [
                *(problem, each["direction"], f"{each['initial_score']:.6g}"),
                *(f"{arm['best_of']:.6g}", str(arm["runs"])),
                *("-" if known is None else f"{known:.6g}", reached),
            ]
        )
    head = ["problem", "direction", "initial", "best", "of runs", "best published", "reached"]
    yield from _rows(head, rows)


def _problem(experiment: Experiment, problem: str, found: Mapping[str, Any]) -> Iterator[str]:
    first, *_, second = found["equal"]
    direction = "higher" if found["direction"] == "maximise" else "lower"
    target, best = found["target"], found["best_known"]
    aim = "no target (gains: to the best score)" if target is None else f"target {target:.6g}"
    known = "" if best is None else f", best published {best:.6g}"
    yield f"### {experiment.name} on {problem}\n"
    yield (
        f"From {found['initial_score']:.6g}, {aim}{known}; {direction} is better. Equal: "
        + ", ".join(f"{most:,.0f} {axis}" for axis, most in found["equal"].items())
        + ".\n"
    )
    versions = len(found.get("fingerprints", ()))
    if versions > 1:
        yield (
            f"**These runs are of {versions} versions of the problem: the scores of one may not "
            "compare with those of another.**\n"
        )
    head = ["arm", "runs", f"score, equal {first}", "deviation", f"gain, p, equal {first}"]
    head += [f"score, equal {second}", f"gain, p, equal {second}", "best"]
    head += ["candidates/h", "improving/h", "improving", "valid", "hit rate", "idle"]
    rows = [
        [
            _named(arm, experiment),
            str(each["runs"]),
            _score(each["score"][first]),
            "-" if each["deviation"][first] is None else f"{each['deviation'][first]:.3g}",
            _gain(each["gain"].get(first)),
            _score(each["score"][second]),
            _gain(each["gain"].get(second)),
            f"{each['best_of']:.6g}",
            f"{each['candidates_per_hour']:,.0f}",
            f"{each['improving_per_hour']:,.0f}",
            *(
                f"{each[key]:.1%}"
                for key in ("improvement_share", "valid_share", "hit_rate", "idle_share")
            ),
        ]
        for arm, each in found["arms"].items()
    ]
    yield from _rows(head, rows)


def _named(arm: str, experiment: Experiment) -> str:
    return f"**{arm}**" if arm == experiment.baseline else arm


def _score(score: Mapping[str, float]) -> str:
    return f"{score['median']:.6g} ({score['low']:.6g} to {score['high']:.6g})"


def _gain(test: Mapping[str, Any] | None) -> str:
    return "" if test is None else f"{test['mean']:+.1%}, {_p(test['holm_p'])}"


def _interval(ends: Sequence[float] | None) -> str:
    return "-" if ends is None else f"{ends[0]:+.1%} to {ends[1]:+.1%}"


def _p(value: float) -> str:
    return f"{value:.4f}" if value < 0.1 else f"{value:.2f}"


def _rows(head: list[str], rows: list[list[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield f"| {' | '.join(row)} |"
    yield ""


def read_results(folder: Path) -> dict[str, Any]:
    """Return what was found, by the experiments' names."""
    return {
        path.stem: json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(folder.glob("*.json"))
    }


def main(arguments: list[str]) -> None:
    """Write the page and its pictures."""
    options = read_options(arguments, DEFAULTS, usage=__doc__ or "")
    docs, results = Path(options["to"]), read_results(Path(options["results"]))
    table = read_table(Path(options["table"]))
    images = docs / IMAGES
    for name, svg in (each for found in results.values() for each in pictures(found)):
        images.mkdir(parents=True, exist_ok=True)
        write_whole(images / f"{name}.svg", svg)
    write_whole(docs / "experiments.md", page(table, results))


if __name__ == "__main__":
    run_as_command(main)
