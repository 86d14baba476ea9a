"""The cost of a call: planted costs are found, through noise and stalls."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from engine.search.widths import IterationOutcome
from engine.search.widths.call_cost import CallCost

CPU = (1e-3, 15e-3, 1.5e-3)  # seconds a token of prefill, a step, a token of decode
GPU = (1e-4, 20e-3, 5e-5)
FLAT = (1e-3, 1e-6, 5e-3)  # hardly a cost of a step


def call(
    iteration: int, lengths: list[int], costs: tuple[float, float, float], first: int = 400
) -> IterationOutcome:
    """Return a call that took what eq. 1 says; each further child computed 20 tokens."""
    k, a_b_c = len(lengths), np.array(costs)
    computed = first + 20 * (k - 1)
    return IterationOutcome(
        island=0,
        iteration=iteration,
        parent="initial",
        children=k,
        improved=0,
        model_seconds=float(a_b_c @ [computed, max(lengths), sum(lengths)]),
        computed_tokens=computed,
        repeated_tokens=20 * (k - 1),
        decode_steps=max(lengths),
        generated_tokens=sum(lengths),
        evaluation_seconds=0.0,
    )


def planted(costs: tuple[float, float, float], *, length: int, k: int) -> float:
    """Return what K children of equal length cost."""
    a, b, c = costs
    return a * (400 + 20 * (k - 1)) + b * length + c * k * length


def told(calls: list[IterationOutcome]) -> CallCost:
    cost = CallCost()
    for each in calls:
        cost.tell(each)
    return cost


def equal_calls(costs: tuple[float, float, float], count: int = 60) -> list[IterationOutcome]:
    """Return calls of changing K and first tokens (400 on average), children of equal length."""
    ks = (1, 3, 8, 16, 2)
    return [call(i, [40] * ks[i % 5], costs, first=300 + 200 * (i % 2)) for i in range(count)]


@pytest.mark.parametrize("costs", [CPU, GPU, FLAT])
def test_planted_costs_are_found(costs: tuple[float, float, float]) -> None:
    seconds = told(equal_calls(costs)).seconds(32)
    assert seconds.shape == (32,)
    for k in (1, 2, 8, 16, 32):
        assert seconds[k - 1] == pytest.approx(planted(costs, length=40, k=k), rel=0.03)


@pytest.mark.parametrize("costs", [CPU, GPU])
def test_noise_and_stalled_calls_do_not_mislead(costs: tuple[float, float, float]) -> None:
    rng = np.random.default_rng(1)
    calls = []
    for each in equal_calls(costs):
        factor = rng.lognormal(0, 0.1) * (30 if rng.random() < 0.15 else 1)
        calls.append(dataclasses.replace(each, model_seconds=each.model_seconds * factor))
    seconds = told(calls).seconds(16)
    for k in (1, 4, 16):
        assert seconds[k - 1] == pytest.approx(planted(costs, length=40, k=k), rel=0.2)


def test_one_call_sets_the_scale_for_all() -> None:
    one = call(0, [40], (0.5, 2.0, 7.0))
    seconds = told([one]).seconds(8)
    assert seconds[0] == pytest.approx(one.model_seconds, rel=1e-3)
    assert (np.diff(seconds) > 0).all()


def test_before_the_first_call_a_wider_one_costs_more_but_not_in_proportion() -> None:
    seconds = CallCost().seconds(8)
    assert (seconds > 0).all()
    assert (np.diff(seconds) > 0).all()
    assert (np.diff(seconds / np.arange(1, 9)) < 0).all()


def test_the_longest_child_is_longer_among_more() -> None:
    # A mean of 40 tokens, and the longest of 4 has 40 (1 + v ln 4) = 80, so v = 1 / ln 4 and the
    # longest of 16 has 120. Only steps cost anything: 10 ms each.
    lengths = ([80, 20, 20, 40], [40])
    calls = [
        call(i, lengths[i % 2], (0.0, 10e-3, 0.0), first=100 + 200 * (i // 2 % 3))
        for i in range(60)
    ]
    seconds = told(calls).seconds(16)
    assert seconds[[0, 3, 15]] == pytest.approx([0.4, 0.8, 1.2], rel=0.03)


def test_evaluators_that_are_slower_set_the_pace() -> None:
    # 8 children take them 4 s, half a second each.
    calls = [
        dataclasses.replace(each, evaluation_seconds=0.5 * each.children)
        for each in equal_calls(CPU)
    ]
    seconds = told(calls).seconds(16)
    assert seconds[0] == pytest.approx(planted(CPU, length=40, k=1), rel=0.03)
    assert seconds[3:] == pytest.approx(0.5 * np.arange(4, 17))


def test_seconds_are_in_the_unit_they_were_told_in() -> None:
    calls = equal_calls(CPU, count=7)
    slower = [dataclasses.replace(each, model_seconds=1e6 * each.model_seconds) for each in calls]
    assert told(slower).seconds(8) == pytest.approx(1e6 * told(calls).seconds(8), rel=1e-6)


def test_a_call_that_was_not_timed_or_generated_nothing_is_left_out() -> None:
    calls = equal_calls(CPU, count=5)
    nothing = dataclasses.replace(calls[0], decode_steps=0, generated_tokens=0)
    untimed = dataclasses.replace(calls[0], model_seconds=0.0)
    assert list(told([nothing, *calls, untimed]).seconds(8)) == list(told(calls).seconds(8))


def test_what_was_long_ago_is_forgotten() -> None:
    seconds = told(equal_calls(GPU, count=100) + equal_calls(CPU, count=65)).seconds(8)
    assert list(seconds) == list(told(equal_calls(CPU, count=65)).seconds(8))
