"""The ``signal_causal`` problem: what its check catches and what it lets pass."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from engine.core import Outputs, Problem, Rejected
from engine.problem import load_problem, shipped

Run = Callable[[str, Problem], list[Outputs]]
Read = Callable[[str], str]

SUMS_IN_ANOTHER_ORDER = """
import numpy as np
def run_signal_processing(noisy_signal, window_size=20):
    n = len(noisy_signal)
    size = 2 * n
    kernel = np.full(window_size, 1 / window_size)
    both = np.fft.rfft(noisy_signal, size) * np.fft.rfft(kernel, size)
    return {"filtered_signal": np.fft.irfft(both, size)[window_size - 1 : n]}
"""
LENGTH = """
import numpy as np
def run_signal_processing(noisy_signal, window_size=20):
    return {"filtered_signal": noisy_signal[window_size - 1 :] / len(noisy_signal)}
"""
# Looks ahead only where it sees a full signal, and keeps to the rule in every prefix.
FULL_LENGTH_ONLY = """
import numpy as np
def run_signal_processing(noisy_signal, window_size=20):
    ahead = 1 if len(noisy_signal) % 100 == 0 else 0
    padded = np.append(noisy_signal, np.repeat(noisy_signal[-1], ahead))
    return {"filtered_signal": padded[window_size - 1 + ahead :]}
"""
UNSEEDED = """
import numpy as np
def run_signal_processing(noisy_signal, window_size=20):
    noise = np.random.default_rng().normal(size=len(noisy_signal))
    return {"filtered_signal": (noisy_signal + 1e-6 * noise)[window_size - 1 :]}
"""


@pytest.fixture(scope="module")
def problem() -> Problem:
    return load_problem(shipped()["signal_causal"])


@pytest.mark.parametrize("name", ["ema", "passthrough"])
def test_causal_programs_score_as_in_signal(
    problem: Problem, run: Run, calibration: Read, name: str
) -> None:
    signal = load_problem(shipped()["signal"])
    program = calibration(name)
    assert problem.score(run(program, problem)) == signal.score(run(program, signal))


def test_the_initial_program_is_that_of_signal(problem: Problem, run: Run) -> None:
    assert problem.initial_program == load_problem(shipped()["signal"]).initial_program
    score = problem.score(run(problem.initial_program, problem))["score"]
    assert score == pytest.approx(0.4990, abs=5e-5)


def test_rounding_in_another_order_passes(problem: Problem, run: Run) -> None:
    assert problem.score(run(SUMS_IN_ANOTHER_ORDER, problem))["score"] > 0.4


@pytest.mark.parametrize("name", ["gaussian", "gaussian_last", "peek_one", "last_sample"])
def test_programs_that_see_the_future_are_rejected(
    problem: Problem, run: Run, calibration: Read, name: str
) -> None:
    with pytest.raises(Rejected, match=r"^not causal: in signal 0, output sample \d+ "):
        problem.score(run(calibration(name), problem))


@pytest.mark.parametrize(
    "program",
    [LENGTH, FULL_LENGTH_ONLY, UNSEEDED],
    ids=["length", "full_length_only", "unseeded"],
)
def test_sly_programs_are_rejected(problem: Problem, run: Run, program: str) -> None:
    with pytest.raises(Rejected, match="not causal: in signal 0, output sample 0 "):
        problem.score(run(program, problem))


def _cut(name: str) -> int:
    found = re.search(r"samples from (\d+)", name)
    assert found
    return int(found[1])


def test_each_signal_has_prefixes_and_other_futures(problem: Problem) -> None:
    full, rest = problem.cases[:5], problem.cases[5:]
    assert problem.isolate_cases
    for i, whole in enumerate(full):
        n = whole.args[0].size
        own = [case for case in rest if case.name.startswith(f"signal {i},")]
        sizes = sorted(case.args[0].size for case in own)
        assert 20 <= sizes[0] < 60
        assert (sum(size < n for size in sizes), sizes.count(n)) == (3, 2)
        for case in own:
            cut, noisy = _cut(case.name), case.args[0]
            np.testing.assert_array_equal(noisy[:cut], whole.args[0][:cut])
            assert (noisy[cut:] != whole.args[0][cut : noisy.size]).all()
            assert case.outputs["filtered_signal"].shape == (noisy.size - 19,)


def test_other_futures_look_like_the_signal(problem: Problem) -> None:
    whole = problem.cases[0].args[0]
    other = next(c for c in problem.cases[5:] if "0," in c.name and c.args[0].size == whole.size)
    cut = _cut(other.name)
    difference = np.std(other.args[0][cut:] - whole[cut:])
    assert difference == pytest.approx(0.2 * np.sqrt(2), rel=0.2)  # two noises of deviation 0.2


def test_a_difference_is_found_at_its_place_and_only_where_it_counts(problem: Problem) -> None:
    outputs = [{"filtered_signal": case.args[0][19:].copy()} for case in problem.cases]
    for i in range(5, len(outputs)):  # the samples from each cut on are free to differ
        outputs[i]["filtered_signal"][_cut(problem.cases[i].name) - 19 :] += 1.0
    assert problem.score(outputs)["score"] == pytest.approx(0.462, abs=5e-4)
    first = next(i for i in range(5, len(outputs)) if problem.cases[i].name.startswith("signal 3,"))
    outputs[first]["filtered_signal"][0] += 1e-8
    with pytest.raises(Rejected, match=r"in signal 3, output sample 0 .* samples 0 to 19 only"):
        problem.score(outputs)


def test_one_large_sample_does_not_loosen_the_tolerance_elsewhere(problem: Problem) -> None:
    outputs = [{"filtered_signal": case.args[0][19:].copy()} for case in problem.cases]
    for output in outputs:
        output["filtered_signal"][0] = 1e300
    last = outputs[-1]["filtered_signal"]
    last[1] += 1e-6
    with pytest.raises(Rejected, match=r"signal 4, output sample 1 .* are other ones;"):
        problem.score(outputs)
