"""The bench that fuzzes: a share of its inputs, and whether it would see what it looks for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from bad_reader import WAYS

from bench.fuzz.__main__ import main, shares
from bench.fuzz.hunt import hunt
from bench.fuzz.reference import result_of
from bench.fuzz.targets import TARGETS
from bench.fuzz.wire import SPECS, results
from bench.fuzz.worker import Progress, feed, rng_of

SLOW = ("adapters", "sandbox")  # torch, and a pool
DEAR = ("peer folder", "run.db, its bytes", "run.db, its rows", "summary.json, machines.json")


@pytest.mark.parametrize("name", [name for name in TARGETS if name not in SLOW])
def test_a_few_hundred_inputs_of_each_target_are_read_or_refused(tmp_path: Path, name: str) -> None:
    count = 100 if name in DEAR else 300
    folder = tmp_path / "own"
    folder.mkdir()
    findings = tmp_path / "findings"
    progress, target = Progress(tmp_path / "progress"), TARGETS[name](folder)
    feed(target, seed=1, first=0, last=count, progress=progress, findings=findings)
    target.close()
    assert not findings.exists(), findings.read_text()
    assert (progress.at, progress.taken + progress.refused) == (count, count)
    assert progress.taken and progress.refused  # or its samples would be none


@pytest.mark.slow
def test_twenty_thousand_inputs(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["inputs=20000", "seed=2"])
    assert code == 0, capsys.readouterr().out


def test_inputs_follow_from_the_seed_and_their_number(tmp_path: Path) -> None:
    target = TARGETS["values"](tmp_path)

    def drawn(seed: int, number: int) -> str:
        return repr(target.draw(rng_of(seed=seed, target="values", number=number)))

    assert drawn(0, 3) == drawn(0, 3)
    assert len({drawn(seed, number) for seed in (0, 1) for number in range(20)}) > 30


def test_each_target_has_its_share() -> None:
    found = shares(1_000_000, list(TARGETS))
    assert min(found.values()) == 10_000 and 990_000 < sum(found.values()) <= 1_000_000
    assert set(shares(100, list(TARGETS)).values()) >= {1}


def test_the_second_decoding_is_right_about_samples() -> None:
    scores = [result_of(each, SPECS) for each in results()]
    assert [failure for _, failure in scores] == [None] * 3 + [
        "error",
        "memory",
        "output",
        "output",
    ]
    assert len({score for score, _ in scores[:3]}) == 3
    honest = results()[0]
    for spoilt in (honest[:-1], honest + b"\0", b"X" + honest[1:], honest[:1] + b"\7" + honest[2:]):
        assert result_of(spoilt, SPECS) == (None, "output")
    nan = honest.replace(np.float64(1).tobytes(), np.float64("nan").tobytes(), 1)
    assert result_of(nan, SPECS) == (None, "output")


def test_deaths_hangs_and_all_else_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    name, count, seed = "bad_reader:BadReader", 11, 34
    of = [rng_of(seed=seed, target="bad", number=n).choice(WAYS) for n in range(count)]
    assert set(of) == {*WAYS}
    found = hunt(name, seed=seed, first=0, inputs=count, hang_seconds=20.0)
    assert found.inputs == count
    assert (found.accepted, found.refused) == (of.count("take"), of.count("refuse"))
    assert (found.hangs, found.wrong) == (of.count("hang"), of.count("mistake"))
    assert found.crashes == sum(of.count(way) for way in ("die", "raise", "memory"))
    said = {each["input"]: each["what"] for each in found.findings}
    told = {"die": "-11", "hang": "hang", "mistake": "wrong", "raise": "crash", "memory": "crash"}
    assert said == {n: told[way] for n, way in enumerate(of) if way in told}


def test_a_target_that_can_not_be_made_is_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    with pytest.raises(RuntimeError, match="it can't be made"):
        hunt("bad_reader:Unmade", seed=0, first=0, inputs=3, hang_seconds=3.0)
