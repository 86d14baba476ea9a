"""Question: what do this engine's search and others' reach, and do, in the same seconds?

Method: for each round, one search of each side in turn, in reversed order every other round, each
with a cold model and an empty prefix cache and with the machine to itself, for the same wall
``seconds``. A side that has run fewer than ``candidates`` programs in them is named in ``short``:
its round says little, so take more seconds.

- ``openevolve``, ``adaevolve`` (SkyDiscover's) and ``shinkaevolve``: in their own environments
  (``bench.peer``), over HTTP to vLLM's own server on this machine (``bench.serving``), with
  whole-program rewrites, the problem's statement as the system message, the engine's
  ``max_tokens`` and else their defaults. Each program that they evaluate is judged by the engine's
  sandbox (``bench.judge``).
- ``rewrite``: ``python -m engine.run`` with the operator ``rewrite`` alone and without fills:
  whole programs too, and all of the model's.
- ``default``: ``python -m engine.run`` with the model's own mix of operators, which with the
  embedded model is infill: **another kind of work**, a place of a program and not the whole. It
  keeps its fills, programs made without the model for idle evaluators: its best scores may be
  theirs; no count has them.

All have the same weights, problem, ``max_model_len`` and memory for the prefix cache. The clock
runs from the initial program's verdict, the model loaded by then: loading the model counts for
nobody, and the server has answered a first request before.

Figures of a side: ``best_at`` is the best score after an eighth, a quarter, half and all of the
seconds, and ``steps`` every one that was the best, with when. ``candidates`` were run by an
evaluator. The peers run whatever the model writes, prose included (OpenEvolve all but exact copies
of the parent; ShinkaEvolve what has a fence, and it asks again up to three times for what has
none); this engine refuses what does not parse, is known, or reads an undefined name, before it is
run. So there are three ways to count more alike: ``completions``, finished answers of the model
(of this engine those that also came to a verdict, since the end of a run cuts some off);
``judged``, answers that came to a verdict, refusals included (the peers' candidates); and ``new``,
programs that pass this engine's rules (its candidates; ``refusals`` has the rest by reason).
``candidates_per_hour`` counts in the peers' favour. ``abandoned_calls`` are requests that a peer
gave up waiting for, ``refused_calls`` those that the server refused.
``hit_rate`` is vLLM's own count. ``llm_seconds`` are the time in the engine's step, and for the
peers from a request's arrival at the server to its last token (twice where two overlap).
``ratios``: each engine side over the better of the peers, of the same round; each says in words
what it compares, with the tokens of an answer: all that were sampled over the finished ones.
Medians with lowest and highest over the rounds.

``threads=auto`` leaves the server's threads to vLLM, which keeps a core for its scheduler; ``all``
gives the model all cores, which is faster on a machine where nothing else runs, and far slower on
one where something does. ``workers`` is OpenEvolve's ``parallel_evaluations``, whose default is 1;
AdaEvolve makes one call after the other, and ShinkaEvolve sets its own. ``settings`` are more
settings for the engine's sides, separated by spaces. Finished searches are kept in ``out``, one
JSON line for each round and side, and not run again: a benchmark that was stopped goes on there.

Does not cover models or machines other than this one, nor whether the better score is luck.

Usage: python -m bench.peers [problem=signal] [seconds=720] [candidates=24] [rounds=3] [seed=0]
       [peers=openevolve,adaevolve,shinkaevolve] [engine=rewrite,default] [model=smollm2]
       [max_model_len=8192] [threads=auto] [workers=1] [settings=...] [out=FILE]
It takes rounds x sides x (seconds + about one minute). An empty ``peers=`` or ``engine=`` leaves
those sides out. Before the last line there is a table; the last line printed is JSON.
"""

from __future__ import annotations

import json
import logging
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench import peer
from bench.guard import Guarded
from bench.judge import Judge
from bench.options import model_arguments, number, read_options, run_as_command, whole_number
from bench.rates import engine_figures, peer_figures, summed_up, table
from bench.serving import MODEL, THREADS, serve
from engine import config
from engine.core import UserError
from engine.inference import find_weights, is_cpu_build
from engine.problem import load_problem, shipped
from engine.report.analysis.runs import read_runs

DEFAULTS = {
    "problem": "signal",
    "seconds": "720",
    "candidates": "24",
    "rounds": "3",
    "seed": "0",
    "peers": ",".join(peer.PEERS),
    "engine": "rewrite,default",
    "model": "smollm2",
    "max_model_len": "8192",
    "threads": "auto",
    "workers": "1",
    "settings": "",
    "out": "runs/bench-peers.jsonl",
}
ENGINE = {
    "rewrite": [
        "search.operators.infill=0",
        "search.operators.rewrite=1",
        "search.operators.diff=0",
        "fill=none",
    ],
    "default": [],
}
"""The sides of this engine, and the arguments of ``engine.run`` that each has for itself."""
_FIRST_SECONDS = 300.0  # until the initial program's verdict, after which a side is given up
_START_SECONDS = 600.0  # of this engine beside its search, at most
_ENDLESS = 1_000_000  # iterations; the search is ended when its time is up


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One search: what it depends on. A side's own arguments are among its settings."""

    side: str
    seed: int
    problem: str
    seconds: float
    model: str
    max_model_len: int
    threads: str
    workers: int
    settings: str


def run_peer(case: Case, *, scratch: Path) -> dict[str, Any]:
    """Return the figures of a peer's search.

    Raises:
        UserError: it ends early, or does not begin.
    """
    problem = load_problem(Path(shipped()[case.problem]))
    model = config.resolve(_model_arguments(case)).model
    other = peer.PEERS[case.side]
    python = peer.make_environment(other.package)
    (scratch / "program.py").write_text(problem.initial_program)
    with (
        serve(
            settings=model, weights=find_weights(model), threads=case.threads, scratch=scratch
        ) as server,
        Judge(problem=problem, folder=scratch) as judge,
    ):
        request = peer.SearchRequest(
            url=server.url,
            model=MODEL,
            max_tokens=model.max_tokens,
            statement=problem.statement,
            program=str(scratch / "program.py"),
            evaluator=str(peer.lay_out_judged(scratch)),
            output=str(scratch / "output"),
            seed=case.seed,
            workers=case.workers,
            iterations=_ENDLESS,
        )
        before = server.counters()
        with peer.search(other, python, request, folder=scratch) as process:
            _await(judge, process, case.seconds)
            counted = server.counters().since(before)
    return peer_figures(judge.judged(), counted, problem, seconds=case.seconds)


def run_engine(case: Case, *, scratch: Path) -> dict[str, Any]:
    """Return the figures of a run of this engine.

    Raises:
        UserError: it fails.
    """
    arguments = [
        *_model_arguments(case),
        *(f"problem={case.problem}", f"seed={case.seed}"),
        *("budget.candidates=null", f"budget.seconds={case.seconds}"),
        *(f"runs={scratch}", "name=run"),
        *case.settings.split(),
    ]
    with Guarded(
        [sys.executable, "-m", "engine.run", *arguments],
        environment={},
        cwd=peer.ROOT,
        log=scratch / "engine.log",
    ) as process:
        try:
            code = process.wait(seconds=case.seconds + _START_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise UserError(f"the run takes far longer than {case.seconds:.0f} s") from error
        if code != 0:
            raise UserError(f"the run of {case.side} failed: {process.said()}")
    folder = scratch / "run"
    (record,) = read_runs([folder])
    steps = [(record.totals[name]["seconds"], score) for name, score in record.bests.items()]
    summary = json.loads((folder / "summary.json").read_text())
    return engine_figures(summary, steps=steps, seconds=case.seconds)


def _model_arguments(case: Case) -> list[str]:
    # One format for all sides, as a server of vLLM's does not choose the CPU's faster one.
    formats = ["model.dtype=bfloat16"] if is_cpu_build() else []
    model = model_arguments({"model": case.model})
    return [*model, f"model.max_model_len={case.max_model_len}", *formats]


def _await(judge: Judge, process: Guarded, seconds: float) -> None:
    """Wait until ``seconds`` have passed since a peer had its initial program judged.

    Raises:
        UserError: it ended before, or has had none judged for long.
    """
    ends = time.monotonic() + _FIRST_SECONDS
    begun = False
    while time.monotonic() < ends:
        if process.exit_code is not None:
            raise UserError(f"the peer ended early: {process.said()}")
        if begun:
            time.sleep(min(1.0, max(0.0, ends - time.monotonic())))
        elif judge.wait(1, seconds=1.0):
            begun, ends = True, judge.judged()[0].at + seconds
    if not begun:
        raise UserError(
            f"the peer has evaluated nothing for {_FIRST_SECONDS:.0f} s: {process.said()}"
        )


def _sides(options: Mapping[str, str]) -> list[str]:
    sides = []
    for key, known in (("peers", peer.PEERS), ("engine", ENGINE)):
        for name in filter(None, options[key].split(",")):
            if name not in known:
                raise UserError(f"{key}={name}: there are {', '.join(known)}")
            sides.append(name)
    if not sides:
        raise UserError("peers= and engine= name no side")
    return sides


def _works(options: Mapping[str, str]) -> dict[str, str]:
    """Return in words what each side of the engine asks the model for."""
    arguments = [*model_arguments(options), *options["settings"].split()]
    settings = config.resolve(arguments)
    names = " and ".join(name for name, weight in settings.search.operators.items() if weight)
    fills = ", with fills in its scores alone" if settings.fill.makers else ""
    return {"rewrite": "whole rewrites", "default": f"default, {names}{fills}"}


def _finished(out: Path) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return the cases that are in a file, and their figures; none where there is no file.

    Raises:
        UserError: a line is none that this benchmark wrote.
    """
    lines = out.read_text().splitlines() if out.exists() else []
    found = []
    for number_of_line, line in enumerate(lines, start=1):
        try:
            each = json.loads(line)
            found.append((each["case"], each["figures"]))
        except (ValueError, KeyError, TypeError) as error:
            said = f"line {number_of_line} is no finished search of this benchmark"
            raise UserError(f"out={out}: {said}; remove it") from error
    return found


def _run(case: Case) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="brood-peers-") as scratch:
        run = run_peer if case.side in peer.PEERS else run_engine
        return run(case, scratch=Path(scratch))


def main(arguments: list[str]) -> None:
    """Measure and print."""
    options = read_options(arguments, DEFAULTS, usage=__doc__ or "")
    sides = _sides(options)
    if options["problem"] not in shipped():
        raise UserError(f"no problem {options['problem']!r}; there are: {', '.join(shipped())}")
    if options["threads"] not in THREADS:
        raise UserError(f"threads={options['threads']} must be one of {', '.join(THREADS)}")
    common: dict[str, Any] = {
        **{key: options[key] for key in ("problem", "model", "threads")},
        **{key: whole_number(options, key) for key in ("max_model_len", "workers")},
        "seconds": number(options, "seconds"),
    }
    least, seed = whole_number(options, "candidates"), whole_number(options, "seed", least=0)
    turns = whole_number(options, "rounds")
    out = Path(options["out"])
    finished = _finished(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    rounds: list[dict[str, dict[str, Any]]] = []
    for turn in range(turns):
        seen: dict[str, dict[str, Any]] = {}
        for side in sides if turn % 2 == 0 else reversed(sides):
            settings = " ".join([*ENGINE.get(side, []), *options["settings"].split()])
            case = Case(side=side, seed=seed + turn, settings=settings, **common)
            known = [figures for each, figures in finished if each == asdict(case)]
            seen[side] = known[-1] if known else _run(case)
            if not known:
                with out.open("a") as file:
                    file.write(json.dumps({"case": asdict(case), "figures": seen[side]}) + "\n")
            print(f"round {turn}, {side}: {json.dumps(seen[side])}", flush=True)
        rounds.append({side: seen[side] for side in sides})
    works = dict.fromkeys(peer.PEERS, "whole rewrites") | _works(options)
    result = summed_up(rounds, peers=peer.PEERS, works=works, least=least)
    print(table(result))
    print(json.dumps({"options": options, **result}))


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was begun is ended
    run_as_command(main)
