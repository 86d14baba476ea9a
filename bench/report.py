"""Question: how long does a report of a long run take, and how large is its page?

Method: a run's folder is made with the engine's own log, settings and timeline: 4 islands, calls of
8 children, until ``candidates`` are evaluated. Programs are random mutations of the problem's
initial one, and a random walk stands for their scores, so that nothing is evaluated; of the
children, a quarter is refused and a third of the others fails. Prompts have tokens that were
computed for every reason, programs have cells, and 200 steps of training are recorded. Then
``python -m engine.report`` is run in a process of its own, ``rounds`` times for each kind of
report; its interpreter's start and imports are in the seconds. Median and range of the wall
seconds and of the processor seconds, the largest memory of all so far, and the bytes written.

Usage: python -m bench.report [candidates=10000] [rounds=3] [problem=circle_packing] [keep=FOLDER]
``keep`` is where the run's folder is left; by default it is removed. The last line printed is JSON.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from bench.figures import spread
from bench.options import read_options, run_as_command, whole_number
from engine import config
from engine.core import INITIAL, Evaluation, Failure, Miss, Problem, Refusal, Update
from engine.mutation.mutate import mutated
from engine.problem import chosen_problem
from engine.store import Call, Child, Event, EventLog, Session, Verdict, create_run
from engine.syntax import read
from engine.timeline import TIMELINE, Activity, Timeline

_DEFAULTS = {"candidates": "10000", "rounds": "3", "problem": "circle_packing", "keep": ""}
_KINDS = {"html": "report.html", "images": "images", "data": "data"}
_K, _ISLANDS, _UPDATES, _ELITES = 8, 4, 200, 20
_STEP_US = 20_000  # of the model, and of an evaluation, on the timeline


def main(arguments: Sequence[str]) -> None:
    """Make the run, report it and print what that took."""
    options = read_options(arguments, _DEFAULTS, usage=__doc__ or "")
    candidates, rounds = (whole_number(options, key) for key in ("candidates", "rounds"))
    problem = chosen_problem({"problem": options["problem"]})
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(options["keep"] or temporary) / f"report-{candidates}"
        children = make_run(folder, problem, candidates).children
        found = {
            kind: _measured(folder, kind, Path(temporary) / name, rounds)
            for kind, name in _KINDS.items()
        }
    print(json.dumps({"candidates": candidates, "children": children, **found}))


def make_run(folder: Path, problem: Problem, candidates: int) -> Search:
    """Make a run's folder with so many evaluated candidates; return what may go on with it."""
    settings = config.resolve(
        [f"problem={problem.name}", f"budget.candidates={candidates}", "search.archive=structure"]
    )
    initial = Evaluation(score=1.0, failure=None, metrics={"score": 1.0})
    first = [
        Session(number=0, engine="bench", fingerprint=problem.fingerprint),
        Verdict(
            candidate=INITIAL, evaluation=initial, program=problem.initial_program, cell=(4, 4)
        ),
    ]
    create_run(folder, write_config=lambda path: config.save(settings, path), events=first)
    search = Search(problem.initial_program)
    with EventLog(folder, session=0) as log:
        while search.evaluated < candidates:
            for event in search.call(candidates):
                log.append(event)
            if search.calls % 50 == 0:
                log.commit()
        log.commit()
    _write_timeline(folder / TIMELINE, search.evaluated)
    return search


@dataclass
class Search:
    """A search that evaluates nothing: its scores are a random walk up from the parent's."""

    initial: str
    evaluated: int = 0
    calls: int = 0
    children: int = 0
    updates: int = 0
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    elites: dict[int, list[tuple[float, str, str]]] = field(default_factory=dict)

    def call(self, most: int) -> Iterator[Event]:
        """Yield the events of the next call."""
        iteration, island = self.calls, self.calls % _ISLANDS
        self.calls += 1
        home = int(self.rng.integers(_ISLANDS)) if iteration % 40 == 0 else island
        known = self.elites.get(home) or [(1.0, INITIAL, self.initial)]
        score, parent, text = known[int(self.rng.integers(len(known)))]
        yield Call(
            iteration=iteration,
            island=island,
            parent=parent,
            rule=("elite", "weighted", "uniform")[iteration % 3],
            operator=("rewrite", "diff", "infill")[iteration // 7 % 3],
            k=_K,
            known=0,
            prompt=text,
            prompt_tokens=900,
            temperatures=(0.8,) * _K,
            seeds=tuple(range(_K)),
            adapter=self.updates,
        )
        for index in range(_K):
            if self.evaluated < most:
                yield from self._child(iteration, index, parent, text, score, island)
        if self.updates < _UPDATES and iteration % 5 == 4:
            self.updates += 1
            yield self._update(iteration)

    def _child(
        self, iteration: int, index: int, parent: str, text: str, score: float, island: int
    ) -> Iterator[Event]:
        self.children += 1
        name, luck = f"{iteration}.{index}", float(self.rng.random())
        program = mutated(text, seed=self.children, temperature=1.0)
        refusal = list(Refusal)[self.children % len(Refusal)] if luck < 0.25 else None
        missed = dict(zip(Miss, self.rng.integers(1, 9, len(Miss)).tolist(), strict=True))
        yield Child(
            id=name,
            iteration=iteration,
            index=index,
            parent=parent,
            operator=("rewrite", "diff", "infill")[iteration // 7 % 3],
            completion=program,
            completion_ids=tuple(range(len(program) // 3)),
            finish_reason="stop",
            program=None if refusal is Refusal.UNPARSED else read(program),
            refusal=refusal,
            prompt_tokens=900,
            cached_prompt_tokens=900 - sum(missed.values()),
            llm_seconds=0.02,
            missed=missed,
        )
        if refusal is None:
            self.evaluated += 1
            yield self._verdict(name, program, score, island, luck)

    def _verdict(self, name: str, program: str, score: float, island: int, luck: float) -> Verdict:
        if luck < 0.5:
            failure = list(Failure)[self.evaluated % len(Failure)]
            message = "ValueError: operands could not be broadcast together"
            evaluation = Evaluation(score=None, failure=failure, message=message, seconds=0.02)
            return Verdict(candidate=name, evaluation=evaluation)
        found = score - float(self.rng.exponential(0.2)) + 0.02 * (luck > 0.97)
        if luck > 0.95:
            found = score + float(self.rng.exponential(0.002))
        elites = self.elites.setdefault(island, [])
        elites.append((found, name, program))
        self.elites[island] = sorted(elites)[-_ELITES:]
        metrics = {"score": found, "validity": 1.0}
        evaluation = Evaluation(score=found, failure=None, metrics=metrics, seconds=0.02)
        cell = (len(program) // 40 % 16, self.evaluated % 8)
        return Verdict(candidate=name, evaluation=evaluation, cell=cell)

    def _update(self, iteration: int) -> Update:
        figures = self.rng.random(4).tolist()
        return Update(
            number=self.updates,
            version=self.updates,
            groups=(iteration,),
            stale=0,
            progress=0.5,
            skipped="no spread" if self.updates % 17 == 0 else None,
            reward=figures[0],
            entropy=figures[1],
            kl=figures[2],
            gradient_norm=figures[3],
        )


def _write_timeline(path: Path, evaluations: int) -> None:
    """Write a timeline with a step of the model beside every evaluation."""
    now = 0

    def clock() -> int:
        return now * 1000

    with Timeline(path, clock=clock) as timeline:
        evaluators = [timeline.evaluator(number) for number in range(2)]
        for count in range(evaluations):
            with (
                timeline.model.begin(Activity.STEP),
                evaluators[count % 2].begin(Activity.EVALUATE),
            ):
                now += _STEP_US
            now += _STEP_US // 4


def _measured(folder: Path, kind: str, written: Path, rounds: int) -> dict[str, object]:
    command = [sys.executable, "-m", "engine.report", str(folder), f"{kind}={written}"]
    seconds, processor = [], []
    for _ in range(rounds):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        began = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        seconds.append(time.perf_counter() - began)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        processor.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    files = [written] if written.is_file() else list(written.iterdir())
    return {
        "seconds": spread(seconds),
        "processor_seconds": spread(processor),
        "bytes": sum(each.stat().st_size for each in files),
        "most_memory_mb": round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024),
    }


if __name__ == "__main__":
    run_as_command(main)
