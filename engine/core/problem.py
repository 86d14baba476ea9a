"""A problem: what a program has to compute, how it is scored, and in what programs differ.

Does not cover reading one from its folder: ``engine.problem``.
"""

import enum
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from engine.core.bundle import MAIN
from engine.core.functions import fingerprint_of, only_function
from engine.core.improvement import Improvement

Array = NDArray[Any]

Outputs = Mapping[str, Array]
"""The arrays that a program returned for one case, by name, as its contract declares them."""

Score = Callable[[Sequence[Outputs]], Mapping[str, float]]
"""Trusted scoring: the outputs of all cases, in order, to metrics, ``score`` among them.

Raises `Rejected` for outputs that are well formed but not allowed."""

SECONDS = "seconds"
"""Entry that isolated cases' outputs have besides the declared ones: the wall seconds, a 0-d
array, that the sandbox measured for the case's process, from its first line to its last result."""


FULL = "full"
"""Name of every problem's last stage."""
_NAME = re.compile(r"[\w][\w.-]{0,63}")


class Direction(enum.StrEnum):
    """Whether a larger or a smaller score is the better one."""

    MAXIMISE = "maximise"
    MINIMISE = "minimise"

    def better(self, score: float, than: float) -> bool:
        """Return whether ``score`` is strictly better than ``than``."""
        return score > than if self is Direction.MAXIMISE else score < than

    def key(self, score: float) -> float:
        """Return what sorts scores, the best one first."""
        return -score if self is Direction.MAXIMISE else score


@dataclass(frozen=True, kw_only=True, slots=True)
class ArraySpec:
    """What one returned array has to look like; anything else fails the candidate.

    Attributes:
        shape: the length of each dimension, exact or a range of allowed ones; ``()`` for a number.
        dtype: a NumPy dtype name that the value must convert to without losing information.
        finite: whether NaN and infinities are refused.
    """

    shape: tuple[int | range, ...]
    dtype: str = "float64"
    finite: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One call of a program's entry point: ``entry_point(*args, **kwargs)``.

    Attributes:
        name: names the case in messages, such as ``signal 3``.
        args: positional arguments, arrays or plain numbers.
        kwargs: keyword arguments, arrays or plain numbers.
        outputs: the arrays that have to come back. A program returns either a mapping with at
            least these names, or a tuple with exactly these values in this order (a single
            declared output may be returned bare).
    """

    name: str
    args: tuple[Array | float | int, ...]
    kwargs: Mapping[str, Array | float | int] = field(default_factory=dict)
    outputs: Mapping[str, ArraySpec]


MOST_SECONDS = 7 * 24 * 3600.0
"""Below it lies the time that a problem may give a program."""
MOST_MEMORY_MB = 1e9
"""Below it lie the MiB that a problem may give a program; more, and no system takes the number."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """What one evaluation of one candidate may use: wall seconds and bytes of memory.

    Raises:
        ValueError: the seconds are not above 0, or `MOST_SECONDS` and more; or the bytes are not,
            or `MOST_MEMORY_MB` and more.
    """

    seconds: float
    memory_bytes: int

    def __post_init__(self) -> None:
        if not 0 < self.seconds < MOST_SECONDS:  # as NaN is not
            must_be = f"above 0 and below {MOST_SECONDS:.0f}, a week"
            raise ValueError(f"seconds is {self.seconds:g}; it must be {must_be}")
        if not 0 < self.memory_bytes < MOST_MEMORY_MB * 2**20:
            must_be = f"above 0 and below {MOST_MEMORY_MB:,.0f} MiB"
            raise ValueError(f"memory_bytes is {self.memory_bytes}; it must be {must_be}")


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownScore:
    """A published score of the problem, and where it was published.

    Attributes:
        score: as published.
        source: who published it, and what to know of it.
        comparable: whether it was measured as this problem measures: the same data, the same
            quantity, no looser tolerance.
    """

    score: float
    source: str
    comparable: bool = True


class Rejected(Exception):
    """Raised by a problem's ``score`` for outputs that are well formed but not allowed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """A way to score a program: the problem's own, or a cheaper one that stands in front of it.

    Attributes:
        name: names the stage in metrics and messages.
        cases: the calls that make up one evaluation, in order.
        score: what their outputs are worth; in all stages of a problem, better means the same.
    """

    name: str
    cases: tuple[Case, ...]
    score: Score


class JudgeKind(enum.StrEnum):
    """How a judge and a program's code are kept apart."""

    COMMAND = "command"  # any executable, in one box with whatever it runs of the program
    TOGETHER = "together"  # a Python evaluator and the program in one process
    SPLIT = "split"  # a Python evaluator, and the program behind narrower walls in another process


@dataclass(frozen=True, kw_only=True, slots=True)
class Judge:
    """An evaluator that is a process of its own, in place of cases and a score.

    It runs in a box (``engine.evaluation.box``) for at most the problem's seconds; its processes
    together have the problem's memory. It may read the libraries, the problem's folder and
    ``readable``, and write in a scratch folder that is empty at its start and gone at its end.

    Attributes:
        kind: what it is, and whether its score can be believed: `JudgeKind`.
        command: of a `JudgeKind.COMMAND`: the program to run, from the problem's folder, and its
            first arguments; the folder with the candidate's files is added as the last one.
        setup: of the other kinds: what ``engine.judge`` is told of the evaluator, a JSON text.
        file: name under which a program of one file is written.
        metric: the metric that is the score.
        processes: most processes and threads that it may have at once.
        scratch_mb: mebibytes of the scratch folder.
        readable: absolute paths that it may read and execute besides.
    """

    kind: JudgeKind
    command: tuple[str, ...] = ()
    setup: str = ""
    file: str = MAIN
    metric: str = "score"
    processes: int = 64
    scratch_mb: int = 256
    readable: tuple[str, ...] = ()


def _judged_elsewhere(outputs: Sequence[Outputs]) -> Mapping[str, float]:
    raise RuntimeError("a problem with a judge is scored by it")


JUDGED = (Stage(name=FULL, cases=(), score=_judged_elsewhere),)
"""The stages of every problem that has a judge: one, without cases."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Feature:
    """A dimension in which programs differ, cut into bins of equal width; see ``search.features``.

    Attributes:
        name: one of ``engine.search.features.MEASURES``, or of a metric of the problem.
        low: where the first bin begins; smaller values count as in it.
        high: where the last bin ends; larger values count as in it.
        bins: how many, 1 or more.

    Raises:
        ValueError: the range is empty or not finite, or there is no bin.
    """

    name: str
    low: float
    high: float
    bins: int

    def __post_init__(self) -> None:
        if not 0 < self.high - self.low < math.inf:
            raise ValueError(
                f"feature {self.name!r} ranges from {self.low} to {self.high}; the first must be "
                "the smaller, and their distance finite"
            )
        if self.bins < 1:
            raise ValueError(f"feature {self.name!r} has {self.bins} bins; it needs 1 or more")

    def bin(self, value: float) -> int:
        """Return the number of the bin that holds a value, from 0.

        A bin holds its lower bound and not its upper one, but for the last one.

        Raises:
            ValueError: the value is not a number.
        """
        if math.isnan(value):
            raise ValueError(f"feature {self.name!r} is not a number")
        value = min(max(value, self.low), self.high)
        share = (value - self.low) / (self.high - self.low)
        return min(int(share * self.bins), self.bins - 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """A problem as its folder declares it; see ``engine.problem`` for the folder's layout.

    Attributes:
        name: the folder's name.
        folder: where it was loaded from.
        direction: whether the score is maximised or minimised.
        statement: the task in words, for the model.
        initial_program: source text of the first candidate.
        entry_point: the function that every candidate has to define.
        stages: cheap ones first; the last one is the full evaluation, whose ``score`` the search
            optimises; `JUDGED` where there is a judge.
        isolate_cases: run each case in a process of its own, so that nothing a program saw in
            one case is there in the next.
        limits: time and memory for one stage of one evaluation.
        modules: what the sandbox imports once, before candidates run, besides its usual ones.
        known_scores: published scores, for reports.
        judge: what evaluates programs in place of cases and a score; None for those.
        target: a score worth reaching, at which a reward is highest (`engine.learning.rewards`);
            None for a problem that declares none.
        features: the dimensions of its archive; none for a problem that names none.
        improvement: the solutions that its programs may improve; None where they need not.
        fingerprint: SHA-256 over the folder's files, its data and the kernels that it imports; runs
            with equal ones were scored alike.
    """

    name: str
    folder: Path
    direction: Direction
    statement: str
    initial_program: str
    entry_point: str
    stages: tuple[Stage, ...]
    isolate_cases: bool
    limits: Limits
    modules: tuple[str, ...]
    known_scores: tuple[KnownScore, ...]
    fingerprint: str
    features: tuple[Feature, ...] = ()
    target: float | None = None
    judge: Judge | None = None
    improvement: Improvement | None = None

    @classmethod
    def of(
        cls,
        name: str,
        *,
        cases: Callable[[], Sequence[Case]],
        score: Score,
        initial_program: str,
        statement: str = "",
        entry_point: str | None = None,
        direction: Direction | str = Direction.MAXIMISE,
        seconds: float = 5.0,
        memory_mb: float = 512,
        isolate_cases: bool = False,
        modules: Sequence[str] = (),
        target: float | None = None,
        features: Sequence[Feature] = (),
    ) -> "Problem":
        """Return a problem of two functions, which run in this process; programs run behind walls.

        Args:
            name: letters, digits, dots, dashes and underscores; runs are named by it.
            cases: called once; as in ``evaluator.py`` of a folder, as is
            score: which may be a closure.
            initial_program: source text of the first candidate.
            statement: the task in words, for the model; ``name`` if there are none.
            entry_point: the function that every candidate has to define; None for the only one at
                the top of the initial program.
            direction: ``maximise`` or ``minimise``.
            seconds: wall seconds of one evaluation.
            memory_mb: MiB of one evaluation.
            isolate_cases, modules, target, features: as the attributes.

        Raises:
            ValueError: one of them is not what it must be; the message says which.
        """
        if not _NAME.fullmatch(name):
            raise ValueError(f"name is {name!r}; it must be letters, digits, '.', '-' and '_'")
        if not 1 <= memory_mb < MOST_MEMORY_MB:
            must_be = f"at least 1 and below {MOST_MEMORY_MB:,.0f}"
            raise ValueError(f"memory_mb is {memory_mb:g}; it must be {must_be}")
        found = tuple(cases())
        if not found or not all(isinstance(case, Case) for case in found):
            raise ValueError("cases() must return engine.core.Case values, at least one")
        entry_point = entry_point or only_function(initial_program)
        direction, limits = (
            Direction(direction),
            Limits(seconds=float(seconds), memory_bytes=int(memory_mb) << 20),
        )
        return cls(
            name=name,
            folder=Path(name),
            direction=direction,
            statement=statement.strip() or name,
            initial_program=initial_program,
            entry_point=entry_point,
            stages=(Stage(name=FULL, cases=found, score=score),),
            isolate_cases=isolate_cases,
            limits=limits,
            modules=tuple(modules),
            known_scores=(),
            fingerprint=fingerprint_of(
                score, found, (initial_program, entry_point, direction, limits, isolate_cases)
            ),
            features=tuple(features),
            target=target,
        )

    @property
    def cases(self) -> tuple[Case, ...]:
        """The cases of the full evaluation."""
        return self.stages[-1].cases

    @property
    def score(self) -> Score:
        """The scoring of the full evaluation."""
        return self.stages[-1].score
