"""Each method on whole groups: formulas, theorem 1's identities, and when nothing is learned."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from engine.config import resolve
from engine.learning.advantages import advantages
from engine.settings import LearningSettings
from kernels import advantages_reference as reference

METHODS = ("grpo", "mean_baseline", "entropic", "max_at_k", "phase_adaptive")
SETTINGS = resolve([]).learning
GROUP = [5.0, -1.0, 0.5, 2.0, -1.0, 1.25, 0.0, 3.5]
groups = st.lists(st.floats(-1, 5, width=16), min_size=4, max_size=8)


def found(
    method: str,
    rewards: list[float],
    progress: float = 0.5,
    settings: LearningSettings = SETTINGS,
) -> np.ndarray | None:
    return advantages(method, rewards, progress=progress, settings=settings)


def some(*args: object, **kwargs: object) -> np.ndarray:
    result = found(*args, **kwargs)  # type: ignore[arg-type]
    assert result is not None
    return result


def phi(values: np.ndarray) -> np.ndarray:
    return (values - values.mean()) / values.std()


def test_grpo_by_hand() -> None:
    # mean 1, population variance (4 + 4 + 0 + 0) / 4
    assert_allclose(some("grpo", [3.0, -1.0, 1.0, 1.0]), np.array([2, -2, 0, 0]) / math.sqrt(2))


def test_mean_baseline_by_hand() -> None:
    assert_array_equal(some("mean_baseline", [3.0, -1.0, 1.0, 1.0]), [2, -2, 0, 0])


def test_max_at_k_is_the_mean_over_all_subsets() -> None:
    assert_allclose(some("max_at_k", GROUP), reference.best_of_k(np.array(GROUP), 4))
    settings = replace(SETTINGS, best_of=2)
    expected = reference.best_of_k(np.array(GROUP), 2)
    assert_allclose(some("max_at_k", GROUP, settings=settings), expected)


def test_entropic_has_the_divergence_that_is_set() -> None:
    for gamma in (0.1, math.log(2), 1.5):
        weights = some("entropic", GROUP, settings=replace(SETTINGS, entropic_kl=gamma)) + 1
        # e_i / Z_-i = w_i gives e_i / (sum of e) = w_i / (N - 1 + w_i)
        q = weights / (len(GROUP) - 1 + weights)
        assert q.sum() == pytest.approx(1, abs=1e-6)
        kept = q[q > 0]
        assert np.sum(kept * np.log(kept * q.size)) == pytest.approx(gamma, abs=1e-6)


def test_the_phase_moves_from_the_mean_to_the_best() -> None:
    rewards = np.array(GROUP)
    group, best = phi(rewards), phi(reference.best_of_k(rewards, 4))
    for progress in (0.0, 0.25, 1.0):
        expected = (1 - progress) * group + progress * best
        assert_allclose(some("phase_adaptive", GROUP, progress), expected, rtol=1e-6)


@given(groups, st.floats(1e-3, 1e3), st.floats(-10, 10), st.floats(0, 1))
def test_compressed_rewards_give_the_same_standardised_credit(
    rewards: list[float], delta: float, shift: float, progress: float
) -> None:
    """Theorem 1: A^G and SLOO scale with the rewards, and their standardised forms do not."""
    one = np.array(rewards)
    assume(one.std() > 0.1 and reference.best_of_k(one, 4).std() > 0.1)
    other = list(shift + delta * one)
    centred, best = some("mean_baseline", other), some("max_at_k", other)
    assert_allclose(centred, delta * some("mean_baseline", rewards), rtol=1e-6, atol=1e-9)
    assert np.sum(centred**2) == pytest.approx(len(one) * delta**2 * one.var(), rel=1e-6)
    assert_allclose(best, delta * some("max_at_k", rewards), rtol=1e-6, atol=1e-9)
    assert np.count_nonzero(np.sort(best)[:3]) == 0
    for method in ("grpo", "phase_adaptive"):
        mixed = some(method, other, progress)
        assert_allclose(mixed, some(method, rewards, progress), rtol=1e-3, atol=1e-3)
        assert np.sum(mixed**2) <= len(one) * (1 + 1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_a_better_reward_never_counts_less(method: str) -> None:
    result = some(method, GROUP)
    order = np.argsort(GROUP, kind="stable")
    assert (np.diff(result[order]) >= 0).all()
    assert result[1] == result[4]  # equal rewards


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("rewards", [[], [2.0], [2.0, 2.0], [-1.0] * 8, [0.1] * 3, [1e300] * 4])
def test_a_group_that_says_nothing_is_skipped(method: str, rewards: list[float]) -> None:
    assert found(method, rewards) is None


@pytest.mark.parametrize("method", METHODS)
def test_differences_of_less_than_a_millionth_are_noise(method: str) -> None:
    assert found(method, [1.0, 1.0 + 1e-7, 1.0, 1.0 - 1e-7, 1.0]) is None


def test_a_branch_that_collapsed_skips_only_where_it_counts() -> None:
    # Six of eight share the best reward, so that no three are below it and no child of four wins.
    tied = [1.0] * 6 + [0.0, 0.5]
    assert found("max_at_k", tied) is None
    assert found("phase_adaptive", tied, 1e-9) is None
    assert_allclose(some("phase_adaptive", tied, 0.0), some("grpo", tied))
    assert found("phase_adaptive", [*tied[1:], 0.0], 0.5) is not None


@pytest.mark.parametrize("method", METHODS)
def test_a_group_of_two(method: str) -> None:
    result = some(method, [0.0, 1.0], 1.0)  # k is 2 then
    assert result[1] > 0 >= result[0]
    assert np.isfinite(result).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("rewards", [[1e300, -1e300, 0.0, 1.0, 1e300], [-1e300, 0.0, 1e-300, 1.0]])
def test_extreme_rewards_do_not_overflow(method: str, rewards: list[float]) -> None:
    with np.errstate(all="raise", under="ignore"):
        assert np.isfinite(some(method, rewards)).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_reward_that_is_not_finite_is_named(method: str, bad: float) -> None:
    with pytest.raises(ValueError, match=f"that of child 2 is {bad}"):
        found(method, [0.0, 1.0, bad, 2.0])


@pytest.mark.parametrize("progress", [-0.1, 1.1, math.nan])
def test_a_progress_is_a_share(progress: float) -> None:
    with pytest.raises(ValueError, match="progress from 0 to 1"):
        found("phase_adaptive", GROUP, progress)


@pytest.mark.parametrize("method", ["none", "expert", "ppo"])
def test_other_methods_have_no_advantages(method: str) -> None:
    with pytest.raises(ValueError, match=f"'{method}' has no advantages"):
        found(method, GROUP)


def test_the_rewards_are_a_vector() -> None:
    with pytest.raises(ValueError, match=r"shape is \(2, 2\)"):
        advantages("grpo", np.ones((2, 2)), progress=0.0, settings=SETTINGS)


@pytest.mark.parametrize("method", METHODS)
def test_the_rewards_are_left_as_they_are(method: str) -> None:
    rewards = np.array(GROUP)
    advantages(method, rewards, progress=0.5, settings=SETTINGS)
    assert_array_equal(rewards, GROUP)
