"""A run's account: what it has used of its budget, and which limit ended it.

All of it follows from the recorded events, and a limit that was reached stays reached. So a run
that was killed goes on to the same limits, and a run that is over stays over. The cost of guesses
that were given up counts. Children that were under way when a run stopped or died do not count: a
resumed run generates them again.

The clock between two events is watched by `Allowance`.
"""

import enum
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from engine.core import Direction
from engine.settings import BudgetSettings, PriceSettings
from engine.store import Recorded, RunHistory

_MILLION = 1e6


class Limit(enum.StrEnum):
    """What a run can end at; if one event reaches several, the first in this order counts."""

    TARGET = "target"  # the best score is at least as good as wanted
    CANDIDATES = "candidates"  # so many were admitted, and are evaluated
    TOKENS = "tokens"  # so many were generated
    MONEY = "money"  # so much was paid for prompts and answers
    PATIENCE = "patience"  # so many candidates in a row were no better than the best
    SECONDS = "seconds"  # so much wall time passed


@dataclass
class Account:
    """A run's use of its budget, as far as its history goes, which may grow."""

    budget: BudgetSettings
    history: RunHistory

    @property
    def limits(self) -> Mapping[Limit, float]:
        """The limits that can be counted up to; a target can't."""
        limits = {each: getattr(self.budget, each) for each in Limit if each is not Limit.TARGET}
        return {each: value for each, value in limits.items() if value is not None}

    @property
    def used(self) -> Mapping[Limit, float]:
        """How much of each was used, whether it has a limit or not.

        For patience that is the longest row of candidates so far without an improvement. Seconds
        count up to the last event.
        """
        history = self.history
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
        history = self.history
        return cost(
            self.budget.prices,
            prompt_tokens=history.prompt_tokens + history.wasted_prompt_tokens,
            cached_prompt_tokens=(
                history.cached_prompt_tokens + history.wasted_cached_prompt_tokens
            ),
            generated_tokens=history.generated_tokens + history.wasted_tokens,
        )

    @property
    def reached(self) -> Limit | None:
        """A limit that allows no further candidate; None as long as there is none."""
        target, best = self.budget.target, self.history.best_score
        better = self.history.direction.better
        if target is not None and best is not None and not better(target, than=best):
            return Limit.TARGET
        used = self.used
        return next((each for each, most in self.limits.items() if used[each] >= most), None)

    @property
    def share(self) -> float:
        """The share of the budget that is spent, of the limit that is nearest; from 0 to 1."""
        used = self.used
        shares = [used[each] / most for each, most in self.limits.items() if most]
        return min(1.0, max(shares, default=0.0))

    @property
    def candidates_left(self) -> int | None:
        """How many more candidates may be admitted; None for no limit."""
        most = self.budget.candidates
        return None if most is None else max(0, most - self.history.admitted)

    @property
    def is_closed(self) -> bool:
        """Whether a limit was reached and no verdict is awaited; after time is up none is."""
        is_late = self.history.wall_seconds >= self.limits.get(Limit.SECONDS, float("inf"))
        return is_late or (self.reached is not None and not self.history.pending)


@dataclass
class Allowance(Account):
    """The account of a run that goes on; its clock starts where the last session's stopped."""

    def __post_init__(self) -> None:
        seconds = self.limits.get(Limit.SECONDS, float("inf"))
        self._deadline = time.monotonic() + seconds - self.history.wall_seconds

    def leave_out(self, seconds: float) -> None:
        """Have the clock not count seconds in which the run stood still."""
        self._deadline += seconds

    @property
    def is_late(self) -> bool:
        """Whether time is up; then no verdict is waited for, because each may take a minute."""
        return time.monotonic() >= self._deadline

    @property
    def is_spent(self) -> bool:
        """Whether the budget allows no further candidate."""
        return self.reached is not None or self.is_late


def cost(
    prices: PriceSettings, *, prompt_tokens: int, cached_prompt_tokens: int, generated_tokens: int
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

    A run may reach further limits while it is wound up. The events do not tell if the clock ran out
    after the last of them.
    """
    account = Account(budget, RunHistory(direction=direction))
    for recorded in events:
        account.history.fold(recorded)
        if account.reached is not None:
            return account.reached
    return None
