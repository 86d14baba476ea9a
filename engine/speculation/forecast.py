"""Predicting what an island will ask for next, while verdicts are out.

An ask is a function of what the search was told and of the iteration's random numbers, so it can be
made early (``engine.search.race`` says why its answer is mostly the same). Only the parent is
guessed, by experts (``predictor.py``).

Covers: the guess and what is learned from it. Does not cover whether to act on it (``payoff.py``).
"""

from collections import defaultdict
from collections.abc import Callable, Sequence

from engine.core import Pending, Proposal
from engine.search.roster import best_of
from engine.search.search import Search
from engine.speculation.predictor import Expert, Predictor


class Forecast:
    """Predicts the proposals of all islands; it remembers who guessed right, island by island."""

    def __init__(self, *, search: Search, last_parent: Callable[[int], str | None]) -> None:
        """Begin with equal beliefs.

        Args:
            search: that is asked.
            last_parent: returns the id of the parent of an island's last iteration of which a child
                was admitted; None before the first.
        """
        self._search = search
        self._last_parent = last_parent
        self._predictors: defaultdict[int, Predictor] = defaultdict(Predictor)  # by island

    def predict(
        self,
        iteration: int,
        *,
        island: int,
        ahead: tuple[Pending, ...] = (),
        begun: Sequence[Proposal] = (),
    ) -> Proposal:
        """Return what `Search.ask` is expected to return once all verdicts are in.

        The parent is the predictor's guess; a repair keeps its own. The prompt shows what is known
        now, with the programs that have no verdict, and those ``ahead``, as pending.

        Args:
            iteration: the number of the call.
            island: its number.
            ahead: as `Search.ask` has it.
            begun: as `Search.ask` has it: the guesses that come before this one.

        Raises:
            ValueError: as `Search.ask`.
        """
        drawn = self._search.ask(iteration, island=island, ahead=ahead, begun=begun)
        if drawn.repairs is not None:
            return drawn
        own = drawn.parent.id
        guess = self._predictors[island].guess(
            iteration,
            {
                Expert.DRAW: own,
                Expert.BEST: best_of(self._search.eligible(island), self._search.direction).id,
                Expert.AGAIN: self._last_parent(island) or own,
            },
        )
        if guess == own:
            return drawn
        return self._search.ask(iteration, island=island, parent_id=guess, ahead=ahead, begun=begun)

    def verify(self, proposal: Proposal) -> Proposal:
        """Return what the search asks for now in the place of a predicted proposal.

        Call it when the iteration before is finished: the predictor learns which of its guesses
        were right. A proposal that was verified before, or that another process predicted, teaches
        it nothing.
        """
        asked = self._search.ask(proposal.iteration, island=proposal.island)
        self._predictors[proposal.island].learn(proposal.iteration, parent=asked.parent.id)
        return asked
