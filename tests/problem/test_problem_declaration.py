"""What a problem.yaml may declare, and every way in which one can be bad."""

from __future__ import annotations

from pathlib import Path

import pytest
from halve import DECLARATION, refused

from engine.core import Feature
from engine.problem import load_problem, read_features


def test_what_is_optional_has_defaults(folder: Path) -> None:
    lines = DECLARATION.strip().splitlines()[:3]
    (folder / "problem.yaml").write_text("\n".join(lines))
    problem = load_problem(folder)
    assert (problem.isolate_cases, problem.known_scores) == (False, ())
    assert problem.modules == ()
    assert problem.features == ()
    assert [stage.name for stage in problem.stages] == ["full"]


def test_a_problem_names_the_features_of_its_archive(folder: Path) -> None:
    declared = f"{DECLARATION}features: {{lag: [0, 1.5, 8], nodes: [10, 90, 4]}}\n"
    (folder / "problem.yaml").write_text(declared)
    features = (
        Feature(name="lag", low=0.0, high=1.5, bins=8),
        Feature(name="nodes", low=10.0, high=90.0, bins=4),
    )
    assert load_problem(folder).features == read_features(folder) == features


def test_a_known_score_may_be_said_not_to_compare(folder: Path) -> None:
    declared = DECLARATION.replace("source: a paper", "source: a paper, comparable: false")
    (folder / "problem.yaml").write_text(declared)
    assert [known.comparable for known in load_problem(folder).known_scores] == [False]


def test_modules_are_kept_in_their_order(folder: Path) -> None:
    with (folder / "problem.yaml").open("a") as file:
        file.write("modules: [torch, scipy.signal, torch]\n")
    assert load_problem(folder).modules == ("torch", "scipy.signal", "torch")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("direction: minimise", "direction: down", "it must be maximise or minimise"),
        ("direction: minimise", "direction: [minimise]", "it must be maximise or minimise"),
        ("direction: minimise", "", "key 'direction' is missing"),
        ("direction: minimise", "directoin: minimise", "unknown key 'directoin'; did you mean dir"),
        ("direction: minimise", "direction: minimise\n7: x\nz: y", "unknown key 7"),
        ("entry_point: solve", "", "key 'entry_point' is missing"),
        ("entry_point: solve", "entry_point: solve it", "must be the name of a function"),
        ("entry_point: solve", "entry_point: 3", "must be the name of a function"),
        ("limits: {seconds: 0.5, memory_mb: 64}", "", "key 'limits' is missing"),
        ("limits: {seconds: 0.5, memory_mb: 64}", "limits: 5", "must be a mapping"),
        ("seconds: 0.5, ", "", "key 'seconds' is missing"),
        ("seconds: 0.5", "seconds: 0", "seconds is 0; it must be above 0 and below 604800"),
        ("seconds: 0.5", "seconds: .nan", "seconds is nan; it must be above 0"),
        ("seconds: 0.5", "seconds: .inf", "seconds is inf; it must be above 0"),
        ("seconds: 0.5", "seconds: 1e10", "below 604800, a week"),
        ("seconds: 0.5", "seconds: soon", "seconds is 'soon'; it must be a number"),
        ("seconds: 0.5", "seconds: [1]", "seconds is [1]; it must be a number"),
        ("memory_mb: 64", "memory_mb: .inf", "must be at least 1 and below 1,000,000,000"),
        (
            "memory_mb: 64",
            "memory_mb: 1e300",
            "memory_mb is 1e+300; it must be at least 1 and below",
        ),
        ("memory_mb: 64", "memory_mb: -1", "memory_mb is -1.0; it must be at least 1"),
        ("isolate_cases: true", "isolate_cases: 'false'", "must be true or false"),
        ("score: 1.5,", "score: 1.5, comparable: 'no',", "comparable is 'no'; it must be true or"),
        ("isolate_cases: true", "modules: torch", "modules is 'torch'; it must be a list"),
        ("isolate_cases: true", "modules: [1]", "modules is [1]; it must be a list of names"),
        ("isolate_cases: true", "modules: [torch, 'os; x']", "it must be a list of names"),
        ("isolate_cases: true", "modules: [torch.]", "it must be a list of names"),
        ("isolate_cases: true", "modules: ['']", "it must be a list of names"),
        ("isolate_cases: true", "modules: {torch: 1}", "it must be a list of names"),
        ("isolate_cases: true", "modules:", "modules is None; it must be a list of names"),
        ("score: 1.5, ", "", "key 'score' is missing"),
        ("[{score: 1.5, source: a paper}]", "", "known_scores is None; it must be a list of"),
        ("[{score: 1.5, source: a paper}]", "[1.5]", "known_scores is [1.5]; it must be a list"),
        ("isolate_cases: true", "features: [lag]", "features is ['lag']; it must be a mapping"),
        ("isolate_cases: true", "features: {lag: [0, 1]}", "it must be [low, high, bins]"),
        ("isolate_cases: true", "features: {lag: 3}", "feature 'lag' is 3; it must be"),
        ("isolate_cases: true", "features: {lag: [0, 1, 2.5]}", "it must be [low, high, bins]"),
        ("isolate_cases: true", "features: {lag: [0, 1, true]}", "it must be [low, high, bins]"),
        ("isolate_cases: true", "features: {7: [0, 1, 2]}", "feature 7 is [0, 1, 2]; it must be"),
        ("isolate_cases: true", "features: {lag: [0, 1, 0]}", "has 0 bins; it needs 1 or more"),
        ("isolate_cases: true", "features: {lag: [1, 0, 2]}", "the first must be the smaller"),
        ("isolate_cases: true", "features: {lag: [0, .nan, 2]}", "the first must be the smaller"),
        (
            "isolate_cases: true",
            "features: {lag: [low, 1, 2]}",
            "feature 'lag' is 'low'; it",
        ),
        ("isolate_cases: true", f"features: {{lag: [0, 1{'0' * 400}, 2]}}", "too large"),
        ("limits: {", "limits: {{", "not valid YAML"),
    ],
)
def test_a_bad_declaration(folder: Path, old: str, new: str, message: str) -> None:
    assert old in DECLARATION
    (folder / "problem.yaml").write_text(DECLARATION.replace(old, new))
    assert message in refused(folder)


@pytest.mark.parametrize("text", ["", "- a list", "just words", "null"])
def test_a_declaration_that_is_no_mapping(folder: Path, text: str) -> None:
    (folder / "problem.yaml").write_text(text)
    assert "is not a mapping; it needs the keys" in refused(folder)


def test_a_target_is_declared_or_not(folder: Path) -> None:
    assert load_problem(folder).target is None
    (folder / "problem.yaml").write_text(f"{DECLARATION}target: 1 # half of the input\n")
    assert load_problem(folder).target == 1.0


@pytest.mark.parametrize("target", [".nan", ".inf", "-.inf", "true", "'0.5'", "", "[1]", "soon"])
def test_a_bad_target(folder: Path, target: str) -> None:
    (folder / "problem.yaml").write_text(f"{DECLARATION}target: {target}\n")
    assert "it must be a finite number" in refused(folder)
