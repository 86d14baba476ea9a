"""``analysis=learning`` of recorded events, and the figures of a probe."""

import json
from pathlib import Path

import pytest
import yaml
from recorded import call_of, first_events, make_run

from engine import config
from engine.core import Update
from engine.probe import compared
from engine.probe import main as probe
from engine.problem import shipped
from engine.report.__main__ import main
from engine.store import create_run


def test_the_steps_and_the_children_by_version(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    step = Update(number=1, version=1, groups=(0,), stale=2, progress=0.1, reward=0.5, kl=0.25)
    back = Update(
        number=2, version=0, groups=(1,), stale=0, progress=0.2, reward=0.0, rolled_back="collapse"
    )
    run = make_run(
        tmp_path / "run", [*call_of(0), step, *call_of(1, adapter=1), back], "learning=grpo"
    )
    assert main([str(run), "analysis=learning", f"json={tmp_path / 'found.json'}"]) == 0
    out = capsys.readouterr().out
    assert "Steps of training" in out and "collapse" in out
    found = json.loads((tmp_path / "found.json").read_text())["figures"]
    first, second = found["updates"]
    assert (first["step"], first["version"], first["fate"], first["stale"]) == (1, 1, "", 2)
    assert (first["reward"], first["kl"]) == (0.5, 0.25)
    assert (second["version"], second["fate"]) == (0, "collapse")
    windows = found["children"]
    assert [row["versions"] for row in windows] == ["0 to 0", "1 to 1"]
    assert sum(row["children"] for row in windows) == 10  # without those that nobody judged
    assert windows[0]["tokens"] == 3


def test_a_probe_compares_sums_and_resamples_prompts() -> None:
    names = ("children", "valid", "unique_valid", "improving")

    def row(base: int, adapter: int) -> dict[str, dict[str, int]]:
        return {"base": dict.fromkeys(names, base), "adapter": dict.fromkeys(names, adapter)}

    same = compared([row(4, 8)] * 3)["valid"]
    assert (same["base"], same["adapter"], same["ratio"]) == (12, 24, 2.0)
    assert same["interval_95"] == pytest.approx([24.5 / 12.5] * 2)
    low, high = compared([row(4, 2), row(4, 8)])["improving"]["interval_95"]
    assert low == pytest.approx(4.5 / 8.5) and high == pytest.approx(16.5 / 8.5)
    nothing = compared([row(0, 3)])["unique_valid"]
    assert nothing["ratio"] is None and nothing["interval_95"] == [7.0, 7.0]


STEP = Update(number=1, version=1, groups=(0,), stale=0, progress=0.1, reward=0.5)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "give one run's folder"),
        (["{learned}", "{learned}"], "give one run's folder"),
        (["nowhere"], "nowhere is not a run"),
        (["{plain}"], "has no adapter: it learned nothing"),
        (["{learned}", "prompts=0"], "prompts is '0'; it must be a whole number above 0"),
        (["{learned}", "seed=x"], "seed is 'x'; it must be a whole number above 0"),
        (["{learned}", "of=nowhere"], "nowhere is not a run"),
        (["{learned}", "of={other}"], "is of another problem than"),
    ],
)
def test_what_a_probe_cannot_be_made_of(
    recorded_run: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    words: str,
) -> None:
    learned = make_run(tmp_path / "learned", [*call_of(0), STEP], "learning=grpo")
    other = tmp_path / "other"
    create_run(
        other,
        write_config=lambda path: config.save(config.resolve([]), path),
        events=first_events("another"),
    )
    folders = {"learned": learned, "plain": recorded_run, "other": other}
    assert probe([each.format(**folders) for each in arguments]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1
    assert words in err


def test_a_probe_of_a_run_whose_problem_lies_elsewhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path / "run", [*call_of(0), STEP], "learning=grpo")
    values = yaml.safe_load((run / "config.yaml").read_text())
    values["problem"] = "/gone/mine"
    (run / "config.yaml").write_text(yaml.safe_dump(values))

    def refused(*arguments: str) -> str:
        assert probe([str(run), *arguments]) == 2
        return capsys.readouterr().err

    assert refused().endswith("is not at /gone/mine here; give its folder as problem.path=FOLDER\n")
    assert "circle_packing, its data or a kernel of its has changed" in refused(
        f"problem.path={shipped()['circle_packing']}"
    )
    # The problem is found: what is refused comes behind it.
    assert "nowhere is not a run" in refused(f"problem.path={shipped()['signal']}", "of=nowhere")
