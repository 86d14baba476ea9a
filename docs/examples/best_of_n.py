"""Best of n with a verifier: write a function n times, and keep the first that passes its tests.

The verifier runs while the other answers are still written, so the rest can be left as soon as one
passes. It is the engine's own evaluator: a program that was never seen runs behind walls.

    python docs/examples/best_of_n.py [model=smollm2] [k=16]
"""

import sys

from engine import Engine, Problem, fanout
from engine.api.fan import siblings
from engine.api.saving import measured
from engine.core import ArraySpec, Case, Outputs
from engine.evaluation import EvaluatorPool, open_pool
from engine.inference import Sampling

START = '''def clamp(x, low, high):
    """Return x, or low if x is less than low, or high if x is more than high."""
'''
SHOWN = '''"""Small functions on numbers, each with what it returns."""


def largest(a, b, c):
    """Return the largest of three numbers."""
    return max(a, b, c)


def distance(a, b):
    """Return how far two numbers are from each other."""
    return abs(a - b)


def is_between(x, low, high):
    """Return whether x is at least low and at most high."""
    return low <= x <= high


'''
PROMPT = SHOWN + START
INPUTS = [(5, 0, 10), (-3, 0, 10), (12, 0, 10), (0, 0, 0), (7, 7, 9)]


def sampling(k: int) -> tuple[Sampling, ...]:
    """Return how K answers are sampled."""
    return siblings(k, temperature=0.8, max_tokens=64)


def cases() -> list[Case]:
    """Return the calls that a program is tried with."""
    number = {"value": ArraySpec(shape=())}
    return [Case(name=f"clamp{args}", args=args, outputs=number) for args in INPUTS]


def score(outputs: list[Outputs]) -> dict[str, float]:
    """Return the share of right results."""
    right = [min(max(x, low), high) for x, low, high in INPUTS]
    hits = sum(float(each["value"]) == want for each, want in zip(outputs, right, strict=True))
    return {"score": hits / len(INPUTS)}


def program_of(answer: str) -> str:
    """Return the function that an answer completes, without what the model wrote after it."""
    lines: list[str] = []
    for line in answer.splitlines():
        if line.strip() and not line.startswith(" "):
            break
        lines.append(line)
    return START + "\n".join(lines) + "\n"


def verifier() -> EvaluatorPool:
    """Start what tries programs."""
    problem = Problem.of("clamp", cases=cases, score=score, initial_program=START, seconds=10)
    return open_pool(problem=problem, workers=1)


def passes(pool: EvaluatorPool, program: str) -> bool:
    """Return whether a program is right in all cases."""
    pool.submit(candidate_id="answer", program=program)
    ((_, evaluation),) = pool.completed(timeout=None)
    return evaluation.score == 1.0


def main(model: str = "smollm2", k: str = "16") -> None:
    """Take the first answer that passes, then say what asking together saves."""
    with verifier() as pool, Engine(model) as engine:
        fan = fanout(PROMPT, sampling(int(k)), engine=engine)
        for tried, answer in enumerate(fan, start=1):
            program = program_of(answer.text)
            if passes(pool, program):
                print(f"answer {tried} passes, after {fan.cost.seconds:.2f} s:\n{program}")
                break
        else:
            print(f"none of {k} passes")
        print(f"saving: {measured(PROMPT, sampling(int(k)), engine=engine)}")


if __name__ == "__main__":
    main(**dict(each.split("=", 1) for each in sys.argv[1:]))
