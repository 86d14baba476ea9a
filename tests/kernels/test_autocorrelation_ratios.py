"""The ratios of the autocorrelation problems: hand-worked, known and degenerate functions."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from kernels.autocorrelation import Ratio, Series, autoconvolution, norm_ratio, peak_ratio, scaled

Kernel = Callable[[Series], Ratio]
both = pytest.mark.parametrize("ratio", [peak_ratio, norm_ratio])


def series(*values: float) -> Series:
    return np.array(values, dtype=np.float64)


def test_autoconvolution_by_hand() -> None:
    assert autoconvolution(series(1, 3)).tolist() == [1, 6, 9]
    assert autoconvolution(series(2, 0, -1)).tolist() == [4, 0, -4, 0, 1]
    assert autoconvolution(series(5)).tolist() == [25]


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        ((1, 1), 2),  # every constant
        ((7, 7, 7, 7, 7), 2),
        ((0, 1), 4),  # all on half of the interval
        ((1, 3), 2.25),  # 4 * 9 / 16
        ((2, -1.5), 96),  # y = 4, -6, 2.25: the negative peak counts; 4 * 6 / 0.25
        ((-2, 1.5), 96),
        ((1, -1, 1), 18),  # y = 1, -2, 3, -2, 1; 6 * 3 / 1
    ],
)
def test_peak_ratio_by_hand(f: tuple[float, ...], expected: float) -> None:
    assert peak_ratio(series(*f)).value == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        ((1, 1), 2 / 3),  # a triangle: height 1, width 1, squared integral 1/3, integral 1/2
        ((4, 4, 4), 2 / 3),
        ((0, 1, 0), 2 / 3),
        ((1, 3), 296 / 432),  # y = 1, 6, 9: (2 * 118 + 60) / (3 * 16 * 9)
    ],
)
def test_norm_ratio_by_hand(f: tuple[float, ...], expected: float) -> None:
    assert norm_ratio(series(*f)).value == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize("n", [1, 10, 1000, 10_000])
def test_peak_ratio_of_the_binomial_construction(n: int) -> None:
    # f_i = C(2i, i) / 4^i are the coefficients of (1 - x)^-1/2, so y_k = 1 for k < n, and less
    # after; their sum is 2n C(2n, n) / 4^n, and 2n over its square tends to pi / 2 from above.
    f = np.cumprod(np.concatenate(([1.0], (np.arange(1, n) - 0.5) / np.arange(1, n))))
    total = 2 * n * math.exp(math.lgamma(2 * n + 1) - 2 * math.lgamma(n + 1) - n * math.log(4))
    ratio = peak_ratio(f)
    assert ratio.value == pytest.approx(2 * n / total**2, rel=1e-9)
    assert ratio.value > math.pi / 2
    if n == 10_000:
        assert ratio.value == pytest.approx(math.pi / 2, rel=1e-4)
        assert ratio.error < 1e-11


def test_the_largest_allowed_size_has_a_small_bound() -> None:
    f = np.random.default_rng(0).random(10_000)
    assert peak_ratio(f).error < 1e-11
    assert norm_ratio(f).error < 1e-11
    y = np.convolve(f, f)
    assert peak_ratio(f).value == pytest.approx(20_000 * y.max() / f.sum() ** 2, rel=1e-11)


def test_a_sparse_function_has_the_largest_bound_of_those_without_signs() -> None:
    # Erdos and Turan's Sidon set, 2 p k + (k^2 mod p): no two pairs of its marks have one sum.
    p = 67
    marks = [2 * p * k + k * k % p for k in range(p)]
    f = np.zeros(10_000)
    f[marks] = 1.0
    assert np.max(autoconvolution(f)) == 2
    unit = 2.0**-53
    assert peak_ratio(f).error > 3.9e-11
    assert peak_ratio(f).error < unit * (10_004 * math.sqrt(20_000) + 20_012) < 1.6e-10


@both
@pytest.mark.parametrize("factor", [2.0**-1060, 2.0**-600, 2.0, 2.0**1000])
def test_powers_of_two_change_nothing(ratio: Kernel, factor: float) -> None:
    f = series(0.5, 1, 3, 0, 2)  # so few bits that they survive as subnormal numbers
    assert ratio(f * factor) == ratio(f)


@both
@pytest.mark.parametrize("factor", [1e-300, 1 / 3, 1e300])
def test_the_scale_does_not_matter(ratio: Kernel, factor: float) -> None:
    f = np.random.default_rng(1).random(200)
    a, b = ratio(f), ratio(f * factor)
    assert b.value == pytest.approx(a.value, rel=a.error + b.error + 4e-16)


@both
def test_values_at_the_ends_of_float64(ratio: Kernel) -> None:
    constant = ratio(series(1, 1, 1)).value
    for value in (5e-324, 1.7976931348623157e308):
        assert ratio(np.full(3, value)).value == pytest.approx(constant, rel=1e-15)
    spike = ratio(series(0, 0, 1)).value
    mixed = ratio(series(5e-324, 1e-300, 1.7e308)).value  # beside the spike, the rest is nothing
    assert mixed == pytest.approx(spike, rel=1e-15)


@both
def test_no_integral_has_no_ratio(ratio: Kernel) -> None:
    assert ratio(np.zeros(4)) == (0.0, math.inf)


def test_signs_that_cancel_show_in_the_bound() -> None:
    assert peak_ratio(series(1, -1)) == (0.0, math.inf)
    for left in (1e-300, 5e-324, -1e-170):  # the square of the integral is 0
        assert peak_ratio(series(1, -1, left)) == (0.0, math.inf)
    assert peak_ratio(series(1, -1, 1e-160)).error > 1e100  # it is subnormal
    loose = peak_ratio(series(1, 0.1, -1, -0.1, 1e-13))
    assert loose.error > 1e-3
    assert peak_ratio(series(1, -0.5)).error < 1e-14


@both
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_refused(ratio: Kernel, value: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        ratio(series(1, value))


@both
def test_nothing_is_refused(ratio: Kernel) -> None:
    with pytest.raises(ValueError, match="at least one sample"):
        ratio(series())


def test_norms_of_negative_samples_are_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        norm_ratio(series(1, -5e-324 * 2**60))


def test_scaled_brings_the_largest_between_1_and_2() -> None:
    assert scaled(series(3, -12, 0)).tolist() == [0.375, -1.5, 0]
    assert scaled(series(5e-324)).tolist() == [1]
    assert scaled(np.zeros(2)).tolist() == [0, 0]
