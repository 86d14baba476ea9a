"""The five test signals and the score over them."""

from __future__ import annotations

import numpy as np
import pytest

from evaluators.signal.cases import DELAY, OUTPUT, score_signals, signal_case, signals


def test_lengths_and_noise_are_those_of_the_definition() -> None:
    assert [given.noisy.size for given in signals()] == [500, 600, 700, 800, 900]
    for i, given in enumerate(signals()):
        assert given.sigma == pytest.approx(0.2 + 0.1 * i)
        assert np.std(given.noisy - given.clean) == pytest.approx(given.sigma, rel=0.1)


def test_the_clean_signals_are_those_of_the_definition() -> None:
    wave, waves, chirp, steps, walk = (given.clean for given in signals())
    # Last samples, at t = 10: every sine of signals 0 and 1 is at 0 again, signal 2 at 25 turns.
    assert wave[-1] == pytest.approx(1.0)
    assert waves[-1] == pytest.approx(0.0, abs=1e-12)
    assert chirp[-1] == pytest.approx(0.0, abs=1e-12)
    assert [np.sum(steps == level) for level in (1.0, 2.0, 0.5)] == [266, 266, 268]
    assert walk[0] == pytest.approx(0.1 * np.random.RandomState(46).randn())


def test_the_noise_of_the_walk_follows_the_walk_in_one_stream() -> None:
    rng = np.random.RandomState(46)
    rng.randn(900)
    walk = signals()[4]
    np.testing.assert_allclose(walk.noisy - walk.clean, 0.6 * rng.randn(900), atol=1e-12)


def test_the_signals_leave_the_global_generator_alone_and_can_not_be_changed() -> None:
    np.random.seed(3)
    expected = np.random.rand()
    np.random.seed(3)
    signals.cache_clear()
    first = signals()[0]
    assert np.random.rand() == expected
    with pytest.raises(ValueError, match="read-only"):
        first.noisy[0] = 0


def test_a_case_declares_its_output() -> None:
    case = signal_case("signal 0", signals()[0].noisy)
    spec = case.outputs[OUTPUT]
    assert (spec.shape, spec.dtype, spec.finite) == ((481,), "float64", True)


def test_a_wrong_shape_is_named() -> None:
    outputs = [{OUTPUT: given.noisy[DELAY:]} for given in signals()]
    outputs[2] = {OUTPUT: np.zeros(2)}
    with pytest.raises(ValueError, match=r"signal 2 to have shape \(681,\) but it had .*\(2,\)"):
        score_signals(outputs)


def test_one_output_too_few_is_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        score_signals([{OUTPUT: given.noisy[DELAY:]} for given in signals()[:4]])


def test_strided_and_single_precision_outputs_score_like_their_copies() -> None:
    wide = [np.repeat(given.noisy[DELAY:], 2) for given in signals()]
    plain = score_signals([{OUTPUT: given.noisy[DELAY:]} for given in signals()])
    assert score_signals([{OUTPUT: array[::2]} for array in wide]) == plain
    single = score_signals([{OUTPUT: array[::2].astype(np.float32)} for array in wide])
    assert single["score"] == pytest.approx(plain["score"], abs=1e-6)


@pytest.mark.parametrize("value", [0.0, 1e308, -1e308, 5e-324])
def test_constant_outputs_score_0_with_finite_metrics(value: float) -> None:
    metrics = score_signals([{OUTPUT: np.full(g.noisy.size - DELAY, value)} for g in signals()])
    assert metrics["score"] == 0
    assert np.isfinite(list(metrics.values())).all()


def test_the_negated_signal_scores_0() -> None:
    assert score_signals([{OUTPUT: -given.clean[DELAY:]} for given in signals()])["score"] == 0
