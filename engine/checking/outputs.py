"""Answers that no program worked out: do they gain?

The problem's score is called here with arrays of the shapes that its contract allows: constants,
the initial program's own answers shuffled, and its numbers changed one by one. No program is run.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from engine.checking.finding import Finding, doubtful, good, wrong
from engine.checking.trials import Baseline, copied, place_of_score
from engine.core import Array, ArraySpec, Outputs, Problem, Rejected
from engine.problem.places import place_of_error

Fill = Callable[[Array, ArraySpec], Array | None]
"""Returns what to put in place of an array; None to leave it as it is."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Scored:
    """What a problem's score said of some arrays.

    Attributes:
        score: None if they were refused, or if the scoring failed.
        fault: where and how the scoring failed, which it should not; empty if it did not.
    """

    score: float | None
    fault: str = ""


def scored(problem: Problem, outputs: Sequence[Outputs]) -> Scored:
    """Return what the full evaluation makes of ``outputs``, of which it gets a copy."""
    begins = place_of_score(problem)
    try:
        with np.errstate(all="ignore"):  # these are numbers that nobody would return
            score = float(problem.score(copied(outputs))["score"])
    except Rejected:
        return Scored(score=None)
    except Exception as error:
        where = place_of_error(error, problem.folder, otherwise=begins)
        return Scored(score=None, fault=f"{type(error).__name__}: {error} ({Path(where).name})")
    if not math.isfinite(score):
        return Scored(score=None, fault=f"the score is {score} ({Path(begins).name})")
    return Scored(score=score)


def filled(problem: Problem, outputs: Sequence[Outputs], fill: Fill) -> tuple[Outputs, ...] | None:
    """Return ``outputs`` with other values; None if ``fill`` leaves every array as it is.

    What the sandbox measured stays as it was.
    """
    found = [dict(each) for each in copied(outputs)]
    changed = False
    for case, each in zip(problem.cases, found, strict=True):
        for name, spec in case.outputs.items():
            values = fill(each[name], spec)
            if values is not None:
                each[name] = values
                changed = True
    return tuple(found) if changed else None


def constant(value: float) -> Fill:
    """Return what fills every array with one number, where its kind of number can hold that."""

    def fill(array: Array, spec: ArraySpec) -> Array | None:
        if array.dtype.kind in "bu" and value < 0:
            return None
        return np.full_like(array, value)

    return fill


def _largest(array: Array, spec: ArraySpec) -> Array | None:
    if array.dtype.kind == "b":
        return None
    limits = np.finfo(array.dtype) if array.dtype.kind == "f" else np.iinfo(array.dtype)
    return np.full_like(array, limits.max)


def _nan(array: Array, spec: ArraySpec) -> Array | None:
    return np.full_like(array, np.nan) if array.dtype.kind == "f" and not spec.finite else None


def _shuffled(array: Array, spec: ArraySpec) -> Array | None:
    return np.random.default_rng(0).permutation(array) if array.ndim else None


_CONSTANTS: Mapping[str, Fill] = {
    "zeros": constant(0),
    "ones": constant(1),
    "minus ones": constant(-1),
    "the largest numbers": _largest,
    "NaN": _nan,
}


def check_constants(
    problem: Problem, outputs: Sequence[Outputs], baseline: Baseline
) -> Iterator[Finding]:
    """Say whether constants, or the initial program's answers shuffled, are worth anything."""
    where = place_of_score(problem)
    tried, gained = [], False
    for name, fill in (*_CONSTANTS.items(), ("the initial program's answers shuffled", _shuffled)):
        given = filled(problem, outputs, fill)
        if given is None:
            continue
        tried.append(name)
        verdict = scored(problem, given)
        if verdict.fault:
            yield doubtful(
                "constants",
                f"score() fails on {name}: {verdict.fault}",
                where=where,
                remedy="raise Rejected, which tells the model what is wrong",
            )
        if baseline.gains(verdict.score):
            gained = True
            yield wrong(
                "constants",
                f"{name} score {verdict.score!r}, and the initial program {baseline.best!r}",
                where=where,
                remedy="refuse such answers with Rejected, or begin with a better program",
            )
    if not gained:
        yield good("constants", f"nothing is gained by {', '.join(tried)}")


_SLIGHTLY: Mapping[str, Callable[[Array], Array]] = {
    f"by {share:g} of it": lambda value, share=share: value * (1 + share)  # type: ignore[misc]
    for share in (1e-6, -1e-6, 1e-3, -1e-3)
}
_MUCH: Mapping[str, Callable[[Array], Array]] = {
    "to twice": lambda value: value * 2,
    "to ten times": lambda value: value * 10,
    "to a millionth": lambda value: value * 1e-6,
    "by 1": lambda value: value + 1,
    "by -1": lambda value: value - 1,
    "to the opposite": lambda value: -value,
    "to 1e9": lambda value: np.full_like(value, 1e9),
    "to -1e9": lambda value: np.full_like(value, -1e9),
}


def check_claims(
    problem: Problem, outputs: Sequence[Outputs], baseline: Baseline
) -> Iterator[Finding]:
    """Say whether the score believes a number that a program reports beside its answer."""
    claims = sorted(
        {
            name
            for case, each in zip(problem.cases, outputs, strict=True)
            if len(case.outputs) > 1
            for name in case.outputs
            if each[name].size == 1 and each[name].dtype.kind != "b"
        }
    )
    for name in claims:
        yield _claim(problem, outputs, baseline, name)
    if not claims:
        yield good("claims", "no output is a single number beside others")


def _claim(problem: Problem, outputs: Sequence[Outputs], baseline: Baseline, name: str) -> Finding:
    where = place_of_score(problem)
    remedy = f"compute {name!r} in score() from the other outputs, and don't read it"
    for how, change in _MUCH.items():
        score = scored(problem, _with(outputs, name, change)).score
        if baseline.gains(score):
            said = f"the score believes {name!r}: changed {how}, nothing else, it makes {score!r}"
            return wrong("claims", f"{said} of {baseline.best!r}", where=where, remedy=remedy)
    for how, change in _SLIGHTLY.items():
        score = scored(problem, _with(outputs, name, change)).score
        if baseline.gains(score):
            said = f"the score follows {name!r} a little: changed {how}, it makes {score!r}"
            return doubtful("claims", f"{said} of {baseline.best!r}", where=where, remedy=remedy)
    return good("claims", f"nothing is gained by another {name!r}")


def _with(
    outputs: Sequence[Outputs], name: str, change: Callable[[Array], Array]
) -> tuple[Outputs, ...]:
    """Return ``outputs`` with one of them changed in all cases that have it."""
    changed = [dict(each) for each in copied(outputs)]
    for each in changed:
        if name in each:
            with np.errstate(all="ignore"):
                each[name] = np.asarray(change(each[name])).astype(each[name].dtype)
    return tuple(changed)
