"""Answers that nobody worked out: which of them a score believes, and where it is to be mended."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from sorting import MakeProblem

from engine.checking import Finding, Level
from engine.checking.outputs import check_claims, check_constants
from engine.checking.state import check_state
from engine.checking.trials import Baseline
from engine.core import Direction

OUTPUTS = ({"ordered": np.array([3.0, 1.0, 2.0, 5.0]), "claim": np.array(0.5)},)
BASELINE = Baseline(direction=Direction.MAXIMISE, scores=(3.0,))


def levels(findings: Iterable[Finding]) -> list[Level]:
    return [each.level for each in findings]


def test_an_honest_score_has_no_finding(made: MakeProblem) -> None:
    problem = made()
    found = [
        *check_constants(problem, OUTPUTS, BASELINE),
        *check_claims(problem, OUTPUTS, BASELINE),
        *check_state(problem, OUTPUTS),
    ]
    # Shuffled, the numbers may well be in a better order; these are not.
    assert levels(found) == [Level.OK] * 3, found


@pytest.mark.parametrize(
    ("score", "words"),
    [
        ("return {'score': -float(ordered.sum())}", ["zeros", "minus ones"]),
        ("return {'score': float(ordered[0])}", ["the largest numbers"]),
        ("return {'score': 9.0 if np.isnan(claim) else 1.0}", ["NaN"]),
        ("return {'score': 9.0 if np.ptp(ordered) == 0 else 1.0}", ["zeros", "ones"]),
        ("return {'score': 9.0 if (ordered != VALUES).any() else 1.0}", ["shuffled"]),
    ],
)
def test_constants_that_gain(made: MakeProblem, score: str, words: list[str]) -> None:
    problem = made(score)
    first = problem.score(OUTPUTS)["score"]
    baseline = Baseline(direction=Direction.MAXIMISE, scores=(first,))
    found = [*check_constants(problem, OUTPUTS, baseline)]
    bad = [each for each in found if each.level is Level.ERROR]
    for word in words:
        assert any(word in each.message for each in bad), found
    assert all(each.where == f"{problem.folder / 'evaluator.py'}:13" for each in bad)
    assert all("refuse such answers with Rejected" in each.remedy for each in bad)


def test_a_score_that_fails_on_constants_is_doubtful(made: MakeProblem) -> None:
    problem = made("return {'score': 1 / int(ordered[0])}")
    found = [*check_constants(problem, OUTPUTS, BASELINE)]
    (doubt,) = [each for each in found if each.level is Level.WARNING]
    assert "score() fails on zeros: ZeroDivisionError: division by zero" in doubt.message
    assert "(evaluator.py:15)" in doubt.message


@pytest.mark.parametrize(
    ("score", "level", "words"),
    [
        ("return {'score': 3.0}", Level.OK, "nothing is gained by another 'claim'"),
        ("return {'score': claim + 2.5}", Level.ERROR, "the score believes 'claim'"),
        ("return {'score': 3.5 - claim}", Level.ERROR, "the score believes 'claim'"),
        (
            "return {'score': claim + 2.5 if abs(claim - 0.5) < 1e-3 else 3.0}",
            Level.WARNING,
            "the score follows 'claim' a little",
        ),
    ],
)
def test_claims(made: MakeProblem, score: str, level: Level, words: str) -> None:
    (finding,) = check_claims(made(score), OUTPUTS, BASELINE)
    assert (finding.level, words in finding.message) == (level, True), finding
    if level is not Level.OK:
        assert finding.remedy.startswith("compute 'claim' in score()")
        assert finding.where.endswith("evaluator.py:13")


def test_a_minimised_claim(made: MakeProblem) -> None:
    problem = made("return {'score': claim}")
    baseline = Baseline(direction=Direction.MINIMISE, scores=(0.5,))
    (finding,) = check_claims(problem, OUTPUTS, baseline)
    assert finding.level is Level.ERROR


def test_gains_below_the_noise_are_none(made: MakeProblem) -> None:
    noisy = Baseline(direction=Direction.MAXIMISE, scores=(3.0, 2.0))
    (finding,) = check_claims(made("return {'score': 3.0 + min(claim, 1.0)}"), OUTPUTS, noisy)
    assert finding.level is Level.OK


@pytest.mark.parametrize(
    ("score", "when"),
    [
        ("return {'score': random.random()}", "and again"),
        ("LAST[0] += 1; return {'score': LAST[0]}", "and again"),
        ("r = LAST[0]; LAST[0] = claim; return {'score': r if r else 0.5}", "after other outputs"),
    ],
)
def test_scores_that_depend_on_more_than_the_outputs(
    made: MakeProblem, score: str, when: str
) -> None:
    problem = made(score)
    (finding,) = check_state(problem, OUTPUTS)
    assert finding.level is Level.ERROR
    assert when in finding.message and "no globals, seeded generators" in finding.remedy
    assert finding.where == f"{problem.folder / 'evaluator.py'}:13"


def test_a_score_may_change_what_it_is_given(made: MakeProblem) -> None:
    (finding,) = check_state(made("ordered.sort(); return {'score': ordered[0]}"), OUTPUTS)
    assert finding.level is Level.OK
    assert OUTPUTS[0]["ordered"].tolist() == [3.0, 1.0, 2.0, 5.0]
