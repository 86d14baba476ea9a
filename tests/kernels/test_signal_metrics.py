"""The signal metrics on hand-worked examples and degenerate input, compiled and reference."""

from __future__ import annotations

import math
from types import ModuleType

import numpy as np
import pytest

from kernels import signal, signal_reference
from kernels.signal import Series

FUNCTIONS = (
    "slope_changes",
    "false_reversals",
    "lag_error",
    "tracking_error",
    "composite",
    "correlation",
    "noise_reduction",
    "measure",
    "overall",
)
both = pytest.mark.parametrize("kernels", [signal, signal_reference], ids=["numba", "numpy"])


def series(*values: float) -> Series:
    return np.array(values, dtype=np.float64)


def test_every_kernel_has_its_reference() -> None:
    for name in FUNCTIONS:
        assert getattr(signal, name).__name__ == getattr(signal_reference, name).__name__ == name


@both
@pytest.mark.parametrize(
    ("values", "count"),
    [
        ((0, 1, 0, 1, 0), 3),
        ((0, 1, 2, 3), 0),
        ((3, 3, 3, 3), 0),
        ((0, 1, 1, 2), 1),  # coming to rest counts, setting off from rest does not
        ((0, 1, 1, 0), 1),
        ((1, 1, 2, 1), 1),
        ((0, 1), 0),
        ((5,), 0),
        ((1e308, -1e308, 1e308), 1),  # the differences overflow, their signs do not
        ((0, 5e-324, 0), 1),
    ],
)
def test_slope_changes(kernels: ModuleType, values: tuple[float, ...], count: int) -> None:
    assert kernels.slope_changes(series(*values)) == count


@both
@pytest.mark.parametrize(
    ("clean", "count"),
    [
        ((0, 1, 0, 1, 0), 0),  # each output reversal is one of the clean signal too
        ((0, 1, 2, 3, 4), 3),
        ((0, 1, 0, 0, 0), 1),  # the clean signal turns at 1, rests at 2, and stays there
        ((1, 0, 1, 0, 1), 0),  # the direction of a reversal does not matter, its place does
    ],
)
def test_false_reversals(kernels: ModuleType, clean: tuple[float, ...], count: int) -> None:
    assert kernels.false_reversals(series(0, 1, 0, 1, 0), series(*clean)) == count


@both
def test_a_reversal_one_sample_late_is_false(kernels: ModuleType) -> None:
    assert kernels.false_reversals(series(0, 1, 2, 1), series(0, 1, 0, -1)) == 1


@both
def test_errors(kernels: ModuleType) -> None:
    output, noisy = series(1, 2, 3), series(1, 4, -1)
    assert kernels.lag_error(output, noisy) == 4
    assert kernels.tracking_error(output, noisy) == pytest.approx(2)  # (0 + 2 + 4) / 3


@both
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((0, 0, 0, 0), 1),
        ((50, 0, 0, 0), 1 / 1.3),
        ((0, 1, 0, 0), 1 / 1.2),
        ((0, 0, 0.5, 0), 1 / 1.1),
        ((0, 0, 0, 25), 1 / 1.3),
        ((25, 0.5, 1, 5), 1 / 1.51),  # 1 + 0.15 + 0.1 + 0.2 + 0.06
        ((1e9, math.inf, 1e300, 1e9), 1 / 3),  # every penalty capped at 2
    ],
)
def test_composite(kernels: ModuleType, arguments: tuple[float, ...], expected: float) -> None:
    assert kernels.composite(*map(float, arguments)) == pytest.approx(expected, rel=1e-14)


@both
@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [
        ((1, 2, 3), (10, 20, 30), 1),
        ((1, 2, 3), (-1, -2, -3), -1),
        ((1, 2, 3), (1, 3, 1), 0),
        ((1, 2, 3, 4), (1, 3, 2, 4), 0.8),  # deviations (-3 -1 1 3)/2, (-3 1 -1 3)/2: 16 / 20
        ((1, 1, 1), (1, 2, 3), 0),  # constant: 0 by rule
        ((1, 2, 3), (0.1, 0.1, 0.1), 0),
        ((7,), (7,), 0),
        ((1e16, 1e16 + 2, 1e16 + 4), (1, 2, 3), 1),  # a small spread round a large mean
        ((-1e308, 0, 1e308), (1, 2, 3), 1),
        ((0, 1e-300, 2e-300), (1e300, 2e300, 3e300), 1),
    ],
)
def test_correlation(
    kernels: ModuleType, x: tuple[float, ...], y: tuple[float, ...], expected: float
) -> None:
    assert kernels.correlation(series(*x), series(*y)) == pytest.approx(expected, abs=1e-14)


def test_rounding_does_not_take_the_correlation_past_1() -> None:
    rng = np.random.default_rng(0)
    for x in rng.normal(size=(500, 30)):
        assert 1 - 1e-12 < signal.correlation(x, 0.3 * x - 7) <= 1
        assert -1 <= signal.correlation(x, 7 - 0.3 * x) < -1 + 1e-12


@both
@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ((0, 1, 2, 3), 1),  # the clean signal itself
        ((5, 6, 7, 8), 1),  # an offset is not noise
        ((2, -1, 4, 1), 0),  # the noisy signal itself
        ((1, 0, 3, 2), 0.75),  # half the noise: a quarter of its variance
        ((4, -3, 6, -1), 0),  # twice the noise: 1 - 4, cut at 0
        ((1e308, -1e308, 1e308, -1e308), 0),
    ],
)
def test_noise_reduction(kernels: ModuleType, output: tuple[float, ...], expected: float) -> None:
    clean = series(0, 1, 2, 3)
    noisy = clean + series(2, -2, 2, -2)
    given = kernels.noise_reduction(series(*output), noisy, clean)
    assert given == pytest.approx(expected, abs=1e-14)


@both
def test_no_noise_leaves_nothing_to_reduce(kernels: ModuleType) -> None:
    clean = series(0, 1, 2, 3)
    assert kernels.noise_reduction(clean, clean, clean) == 0
    assert kernels.noise_reduction(series(3, 0, 1, 0), clean + 0.5, clean) == 0


@both
def test_measure_puts_the_metrics_together(kernels: ModuleType) -> None:
    output, noisy, clean = series(0, 1, 0, 1), series(0, 1, 0, 3), series(0, 1, 2, 1)
    got = kernels.measure(output, noisy, clean)
    assert (got.slope_changes, got.false_reversals) == (2, 1)
    assert (got.lag_error, got.tracking_error) == (2, 0.5)
    assert got.composite == pytest.approx(1 / (1 + 0.012 + 0.4 + 0.1 + 0.012))
    # r: deviations (-1 1 -1 1)/2 and (-1 0 1 0), so 0. NR: errors 0 0 -2 0 with variance 3/4,
    # noise 0 0 -2 2 with variance 2.
    assert got.correlation == pytest.approx(0, abs=1e-15)
    assert got.noise_reduction == pytest.approx(1 - 0.75 / 2)


@both
def test_overall(kernels: ModuleType) -> None:
    arguments = series(0.5, 1), series(0, 40), series(0.2, 0.8), series(0, 1)
    # 0.4 * 0.75 + 0.2 / (1 + 20/20) + 0.2 * 0.5 + 0.1 * 0.5 + 0.1
    assert kernels.overall(*arguments) == pytest.approx(0.65)


@both
def test_overall_is_0_where_the_mean_correlation_is_too_low(kernels: ModuleType) -> None:
    rest = series(1, 1), series(0, 0)
    assert kernels.overall(*rest, series(0.3, -0.11), series(1, 1)) == 0
    assert kernels.overall(*rest, series(-1, -1), series(1, 1)) == 0
    assert kernels.overall(*rest, series(0.3, -0.09), series(1, 1)) > 0.8


@pytest.mark.parametrize("lengths", [(2, 3, 3), (3, 2, 3), (3, 3, 2), (0, 0, 0)])
def test_measure_refuses_lengths_that_differ_or_are_0(lengths: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="one length above 0"):
        signal.measure(*(np.zeros(length) for length in lengths))
