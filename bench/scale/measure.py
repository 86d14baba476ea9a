"""Question: what do the steps of a cluster's islands cost on this machine?

Method, for the fields of ``bench.scale.costs.Costs``, medians where nothing else is said:

- call, candidates: of the calls of one island in a host, the seconds from a call's event to its
  last child's, and the mean number of candidates. beside: what each of three more islands adds.
- loop: CPU seconds of the host's thread for a call.
- evaluation: seconds of that run's candidates at one evaluator, one at a time (the mean).
- commit: a transaction of as many events as a call's are on average. commits: of a call.
- read: a neighbour's event. lookup: a question for a verdict, where ``store`` is a server; else 0.
- report: a worker's, over Ray.

Usage: python -m bench.scale.measure [problem=bench/scale/slow_problem] [model=mutation] [k=8]
       [store=postgresql://…] [calls=40]
The last line printed is JSON, to be given to ``bench.scale`` as ``costs=FILE``.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

from bench.experiments.results import machine
from bench.options import model_arguments, read_options, run_as_command, whole_number
from bench.scale.costs import Costs
from engine import config
from engine.cluster.before_ray import prepare_ray
from engine.cluster.host import open_host
from engine.cluster.islands import found
from engine.cluster.places import island_folder
from engine.core import Call, Child, Problem, Verdict
from engine.evaluation import open_pool
from engine.parts import open_parts, read_problem
from engine.settings import RunSettings
from engine.store import EventLog, Recorded, read_event, read_log
from engine.store.verdicts import VerdictTable

DEFAULTS = {
    "problem": "bench/scale/slow_problem",
    "model": "mutation",
    "k": "8",
    "store": "",
    "calls": "40",
}


@dataclass(frozen=True, kw_only=True)
class _Islands:
    """What some islands of one host did.

    Attributes:
        calls: the seconds of each.
        loop: CPU seconds of the host's thread for a call.
        logs: of the islands.
        folders: likewise.
    """

    calls: Sequence[float]
    loop: float
    logs: Sequence[Sequence[Recorded]]
    folders: Sequence[Path]


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    options = read_options(arguments, DEFAULTS, usage=__doc__ or "")
    calls = whole_number(options, "calls")
    with tempfile.TemporaryDirectory() as scratch:
        costs, candidates = measured(options, calls=calls, scratch=Path(scratch))
    result = {**asdict(costs), "candidates": candidates, "options": options, "machine": machine()}
    sys.stdout.write(json.dumps(result) + "\n")


def measured(options: dict[str, str], *, calls: int, scratch: Path) -> tuple[Costs, float]:
    """Return the costs, and how many candidates a call has on average."""
    settings = settings_of(options, islands=1)
    problem = read_problem(settings)
    alone = _islands(settings, problem, calls=calls, folder=scratch / f"one-{time.time_ns()}")
    four = settings_of(options, islands=4)
    together = _islands(four, problem, calls=calls, folder=scratch / f"four-{time.time_ns()}")
    call = statistics.median(alone.calls)
    programs = [
        each.event.program.text
        for each in alone.logs[0]
        if isinstance(each.event, Child) and each.event.program and each.event.refusal is None
    ]
    own = [each.event for each in alone.logs[0]]
    count = len(alone.calls)
    commits = _commits(alone.logs[0]) / count
    events = max(1, round(len(own) / max(1.0, commits * count)))
    costs = Costs(
        call=call,
        beside=max(0.0, (statistics.median(together.calls) - call) / 3),
        loop=alone.loop,
        evaluation=_evaluation(problem, programs),
        commit=_commit(alone, events=events, settings=settings, scratch=scratch),
        commits=commits,
        lookup=_lookup(options["store"], name=alone.folders[0].name),
        read=_read(alone),
        report=_report(settings, scratch),
    )
    return costs, len(programs) / count


def settings_of(options: dict[str, str], *, islands: int) -> RunSettings:
    """Return the settings of a run on a cluster, with one evaluator for each worker."""
    where = options["problem"]
    problem = f"problem.path={where}" if "/" in where else f"problem={where}"
    store = [f"store={options['store']}"] * bool(options["store"])
    return config.resolve(
        [
            *(problem, *model_arguments(options), *store, "fill=none", f"search.k={options['k']}"),
            *("evaluation.workers=1", f"islands.count={islands}", "budget.seconds=null"),
            *("budget.candidates=100000", "cluster=ray"),
        ]
    )


def _islands(settings: RunSettings, problem: Problem, *, calls: int, folder: Path) -> _Islands:
    """Run islands in one host until each has had some calls."""
    with open_parts(settings, problem) as parts:
        found(settings, problem, parts=parts, folder=folder)
    numbers = range(settings.islands.count)
    timeline = folder / "timeline.json"
    with open_host(settings, problem, folder=folder, timeline=timeline) as host:
        histories = [host.add(number) for number in numbers]
        began = time.thread_time()
        while min(len(each.calls) for each in histories) < calls:
            host.turn()
            host.wait()
        spent = time.thread_time() - began
        made = sum(len(each.calls) for each in histories)
    folders = [island_folder(folder, number) for number in numbers]
    logs = [[*read_log(each)] for each in folders]
    return _Islands(
        calls=[seconds for log in logs for seconds in _seconds(log)],
        loop=spent / made,
        logs=logs,
        folders=folders,
    )


def _seconds(log: Sequence[Recorded]) -> Iterator[float]:
    """Yield the seconds of each call, from its event to its last child's."""
    began: dict[int, float] = {}
    ended: dict[int, float] = {}
    for each in log:
        if isinstance(each.event, Call):
            began[each.event.iteration] = each.elapsed
        elif isinstance(each.event, Child):
            ended[each.event.iteration] = each.elapsed
    yield from (ended[number] - began[number] for number in ended)


def _commits(log: Sequence[Recorded]) -> int:
    """Return about how many transactions a log was written in: events of one moment are one."""
    times = [each.elapsed for each in log if isinstance(each.event, Call | Child | Verdict)]
    return 1 + sum(later - earlier > 1e-3 for earlier, later in pairwise(times))


def _evaluation(problem: Problem, programs: Sequence[str]) -> float:
    with open_pool(problem=problem, workers=1) as pool:
        pool.check_walls(strict=False)
        began = time.perf_counter()
        for number, program in enumerate(programs):
            pool.submit(candidate_id=str(number), program=program)
            pool.completed(timeout=None)
        return (time.perf_counter() - began) / len(programs)


def _commit(alone: _Islands, *, events: int, settings: RunSettings, scratch: Path) -> float:
    """Return the seconds of a transaction, in a log of its own that begins as the islands' do."""
    own = [each.event for each in alone.logs[0]]
    with open_parts(settings, read_problem(settings)) as parts:
        folder = scratch / f"log-{time.time_ns()}"
        found(settings, read_problem(settings), parts=parts, folder=folder)
    seconds = []
    with EventLog(island_folder(folder, 0), session=1) as log:
        later = [each for each in own if isinstance(each, Call | Child)]
        for first in range(0, len(later) - events, events):
            for event in later[first : first + events]:
                log.append(event)
            began = time.perf_counter()
            log.commit()
            seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


def _lookup(store: str, *, name: str) -> float:
    if not store:
        return 0.0
    with closing(VerdictTable(store, name=f"{name}-lookup")) as table:
        return _median(lambda: table.find("nothing"))


def _read(alone: _Islands) -> float:
    children = [each.event for each in alone.logs[0] if isinstance(each.event, Child)]
    return _median(lambda: read_event(alone.folders[0], Child, children[0].id))


def _report(settings: RunSettings, scratch: Path) -> float:
    prepare_ray()
    from engine.cluster.on_ray import RayWorker, open_ray, reports
    from engine.cluster.worker import Worker

    path = scratch / "settings.yaml"
    config.save(settings, path)
    with open_ray(settings.cluster):
        worker = RayWorker(
            settings.cluster,
            Worker,
            label="run",
            settings=path.read_text(),
            name="run",
            folder=None,
            fingerprint="",  # it is not started
        )
        while worker.place() is None:
            time.sleep(0.1)
        seconds = _median(lambda: reports([worker]), times=200)
        worker.kill()
    return seconds


def _median(ask: Callable[[], object], *, times: int = 50) -> float:
    """Return the median of the seconds that a question takes."""
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        ask()
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


if __name__ == "__main__":
    run_as_command(main)
