"""A problem, loaded from its folder.

A problem is a folder; copying one and changing its files makes a new problem, with no change
anywhere else. It holds four files, or three where a command judges its programs:

``problem.yaml``
    ``direction`` (maximise or minimise), ``entry_point``, ``limits`` (``seconds``,
    ``memory_mb``) and, optionally, ``isolate_cases``, ``modules`` (a list of names),
    ``known_scores`` (``score``, ``source`` and, optionally, ``comparable``), ``target``, a score
    worth reaching that is better than the initial program's, ``features``, the dimensions of
    an archive: ``NAME: [low, high, bins]``, NAME a metric or one of
    ``engine.search.features.MEASURES``, and ``improvement`` (``solution``, the names of the first
    outputs, and ``effort``): programs may define ``improve`` and ``perturb`` for idle evaluators
    then, and the initial one has to (``docs/methods/fill.md``).
``statement.md``
    The task in words, as the model is to read it.
``initial.py``
    The first candidate. A folder ``initial`` instead holds one of several files, or of another
    language; ``entry_point`` is ``module.function`` then. Evolve blocks in it say what may change
    (``engine.syntax.blocks``).
``evaluator.py``
    Trusted code with two functions: ``cases() -> Sequence[Case]`` and
    ``score(outputs) -> Mapping[str, float]``, which has the metric ``score``; optionally
    ``screens() -> Sequence[Stage]``, the cheap stages in front of these. A problem that can read
    data of the user's has one function instead, ``with_data(path: Path | None)``, which returns
    an object with those two or three; None stands for the data that come with the problem. That
    object may have ``limits``, an `engine.core.Limits` in place of the declared ones: larger data
    need more.

``command`` in ``problem.yaml``, a list of words, takes the place of ``evaluator.py`` and
``entry_point``: it is run on the folder with a candidate's files, and prints a JSON object whose
``score``, or whose number that ``metric`` names, is the score. Its ``limits`` may have
``processes`` and ``scratch_mb`` too.

It may hold further modules and data, which go where the folder goes. The folder is a package:
``evaluator.py`` imports its neighbour ``cases.py`` by ``from .cases import ...``, and no other
problem sees it. Data files lie beside it or in a folder ``data``.

A folder ``pool`` beside them may hold programs to begin with (``engine.pool``). They decide no
score.

A folder ``cheats`` may hold programs that try to gain without doing the task. They have to come to
nothing (``engine.checking``), and decide no score either.

`folder` loads one, with `declaration` for ``problem.yaml``, `initial` for the initial program and
`fingerprint` for what decides its scores; `kept` writes down one that was made in Python; `places`
names lines in messages. Does not cover: running candidates (``engine.evaluation``) and
configuration (``engine.config``).
"""

from engine.problem.choice import CHOICE, chosen_problem
from engine.problem.folder import (
    FILES,
    POOL,
    load_problem,
    read_aims,
    read_direction,
    read_features,
    shipped,
)
from engine.problem.initial import read_program
from engine.problem.initial_verdict import check_initial_verdict
from engine.problem.kept import KEPT, keep_problem
