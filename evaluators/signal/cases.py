"""The five test signals of the ``signal`` problems, and the score over all of them.

The conventions, which reproduce the calibration scores in ``tests/evaluators``:

- Signal i has 500 + 100 i samples at t = linspace(0, 10), and noise of standard deviation
  0.2 + 0.1 i, from NumPy's legacy generator with seed 42 + i; signal 4 draws its random walk
  from the same stream before the noise.
- The steps of signal 3 are n // 3, n // 3 and the remaining samples long.
- A window of 20 samples delays by 19: output sample j belongs to sample j + 19, so noisy and
  clean signal are cut to ``[19:]`` before anything is measured, the noise's variance included.

Does not cover the metrics themselves (``kernels.signal``) nor running programs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from engine.core import Array, ArraySpec, Case, Outputs
from kernels import signal
from kernels.signal import Metrics, Series

WINDOW = 20
DELAY = WINDOW - 1
OUTPUT = "filtered_signal"
_CAPPED = ("lag_error", "tracking_error")


@dataclass(frozen=True, kw_only=True, slots=True)
class Signal:
    """One test signal: ``clean`` and ``noisy`` of shape (n,), and the noise's deviation."""

    name: str
    clean: Series
    noisy: Series
    sigma: float


@cache
def signals() -> tuple[Signal, ...]:
    """Return the five signals, always the same; their arrays are read-only."""
    return tuple(_signal(i) for i in range(5))


def _signal(i: int) -> Signal:
    rng = np.random.RandomState(42 + i)  # legacy stream: the public evaluators seed this one
    n = 500 + 100 * i
    sigma = 0.2 + 0.1 * i
    clean = _clean(i, np.linspace(0.0, 10.0, n, dtype=np.float64), rng)
    noisy = clean + rng.normal(0.0, sigma, n)
    clean.flags.writeable = noisy.flags.writeable = False
    return Signal(name=f"signal {i}", clean=clean, noisy=noisy, sigma=sigma)


def _clean(i: int, t: Series, rng: np.random.RandomState) -> Series:
    """Return signal ``i`` without its noise, of the shape of ``t``."""
    turn = 2 * np.pi * t
    if i == 0:  # a slow wave on a trend
        return np.asarray(2 * np.sin(0.5 * turn) + 0.1 * t)
    if i == 1:  # three waves
        return np.asarray(np.sin(0.5 * turn) + 0.5 * np.sin(2 * turn) + 0.2 * np.sin(5 * turn))
    if i == 2:  # a wave that gets faster
        return np.asarray(np.sin((0.5 + 0.2 * t) * turn))
    if i == 3:  # steps
        third = t.size // 3
        return np.repeat([1.0, 2.0, 0.5], [third, third, t.size - 2 * third])
    return np.asarray(np.cumsum(0.1 * rng.randn(t.size)) + 0.05 * t)  # a random walk on a trend


def signal_case(name: str, noisy: Series) -> Case:
    """Return the call ``run_signal_processing(noisy, 20)``, which has to give n - 19 samples."""
    shape = (noisy.size - DELAY,)
    return Case(name=name, args=(noisy, WINDOW), outputs={OUTPUT: ArraySpec(shape=shape)})


def score_signals(outputs: Sequence[Outputs]) -> Mapping[str, float]:
    """Score the outputs of a program for the five `signals`, in their order.

    Returns:
        ``score``, and the mean of each metric of `kernels.signal.Metrics` over the signals. The
        two errors enter their mean as they enter the composite: capped at 2.

    Raises:
        ValueError: an output has not the shape that its case declares; the engine checks that
            before it scores, so this is a fault of the caller and not of the program.
    """
    rows = [
        _measure(given, output[OUTPUT]) for given, output in zip(signals(), outputs, strict=True)
    ]
    columns = {
        name: np.array([getattr(row, name) for row in rows], dtype=np.float64)
        for name in Metrics._fields
    }
    for name in _CAPPED:
        columns[name] = np.minimum(columns[name], 2.0)
    score = signal.overall(
        columns["composite"],
        columns["slope_changes"],
        columns["correlation"],
        columns["noise_reduction"],
    )
    return {"score": float(score)} | {name: float(v.mean()) for name, v in columns.items()}


def _measure(given: Signal, output: Array) -> Metrics:
    noisy, clean = given.noisy[DELAY:], given.clean[DELAY:]
    if output.shape != noisy.shape:
        raise ValueError(
            f"Expected {OUTPUT} of {given.name} to have shape {noisy.shape} "
            f"but it had shape {output.shape}"
        )
    return signal.measure(np.ascontiguousarray(output, dtype=np.float64), noisy, clean)
