"""The fingerprint: what decides a score changes it, and nothing else does."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from halve import EVALUATOR

import evaluators
import kernels
from engine.problem import FILES, POOL, load_problem


@pytest.mark.parametrize("name", FILES)
def test_the_fingerprint_covers_every_file_and_not_the_place(folder: Path, name: str) -> None:
    before = load_problem(folder).fingerprint
    moved = folder.parent / "moved"
    shutil.copytree(folder, moved)
    assert load_problem(moved).fingerprint == before
    with (moved / name).open("a") as file:
        file.write("\n# more\n")
    assert load_problem(moved).fingerprint != before


def test_the_fingerprint_covers_the_data(reader: Path, tmp_path: Path) -> None:
    data = tmp_path / "mine"
    (data / "more").mkdir(parents=True)
    (data / "factor.txt").write_text("5")
    first = load_problem(reader, data=data).fingerprint
    assert first != load_problem(reader).fingerprint
    (data / "factor.txt").write_text("6")
    second = load_problem(reader, data=data).fingerprint
    (data / "more" / "notes.txt").write_text("")
    third = load_problem(reader, data=data).fingerprint
    assert len({first, second, third}) == 3
    shutil.move(data, tmp_path / "moved")
    assert load_problem(reader, data=tmp_path / "moved").fingerprint == third


def test_a_name_that_is_no_utf_8_is_covered_too(folder: Path) -> None:
    names = [os.fsdecode(name) for name in (b"\xff.txt", b"\xfe.txt")]
    (folder / "data").mkdir()
    (folder / "data" / names[0]).write_text("")
    first = load_problem(folder).fingerprint
    assert load_problem(folder).fingerprint == first
    (folder / "data" / names[0]).rename(folder / "data" / names[1])
    assert load_problem(folder).fingerprint != first


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of this project's problems and kernels, which the fingerprint is then taken of."""
    for package in (evaluators, kernels):
        assert package.__file__ is not None
        folder = Path(package.__file__).parent
        ignored = shutil.ignore_patterns("__pycache__", POOL)
        shutil.copytree(folder, tmp_path / "project" / folder.name, ignore=ignored)
        monkeypatch.setattr(package, "__path__", [str(tmp_path / "project" / folder.name)])
    return tmp_path / "project"


@pytest.mark.parametrize(
    ("problem", "edited", "changes"),
    [
        ("signal", "kernels/signal.py", True),
        ("signal", "kernels/jit.py", True),  # which kernels/signal.py imports
        ("signal", "evaluators/signal/cases.py", True),
        ("signal", "kernels/eplb.py", False),
        ("signal", "kernels/signal_reference.py", False),
        ("signal", "evaluators/signal_causal/evaluator.py", False),
        ("signal_causal", "evaluators/signal/cases.py", True),
        ("signal_causal", "evaluators/signal/evaluator.py", False),
        ("signal_causal", "kernels/signal.py", True),
        ("protein_fitness", "kernels/signal.py", True),  # for its correlation
        ("protein_fitness", "evaluators/table.py", True),  # which its reader imports
        ("eplb", "kernels/eplb.py", True),  # from kernels import eplb
        ("eplb", "kernels/signal.py", False),
    ],
)
def test_it_covers_what_the_problem_imports_and_no_other_kernel(
    project: Path, problem: str, edited: str, changes: bool
) -> None:
    folder = project / "evaluators" / problem
    before = load_problem(folder).fingerprint
    assert load_problem(folder).fingerprint == before
    with (project / edited).open("a") as file:
        file.write("\n# more\n")
    assert (load_problem(folder).fingerprint != before) is changes


def test_it_covers_an_import_in_a_function(project: Path, folder: Path) -> None:
    late = EVALUATOR + "\ndef late():\n    from kernels.rounding import round_up\n"
    (folder / "evaluator.py").write_text(late)
    before = load_problem(folder).fingerprint
    (project / "kernels" / "rounding.py").write_text("x = 1\n")
    assert load_problem(folder).fingerprint != before


@pytest.mark.parametrize(
    ("name", "covered"),
    [
        ("cases.py", True),
        ("parts/scoring.py", True),
        ("table.csv", True),
        ("data/more/table.csv", True),
        ("pool/another.py", False),
        ("cheats/constant.py", False),
        ("runs/run.db", False),
        ("parts/unused.py", False),
        (".cases.py.swp", False),
    ],
)
def test_it_covers_what_lies_in_the_folder(whole: Path, name: str, covered: bool) -> None:
    before = load_problem(whole).fingerprint
    path = whole / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write("\n# more\n")
    assert (load_problem(whole).fingerprint != before) is covered


def test_a_target_decides_rewards_and_no_score(folder: Path) -> None:
    declaration = folder / "problem.yaml"
    text = declaration.read_text()
    before = load_problem(folder).fingerprint
    for line in ("target: 1.25\n", "target: 0.5 # closer\n"):
        declaration.write_text(line + text)
        assert load_problem(folder).fingerprint == before
    declaration.write_text(text.replace("0.5", "0.75"))  # the limit
    assert load_problem(folder).fingerprint != before
