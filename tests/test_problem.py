"""Loading a problem: good folders, and every way in which a folder can be bad."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from engine.core import Direction, Feature, KnownScore, UserError
from engine.problem import FILES, load_problem, read_features, shipped

DECLARATION = """
direction: minimise
entry_point: solve
limits: {seconds: 0.5, memory_mb: 64}
isolate_cases: true
known_scores: [{score: 1.5, source: a paper}]
"""
EVALUATOR = """
from engine.core import ArraySpec, Case

def cases():
    return [Case(name="one", args=(2.0,), outputs={"x": ArraySpec(shape=())})]

def score(outputs):
    return {"score": float(outputs[0]["x"])}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "halve"
    folder.mkdir()
    (folder / "problem.yaml").write_text(DECLARATION)
    (folder / "statement.md").write_text("\nHalve the number, ½ of it.\n\n", encoding="utf-8")
    (folder / "initial.py").write_text("def solve(x):\n    return x / 2\n")
    (folder / "evaluator.py").write_text(EVALUATOR)
    return folder


def refused(folder: Path, data: Path | None = None) -> str:
    """Return the message with which the loader refuses ``folder``, or ``data``."""
    with pytest.raises(UserError) as refusal:
        load_problem(folder, data=data)
    message = str(refusal.value)
    assert "\n" not in message
    assert str(folder if data is None else data) in message
    return message


def test_a_good_folder(folder: Path) -> None:
    problem = load_problem(folder)
    assert (problem.name, problem.folder) == ("halve", folder)
    assert problem.direction is Direction.MINIMISE
    assert problem.statement == "Halve the number, ½ of it."
    assert problem.initial_program == (folder / "initial.py").read_text()
    assert problem.entry_point == "solve"
    assert [case.name for case in problem.cases] == ["one"]
    assert problem.isolate_cases
    assert (problem.limits.seconds, problem.limits.memory_bytes) == (0.5, 64 << 20)
    assert problem.known_scores == (KnownScore(score=1.5, source="a paper"),)
    assert problem.score([{"x": np.array(0.25)}]) == {"score": 0.25}


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


def test_the_initial_program_is_not_run(folder: Path) -> None:
    (folder / "initial.py").write_text("raise SystemExit('ran')\n")
    assert load_problem(folder).initial_program == "raise SystemExit('ran')\n"


def test_a_home_folder_is_found(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder.parent))
    assert load_problem(Path("~/halve")).folder == folder


def test_two_problems_do_not_share_their_evaluators(folder: Path) -> None:
    other = folder.parent / "other"
    shutil.copytree(folder, other)
    (other / "evaluator.py").write_text(EVALUATOR.replace('"one"', '"two"'))
    first, second = load_problem(folder), load_problem(other)
    assert (first.cases[0].name, second.cases[0].name) == ("one", "two")


@pytest.mark.parametrize("name", FILES)
def test_the_fingerprint_covers_every_file_and_not_the_place(folder: Path, name: str) -> None:
    before = load_problem(folder).fingerprint
    moved = folder.parent / "moved"
    shutil.copytree(folder, moved)
    assert load_problem(moved).fingerprint == before
    with (moved / name).open("a") as file:
        file.write("\n# more\n")
    assert load_problem(moved).fingerprint != before


def test_the_shipped_problems_load() -> None:
    assert {"signal", "signal_causal"} <= set(shipped())
    for name, folder in shipped().items():
        assert load_problem(folder).name == name


def test_no_such_folder(tmp_path: Path) -> None:
    assert "does not exist" in refused(tmp_path / "none")


def test_a_file_is_not_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "does not exist" in refused(tmp_path / "file")


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    assert f"has no {name};" in refused(folder)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("direction: minimise", "direction: down", "it must be maximise or minimise"),
        ("direction: minimise", "direction: [minimise]", "it must be maximise or minimise"),
        ("direction: minimise", "", "key 'direction' is missing"),
        ("direction: minimise", "directoin: minimise", "unknown key 'directoin'; valid keys: dir"),
        ("direction: minimise", "direction: minimise\n7: x\nz: y", "unknown key 7"),
        ("entry_point: solve", "", "key 'entry_point' is missing"),
        ("entry_point: solve", "entry_point: solve it", "must be the name of a function"),
        ("entry_point: solve", "entry_point: 3", "must be the name of a function"),
        ("limits: {seconds: 0.5, memory_mb: 64}", "", "key 'limits' is missing"),
        ("limits: {seconds: 0.5, memory_mb: 64}", "limits: 5", "must be a mapping"),
        ("seconds: 0.5, ", "", "key 'seconds' is missing"),
        ("seconds: 0.5", "seconds: 0", "seconds above 0"),
        ("seconds: 0.5", "seconds: .nan", "seconds above 0"),
        ("seconds: 0.5", "seconds: .inf", "must be finite"),
        ("seconds: 0.5", "seconds: soon", "soon"),
        ("seconds: 0.5", "seconds: [1]", "float"),
        ("memory_mb: 64", "memory_mb: .inf", "must be finite"),
        ("memory_mb: 64", "memory_mb: -1", "memory_mb at least 1"),
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
        ("[{score: 1.5, source: a paper}]", "", "problem.yaml"),
        ("[{score: 1.5, source: a paper}]", "[1.5]", "problem.yaml"),
        ("isolate_cases: true", "features: [lag]", "features is ['lag']; it must be a mapping"),
        ("isolate_cases: true", "features: {lag: [0, 1]}", "it must be [low, high, bins]"),
        ("isolate_cases: true", "features: {lag: 3}", "feature 'lag' is 3; it must be"),
        ("isolate_cases: true", "features: {lag: [0, 1, 2.5]}", "it must be [low, high, bins]"),
        ("isolate_cases: true", "features: {lag: [0, 1, true]}", "it must be [low, high, bins]"),
        ("isolate_cases: true", "features: {7: [0, 1, 2]}", "feature 7 is [0, 1, 2]; it must be"),
        ("isolate_cases: true", "features: {lag: [0, 1, 0]}", "has 0 bins; it needs 1 or more"),
        ("isolate_cases: true", "features: {lag: [1, 0, 2]}", "the first must be the smaller"),
        ("isolate_cases: true", "features: {lag: [0, .nan, 2]}", "the first must be the smaller"),
        ("isolate_cases: true", "features: {lag: [low, 1, 2]}", "could not convert"),
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


@pytest.mark.parametrize("name", ["problem.yaml", "statement.md", "initial.py"])
def test_a_file_that_is_not_text(folder: Path, name: str) -> None:
    (folder / name).write_bytes(b"\xff\xfe\x00")
    assert f"{name} can't be read as UTF-8" in refused(folder)


@pytest.mark.parametrize("text", ["def solve(x:\n", "x = 1\0"])
def test_an_initial_program_that_does_not_parse(folder: Path, text: str) -> None:
    (folder / "initial.py").write_text(text)
    assert "initial.py does not parse" in refused(folder)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def score(outputs): ...", "has no function cases()"),
        ("cases = score = 3", "has no function cases()"),
        ("def cases(): return []", "has no function score()"),
        ("import no_such_module_at_all", "can't be imported: ModuleNotFoundError"),
        ("def cases(:", "can't be imported: SyntaxError"),
        ("raise ValueError('two\\nlines')", "can't be imported: ValueError: two lines"),
        ("def cases(): return []\ndef score(o): ...", "must return engine.core.Case"),
        ("def cases(): return [1]\ndef score(o): ...", "must return engine.core.Case"),
        ("def cases(): return None\ndef score(o): ...", "its cases can't be had: TypeError"),
        ("def cases(): 1 / 0\ndef score(o): ...", "its cases can't be had: ZeroDivisionError"),
    ],
)
def test_a_bad_evaluator(folder: Path, text: str, message: str) -> None:
    (folder / "evaluator.py").write_text(text)
    assert message in refused(folder)


def test_an_evaluator_that_can_not_be_imported_leaves_no_module(folder: Path) -> None:
    (folder / "evaluator.py").write_text("1 / 0")
    before = set(sys.modules)
    refused(folder)
    assert not {name for name in set(sys.modules) - before if name.startswith("brood_problem")}


# Modules, cheap stages and the user's data.


def test_modules_are_kept_in_their_order(folder: Path) -> None:
    with (folder / "problem.yaml").open("a") as file:
        file.write("modules: [torch, scipy.signal, torch]\n")
    assert load_problem(folder).modules == ("torch", "scipy.signal", "torch")


SCREENS = (
    EVALUATOR
    + """
from engine.core import Stage

def screens():
    case = Case(name="tiny", args=(1.0,), outputs={"x": ArraySpec(shape=(range(1, 3),))})
    other = Stage(name="half", cases=(case, case), score=lambda outputs: {"score": 2.0})
    return [Stage(name="quick", cases=(case,), score=lambda outputs: {"score": 1.0}), other]
"""
)


def test_cheap_stages_stand_before_the_full_one(folder: Path) -> None:
    (folder / "evaluator.py").write_text(SCREENS)
    problem = load_problem(folder)
    assert [stage.name for stage in problem.stages] == ["quick", "half", "full"]
    assert [len(stage.cases) for stage in problem.stages] == [1, 2, 1]
    assert [stage.score([{"x": np.array(0.5)}]) for stage in problem.stages] == [
        {"score": 1.0},
        {"score": 2.0},
        {"score": 0.5},
    ]
    assert problem.cases == problem.stages[-1].cases
    assert problem.score([{"x": np.array(0.5)}]) == {"score": 0.5}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"half"', '"quick"', "two stages have one name"),
        ('"half"', '"full"', "two stages have one name; the last one's is 'full'"),
        ('"half"', '"cascade"', "has the name 'cascade'; it must be an identifier other than"),
        ('"half"', '"a.b"', "has the name 'a.b'; it must be an identifier"),
        ('"half"', '"a\\nb"', "it must be an identifier"),
        ('"half"', "3", "has the name 3; it must be an identifier"),
        ("(case, case)", "()", "must return engine.core.Case values, at least one"),
        ("(case, case)", "(case, 1)", "must return engine.core.Case values"),
        ('lambda outputs: {"score": 2.0}', "3", "stage half has no function for its score"),
        ("return [", "return [3, ", "screens() must return engine.core.Stage values"),
        ("return [", "1 / 0; return [", "its cases can't be had: ZeroDivisionError"),
        ("def screens():", "def screens(x):", "its cases can't be had: TypeError"),
        ("def screens():", "screens = 3\ndef other():", "its cases can't be had: TypeError"),
    ],
)
def test_bad_cheap_stages(folder: Path, old: str, new: str, message: str) -> None:
    assert old in SCREENS
    (folder / "evaluator.py").write_text(SCREENS.replace(old, new))
    assert message in refused(folder)


WITH_DATA = """
from pathlib import Path
from engine.core import ArraySpec, Case, Stage, UserError

class Evaluator:
    def __init__(self, factor):
        self.factor = factor

    def cases(self):
        if self.factor < 0:
            raise UserError("the factor is negative; give one above 0")
        return [Case(name="one", args=(self.factor,), outputs={"x": ArraySpec(shape=())})]

    def score(self, outputs):
        return {"score": self.factor * float(outputs[0]["x"])}

    def screens(self):
        return [Stage(name="quick", cases=tuple(self.cases()), score=self.score)]

def with_data(path: Path | None):
    if path is None:
        return Evaluator(2.0)
    if path.is_dir():
        path = path / "factor.txt"
    try:
        return Evaluator(float(path.read_text()))
    except ValueError as error:
        raise UserError(f"{path} holds no number; write one") from error
"""


@pytest.fixture
def reader(folder: Path) -> Path:
    """A problem that reads data of the user's."""
    (folder / "evaluator.py").write_text(WITH_DATA)
    return folder


def test_data_of_the_users_or_its_own(reader: Path, tmp_path: Path) -> None:
    data = tmp_path / "factor.txt"
    data.write_text("5")
    outputs = [{"x": np.array(1.0)}]
    own, users = load_problem(reader), load_problem(reader, data=data)
    assert (own.score(outputs), users.score(outputs)) == ({"score": 2.0}, {"score": 5.0})
    assert [case.args for case in users.cases] == [(5.0,)]
    assert [stage.name for stage in users.stages] == ["quick", "full"]


def test_data_are_found_from_anywhere(
    reader: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "factor.txt").write_text("5")
    fingerprint = load_problem(reader, data=tmp_path / "mine").fingerprint
    monkeypatch.chdir(tmp_path / "mine")
    monkeypatch.setenv("HOME", str(tmp_path))
    for path in ("factor.txt", "~/mine/factor.txt", "../mine", "."):
        assert load_problem(reader, data=Path(path)).fingerprint == fingerprint


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


def test_data_that_are_missing_or_bad(reader: Path, tmp_path: Path) -> None:
    data = tmp_path / "factor.txt"
    assert "does not exist; give data=PATH" in refused(reader, data)
    data.write_text("five")
    assert "holds no number; write one" in refused(reader, data)
    data.write_bytes(b"\xff")  # a UnicodeDecodeError is a ValueError
    assert "holds no number" in refused(reader, data)
    with pytest.raises(UserError, match=r"with_data\(\) failed: FileNotFoundError"):
        load_problem(reader, data=reader)  # a folder without the file
    data.write_text("-1")
    with pytest.raises(UserError, match=r"^the factor is negative; give one above 0$"):
        load_problem(reader, data=data)


def test_data_for_a_problem_that_reads_none(folder: Path, tmp_path: Path) -> None:
    data = tmp_path / "factor.txt"
    data.write_text("5")
    assert "problem halve reads no data; leave data=" in refused(folder, data)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def with_data(path): return None", "has no function cases()"),
        ("def with_data(path): 1 / 0", "with_data() failed: ZeroDivisionError"),
        ("def with_data(): return None", "with_data() failed: TypeError"),
        ("with_data = 3", "with_data() failed: TypeError"),
    ],
)
def test_a_bad_reader_of_data(folder: Path, text: str, message: str) -> None:
    (folder / "evaluator.py").write_text(text)
    assert message in refused(folder)
