"""The ``signal_causal`` problem: ``signal`` for filters that can't see the future.

Output sample j may depend on noisy samples 0 to j + 19 only. Each signal is therefore given
several times: as it is, cut short at several places, and with another future of the same kind
from some sample on. Up to there, all outputs have to agree. As every run has a process of its
own (``isolate_cases``), no run can look up what another one saw. This is a test, not a proof: a
filter that looks ahead only where no cut falls is not found.

The metrics and their conventions are those of ``signal``; only the full signals count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from engine.core import Case, Outputs, Rejected
from evaluators.signal.cases import (
    DELAY,
    OUTPUT,
    WINDOW,
    Signal,
    score_signals,
    signal_case,
    signals,
)
from kernels.signal import Series

TOLERANCE = 1e-9
"""Outputs a and b agree where abs(a - b) <= TOLERANCE max(1, abs(a), abs(b)): far above the
rounding of sums taken in another order, far below anything that could pay."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Variant:
    """A signal that equals test signal ``index`` in its first ``known`` samples only."""

    index: int
    known: int
    change: str
    noisy: Series


@cache
def variants() -> tuple[Variant, ...]:
    """Return three prefixes and two other futures of each signal, always the same.

    The cuts are drawn from a fixed seed: one prefix of 20 to 59 samples, one in each half of the
    rest; the futures begin in the same two halves.
    """
    rng = np.random.default_rng(20)
    return tuple(
        variant for i, given in enumerate(signals()) for variant in _variants(i, given, rng)
    )


def _variants(index: int, given: Signal, rng: np.random.Generator) -> list[Variant]:
    n = given.noisy.size
    short, middle = 3 * WINDOW, n // 2
    halves = ((short, middle), (middle, n))
    found = []
    for low, high in ((WINDOW, short), *halves):
        known = int(rng.integers(low, high))
        found.append(Variant(index=index, known=known, change="missing", noisy=given.noisy[:known]))
    for low, high in halves:
        known = int(rng.integers(low, high))
        noisy = given.noisy.copy()
        noisy[known:] = given.clean[known:] + rng.normal(0.0, given.sigma, n - known)
        noisy.flags.writeable = False
        found.append(Variant(index=index, known=known, change="other ones", noisy=noisy))
    return found


def cases() -> Sequence[Case]:
    """Return the five full signals, and after them their `variants`."""
    return [
        *(signal_case(given.name, given.noisy) for given in signals()),
        *(
            signal_case(
                f"signal {variant.index}, samples from {variant.known} on {variant.change}",
                variant.noisy,
            )
            for variant in variants()
        ),
    ]


def score(outputs: Sequence[Outputs]) -> Mapping[str, float]:
    """Score the outputs for the full signals; see `evaluators.signal.cases.score_signals`.

    Raises:
        Rejected: an output sample depends on a noisy sample that comes too late. The message
            names the signal, the first such output sample and the change that showed it.
    """
    full, rest = outputs[: len(signals())], outputs[len(signals()) :]
    offences = [
        (variant.index, sample, variant)
        for variant, output in zip(variants(), rest, strict=True)
        if (sample := _first_difference(variant, full[variant.index], output)) is not None
    ]
    if offences:
        index, sample, variant = min(offences, key=lambda offence: offence[:2])
        raise Rejected(
            f"not causal: in signal {index}, output sample {sample} changes when the noisy "
            f"samples from {variant.known} on are {variant.change}; it may depend on samples "
            f"0 to {sample + DELAY} only, and equal input must give equal output"
        )
    return score_signals(full)


def _first_difference(variant: Variant, full: Outputs, output: Outputs) -> int | None:
    """Return the first output sample that should agree and does not, or None."""
    count = variant.known - DELAY  # these see only samples that both runs have in common
    a, b = full[OUTPUT][:count], output[OUTPUT][:count]
    allowed = TOLERANCE * np.maximum(1.0, np.maximum(np.abs(a), np.abs(b)))
    differs = np.abs(a / 2 - b / 2) > allowed / 2  # halved, so that no difference overflows
    return int(np.argmax(differs)) if differs.any() else None
