"""The width that pays: near the best where that is known, whatever it is told, and replayed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from engine.search.widths import IterationOutcome
from engine.search.widths.cost_aware import CostAwareSettings, CostAwareWidth

K_MAX = 32


def policy(*, k_min: int = 1, k_max: int = K_MAX, seed: int = 0, island: int = 0) -> CostAwareWidth:
    settings = CostAwareSettings(policy="cost_aware", k_min=k_min, k_max=k_max)
    return settings.make(k=8, seed=seed, island=island)


def outcome(
    iteration: int,
    *,
    children: int,
    improved: int,
    seconds: float = 1.0,
    first: int = 500,
    length: int = 40,
    evaluation: float = 0.0,
) -> IterationOutcome:
    """Return a call whose children have equal lengths."""
    return IterationOutcome(
        island=0,
        iteration=iteration,
        parent="initial",
        children=children,
        improved=improved,
        model_seconds=seconds,
        computed_tokens=first,
        repeated_tokens=0,
        decode_steps=length,
        generated_tokens=length * children,
        evaluation_seconds=evaluation,
    )


class World:
    """A search whose rates and costs are known."""

    def __init__(
        self,
        *,
        rate: float,
        correlation: float,
        first: int = 500,
        costs: tuple[float, float, float] = (1e-3, 15e-3, 1e-3),
        evaluation: float = 0.0,
    ) -> None:
        total = 1 / correlation - 1
        self.alpha, self.beta = rate * total, (1 - rate) * total
        self.first, self.costs, self.evaluation = first, costs, evaluation
        ks = np.arange(1, K_MAX + 1)
        chances = 1 - stats.betabinom.pmf(0, ks, self.alpha, self.beta)
        seconds = [max(self.model_seconds(int(k)), evaluation * k) for k in ks]
        self.gains = chances / np.array(seconds)  # by K; shape (K_MAX,)

    def model_seconds(self, k: int) -> float:
        a, b, c = self.costs
        return a * self.first + b * 40 + c * 40 * k

    def run(self, chooser: CostAwareWidth, *, calls: int) -> list[int]:
        """Return the widths of ``calls`` calls, whose outcomes are told."""
        rng = np.random.default_rng(3)
        found = []
        for iteration in range(calls):
            k = chooser.k(iteration=iteration)
            found.append(k)
            improved = int(rng.binomial(k, rng.beta(self.alpha, self.beta)))
            chooser.tell(
                outcome(
                    iteration,
                    children=k,
                    improved=improved,
                    seconds=self.model_seconds(k) * float(rng.lognormal(0, 0.1)),
                    first=self.first,
                    evaluation=self.evaluation * k,
                )
            )
        return found

    def share_of_best(self, widths: list[int]) -> float:
        """Return what these widths bring a second, over what the best one does."""
        return float(self.gains[np.array(widths) - 1].mean() / self.gains.max())


@pytest.mark.parametrize(
    ("world", "narrowest", "widest"),
    [
        (World(rate=0.03, correlation=0.05, first=4000), 16, 32),  # prompts are dear
        (World(rate=0.3, correlation=0.3, first=0, costs=(1e-3, 5e-3, 10e-3)), 1, 3),
        (World(rate=0.05, correlation=0.2, evaluation=0.5), 1, 4),  # evaluators are slow
        (World(rate=0.1, correlation=0.3), 6, 16),
    ],
)
def test_it_comes_near_the_best_width(world: World, narrowest: int, widest: int) -> None:
    assert narrowest <= int(np.argmax(world.gains)) + 1 <= widest  # the world is as meant
    widths = world.run(policy(), calls=120)
    assert world.share_of_best(widths[40:]) > 0.9
    assert narrowest / 2 <= np.median(widths[40:]) <= 2 * widest


def median_after(improved: list[int]) -> float:
    """Return the median of 40 draws after calls with 8 children, of which so many improved."""
    chooser = policy()
    for iteration, count in enumerate(improved):
        chooser.tell(outcome(iteration, children=8, improved=count))
    return float(np.median([chooser.k(iteration=100 + i) for i in range(40)]))


def test_rarer_improvements_make_wider_calls() -> None:
    assert median_after([0] * 40) > median_after([3, 2, 4, 3] * 10) > median_after([8] * 40)


def test_with_every_child_an_improvement_one_is_enough() -> None:
    assert median_after([8] * 60) <= 2


def test_before_it_knows_anything_it_tries_different_widths() -> None:
    widths = [policy(seed=seed).k(iteration=0) for seed in range(40)]
    assert len(set(widths)) > 8
    assert 1 <= min(widths) <= max(widths) <= K_MAX


def test_islands_and_iterations_draw_differently() -> None:
    def drawn(island: int) -> list[int]:
        chooser = policy(island=island)
        return [chooser.k(iteration=iteration) for iteration in range(20)]

    assert len(set(drawn(0))) > 4
    assert drawn(0) != drawn(1)


@pytest.mark.parametrize(("k_min", "k_max"), [(0, 4), (5, 4), (-1, -1)])
def test_bounds_without_a_width_are_an_error(k_min: int, k_max: int) -> None:
    with pytest.raises(ValueError, match="k_min"):
        policy(k_min=k_min, k_max=k_max)


def test_equal_bounds_fix_the_width() -> None:
    chooser = policy(k_min=6, k_max=6)
    for iteration in range(5):
        assert chooser.k(iteration=iteration) == 6
        chooser.tell(outcome(iteration, children=6, improved=6))


@st.composite
def outcomes(draw: st.DrawFn) -> list[IterationOutcome]:
    """Return anything that a caller could tell, from nothing at all to absurd costs."""
    found = []
    for iteration in range(draw(st.integers(0, 5))):
        children = draw(st.integers(0, 300))
        length = draw(st.integers(0, 1 << 24)) if children else 0
        computed = draw(st.integers(0, 1 << 24))
        found.append(
            IterationOutcome(
                island=0,
                iteration=iteration,
                parent="initial",
                children=children,
                improved=draw(st.integers(0, children)),
                model_seconds=draw(st.floats(0, 1e12)),
                computed_tokens=computed,
                repeated_tokens=draw(st.integers(0, computed)),
                decode_steps=length,
                generated_tokens=draw(st.integers(length, length * children)) if length else 0,
                evaluation_seconds=draw(st.floats(0, 1e12)),
            )
        )
    return found


@pytest.mark.filterwarnings("error")
@given(outcomes(), st.integers(1, 40), st.integers(0, 40), st.integers(0, 2**63 - 1))
def test_it_keeps_to_its_bounds_and_a_replay_goes_on_alike(
    told: list[IterationOutcome], k_min: int, more: int, seed: int
) -> None:
    live, replayed = (policy(k_min=k_min, k_max=k_min + more, seed=seed) for _ in range(2))
    for each in told:
        live.k(iteration=each.iteration)  # the replay does not ask
        live.tell(each)
        replayed.tell(each)
        asked = [live.k(iteration=each.iteration + i) for i in (1, 2, 1)]
        assert asked == [replayed.k(iteration=each.iteration + i) for i in (1, 2, 1)]
        assert asked[0] == asked[2]
        assert all(k_min <= k <= k_min + more for k in asked)
