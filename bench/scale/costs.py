"""What the steps of a cluster's islands cost, in seconds; and a cluster's size."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Costs:
    """Seconds, but for what says otherwise.

    Attributes:
        call: a call of K children at the model, alone.
        beside: what each other call in the batch adds to it.
        loop: Python of a call's children, which all islands of a worker wait for in turn.
        evaluation: a candidate at an evaluator.
        commit: a transaction at the store.
        commits: transactions of a call (a number).
        lookup: a question to the store whether a program's verdict is known, of each candidate.
        read: a neighbour's event in the store.
        report: the driver's, for each worker and look.
        pause: the driver's between two looks.
        start: of a worker, until its model is there.
    """

    call: float
    beside: float
    loop: float
    evaluation: float
    commit: float
    commits: float
    lookup: float
    read: float
    report: float
    pause: float = 0.5
    start: float = 30.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Cluster:
    """A run on a cluster.

    Attributes:
        workers: each with a model.
        islands: of each worker.
        evaluators: of each worker.
        candidates: of a call, those that are evaluated: the mean.
        every: iterations between two migrations; 0 for none.
        migrants: that an island sends.
        store: transactions that the store can do at once.
        spread: standard deviation of the logarithm of the workers' speeds.
    """

    workers: int
    islands: int = 4
    evaluators: int = 8
    candidates: float = 5
    every: int = 10
    migrants: int = 2
    store: int = 16
    spread: float = 0.0
