"""Thompson: widen or deepen, the choice of AB-MCTS with node aggregation (AB-MCTS-A).

Source: Inoue et al., "Wider or deeper? Scaling LLM inference-time compute with adaptive branching
tree search", 2025, and its code, TreeQuest. A walk begins at the root of the tree of programs. At
each node it draws how good another child of it would be (widen) and how good a child of one of
its descendants (deepen), and goes the way of the larger draw. To widen is to change this program;
to deepen is to draw how good each child's tree is, and to walk on to the best. A leaf is widened.
The rule is called ``deepen`` where the walk went down as far as there are candidates, and ``widen``
where it stopped before.

Each draw is of the mean mu of a normal distribution whose mean and variance are unknown. The prior
is normal-inverse-chi-squared with m = 0, kappa = 1, nu = 1, tau^2 = 0.1; after n rewards of mean y
and sum of squared deviations S it becomes (Murphy, "Probabilistic machine learning: advanced
topics", 2023, section 3.4.3.3)

    kappa' = kappa + n,   nu' = nu + n,   m' = (kappa m + n y) / kappa',                     (1)
    tau'^2 = (nu tau^2 + S + n kappa (m - y)^2 / kappa') / nu',                              (2)

and mu is m' + sqrt(tau'^2 / kappa') times a Student t of nu' degrees of freedom.              (3)

What each has seen: widen, the rewards of the node's children; deepen, those of all its deeper
descendants; a child's tree, those of the child and all its descendants.

Where this differs from it:

- The prior expects rewards from 0 to 1. So a reward is the score's share of the span from the
  worst to the best that is known now (``scores.scaled``), and 0 for an evaluated child without a
  score.
- There is no program at its root, and to widen there is to write one from nothing. Here the roots
  are the island's migrants, the initial program among them, and the walk begins by choosing one.
- Programs that are no candidates are walked through but not changed.

Each draw comes from the inverse of its distribution at a hash of the key and the program's id, so
it does not depend on other programs but through what is known of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from engine.core import Candidate, Direction
from engine.search.parents import PARENTS, Draw, ParentOutcome, ParentPolicy, ParentSettings
from engine.search.race import hashes_of, uniforms
from engine.search.roster import scaled
from engine.section import section

MEAN, KAPPA, NU, TAU_SQUARED = 0.0, 1.0, 1.0, 0.1
"""The prior: m, kappa, nu and tau^2."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Tree:
    """The n programs that were told or are candidates, each after its parent.

    Totals are how many rewards were seen, their sum, and the sum of their squares.

    Attributes:
        ids: of the programs.
        parents: place of each one's parent; -1 for a root; shape (n,).
        of_children: totals of the children, shape (n, 3).
        of_deeper: totals of all that descend from a child, shape (n, 3).
        of_tree: totals of the program and all that descends from it, shape (n, 3).
        candidates: whether the program may be changed, shape (n,).
        leads_on: whether it, or one that descends from it, may be changed; shape (n,).
    """

    ids: list[str]
    parents: NDArray[np.intp]
    of_children: NDArray[np.float64]
    of_deeper: NDArray[np.float64]
    of_tree: NDArray[np.float64]
    candidates: NDArray[np.bool_]
    leads_on: NDArray[np.bool_]

    def below(self, node: int) -> NDArray[np.intp]:
        """Return the children of a node that lead to a candidate; the roots for -1."""
        return np.flatnonzero((self.parents == node) & self.leads_on)


@PARENTS.register("thompson")
@section
class ThompsonSettings(ParentSettings):
    """No parameters."""

    def make(self, *, direction: Direction) -> "Thompson":
        """Return the policy of an island without a program."""
        return Thompson(direction=direction)


class Thompson(ParentPolicy):
    """A walk down the tree of programs that draws at each node whether to widen or to deepen.

    Who migrated here is known from the candidates of a choice.
    """

    def __init__(self, *, direction: Direction) -> None:
        """``direction``: of the scores."""
        self._direction = direction
        self._parents: dict[str, str | None] = {}  # of what was told, each after its parent
        self._scores: dict[str, float | None] = {}

    def choose(self, candidates: Sequence[Candidate], *, u: float, key: int) -> Draw:
        """Choose one of ``candidates``, at least one; ``u`` does not matter."""
        tree = self._tree(candidates)
        node, below = -1, tree.below(-1)
        while below.size and (node < 0 or not _widens(tree, node, key=key)):
            node = _best(tree, below, key=key)
            below = tree.below(node)
        chosen = next(each for each in candidates if each.id == tree.ids[node])
        return Draw(candidate=chosen, rule="widen" if below.size else "deepen")

    def tell(self, outcome: ParentOutcome) -> None:
        """Hang the children of a parent into the tree; one without a known parent is a root."""
        self._parents.setdefault(outcome.parent, None)
        self._parents.update((child.id, outcome.parent) for child in outcome.children)
        self._scores.update((child.id, child.score) for child in outcome.children)

    def _tree(self, candidates: Sequence[Candidate]) -> _Tree:
        ids = [*self._parents, *(each.id for each in candidates if each.id not in self._parents)]
        places = {each: place for place, each in enumerate(ids)}
        above = [self._parents.get(each) for each in ids]
        parents = np.array([-1 if each is None else places[each] for each in above], dtype=np.intp)
        own = self._own(ids, candidates)
        of_tree = own.copy()
        may_change = np.zeros(len(ids), dtype=np.bool_)
        may_change[[places[each.id] for each in candidates]] = True
        leads_on = may_change.copy()
        for place in range(len(ids) - 1, -1, -1):  # each before its parent
            parent = parents[place]
            if parent >= 0:
                of_tree[parent] += of_tree[place]
                leads_on[parent] |= leads_on[place]
        of_children = np.zeros_like(own)
        np.add.at(of_children, parents[parents >= 0], own[parents >= 0])
        return _Tree(
            ids=ids,
            parents=parents,
            of_children=of_children,
            of_deeper=of_tree - own - of_children,
            of_tree=of_tree,
            candidates=may_change,
            leads_on=leads_on,
        )

    def _own(self, ids: Sequence[str], candidates: Sequence[Candidate]) -> NDArray[np.float64]:
        """Return the totals of each program's own reward, shape (len(ids), 3).

        They are 0 for a migrant that is no candidate: its score was not told.
        """
        scores = {**self._scores, **{each.id: each.score for each in candidates}}
        valid = [each for each, score in scores.items() if score is not None]
        shares = scaled(np.array([scores[each] for each in valid], dtype=float), self._direction)
        rewards = dict(zip(valid, shares.tolist(), strict=True))
        seen = np.array([each in scores for each in ids], dtype=np.float64)
        reward = np.array([rewards.get(each, 0.0) for each in ids])
        return np.stack([seen, reward, reward**2], axis=1)


def posterior(totals: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    """Return m', kappa', nu' and tau'^2, each of shape (...,).

    Args:
        totals: how many rewards, their sum, and the sum of their squares, shape (..., 3).
    """
    count, total, squares = np.moveaxis(totals, -1, 0)
    mean = total / np.maximum(count, 1)
    spread = np.maximum(0.0, squares - count * mean**2)  # S
    kappa, nu = KAPPA + count, NU + count  # (1)
    center = (KAPPA * MEAN + total) / kappa
    distance = count * KAPPA * (MEAN - mean) ** 2 / kappa
    return center, kappa, nu, (NU * TAU_SQUARED + spread + distance) / nu  # (2)


def draws(names: Sequence[str], totals: NDArray[np.float64], *, key: int) -> NDArray[np.float64]:
    """Return a draw of mu for each name, shape (len(names),).

    Args:
        names: of what is drawn; equal ones have equal random numbers.
        totals: what was seen of each, shape (len(names), 3).
        key: of all draws.
    """
    center, kappa, nu, tau_squared = posterior(totals)
    student: NDArray[np.float64] = stdtrit(nu, uniforms(hashes_of(names), key=key))
    result: NDArray[np.float64] = center + np.sqrt(tau_squared / kappa) * student  # (3)
    return result


def _best(tree: _Tree, nodes: NDArray[np.intp], *, key: int) -> int:
    names = [f"tree {tree.ids[node]}" for node in nodes]
    return int(nodes[np.argmax(draws(names, tree.of_tree[nodes], key=key))])


def _widens(tree: _Tree, node: int, *, key: int) -> bool:
    if not tree.candidates[node]:
        return False
    names = [f"widen {tree.ids[node]}", f"deepen {tree.ids[node]}"]
    totals = np.stack([tree.of_children[node], tree.of_deeper[node]])
    widen, deepen = draws(names, totals, key=key)
    return bool(widen >= deepen)
