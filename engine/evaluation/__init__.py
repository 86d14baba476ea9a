"""Evaluation of candidate programs: run them in worker processes, score them in this one.

The face of the package is `EvaluatorPool`. A candidate's life from there on:

- `pool` queues it; `lane` keeps one live worker and runs it there, replacing a lost worker;
- `process` starts and kills a worker (`worker`, a warm fork server in an interpreter of its own);
- the worker forks a confined `child`, in which `program` executes the text and `contract` packs
  the arrays;
- back here, `verdict` checks the bytes against the contract again and calls the problem's scorer.

`wire` is the format between the processes, `tree` kills what a candidate left running, and
``_native`` (``native/confine.cpp``) makes the system calls that Python has no door to.
"""

from engine.evaluation.pool import EvaluatorPool

__all__ = ["EvaluatorPool"]
