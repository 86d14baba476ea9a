"""What a problem says of itself, beside what it is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sorting import INITIAL, MakeProblem

from engine.checking import Finding, Level
from engine.checking.runs import check_memory, check_noise, check_speed
from engine.checking.texts import (
    check_features,
    check_isolation,
    check_known,
    check_modules,
    check_statement,
)
from engine.checking.trials import Baseline, Trial
from engine.core import JUDGED, Direction, Evaluation, Judge, JudgeKind
from engine.problem import load_problem, shipped

BASELINE = Baseline(direction=Direction.MAXIMISE, scores=(3.0,))


def trial(
    score: float = 3.0, *, seconds: float = 0.1, peak_mb: int = 100, answer: int = 0
) -> Trial:
    evaluation = Evaluation(
        score=score,
        failure=None,
        metrics={"score": score, "first": 7.0},
        seconds=seconds,
        peak_bytes=peak_mb << 20,
    )
    return Trial(evaluation=evaluation, wall=2 * seconds, outputs=({"x": np.array(answer)},))


def doubts(findings: Iterable[Finding]) -> list[str]:
    return [str(each) for each in findings if each.level is not Level.OK]


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("`order(values)` sorts.", []),
        ("Sort `values` by a function order, ascending.", []),
        ("Sort the values.", ["statement.md: it does not name the function 'order'"]),
        ("order: sorts numbers", ["statement.md: it does not name the arguments values of order"]),
        (
            "Sort values.\n\n`order(numbers, claim=0)` sorts.",
            ["statement.md:3: it has order(numbers, claim=0), and initial.py order(values)"],
        ),
        ("Each value of values, in order (ascending, say).", []),
    ],
)
def test_statements(made: MakeProblem, statement: str, words: list[str]) -> None:
    found = doubts(check_statement(made(statement=statement)))
    assert len(found) == len(words), found
    assert all(word in line for word, line in zip(words, found, strict=True))


def test_programs_of_several_files_are_looked_at_by_file(several: Path) -> None:
    (several / "statement.md").write_text("`order(numbers)` sorts.")
    problem = load_problem(several)
    initial = several / "initial" / "solve.py"
    first, second = doubts(check_statement(problem))
    assert "it does not name the arguments values of order" in first
    assert "statement.md:1: it has order(numbers), and initial/solve.py order(values)" in second
    (line,) = doubts(check_modules(problem))
    assert f"{initial}:2: every evaluation imports yaml anew" in line
    noisy = Baseline(direction=Direction.MAXIMISE, scores=(3.0, 2.0))
    assert check_noise(problem, [trial(3.0), trial(2.0, answer=1)], noisy).where == f"{initial}:6"


@pytest.mark.parametrize("name", sorted(shipped()))
def test_the_shipped_problems_say_what_a_program_has_to_define(name: str) -> None:
    problem = load_problem(shipped()[name])
    if problem.judge is not None:
        return  # what a command asks for is not known
    assert doubts(check_statement(problem)) == []
    assert doubts(check_modules(problem)) == []


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        ("known_scores: [{score: 3.5, source: a paper}]", []),
        ("known_scores: [{score: 5, source: a, comparable: false}]", []),
        ("known_scores: [{score: 5, source: a}]", ["problem.yaml:5: it is 4.0, and a published"]),
        ("known_scores: [{score: 1, source: a}]", ["problem.yaml:6: the initial program beats"]),
    ],
)
def test_published_scores(made: MakeProblem, declared: str, words: list[str]) -> None:
    found = doubts(check_known(made(declared=declared), BASELINE))
    assert len(found) == len(words), found
    assert all(word in line for word, line in zip(words, found, strict=True))


def test_no_target(made: MakeProblem) -> None:
    problem = made()
    declaration = problem.folder / "problem.yaml"
    declaration.write_text(declaration.read_text().replace("target: 4\n", ""))
    (line,) = doubts(check_known(load_problem(problem.folder), BASELINE))
    assert "target" in line and "there is none; add 'target: SCORE'" in line


@pytest.mark.parametrize(
    ("features", "words"),
    [
        ("{first: [0, 8, 4], nodes: [0, 100, 4]}", []),
        ("{first: [0, 5, 4]}", ["problem.yaml:6: first is 7 in the initial program, outside [0"]),
        ("{frist: [0, 8, 4]}", ["problem.yaml:6: the initial program has no feature 'frist'; it"]),
    ],
)
def test_features(made: MakeProblem, features: str, words: list[str]) -> None:
    problem = made(declared=f"features: {features}\n")
    found = doubts(check_features(problem, trial()))
    assert len(found) == len(words), found
    assert all(word in line for word, line in zip(words, found, strict=True))


def test_modules_that_every_evaluation_imports(made: MakeProblem) -> None:
    initial = f"import json\nfrom yaml import load\nimport yaml.nodes, scipy.signal\n{INITIAL}"
    (line,) = doubts(check_modules(made(initial=initial)))
    assert "initial.py:2: every evaluation imports yaml anew; add 'modules: [yaml]'" in line
    assert doubts(check_modules(made(initial=initial, declared="modules: [yaml]\n"))) == []


def test_cases_that_give_another_away(made: MakeProblem) -> None:
    problem = made()
    evaluator = problem.folder / "evaluator.py"
    text = evaluator.read_text()
    both = "return [Case(name=str(n), args=(VALUES[:n],), outputs=outputs) for n in (4, 3)]\n    "
    text = text.replace("return [Case(name=", f"{both}return [Case(name=")
    assert doubts(check_isolation(problem)) == []
    evaluator.write_text(text)
    (line,) = doubts(check_isolation(load_problem(problem.folder)))
    assert "evaluator.py:9: 3 gets the beginning of what 4 gets, in the same process" in line
    declaration = problem.folder / "problem.yaml"
    declaration.write_text(declaration.read_text() + "isolate_cases: true\n")
    assert doubts(check_isolation(load_problem(problem.folder))) == []


def test_noise_of_the_program_and_of_the_score(made: MakeProblem) -> None:
    problem = made()
    quiet = check_noise(problem, [trial(), trial()], BASELINE)
    assert (quiet.level, "none: 2 runs" in quiet.message) == (Level.OK, True)
    noisy = Baseline(direction=Direction.MAXIMISE, scores=(3.0, 2.0))
    of_score = check_noise(problem, [trial(3.0), trial(2.0)], noisy)
    assert "spread over 1 (33 % of its score), though its answers are the same" in of_score.message
    assert of_score.where.endswith("evaluator.py:13")
    of_program = check_noise(problem, [trial(3.0), trial(2.0, answer=1)], noisy)
    assert "its answers differ" in of_program.message
    assert of_program.where.endswith("initial.py:4")


def test_noise_of_a_judge_is_told_without_a_line(made: MakeProblem) -> None:
    problem = replace(made(), judge=Judge(kind=JudgeKind.COMMAND), stages=JUDGED)
    (problem.folder / "problem.yaml").unlink()
    noisy = Baseline(direction=Direction.MAXIMISE, scores=(3.0, 2.0))
    found = [
        check_noise(problem, [trial(3.0), trial(2.0)], noisy),
        check_speed(problem, [trial(seconds=1.9)], first_seconds=6.0),
        *check_known(replace(problem, target=None), noisy),
    ]
    assert [each.level for each in found] == [Level.WARNING] * 3
    assert {each.where for each in found} == {str(problem.folder)}
    assert "answers" not in found[0].message


@pytest.mark.parametrize(("seconds", "level"), [(0.5, Level.OK), (1.5, Level.WARNING)])
def test_speed_against_the_limit(made: MakeProblem, seconds: float, level: Level) -> None:
    finding = check_speed(made(), [trial(seconds=seconds)] * 3, first_seconds=6.0)
    assert finding.level is level
    assert f"{3600 / (2 * seconds):,.0f} evaluations an hour" in finding.message


@pytest.mark.parametrize(("peak_mb", "level"), [(100, Level.OK), (160, Level.WARNING)])
def test_memory_against_the_limit(made: MakeProblem, peak_mb: int, level: Level) -> None:
    finding = check_memory(made(), [trial(peak_mb=peak_mb)] * 3, idle_bytes=80 << 20)
    assert (finding.level, f"takes {peak_mb - 80} MiB of 128" in finding.message) == (level, True)
