"""When a run ends: the group ``budget``."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from engine.section import Number, Section, Whole, require, section

MOST_COUNT = 1 << 63
"""Above a budget's counts: their shares are floats, and far larger ones fit none."""
Price = Annotated[Number, Field(ge=0)]


@section
class PriceSettings(Section):
    """Prices of a million tokens, all in the same currency, whichever it is.

    Attributes:
        prompt: the price of prompt tokens that were computed, for each child.
        cached_prompt: the price of those that the prefix cache served.
        generated: the price of sampled tokens.
    """

    prompt: Price
    cached_prompt: Price
    generated: Price


@section
class BudgetSettings(Section):
    """When a run ends: whichever comes first, counted over all its sessions; see ``engine.budget``.

    Each is None for no limit, but not all of the first four.

    Attributes:
        candidates: evaluated programs, the initial one and those of a pool not counted.
        seconds: wall seconds.
        tokens: generated tokens, those of guesses that came to nothing included.
        money: what prompts and answers cost at these prices.
        target: a score at which the run has what it wants.
        patience: candidates in a row that are no better than the best.
        prices: what tokens cost.
    """

    candidates: Annotated[Whole, Field(ge=0, lt=MOST_COUNT)] | None
    seconds: Annotated[Number, Field(ge=0)] | None
    tokens: Annotated[Whole, Field(ge=0, lt=MOST_COUNT)] | None
    money: Annotated[Number, Field(ge=0)] | None
    target: Number | None
    patience: Annotated[Whole, Field(ge=1, lt=MOST_COUNT)] | None
    prices: PriceSettings

    @model_validator(mode="after")
    def _every_run_ends(self) -> Self:
        ends = (self.candidates, self.seconds, self.tokens, self.money)
        must_be = "a number, or else one of budget.seconds, budget.tokens and budget.money"
        require(any(each is not None for each in ends), "candidates", None, must_be)
        prices = self.prices
        has_price = prices.prompt or prices.cached_prompt or prices.generated
        must_be = "null as long as all budget.prices are 0"
        require(self.money is None or bool(has_price), "money", self.money, must_be)
        return self
