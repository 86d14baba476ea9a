"""Question: what is saved by decoding less, and does any child that is worth something pay for it?

Method: prompts of each operator for the problem's initial program and a few variants of it, which
infills of the model itself make. Each prompt is asked with every switch, each time another one
first, with the same temperatures and seeds, so that a change of the machine's speed meets all:

- ``off``: every child is decoded to its own end;
- ``complete``: a child is aborted once ``Operator.is_complete`` says so, asked at each new line.

``evaluated`` is the share of children that parse, differ from their parent and read no undefined
name. ``asking`` is the time spent in asking the operator, as a share of all.
``speed`` is children per second over that of ``off``, from the sums over all rounds, by the wall
clock and by the process's CPU time, which other work on the machine disturbs less. It is that of
one call at a time, which lasts as long as its longest child; where others' children fill the batch,
``tokens_saved`` is what counts. A first call warms the prefix cache and is not counted.

Usage: python -m bench.decode [problem=signal] [operators=rewrite,diff,infill] [rounds=4] [k=8]
       [switches=off,complete] [variants=3] [max_tokens=512] [model=smollm2]
The last line printed is JSON.
"""

from __future__ import annotations

import itertools
import json
import logging
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.options import model_arguments, read_options, run_as_command, whole_number
from engine import config
from engine.core import (
    INITIAL,
    Candidate,
    Generation,
    Problem,
    Program,
    Prompt,
    Proposal,
    UserError,
)
from engine.inference import LanguageModel, Sampling, find_weights, prepare
from engine.problem import chosen_problem
from engine.prompts import Operator, make_operators
from engine.settings import RunSettings
from engine.syntax import read

SWITCHES = ("off", "complete")
DEFAULTS = {
    "model": "smollm2",
    "problem": "signal",
    "operators": "rewrite,diff,infill",
    "switches": ",".join(SWITCHES),
    "rounds": "4",
    "k": "8",
    "variants": "3",
    "max_tokens": "512",
}
_MOST_TRIES = 40  # calls for a variant


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """A prompt, and what is needed to read its answers."""

    operator: Operator
    parent: Candidate
    prompt: Prompt
    sampling: Sequence[Sampling]


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """What a call brought and cost, or several in all."""

    children: int = 0
    tokens: int = 0
    evaluated: int = 0
    ended_early: int = 0
    asking: float = 0.0
    wall: float = 0.0
    cpu: float = 0.0

    def __add__(self, other: Measured) -> Measured:
        """Return the sums."""
        names = self.__dataclass_fields__
        return Measured(**{name: getattr(self, name) + getattr(other, name) for name in names})


def ask(model: LanguageModel, question: Question, *, switch: str) -> Measured:
    """Decode the children of a prompt, ending those that the switch is for."""
    wall, cpu = time.perf_counter(), time.process_time()
    fan = model.fanout(token_ids=question.prompt.token_ids, sampling=question.sampling)
    asking, lines = 0.0, [0] * len(question.sampling)
    children: list[Generation] = []
    while fan.indices:
        model.step()
        children += fan.take()
        began = time.perf_counter()
        for index, text in fan.texts().items():
            if text.count("\n") > lines[index]:
                lines[index] = text.count("\n")
                if is_over(question, text, switch):
                    fan.abort(index)
        asking += time.perf_counter() - began
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return Measured(
        children=len(children),
        tokens=sum(child.generated_tokens for child in children),
        evaluated=sum(is_evaluated(question, child) for child in children),
        ended_early=sum(child.finish_reason == "abort" for child in children),
        asking=asking,
        wall=wall,
        cpu=cpu,
    )


def is_over(question: Question, text: str, switch: str) -> bool:
    """Whether a child that has ``text`` so far is ended."""
    asked: dict[str, Any] = {"parent": question.parent, "prompt": question.prompt, "text": text}
    return switch == "complete" and question.operator.is_complete(**asked)


def child_program(question: Question, child: Generation) -> Program | None:
    """Return what the operator makes of a completion."""
    (parsed,) = question.operator.parsing(
        parent=question.parent, prompt=question.prompt, generation=child
    )()
    return parsed.program


def is_evaluated(question: Question, child: Generation) -> bool:
    """Whether a child that nobody has seen before would be worth an evaluation."""
    program = child_program(question, child)
    parent = read(question.parent.program)
    if program is None or parent is None:
        return False
    return program.key != parent.key and not program.undefined


def questions(
    operator: str,
    operators: Mapping[str, Operator],
    parents: Sequence[Candidate],
    settings: RunSettings,
) -> Iterator[Question]:
    """Yield a question for each parent in turn, without end; no two are the same."""
    low, high = settings.search.temperature_min, settings.search.temperature_max
    number = 0
    while True:
        parent = parents[number % len(parents)]
        proposal = Proposal(
            iteration=number,
            parent=parent,
            history=(),
            operator=operator,
            k=settings.search.k,
            seed=number,
        )
        prompt = operators[operator].compose(proposal)
        sampling = [
            Sampling(
                temperature=float(temperature),
                seed=1000 * number + index,
                stop=prompt.stop,
                max_tokens=prompt.max_tokens,
                banned=prompt.banned,
                grammar=prompt.grammar,
            )
            for index, temperature in enumerate(np.linspace(low, high, settings.search.k))
        ]
        yield Question(
            operator=operators[operator], parent=parent, prompt=prompt, sampling=sampling
        )
        number += 1


def make_parents(
    model: LanguageModel,
    operators: Mapping[str, Operator],
    problem: Problem,
    settings: RunSettings,
    *,
    variants: int,
) -> list[Candidate]:
    """Return the initial program and ``variants`` children of infills, each of the one before."""
    parents = [Candidate(id=INITIAL, program=problem.initial_program, score=0.5)]
    for seed in range(_MOST_TRIES):
        if len(parents) > variants:
            break
        asked = questions("infill", operators, parents[-1:], settings)
        question = next(itertools.islice(asked, seed, None))
        fan = model.fanout(token_ids=question.prompt.token_ids, sampling=question.sampling)
        for child in list(fan):
            program = child_program(question, child)
            if program is not None and is_evaluated(question, child):
                parents.append(Candidate(id=f"{seed}", program=program, score=0.5))
                break
    return parents


def figures(measured: Measured, off: Measured) -> dict[str, Any]:
    """Return the shares and rates of one switch."""
    return {
        "children": measured.children,
        "tokens_per_child": round(measured.tokens / measured.children, 2),
        "tokens_saved": round(1 - measured.tokens / off.tokens, 4),
        "ended_early": round(measured.ended_early / measured.children, 4),
        "evaluated": round(measured.evaluated / measured.children, 4),
        "asking": round(measured.asking / measured.wall, 5),
        "children_per_second": round(measured.children / measured.wall, 3),
        "speed": round(off.wall / measured.wall, 3),
        "speed_by_cpu": round(off.cpu / measured.cpu, 3),
    }


def main(arguments: list[str]) -> None:
    """Measure and print."""
    options = read_options(arguments, DEFAULTS, usage=__doc__ or "")
    names, switches = options["operators"].split(","), options["switches"].split(",")
    if not {"off"} <= set(switches) <= set(SWITCHES):
        raise UserError(f"switches={options['switches']} has to name off, and others of {SWITCHES}")
    rounds, k = whole_number(options, "rounds"), whole_number(options, "k")
    settings = config.resolve([*model_arguments(options), f"search.k={k}"])
    prepare(threads=settings.model.threads, kv_cache_gb=settings.model.kv_cache_gb)
    problem = chosen_problem({"problem": options["problem"]})
    model = LanguageModel(settings=settings.model, folder=find_weights(settings.model), seed=0)
    operators = make_operators(
        names,
        problem=problem,
        tokenizer=model,
        max_tokens=whole_number(options, "max_tokens"),
        prompts=settings.prompts,
    )
    parents = make_parents(
        model, operators, problem, settings, variants=whole_number(options, "variants")
    )
    sums = {name: dict.fromkeys(switches, Measured()) for name in names}
    for name in names:
        asked = questions(name, operators, parents, settings)
        for turn, question in enumerate(itertools.islice(asked, rounds)):
            grammar = question.prompt.grammar
            warm = [Sampling(temperature=1.0, seed=0, stop=(), max_tokens=1, grammar=grammar)]
            list(model.fanout(token_ids=question.prompt.token_ids, sampling=warm))
            first = turn % len(switches)
            for switch in [*switches[first:], *switches[:first]]:
                one = ask(model, question, switch=switch)
                sums[name][switch] += one
                sys.stdout.write(f"{name} {switch}: {one}\n")
                sys.stdout.flush()
    model.close()
    result = {
        name: {
            switch: figures(measured, by_switch["off"]) for switch, measured in by_switch.items()
        }
        for name, by_switch in sums.items()
    }
    sys.stdout.write(json.dumps({"options": options, "operators": result}) + "\n")


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    run_as_command(main)
