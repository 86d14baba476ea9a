"""A run's account: what it has used of its budget, and which limit ended it.

All of it follows from the recorded events, and no limit that was reached is ever unreached, so a
run that was killed goes on to the same limits and a run that is over stays over. A guess that was
given up is counted. Not counted are children that were on their way when a run was stopped or died:
a resumed run generates them again; nor the programs whose hidden states are embeddings
(``search.novelty_by=model``), which generate nothing and cost a prefill each.

Does not cover the clock between two events, which ``engine.loop`` watches.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping

from engine.core import Direction
from engine.settings import BudgetSettings, PriceSettings
from engine.store import Recorded, RunHistory

_MILLION = 1e6


class Limit(enum.StrEnum):
    """What a run can end at; of limits that one event reaches, the first one here counts."""

    TARGET = "target"  # the best score is at least as good as wanted
    CANDIDATES = "candidates"  # so many were admitted, and are evaluated
    TOKENS = "tokens"  # so many were generated
    MONEY = "money"  # so much was paid for prompts and answers
    PATIENCE = "patience"  # so many candidates in a row were no better than the best
    SECONDS = "seconds"  # so much wall time passed


class Account:
    """A run's use of its budget, as far as its history goes."""

    def __init__(self, budget: BudgetSettings, history: RunHistory) -> None:
        """Open the account of the run that ``history`` tells; it may grow."""
        self._budget = budget
        self._history = history

    @property
    def limits(self) -> Mapping[Limit, float]:
        """The limits that can be counted up to; a target can't."""
        limits = {each: getattr(self._budget, each) for each in Limit if each is not Limit.TARGET}
        return {each: value for each, value in limits.items() if value is not None}

    @property
    def used(self) -> Mapping[Limit, float]:
        """How much of each was used, whether it has a limit or not.

        Of patience, it is the longest row of candidates so far without an improvement. Seconds are
        those up to the last event.
        """
        history = self._history
        return {
            Limit.CANDIDATES: history.admitted,
            Limit.TOKENS: history.generated_tokens + history.wasted_tokens,
            Limit.MONEY: self.money,
            Limit.PATIENCE: history.longest_wait,
            Limit.SECONDS: history.wall_seconds,
        }

    @property
    def money(self) -> float:
        """What the run's tokens cost, those of given-up guesses included."""
        history = self._history
        return cost(
            self._budget.prices,
            prompt_tokens=history.prompt_tokens + history.wasted_prompt_tokens,
            cached_prompt_tokens=(
                history.cached_prompt_tokens + history.wasted_cached_prompt_tokens
            ),
            generated_tokens=history.generated_tokens + history.wasted_tokens,
        )

    @property
    def reached(self) -> Limit | None:
        """A limit that allows no further candidate; None as long as there is none."""
        if self._is_target_reached:
            return Limit.TARGET
        used = self.used
        return next((each for each, most in self.limits.items() if used[each] >= most), None)

    @property
    def candidates_left(self) -> int | None:
        """How many more candidates may be admitted; None for no limit."""
        most = self._budget.candidates
        return None if most is None else max(0, most - self._history.admitted)

    @property
    def is_closed(self) -> bool:
        """Whether a limit was reached and no verdict is awaited; once time is up, none is."""
        seconds = self._budget.seconds
        is_late = seconds is not None and self.used[Limit.SECONDS] >= seconds
        return is_late or (self.reached is not None and not self._history.pending())

    @property
    def _is_target_reached(self) -> bool:
        target, best = self._budget.target, self._history.best
        if target is None or best is None or best.score is None:
            return False
        return not self._history.direction.better(target, than=best.score)


def cost(
    prices: PriceSettings,
    *,
    prompt_tokens: int,
    cached_prompt_tokens: int,
    generated_tokens: int,
) -> float:
    """Return what tokens cost, in the currency of the prices.

    Args:
        prices: of a million tokens.
        prompt_tokens: all of them; each child of a call has those of its prompt.
        cached_prompt_tokens: those of them that the prefix cache served.
        generated_tokens: tokens sampled.
    """
    return (
        (prompt_tokens - cached_prompt_tokens) * prices.prompt
        + cached_prompt_tokens * prices.cached_prompt
        + generated_tokens * prices.generated
    ) / _MILLION


def ended_by(
    budget: BudgetSettings, events: Iterable[Recorded], *, direction: Direction
) -> Limit | None:
    """Return the limit that these events reached first; None if they reached none.

    While a run is wound up after that, it may reach others. The clock may run out after the last
    event: that can't be told from them.
    """
    history = RunHistory(direction=direction)
    account = Account(budget, history)
    for recorded in events:
        history.fold(recorded)
        if account.reached is not None:
            return account.reached
    return None
