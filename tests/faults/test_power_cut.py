"""Power loss at any moment: the run goes on, and every verdict that was handed on is there.

What a cut leaves is worked out from a record of a real run's writes and syncs, see ``power.py``.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from events import assert_same_run, plain_events
from power import Disk, Done, compiled, read_record

from engine import Run
from engine.store import read_log

CANDIDATES = 25
RUN = f"""
import os, sys
from engine import Run
from engine.session import evolve

folder, marks = sys.argv[1:]
told = os.open(marks, os.O_WRONLY | os.O_CREAT)


def tell(events):
    for event in events:
        os.write(told, f"{{event.KIND}} {{event.subject}}\\n".encode())


settings = dict(
    model="mutation", fill="none", islands=dict(count=1), search=dict(k=4),
    pipeline=dict(speculate=False), evaluation=dict(workers=1), seed=3, runs=folder, name="run",
    budget=dict(candidates={CANDIDATES}, seconds=None),
)
with Run.of("signal", **settings) as run:
    os.write(told, b"begun\\n")
    run.evolve(tell=tell)
    evolve(run)
os.write(told, b"reported\\n")
"""


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """A run that went to its end, and the record of it.

    Attributes:
        folder: in which the run's own lies.
        marks: the file that it wrote what it handed on to.
        done: the record.
    """

    folder: Path
    marks: Path
    done: list[Done]

    def disk(self) -> Disk:
        return Disk(self.folder, marks=self.marks)


def recorded(tmp_path: Path, program: str) -> Recorded:
    """Run a program, with the folder and the file for marks as its arguments, and record it."""
    folder, marks, record = (tmp_path / each for each in ("runs", "marks", "record"))
    folder.mkdir()
    library = compiled("recorder", tmp_path)
    names = {"LD_PRELOAD": library, "RECORDED": folder, "RECORD": record, "MARKS": marks}
    subprocess.run(
        [sys.executable, "-c", program, str(folder), str(marks)],
        env={**os.environ, **{name: str(value) for name, value in names.items()}},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return Recorded(folder=folder, marks=marks, done=read_record(record))


def content(folder: Path) -> dict[str, bytes]:
    """Return the files below a folder, without the memory that SQLite's readers share."""
    found = (each for each in folder.rglob("*") if each.is_file())
    return {
        str(each.relative_to(folder)): each.read_bytes()
        for each in found
        if not each.name.endswith("-shm")
    }


def test_what_was_put_in_place_outlasts_a_cut(tmp_path: Path) -> None:
    program = """
import os, sys
from pathlib import Path
from engine.durable import make_folders, put_in_place, write_whole

folder, marks = map(Path, sys.argv[1:])
told = os.open(marks, os.O_WRONLY | os.O_CREAT)
make_folders(folder / "a" / "b")
os.write(told, b"a/b\\n")
write_whole(folder / "a" / "b" / "file", "old")
os.write(told, b"old\\n")
write_whole(folder / "a" / "b" / "file", "new" * 5000)
os.write(told, b"new\\n")
(folder / "partial" / "inner").mkdir(parents=True)
(folder / "partial" / "inner" / "file").write_text("whole")
put_in_place(folder / "partial", folder / "placed")
os.write(told, b"placed\\n")
"""
    run = recorded(tmp_path, program)
    disk = run.disk()
    old, new = b"old", b"new" * 5000
    for number, done in enumerate(run.done):
        disk.play(done)
        for name, chance in (("least", None), ("some", random.Random(number))):
            left = tmp_path / f"{name}-{number}"
            disk.write_left(left, chance)
            file, placed = left / "a" / "b" / "file", left / "placed"
            assert file.parent.is_dir() or "a/b" not in disk.marks
            if file.exists():  # never half of it
                assert file.read_bytes() in (old, new)
            assert file.exists() or "old" not in disk.marks
            assert "new" not in disk.marks or file.read_bytes() == new
            if placed.exists():
                assert content(placed) == {"inner/file": b"whole"}
            assert placed.exists() or "placed" not in disk.marks
    assert disk.marks == ["a/b", "old", "new", "placed"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return recorded(tmp_path_factory.mktemp("power"), RUN)


@pytest.mark.slow
def test_a_run_outlasts_forty_cuts(run: Recorded, tmp_path: Path) -> None:
    whole = plain_events(run.folder / "run")
    rng = random.Random(20)
    cuts = sorted(rng.sample(range(len(run.done)), 40))
    disk, resumed = run.disk(), 0
    for number, done in enumerate(run.done):
        disk.play(done)
        if number not in cuts:
            continue
        folder = tmp_path / f"cut-{number}" / "run"
        disk.write_left(folder.parent, rng if rng.random() < 0.5 else None)
        if not folder.exists():
            assert disk.marks == []
            continue
        events = [each.event for each in read_log(folder)]
        there = {f"{each.KIND} {each.subject}" for each in events}
        assert {each for each in disk.marks if " " in each} <= there
        with Run.resume(folder) as again:
            again.evolve()
        assert_same_run(plain_events(folder), whole)
        resumed += 1
    assert resumed >= 30


@pytest.mark.slow
def test_the_record_is_complete(run: Recorded, tmp_path: Path) -> None:
    """Else the other tests would show nothing: a write that was not recorded is never lost."""
    disk = run.disk()
    for done in run.done:
        disk.play(done)
    disk.write_now(tmp_path / "now")
    assert content(tmp_path / "now") == content(run.folder)
    disk.write_left(tmp_path / "left", None)
    assert disk.marks[-1] == "reported"
    for name in ("summary.json", "best.py", "config.yaml"):
        left = tmp_path / "left" / "run" / name
        assert left.read_bytes() == (run.folder / "run" / name).read_bytes()
