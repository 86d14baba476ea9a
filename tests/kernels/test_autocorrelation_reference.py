"""The compiled autocorrelation kernels against exact rational numbers, and their error bounds."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import assume, example, given
from hypothesis import strategies as st

from kernels import autocorrelation, autocorrelation_reference
from kernels.autocorrelation import Ratio, Series

usual = st.sampled_from([0.0, 1.0, 0.1, 3.0]) | st.floats(0, 1e3)
signed = usual | st.floats(-1e3, 1e3)
any_size = st.floats(0, allow_nan=False, allow_infinity=False)


def lists(values: st.SearchStrategy[float]) -> st.SearchStrategy[Series]:
    return st.lists(values, min_size=1, max_size=30).map(lambda v: np.array(v, dtype=np.float64))


def check(got: Ratio, exact: Fraction) -> None:
    """Check that the stated bound holds."""
    assert abs(Fraction(got.value) - exact) <= Fraction(got.error) * exact


@given(lists(usual) | lists(any_size))
@example(np.array([1e-200, 1e-160, 1.0]))
@example(np.array([1.7976931348623157e308] * 5))
@example(np.array([5e-324, 1e-323]))
def test_ratios_without_negative_samples_are_within_their_bounds(f: Series) -> None:
    assume(f.any())
    check(autocorrelation.peak_ratio(f), autocorrelation_reference.peak_ratio(f))
    check(autocorrelation.norm_ratio(f), autocorrelation_reference.norm_ratio(f))


@given(lists(signed))
@example(np.array([1e3, 1.0, -1e3, 1e-10]))
@example(np.array([0.1, 0.2, -0.3]))  # cancels to 2^-54 in float64
def test_peak_ratios_of_any_sign_are_within_their_bounds(f: Series) -> None:
    got = autocorrelation.peak_ratio(f)
    if got.error < 1e-6:  # above, the bound claims nothing
        check(got, autocorrelation_reference.peak_ratio(f))


def test_long_functions_are_within_their_bounds() -> None:
    rng = np.random.default_rng(3)
    for f in (rng.random(150), rng.random(151) ** 8, rng.normal(0.3, 1.0, 150)):
        check(autocorrelation.peak_ratio(f), autocorrelation_reference.peak_ratio(f))
        check(autocorrelation.norm_ratio(abs(f)), autocorrelation_reference.norm_ratio(abs(f)))


@given(lists(signed))
def test_autoconvolution_is_within_its_bound(f: Series) -> None:
    d = f.size // 2 + 2
    allowed = Fraction(d, 2**53 - d)
    got = autocorrelation.autoconvolution(f)
    exact = autocorrelation_reference.autoconvolution(f)
    sizes = autocorrelation_reference.autoconvolution(abs(f))
    tiny = Fraction(len(f), 2**1074)  # these samples are not scaled, so products can underflow
    for a, b, size in zip(got.tolist(), exact, sizes, strict=True):
        assert abs(Fraction(a) - b) <= allowed * size + tiny


@given(lists(usual))
def test_the_ratios_have_their_ranges(f: Series) -> None:
    assume(f.any())
    assert autocorrelation.peak_ratio(f).value >= 1 - 1e-12
    assert 0 < autocorrelation.norm_ratio(f).value <= 1 + 1e-12
