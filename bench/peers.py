"""Question: how many candidates an hour does this engine give, and how many do others' searches?

Method: for each round, one search of each side in turn, in reversed order every other round, each
with a cold model and an empty prefix cache and with the machine to itself, until ``candidates``
programs were evaluated beside the initial one:

- ``openevolve`` and ``adaevolve`` (SkyDiscover's): in their own environments (``bench.peer``), over
  HTTP to vLLM's own server on this machine (``bench.serving``), with whole-program rewrites, the
  problem's statement as the system message, the engine's ``max_tokens`` and else their defaults.
  Each program that they evaluate is judged by the engine's sandbox (``bench.judge``).
- ``rewrite``: ``python -m engine.run`` with the operator ``rewrite`` alone: whole programs too.
- ``default``: ``python -m engine.run`` with the model's own mix of operators.

All have the same weights, problem, ``max_model_len`` and memory for the prefix cache. The clock
runs from the initial program's verdict, the model loaded by then, to the last candidate's: loading
the model counts for nobody, and the server has answered a first request before.

Figures of a side: ``candidates`` were run by an evaluator. The peers run whatever the model writes,
prose included (OpenEvolve all but exact copies of the parent, which are no candidates then); this
engine refuses what does not parse, is known, or reads an undefined name, before it is run. So there
are two ways to count more alike: ``judged``, answers that came to a verdict, refusals included (the
peers' candidates), and ``new``, programs that pass this engine's rules (its candidates;
``refusals`` has the rest by reason). ``candidates_per_hour`` counts in the peers' favour.
``completions`` are finished answers of the model; ``abandoned_calls`` are requests that a peer gave
up waiting for, ``refused_calls`` those that the server refused.
``hit_rate`` is vLLM's own count. ``llm_seconds`` are the time in the engine's step, and for the
peers from a request's arrival at the server to its last token (twice where two overlap).
``ratios``: each engine side over the better of the peers, of the same round. Medians with lowest
and highest over the rounds.

``threads=auto`` leaves the server's threads to vLLM, which keeps a core for its scheduler; ``all``
gives the model all cores, which is faster on a machine where nothing else runs, and far slower on
one where something does. ``workers`` is OpenEvolve's ``parallel_evaluations``, whose default is 1;
AdaEvolve makes one call after the other. ``settings`` are more settings for the engine's sides,
separated by spaces. Finished searches are kept in ``out``, one JSON line each, and not run again.

Does not cover models or machines other than this one, nor whether the better score is luck.

Usage: python -m bench.peers [problem=signal] [candidates=24] [rounds=3] [seed=0]
       [peers=openevolve,adaevolve] [engine=rewrite,default] [model=smollm2] [max_model_len=8192]
       [threads=auto] [workers=1] [settings=...] [out=FILE]
An empty ``peers=`` or ``engine=`` leaves those sides out. The last line printed is JSON.
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
from bench.options import model_arguments, number, read_options
from bench.rates import engine_figures, peer_figures, summed_up
from bench.serving import MODEL, THREADS, serve
from engine import config
from engine.core import UserError
from engine.inference import find_weights, is_cpu_build
from engine.problem import load_problem, shipped

DEFAULTS = {
    "problem": "signal",
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
OPERATORS = {
    "rewrite": [
        "search.operators.infill=0",
        "search.operators.rewrite=1",
        "search.operators.diff=0",
    ],
    "default": [],
}
_SILENT_SECONDS = 900.0  # without a verdict, after which a peer is given up
_ENGINE_SECONDS = 6 * 3600.0
_ENDLESS = 1_000_000  # iterations; the search is ended when it has its candidates


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One search: what it depends on."""

    side: str
    seed: int
    problem: str
    candidates: int
    model: str
    max_model_len: int
    threads: str
    workers: int
    settings: str


def run_peer(case: Case, *, scratch: Path) -> dict[str, Any]:
    """Return the figures of a peer's search.

    Raises:
        UserError: it ends early, or evaluates nothing for long.
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
            _await(judge, process, case.candidates + 1)
            counted = server.counters().since(before)
        judged = judge.judged()[: case.candidates + 1]
    return peer_figures(judged, counted, problem)


def run_engine(case: Case, *, scratch: Path) -> dict[str, Any]:
    """Return the figures of a run of this engine.

    Raises:
        UserError: it fails.
    """
    arguments = [
        *_model_arguments(case),
        *(f"problem={case.problem}", f"seed={case.seed}"),
        *(f"budget.candidates={case.candidates}", "budget.seconds=null"),
        *(f"runs={scratch}", "name=run"),
        *OPERATORS[case.side],
        *case.settings.split(),
    ]
    with Guarded(
        [sys.executable, "-m", "engine.run", *arguments],
        environment={},
        cwd=peer.ROOT,
        log=scratch / "engine.log",
    ) as process:
        try:
            code = process.wait(seconds=_ENGINE_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise UserError(f"the run takes longer than {_ENGINE_SECONDS:.0f} s") from error
        if code != 0:
            raise UserError(f"the run of {case.side} failed: {process.said()}")
    return engine_figures(json.loads((scratch / "run" / "summary.json").read_text()))


def _model_arguments(case: Case) -> list[str]:
    # One format for all sides, as a server of vLLM's does not choose the CPU's faster one.
    formats = ["model.dtype=bfloat16"] if is_cpu_build() else []
    model = model_arguments({"model": case.model})
    return [*model, f"model.max_model_len={case.max_model_len}", *formats]


def _await(judge: Judge, process: Guarded, count: int) -> None:
    """Wait until a peer has had ``count`` programs judged.

    Raises:
        UserError: it ended before, or has had none judged for long.
    """
    judged, since = 0, time.monotonic()
    while not judge.wait(count, seconds=1.0):
        if process.exit_code is not None:
            raise UserError(f"the peer ended early: {process.said()}")
        if len(judge.judged()) > judged:
            judged, since = len(judge.judged()), time.monotonic()
        elif time.monotonic() - since > _SILENT_SECONDS:
            raise UserError(
                f"the peer has evaluated nothing for {_SILENT_SECONDS:.0f} s: {process.said()}"
            )


def _sides(options: Mapping[str, str]) -> list[str]:
    sides = []
    for key, known in (("peers", peer.PEERS), ("engine", OPERATORS)):
        for name in filter(None, options[key].split(",")):
            if name not in known:
                raise UserError(f"{key}={name}: there are {', '.join(known)}")
            sides.append(name)
    if not sides:
        raise UserError("peers= and engine= name no side")
    return sides


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
        **{key: options[key] for key in ("problem", "model", "threads", "settings")},
        **{key: int(number(options, key)) for key in ("candidates", "max_model_len", "workers")},
    }
    out = Path(options["out"])
    out.parent.mkdir(parents=True, exist_ok=True)
    lines = out.read_text().splitlines() if out.exists() else []
    finished = [(each["case"], each["figures"]) for each in map(json.loads, lines)]
    rounds: list[dict[str, dict[str, Any]]] = []
    for turn in range(int(number(options, "rounds"))):
        seen: dict[str, dict[str, Any]] = {}
        for side in sides if turn % 2 == 0 else reversed(sides):
            case = Case(side=side, seed=int(options["seed"]) + turn, **common)
            known = [figures for each, figures in finished if each == asdict(case)]
            seen[side] = known[-1] if known else _run(case)
            if not known:
                with out.open("a") as file:
                    file.write(json.dumps({"case": asdict(case), "figures": seen[side]}) + "\n")
            print(f"round {turn}, {side}: {json.dumps(seen[side])}", flush=True)
        rounds.append({side: seen[side] for side in sides})
    print(json.dumps({"options": options, **summed_up(rounds, peers=peer.PEERS)}))


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was begun is ended
    try:
        main(sys.argv[1:])
    except UserError as error:
        print(f"bench.peers: {error}", file=sys.stderr)
        sys.exit(2)
