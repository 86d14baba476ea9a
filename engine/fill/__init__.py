"""Fill: programs made without the model, for evaluators that would wait for it.

Makers vary the programs that an island's parents are chosen from: `Mutations` at random, `Tunings`
their numbers by CMA-ES, and `Improvements` the solutions that they find, where a problem declares
that contract. The evaluators of fills run only where nothing else wants their cores, so the kernel
has a child's evaluation go first, whenever it comes, and a step of a model that computes on a CPU.
Each fill is recorded before it is evaluated and counts apart from the model's children; one that is
better than its parent joins its island as a migrant does.

Covers: what is tried next, and having it evaluated. Does not cover how programs are mutated
(``engine.mutation``) or tuned (``engine.tuning``), or what an island makes of a fill
(``engine.search``).
"""

from engine.fill.evaluators import IdleEvaluators, open_idle
from engine.fill.filler import Filler
