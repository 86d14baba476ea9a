"""Evaluation of candidate programs: run them behind walls, score them in this process.

The face of the package is `open_pool`, which returns an `EvaluatorPool`, and `Cascade` in front of
it. A candidate's life:

- `cascade` decides through which of the problem's stages it goes (`screen`: one cheap stage);
- `pool` queues it; a native thread on a core of its own (``native/workers.cpp``) takes it to the
  zygote that its `zygote_lane` starts, keeps alive and kills (`warmth` says what it imports);
- the `zygote`, a warm interpreter, forks a child and puts the walls round it
  (``native/zygote.cpp``, ``native/walls.cpp``); in there, `program` executes the text and
  `contract` packs the arrays into shared memory;
- back on the native thread, `verdict` checks the bytes against the contract again and calls the
  problem's scorer.

A problem with a judge, a process of its own in place of cases, gets a `JudgePool`: in place of the
zygote its `judge_lane` has a `box` server, whose `attendant` runs each judge in a box
(``native/box.cpp``), and `judged` makes a verdict of what the judge printed. `rehearsal` finds
whether another system's evaluator can be split from the program.

`wire` is the shared memory and the format of what lies in it, and `cores` says which thread runs
where.
"""

from engine.evaluation.cascade import Cascade, StagePool
from engine.evaluation.cores import evaluator_cores, model_cores
from engine.evaluation.evaluators import Evaluators, EvaluatorsLost
from engine.evaluation.judge_pool import JudgePool, open_pool
from engine.evaluation.pool import EvaluatorPool
from engine.evaluation.rehearsal import rehearsed
