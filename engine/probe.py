"""``python -m engine.probe RUN``: what a run's adapter is worth, on frozen prompts.

    python -m engine.probe runs/A
    python -m engine.probe runs/A of=runs/B prompts=8 children=64

The same prompts are answered by the model itself and with the adapter that the run ended with, with
the same seeds and temperatures, and every different program is evaluated.

of=RUN       run whose parents the prompts are of (RUN itself); a run that learned nothing is a fair
             choice for several adapters
prompts=N    how many (8), of as many parents, spread evenly over that run's, the first one first
children=N   of each prompt, for each of the two (64)
seed=N       of places and samples (1)
problem.path=FOLDER
             where the problem lies, if not where it was

Counted are, among a prompt's children, the *unique valid* programs: different from each other and
from the parent, and with a score; and the *improving* ones of them, better than the parent. The
intervals are of the ratio of the sums, from a bootstrap over the prompts. The result is printed,
and written to ``probe.json`` in RUN's folder; its sums also stand in ``summary.json``, as
``learning.probe``. Exit codes: 0, or 2 for bad input.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from engine import config
from engine.arguments import Arguments, execute
from engine.beginning import check_unchanged
from engine.core import Candidate, Evaluation, Problem, Program, Prompt, Proposal, UserError
from engine.durable import write_whole
from engine.evaluation import Evaluators
from engine.inference import Model
from engine.learning import checkpoint
from engine.parts import Parts, open_parts, read_problem
from engine.pipeline.request import spread
from engine.prompts import Operator
from engine.report.summary import PROBE
from engine.settings import NEED_MORE, RunSettings
from engine.store import RunHistory, read_log, replay
from engine.syntax import read

_PROBLEM = "problem.path"
_KEYS = ("of", "prompts", "children", "seed", _PROBLEM)
_STREAM = 0x50  # keeps the seeds apart from a run's
_RESAMPLES = 2000
_COUNTS = ("children", "valid", "unique_valid", "improving")


@dataclass(frozen=True, kw_only=True, slots=True)
class FrozenPrompt:
    """A prompt of the probe.

    Attributes:
        proposal: for which it was composed.
        prompt: the same for the model and the adapter.
        operator: that composed it, and reads the answers.
    """

    proposal: Proposal
    prompt: Prompt
    operator: Operator


def main(arguments: Sequence[str]) -> int:
    """Run the command line; return the exit code."""
    return execute(_probe, arguments, keys=_KEYS, usage=__doc__ or "")


def _probe(arguments: Arguments) -> int:
    if len(arguments.rest) != 1:
        raise UserError("give one run's folder, such as runs/NAME")
    count, children = arguments.number("prompts", 8), arguments.number("children", 64)
    seed = arguments.number("seed", 1)
    folder = Path(arguments.rest[0])
    moved = [f"{key}={value}" for key, value in arguments.options.items() if key == _PROBLEM]
    settings = config.load_resumed(folder, changes=moved)
    if settings.advisor.enabled:
        raise UserError(f"{folder} had an advisor; a probe is of children with one prompt alone")
    problem = read_problem(settings)
    history = replay(read_log(folder), problem.direction, name=folder)
    if not history.adapter:
        raise UserError(f"{folder} has no adapter: it learned nothing (learning.method, budget)")
    check_unchanged(problem, history.sessions[0], folder=folder)
    source = Path(arguments.options.get("of", folder))
    others = replay(read_log(source), problem.direction, name=source)
    if others.sessions[0].fingerprint != history.sessions[0].fingerprint:
        raise UserError(f"{source} is of another problem than {folder}, or the problem changed")
    with open_parts(settings, problem) as parts:
        prompts = frozen_prompts(
            settings,
            parts.operators(settings),
            others,
            count=count,
            children=children,
            seed=seed,
        )
        adapter = checkpoint(folder, history.adapter)
        found = probe(settings, parts, prompts, version=history.adapter, adapter=adapter)
    write_whole(folder / PROBE, json.dumps(found, indent=2) + "\n")
    sums = {name: value for name, value in found.items() if name != "prompts"}
    _add_to_summary(folder / "summary.json", sums)
    sys.stdout.write(json.dumps(sums) + "\n")
    return 0


def _add_to_summary(path: Path, sums: Mapping[str, Any]) -> None:
    """Add the probe to a run's summary; a run that goes on has none."""
    if path.exists():
        summary = json.loads(path.read_text(encoding="utf-8"))
        summary["learning"]["probe"] = sums
        write_whole(path, json.dumps(summary, indent=2) + "\n")


def frozen_prompts(
    settings: RunSettings,
    operators: Mapping[str, Operator],
    history: RunHistory,
    *,
    count: int,
    children: int,
    seed: int,
) -> list[FrozenPrompt]:
    """Return prompts of different parents of a recorded run, spread evenly over the order of use.

    The prompts are new ones: they have seeds, and so places in the parents, of their own. They show
    the parent and no other programs. Calls by operators that need a second program are passed over.

    Raises:
        UserError: the run has fewer parents than ``count``.
    """
    usable = [
        call
        for call in history.calls.values()
        if call.operator in operators and call.operator not in NEED_MORE
    ]
    calls = list({call.parent: call for call in reversed(usable)}.values())[::-1]
    if len(calls) < count:
        raise UserError(
            f"the run has {len(calls)} parents that prompts can be made of; give prompts=N, up to "
            "that number, or another run as of=RUN"
        )
    chosen = [calls[i * len(calls) // count] for i in range(count)]
    prompts = []
    for number, call in enumerate(chosen):
        score = history.verdicts[call.parent].score
        assert score is not None  # or it was no parent
        proposal = Proposal(
            iteration=number,
            parent=Candidate(id=call.parent, program=history.program_of(call.parent), score=score),
            history=(),
            operator=call.operator,
            k=children,
            seed=int(np.random.SeedSequence([seed, number, _STREAM]).generate_state(1)[0]),
        )
        operator = operators[call.operator]
        prompts.append(
            FrozenPrompt(proposal=proposal, prompt=operator.compose(proposal), operator=operator)
        )
    return prompts


def probe(
    settings: RunSettings,
    parts: Parts,
    prompts: Sequence[FrozenPrompt],
    *,
    version: int,
    adapter: Path,
) -> dict[str, Any]:
    """Return what the children of prompts come to, of the model itself and with an adapter.

    Args:
        settings: the run's.
        parts: the model and the evaluators; nobody else uses them meanwhile.
        prompts: to answer.
        version: under which the adapter is loaded.
        adapter: its folder.
    """
    parts.model.adopt(version, adapter)
    rows = []
    for number, frozen in enumerate(prompts):
        row: dict[str, Any] = {"parent": frozen.proposal.parent.id}
        for name, each in (("base", 0), ("adapter", version)):
            programs = list(_answers(settings, parts.model, frozen, adapter=each))
            row[name] = _counts(
                parts.problem, parts.evaluators, frozen, programs, tag=f"{number}.{each}"
            )
        rows.append(row)
    return {"version": version, **compared(rows), "prompts": rows}


def compared(rows: Sequence[Mapping[str, Any]], *, seed: int = 0) -> dict[str, Any]:
    """Return, for each count, both sums, their ratio and its 95 % interval.

    The interval is from a bootstrap over the rows, which are prompts: the children of one prompt
    are not independent.

    Args:
        rows: each with the counts of ``base`` and ``adapter``.
        seed: of the bootstrap.
    """
    draws = np.random.default_rng(seed).integers(len(rows), size=(_RESAMPLES, len(rows)))
    found: dict[str, Any] = {}
    for name in _COUNTS:
        base = np.array([row["base"][name] for row in rows], dtype=float)
        ours = np.array([row["adapter"][name] for row in rows], dtype=float)
        sums = base[draws].sum(axis=1), ours[draws].sum(axis=1)
        ratios = (sums[1] + 0.5) / (sums[0] + 0.5)  # half a child: no division by nothing
        low, high = np.quantile(ratios, [0.025, 0.975])
        found[name] = {
            "base": int(base.sum()),
            "adapter": int(ours.sum()),
            "ratio": float(ours.sum() / base.sum()) if base.sum() else None,
            "interval_95": [float(low), float(high)],
        }
    return found


def _answers(
    settings: RunSettings, model: Model, frozen: FrozenPrompt, *, adapter: int
) -> Iterator[Program | None]:
    """Yield the program of each child, in the order in which they finish."""
    prompt, parent = frozen.prompt, frozen.proposal.parent
    sampling = spread(settings.search, frozen.proposal, prompt)
    fan = model.fanout(token_ids=prompt.token_ids, sampling=sampling, adapter=adapter)
    while fan.indices:
        model.step()
        for generation in fan.take():
            parsing = frozen.operator.parsing(parent=parent, prompt=prompt, generation=generation)
            for parsed in parsing():
                yield parsed.program


def _counts(
    problem: Problem,
    evaluators: Evaluators,
    frozen: FrozenPrompt,
    programs: Sequence[Program | None],
    *,
    tag: str,
) -> dict[str, int]:
    """Count a prompt's children; each different program is evaluated once."""
    parent = frozen.proposal.parent
    different = {each.key: each for each in programs if each is not None and not each.undefined}
    for key, program in different.items():
        evaluators.submit(candidate_id=f"{tag}.{key}", program=program.text)
    verdicts: dict[str, Evaluation] = {}
    while evaluators.in_flight:
        verdicts.update(evaluators.completed(timeout=None))
    scores = {key: verdicts[f"{tag}.{key}"].score for key in different}
    better = problem.direction.better
    own = read(parent.program)
    valid = {
        key: score for key, score in scores.items() if score is not None and own and key != own.key
    }
    return {
        "children": len(programs),
        "valid": sum(each is not None and each.key in valid for each in programs),
        "unique_valid": len(valid),
        "improving": sum(better(score, than=parent.score) for score in valid.values()),
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
