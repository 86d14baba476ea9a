"""Question: what does a fan-out save over separate requests, in the examples of docs/examples?

Method: each example's own prompt and sampling, K answers, asked for in four ways that take turns,
each round beginning with another one. Before each the prefix cache is emptied. Every answer has as
many tokens as the example allows at most: what would end it earlier is left away. Seeds are the
same in all ways.

fanout       one call of `engine.fanout`
concurrent   K separate requests at the same time, which may read the prefix cache
sequential   K separate requests, each after the answer to the one before, which may read the prefix
             cache: a client that asks in a loop
uncached     K separate requests at the same time, each of which computes the whole prompt

A figure is the median over the rounds, with the lowest and highest. ``over_fanout`` is a way's
seconds over the fan-out's of the same round. All ways are of one process: what a server and its
protocol cost is in none of them. The first answers, which warm the model up, are not counted.

Usage: python -m bench.examples [rounds=5] [k=8] [model=smollm2]
The last line printed is JSON.
"""

from __future__ import annotations

import importlib.util
import json
import logging
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from bench.fanout import ends_of_answer
from bench.figures import spread
from bench.options import model_arguments, read_options, run_as_command, whole_number
from engine import Engine, config, fanout
from engine.core import Generation
from engine.inference import Sampling, find_weights

DEFAULTS = {"rounds": "5", "k": "8", "model": "smollm2"}
EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"


def together(prompt: str, sampling: Sequence[Sampling], engine: Engine) -> list[Generation]:
    """Ask once for all."""
    return list(fanout(prompt, sampling, engine=engine))


def concurrent(prompt: str, sampling: Sequence[Sampling], engine: Engine) -> list[Generation]:
    """Ask for each by a request of its own, all before the model's first step."""
    fans = [fanout(prompt, [each], engine=engine) for each in sampling]
    return [answer for fan in fans for answer in fan]


def sequential(prompt: str, sampling: Sequence[Sampling], engine: Engine) -> list[Generation]:
    """Ask for each when the one before is answered."""
    return [answer for each in sampling for answer in fanout(prompt, [each], engine=engine)]


def uncached(prompt: str, sampling: Sequence[Sampling], engine: Engine) -> list[Generation]:
    """Ask as `concurrent` does, an engine that has no prefix cache."""
    return concurrent(prompt, [replace(each, reads_cache=False) for each in sampling], engine)


WAYS = {
    "fanout": together,
    "concurrent": concurrent,
    "sequential": sequential,
    "uncached": uncached,
}


@dataclass(frozen=True, kw_only=True)
class Question:
    """What an example asks, K times.

    Attributes:
        prompt: its text.
        sampling: of each answer, none of which can end before its last token.
    """

    prompt: str
    sampling: tuple[Sampling, ...]

    def ask(self, way: str, engine: Engine) -> tuple[float, int]:
        """Return seconds and computed prompt tokens.

        Raises:
            RuntimeError: an answer is shorter than asked for.
        """
        engine.model.forget()
        began = time.perf_counter()
        answers = WAYS[way](self.prompt, self.sampling, engine)
        seconds = time.perf_counter() - began
        if sum(each.generated_tokens for each in answers) != self.generated_tokens:
            raise RuntimeError("an answer is shorter than asked for")
        return seconds, sum(each.prompt_tokens - each.cached_prompt_tokens for each in answers)

    @property
    def generated_tokens(self) -> int:
        """Of all answers."""
        return sum(each.max_tokens for each in self.sampling)


def question_of(path: Path, *, k: int, banned: tuple[int, ...]) -> Question:
    """Return what an example asks."""
    module = _loaded(path)
    sampling = [replace(each, stop=(), banned=banned) for each in module.sampling(k)]
    return Question(prompt=module.PROMPT, sampling=tuple(sampling))


def _loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def figures(question: Question, *, rounds: int, engine: Engine) -> dict[str, Any]:
    """Ask in all ways in turns and return what each cost."""
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    computed: dict[str, int] = {}
    order = list(WAYS)
    for _ in range(rounds):
        for way in order:
            spent, computed[way] = question.ask(way, engine)
            seconds[way].append(spent)
            sys.stdout.write(f"  {way}: {spent:.2f} s\n")
            sys.stdout.flush()
        order.append(order.pop(0))
    ratios = {
        way: [mine / least for mine, least in zip(spent, seconds["fanout"], strict=True)]
        for way, spent in seconds.items()
    }
    return {
        "prompt_tokens": len(engine.model.encode(question.prompt)),
        "generated_tokens": question.generated_tokens,
        "ways": {
            way: {
                "computed_prompt_tokens": computed[way],
                "seconds": spread(seconds[way]),
                "over_fanout": spread(ratios[way], digits=2),
            }
            for way in WAYS
        },
    }


def main(arguments: list[str]) -> None:
    """Measure and print."""
    options = read_options(arguments, DEFAULTS, usage=__doc__ or "")
    rounds, k = whole_number(options, "rounds"), whole_number(options, "k")
    settings = config.resolve(model_arguments(options)).model
    result: dict[str, Any] = {"rounds": rounds, "k": k, "model": options["model"], "examples": {}}
    weights = find_weights(settings)
    with Engine(options["model"]) as engine:
        banned = ends_of_answer(engine.model, weights)
        for path in sorted(EXAMPLES.glob("*.py")):
            question = question_of(path, k=k, banned=banned)
            question.ask("fanout", engine)
            sys.stdout.write(f"{path.stem}\n")
            result["examples"][path.stem] = figures(question, rounds=rounds, engine=engine)
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    run_as_command(main)
