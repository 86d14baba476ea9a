"""The examples of docs/examples: their own parts, and each as a whole with the embedded model."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py"))


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_votes_are_counted() -> None:
    voting = example("voting")
    answers = [" 5 * 3 = 15. The answer is 5.", " The answer is 5.", " The answer is -2.", " No."]
    assert voting.vote(answers).most_common() == [(5, 2), (-2, 1)]
    assert voting.PROMPT.endswith("left?\nA:")


def test_the_verifier_runs_answers_behind_walls() -> None:
    best = example("best_of_n")
    right = best.program_of("    return min(max(x, low), high)\n\nprint(clamp(1, 2, 3))\n")
    assert "print" not in right
    with best.verifier() as pool:
        assert best.passes(pool, right)
        assert not best.passes(pool, best.program_of("    return low\n"))
        assert not best.passes(pool, best.program_of("    open('/etc/passwd')\n"))


def test_plans_are_read_and_compared() -> None:
    plans = example("tool_plans")
    good = ['read_file("src/clock.py")', 'edit_file("src/clock.py")', 'run_tests("tests/t.py")']
    assert plans.plan_of("\n".join([*good, "", "That is all."])) == good
    assert plans.plan_of('remove("src")') == []
    assert plans.worth(good) > plans.worth(good[::-1]) > plans.worth([])


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_an_example_says_what_it_saves(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py", "k=8"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    saving = done.stdout.splitlines()[-1]
    computed, apart = (int(word) for word in saving.split() if word.isdigit())
    assert saving.startswith("saving: prompt tokens computed")
    assert computed * 3 < apart
