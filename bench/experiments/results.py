"""What is kept of a run: one line of figures, and where those lines lie.

Covers: a recorded run's best score over seconds, candidates and evaluations, its shares and totals;
the machine and the commit; reading and appending the lines.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any

from bench.experiments.table import Job
from engine.core import INITIAL, Refusal, UserError
from engine.problem import read_aims
from engine.report.analysis import RunRecord
from engine.report.clock import clock_use
from engine.store import Child, Verdict, read_log
from engine.timeline import TIMELINE

Result = dict[str, Any]
"""A job's key, and the figures of its run."""

_NO_PROGRAM = frozenset({Refusal.ABSENT, Refusal.BUDGET, Refusal.FAILED})


def is_evaluation(child: Child) -> bool:
    """Return whether TurboEvolve counts a child (section 4.2): also one that does not compile.

    A copy of a known program counts as well: its evaluator would have run it.
    """
    return child.refusal not in _NO_PROGRAM


def figures(record: RunRecord) -> Result:
    """Return the figures of a run that has ended.

    ``curve`` has the score of each new best program with what had been used by then: wall
    ``seconds``, evaluated ``candidates``, generated ``tokens``, and ``evaluations``
    (`is_evaluation`; of a child, its own among them); the first of them is the initial program.
    ``judged`` are the candidates that no cheap stage has screened out. ``best_known`` is the best
    published score that compares, ``target`` the problem's, and ``stops_at`` the score at which the
    run would have ended before its budget did; None if no score ends it. ``fingerprint`` changes
    with whatever decides the problem's scores (`engine.problem.fingerprint`); lines of earlier
    versions have none. ``children`` are those that were judged (`Trial.is_judged`), ``improving``
    those of them that are better than their parent, ``by_k`` both by their call's K; lines of
    earlier versions count children that nobody judged as well. ``fills`` are programs made without
    a model, by their makers: none of the counts has them, but scores do. Of evaluators,
    ``idle_share`` is the mean over all of them; one that runs a fill is not idle.
    """
    folder = record.folder
    assert folder is not None
    history, trials = record.history, record.judged
    evaluations = _evaluations(folder)
    curve = [
        {
            "score": score,
            "seconds": round(record.totals[name]["seconds"], 3),
            "candidates": int(record.totals[name]["candidates"]),
            "evaluations": evaluations[name],
            "tokens": int(record.totals[name]["tokens"]),
        }
        for name, score in record.bests.items()
    ]
    by_k: dict[int, list[int]] = {}
    for trial in trials:
        counts = by_k.setdefault(trial.call.k, [0, 0])
        counts[0] += 1
        counts[1] += trial.is_better
    improving = sum(each.is_better for each in trials)
    known, target = read_aims(Path(record.settings.problem))
    comparable = [each.score for each in known if each.comparable]
    clock = clock_use(folder / TIMELINE)
    return {
        "fingerprint": history.sessions[0].fingerprint,
        "direction": history.direction.value,
        "initial_score": history.verdicts[INITIAL].score,
        "best_score": curve[-1]["score"],
        "target": target,
        "stops_at": record.settings.budget.target,
        "best_known": min(comparable, key=history.direction.key, default=None),
        "curve": curve,
        "seconds": round(record.end["seconds"], 3),
        "candidates": history.evaluated,
        "evaluations": sum(map(is_evaluation, history.children.values())),
        "valid": history.valid,
        "judged": history.judged,
        "children": len(trials),
        "improving": improving,
        "improvement_share": improving / len(trials) if trials else None,
        "by_k": {str(k): counts for k, counts in sorted(by_k.items())},
        "fills": {name: asdict(each) for name, each in sorted(history.filled.items())},
        "best_made_by": history.made_by(next(reversed(record.bests))),
        "generated_tokens": history.generated_tokens,
        "hit_rate": history.hit_rate,
        "idle_share": (
            0.0  # it was over at its beginning
            if clock is None
            else fmean(each["awaiting_candidates"] for each in clock["evaluators"])
        ),
    }


def _evaluations(folder: Path) -> Counter[str]:
    """Return the number of each child's evaluation, and of other programs the last one before."""
    counted, at = 0, Counter[str]()
    for recorded in read_log(folder):
        event = recorded.event
        if isinstance(event, Child):
            counted += is_evaluation(event)
            at[event.id] = counted
        elif isinstance(event, Verdict):
            at.setdefault(event.candidate, counted)
    return at


def machine() -> dict[str, Any]:
    """Return what this machine is, without its name."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    model = next((line.split(":")[1] for line in lines if line.startswith("model name")), "")
    return {
        "processor": model.strip() or platform.machine(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
    }


def commit() -> str:
    """Return the commit of the code that runs, with a ``+`` if files differ from it."""
    here = Path(__file__).parent

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=here, capture_output=True, text=True)
        return done.stdout.strip() if done.returncode == 0 else ""

    name = git("rev-parse", "--short=12", "HEAD") or "unknown"
    return name + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")


class Kept:
    """The results in a folder: ``results.jsonl``, a line for each run that reached its budget."""

    def __init__(self, folder: Path) -> None:
        """Read the lines of ``folder``, which is made if it is not there.

        Raises:
            UserError: a line is damaged.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._file = folder / "results.jsonl"
        self.results: list[Result] = []
        if self._file.exists():
            self._read()

    def _read(self) -> None:
        text = self._file.read_text(encoding="utf-8")
        if text and not text.endswith("\n"):  # its writer was killed at it
            text = text[: text.rfind("\n") + 1]
            self._file.write_text(text, encoding="utf-8")
        for number, line in enumerate(text.splitlines(), start=1):
            try:
                self.results.append(json.loads(line))
            except ValueError as error:
                raise UserError(f"{self._file}, line {number} is no JSON; remove it") from error

    def add(self, result: Result) -> None:
        """Keep one more, on disk too."""
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(result, allow_nan=False) + "\n")
        self.results.append(result)

    def found(self, job: Job) -> Result | None:
        """Return the result of a job; None if it has none."""
        key = job.key
        return next(
            (each for each in self.results if all(each.get(k) == v for k, v in key.items())), None
        )

    def of(self, jobs: Sequence[Job]) -> list[Result]:
        """Return the results that there are of some jobs."""
        return [found for job in jobs if (found := self.found(job)) is not None]
