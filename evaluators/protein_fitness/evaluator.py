"""The ``protein_fitness`` problem: learn from single and double mutants, predict higher orders.

The setting of the paper (PACEvolve++, sections 4.1.3 and C.3): for each protein, training on the
wild type, single and double mutants, and prediction of those with three or more mutations. As in
the benchmark script of MULTI-evolve, a variant takes part only if each of its mutations was also
measured alone. A data set needs 10 or more test variants, not all of one fitness, for top-5
precision and correlation to mean anything. Repeated measurements of a variant are averaged.

What a program may change is what the paper's may: features and pairs of mutations, the predictor
and its penalty, the weights of the orders, the ensemble (``initial/model.py``).
``initial/harness.py`` is fixed: each of a number of members is trained for a number of steps; the
optimizer and the batches, which the paper leaves open, are settled there. Those two numbers come
with the call: `PAPER` for MULTI-evolve's ``data/benchmark`` folder (``data=FOLDER``), with the
paper's 1,200 seconds, and `SMALL` for generated proteins, whose scores can't be compared with
published ones. The fixed file is no wall (``engine.syntax.blocks``): a program that trains longer
wins nothing that it has not learnt, as no measured test variant is in its process. Does not cover
the metrics (``kernels.fitness``) and the data (``data``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.core import Array, ArraySpec, Case, Limits, Outputs, Stage, UserError
from kernels import fitness
from kernels.fitness import Metrics

from .data import Protein, Sequences, generate_proteins, read_proteins

MAX_TRAINING_ORDER = 2
MIN_TEST_VARIANTS = 10
OUTPUT = "fitness"


@dataclass(frozen=True, kw_only=True, slots=True)
class Training:
    """How many models an ensemble has, and the steps of the optimizer that each gets."""

    members: int
    steps: int


SMALL = Training(members=2, steps=200)
PAPER = Training(members=5, steps=2000)
PAPER_LIMITS = Limits(seconds=1200.0, memory_bytes=8 << 30)


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """What is known of one protein, and what is to be predicted; the arrays are read-only.

    Attributes:
        name: the protein's.
        wild_type: amino acid codes 0 to 19, shape (length,), int8.
        train_sequences, train_fitness: variants with up to two mutations, shapes (n, length), (n,).
        test_sequences: variants with three or more, shape (m, length).
        test_fitness: what was measured of them, shape (m,). Never shown to a program.
        training: what the fixed training does.
    """

    name: str
    wild_type: Sequences
    train_sequences: Sequences
    train_fitness: NDArray[np.float64]
    test_sequences: Sequences
    test_fitness: NDArray[np.float64]
    training: Training

    def __post_init__(self) -> None:
        known = (self.wild_type, self.train_sequences, self.train_fitness)
        for values in (*known, self.test_sequences, self.test_fitness):
            values.flags.writeable = False

    def case(self) -> Case:
        """Return the call that asks for the fitness of the test variants."""
        return Case(
            name=self.name,
            args=(
                self.wild_type,
                self.train_sequences,
                self.train_fitness,
                self.test_sequences,
                self.training.members,
                self.training.steps,
            ),
            outputs={OUTPUT: ArraySpec(shape=self.test_fitness.shape)},
        )

    def measure(self, output: Array) -> Metrics:
        """Return the metrics of the predictions ``output``, shape (m,).

        Raises:
            ValueError: the shape is another one or a value is not finite; the engine checks that
                before it scores, so this is a fault of the caller and not of the program.
        """
        predicted = np.ascontiguousarray(output, dtype=np.float64)
        if predicted.shape != self.test_fitness.shape or not np.isfinite(predicted).all():
            raise ValueError(
                f"Expected {OUTPUT} of {self.name} to be finite and have shape "
                f"{self.test_fitness.shape} but it had shape {predicted.shape}"
            )
        return fitness.measure(predicted, self.test_fitness)


def split(protein: Protein, *, training: Training = SMALL) -> Task:
    """Return the task that ``protein`` makes, as the module's docstring says.

    Raises:
        UserError: nothing to train on, or too little to test on.
    """
    changed = protein.sequences != protein.wild_type  # (n, length)
    orders = changed.sum(axis=1)
    alone = np.zeros((protein.wild_type.size, 20), dtype=bool)
    rows, positions = np.nonzero(changed & (orders == 1)[:, None])
    alone[positions, protein.sequences[rows, positions]] = True
    unknown = changed & ~alone[np.arange(protein.wild_type.size), protein.sequences]
    kept = ~unknown.any(axis=1)
    train, test = kept & (orders <= MAX_TRAINING_ORDER), kept & (orders > MAX_TRAINING_ORDER)
    _require(protein, train, test)
    return Task(
        name=protein.name,
        wild_type=protein.wild_type,
        train_sequences=protein.sequences[train],
        train_fitness=protein.fitness[train],
        test_sequences=protein.sequences[test],
        test_fitness=protein.fitness[test],
        training=training,
    )


def _require(protein: Protein, train: NDArray[np.bool_], test: NDArray[np.bool_]) -> None:
    if not train.any():
        raise UserError(f"data set {protein.name} has no wild type, single or double mutant")
    if test.sum() < MIN_TEST_VARIANTS:
        raise UserError(
            f"data set {protein.name} has {test.sum()} variants of three or more mutations that "
            f"were each measured alone; it needs {MIN_TEST_VARIANTS}"
        )
    if np.ptp(protein.fitness[test]) == 0:
        raise UserError(f"data set {protein.name} has the same fitness for every test variant")


def score_tasks(tasks: Sequence[Task], outputs: Sequence[Outputs]) -> Mapping[str, float]:
    """Return the mean of each of `kernels.fitness.Metrics` over ``tasks``, and ``score``.

    The score is 0.7 mean(Pearson's r) + 0.3 mean(Precision@5) (PACEvolve++, section 4.1.3), in
    [-0.7, 1]. A constant prediction has r = 0 and the precision of chance.
    """
    rows = [task.measure(given[OUTPUT]) for task, given in zip(tasks, outputs, strict=True)]
    means = {name: float(np.mean([getattr(row, name) for row in rows])) for name in Metrics._fields}
    return {"score": 0.7 * means["pearson"] + 0.3 * means["precision_at_5"]} | means


@dataclass(frozen=True, kw_only=True, slots=True)
class Evaluator:
    """The problem on some proteins: a full stage with all, and a screen with the smallest."""

    tasks: tuple[Task, ...]
    limits: Limits | None = None

    def cases(self) -> Sequence[Case]:
        """Return one case for each protein."""
        return [task.case() for task in self.tasks]

    def score(self, outputs: Sequence[Outputs]) -> Mapping[str, float]:
        """Score the predictions for all proteins; see `score_tasks`."""
        return score_tasks(self.tasks, outputs)

    def screens(self) -> Sequence[Stage]:
        """Return one stage: the protein with the smallest arrays; none if there is but one."""
        if len(self.tasks) == 1:
            return []
        smallest = min(
            self.tasks, key=lambda task: task.train_sequences.size + task.test_sequences.size
        )
        return [
            Stage(
                name="smallest",
                cases=(smallest.case(),),
                score=lambda outputs: score_tasks([smallest], outputs),
            )
        ]


@cache
def _generated() -> tuple[Task, ...]:
    return tuple(split(protein) for protein in generate_proteins())


def with_data(path: Path | None) -> Evaluator:
    """Return the problem on the proteins in ``path``, or on generated ones where it is None.

    Raises:
        UserError: the folder is malformed, holds no data set, or one that can't be used.
    """
    if path is None:
        return Evaluator(tasks=_generated())
    tasks = tuple(split(protein, training=PAPER) for protein in read_proteins(path))
    if not tasks:
        raise UserError(f"{path / 'dataset_summary.csv'} names no data set; add a row for each")
    return Evaluator(tasks=tasks, limits=PAPER_LIMITS)
