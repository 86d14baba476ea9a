"""The autocorrelation inequalities: two scale-free ratios of a step function's autoconvolution.

``f`` has shape (n,): the heights of a step function on n equal parts of [-1/4, 1/4], each of width
h = 1/(2n), and 0 outside. Its autoconvolution (f*f)(t), the integral of f(t - x) f(x), lives on
[-1/2, 1/2], is 0 at both ends and exactly linear between the knots t = -1/2 + (k + 1) h, where it
is h y_k with y_k = sum_i f_i f_(k-i), k = 0 .. 2n - 2. So its maximum and its norms are those of
the y_k, with no error of discretisation, and each exact ratio bounds the constant of its inequality
(AlphaEvolve, arXiv:2506.13131, appendices B.1 to B.3). What is returned is the ratio as float64
gives it, not rounded to the safe side, with a bound of its error beside it. Ratios have no unit.

Rounding: u = 2^-53 is the unit roundoff of float64; ``f`` is first scaled by a power of two to
max abs(f) in [1, 2), which is exact but for values under 2^-1074 times the largest, so that nothing
overflows and what underflows, n^2 2^-1073 in all, is out of sight. The sums are direct and not by
FFT, so that the bound that comes with each ratio can be derived beside the code.

Does not cover which functions a problem allows (``evaluators/*_autocorr``).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernels.jit import jit

Series = NDArray[np.float64]

UNIT_ROUNDOFF = 2.0**-53


class Ratio(NamedTuple):
    """A ratio, and a bound of abs(value - exact) / exact, both of ``f`` as it was given.

    The bound holds wherever it is below 1e-6; above, the value is not to be used. Where there is no
    ratio, as the integral of ``f`` is 0 or its square underflows, the bound is infinite and the
    value 0.
    """

    value: float
    error: float


@jit
def scaled(f: Series) -> Series:
    """Return ``f`` times the power of two that brings max abs(f) into [1, 2); zeros stay zeros.

    Raises:
        ValueError: ``f`` is empty or not finite.
    """
    largest = 0.0
    for value in f:
        if not math.isfinite(value):
            raise ValueError("Expected finite samples")
        largest = max(largest, abs(value))
    if f.size == 0:
        raise ValueError("Expected at least one sample")
    _, exponent = math.frexp(largest)
    result = np.empty(f.size, np.float64)
    for i in range(f.size):
        result[i] = math.ldexp(f[i], 1 - exponent)
    return result


@jit
def autoconvolution(f: Series) -> Series:
    """Return y of shape (2n - 1,), y_k = sum_i f_i f_(k-i).

    Every product of two different samples appears twice, and is taken once with an exact factor
    2. So y_k sums at most n/2 + 1 products, one after the other, and with d = n/2 + 2:
    abs(error of y_k) <= gamma_d sum_i abs(f_i f_(k-i)), gamma_d = d u / (1 - d u)
    (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1), which by Cauchy and
    Schwarz is at most gamma_d sum f^2. Without negative samples it is gamma_d y_k.
    """
    n = f.size
    y = np.zeros(2 * n - 1, np.float64)
    for i in range(n):
        if f[i] == 0.0:
            continue
        y[2 * i] += f[i] * f[i]
        twice = 2.0 * f[i]
        for j in range(i + 1, n):
            y[i + j] += twice * f[j]
    return y


@jit
def peak_ratio(f: Series) -> Ratio:
    """Return max abs(f*f) / (integral of f)^2 = 2n max_k abs(y_k) / (sum f)^2, of any signs.

    The value is at least 1, as the integral of f*f over [-1/2, 1/2] is that of f, squared.

    Bound: the largest y_k is off by at most gamma_d sum f^2 (see `autoconvolution`), the sum of f
    by at most gamma_(n-1) sum abs(f), which counts twice, and the last operations by 3u. Hence
    u ((n + 4) sum f^2 / max abs(y) + (2n + 4) sum abs(f) / abs(sum f) + 8), which has room for the
    terms of order u^2. (sum f^2)^2 <= sum y_k^2 < 2n max(y^2), the first because the spectra of
    autoconvolution and autocorrelation have one modulus and sum f^2 is one value of the latter. So
    without negative samples it is at most u ((n + 4) sqrt(2n) + 2n + 12), 1.6e-10 at n = 10,000; it
    is far less where many products meet in the largest y_k, and 3e-12 for a constant.
    """
    g = scaled(f)
    y = autoconvolution(g)
    total, size, energy, peak = 0.0, 0.0, 0.0, 0.0
    for value in g:
        total += value
        size += abs(value)
        energy += value * value
    for value in y:
        peak = max(peak, abs(value))
    square = total * total
    if square == 0.0 or peak == 0.0:
        return Ratio(0.0, math.inf)
    n = float(g.size)
    value = 2.0 * n * peak / square
    error = UNIT_ROUNDOFF * ((n + 4.0) * energy / peak + (2.0 * n + 4.0) * size / abs(total) + 8.0)
    return Ratio(value, error)


@jit
def norm_ratio(f: Series) -> Ratio:
    """Return norm2(f*f)^2 / (norm1(f*f) normInf(f*f)) of samples that are not negative.

    f*f is piecewise linear, so with y_k = 0 outside 0 .. 2n - 2, in units of h:
    norm2^2 = sum_k (y_k^2 + y_k y_(k+1) + y_(k+1)^2) / 3 = (2 sum y_k^2 + sum y_k y_(k+1)) / 3,
    norm1 = sum y_k = (sum f)^2, normInf = max y_k; h cancels. The value is in (0, 1].

    Bound: all terms are of one sign, so relative errors only add up: 2d + 2n + 3 roundings in
    norm2^2 (two factors y, two operations on them, 2n - 1 sums), 2n in norm1, d in normInf, 4 in
    the rest, with d = n/2 + 2; together less than (6n + 20) u, 7e-12 at n = 10,000.

    Raises:
        ValueError: a sample is negative.
    """
    g = scaled(f)
    total, peak, energy = 0.0, 0.0, 0.0
    for value in g:
        if value < 0.0:
            raise ValueError("Expected no negative samples")
        total += value
    if total == 0.0:
        return Ratio(0.0, math.inf)
    y = autoconvolution(g)
    following = 0.0
    for value in y[::-1]:
        energy += value * (2.0 * value + following)
        peak = max(peak, value)
        following = value
    value = energy / (3.0 * (total * total) * peak)
    return Ratio(value, UNIT_ROUNDOFF * (6.0 * g.size + 20.0))
