"""The trainer's process: steps come back, deaths are survived, nothing is left of it."""

import logging
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from processes import children, command

from engine.learning.group import Group
from engine.learning.job import Done, Job, Setup
from engine.learning.process import TrainerProcess, lower_priority
from engine.learning.steps import Steps
from engine.learning.versions import Versions
from engine.learning.work import new_checkpoint
from engine.settings import LearningSettings

Settings = Callable[..., LearningSettings]
Groups = Callable[..., Group]
SECONDS = 300.0
FILES = {"adapter_config.json", "adapter_model.safetensors", "trainer.pt"}


class Bench:
    """A trainer's process, and jobs for it."""

    def __init__(
        self,
        *,
        setup: Setup,
        folder: Path,
        group: Group,
        checkpoint: Path | None,
        loads: bool = True,
    ) -> None:
        self.bell = threading.Event()
        self.folder = folder
        self.group = group
        self.before = set(trainers())
        self.process = TrainerProcess(
            setup,
            cores=sorted(os.sched_getaffinity(0))[:1],
            checkpoint=checkpoint,
            notify=self.bell.set,
        )
        if loads:
            self.process.load()
        self.steps = Steps(
            settings=setup.settings,
            folder=folder,
            trainer=self.process,
            versions=Versions(max_lag=0),
            progress=lambda: 0.1,
        )

    def submit(self, number: int, *, version: int, times: int = 1) -> Job:
        job = Job(
            number=number,
            version=version,
            groups=(self.group,) * times,
            progress=0.1,
            folder=self.folder / f"{number:06}",
            variety=self.steps.versions.variety,
        )
        self.process.submit(job)
        return job

    def done(self) -> Done:
        assert self.bell.wait(SECONDS)
        self.bell.clear()
        done = self.process.completed()
        assert done is not None
        assert self.process.completed() is None
        return done

    def step(self, number: int, *, version: int) -> Done:
        self.submit(number, version=version)
        done = self.done()
        self.steps.versions.fold(self.steps.update(done, stale=0))
        return done

    @property
    def pid(self) -> int:
        """The process; waits until there is one."""
        wait_until(lambda: len(self.found()) == 1)
        return self.found()[0]

    def found(self) -> list[int]:
        return sorted(set(trainers()) - self.before)


def trainers() -> list[int]:
    """This process's children that train."""
    return [each for each in children(os.getpid()) if b"engine.learning" in command(each)]


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.fixture
def bench(
    tiny: Path, learning: Settings, group_of: Groups, tmp_path: Path
) -> Iterator[Callable[..., Bench]]:
    """Return a function that makes one."""
    made: list[Bench] = []
    group = group_of("x = ", {"good": 1.0, "bad": 0.0})

    def make(*, checkpoint: Path | None = None, loads: bool = True, **changes: object) -> Bench:
        settings = learning(learning_rate=1e-3)
        setup = Setup(weights=tiny, settings=settings, seed=0, device="cpu", dtype="float32")
        one = Bench(
            setup=replace(setup, **changes),  # type: ignore[arg-type]
            folder=tmp_path,
            group=group,
            checkpoint=checkpoint,
            loads=loads,
        )
        made.append(one)
        return one

    yield make
    for one in made:
        one.process.close()
    assert all(one.found() == [] for one in made)


def test_a_step_comes_back_and_its_checkpoint_is_whole(
    bench: Callable[..., Bench], capfd: pytest.CaptureFixture[str]
) -> None:
    one = bench()
    done = one.step(1, version=0)
    assert done.stands and done.version == 1
    assert not one.process.is_busy
    assert {file.name for file in done.job.folder.iterdir()} >= FILES
    own = os.getpriority(os.PRIO_PROCESS, 0)
    assert os.getpriority(os.PRIO_PROCESS, one.pid) == max(10, own)
    assert one.step(2, version=1).version == 2
    assert sorted(path.name for path in one.folder.iterdir()) == ["000001", "000002"]
    one.process.close()
    one.process.close()
    assert capfd.readouterr() == ("", "")  # the run's display has the terminal


def test_a_process_of_a_run_that_was_started_with_nice_keeps_its_niceness() -> None:
    def niceness() -> int:
        return os.getpriority(os.PRIO_PROCESS, process.pid)

    process = subprocess.Popen(["nice", "-n", "15", "sleep", "300"])
    try:
        wait_until(lambda: niceness() >= 15)
        before = niceness()
        lower_priority(process.pid)
        assert niceness() == before
    finally:
        process.kill()
        process.wait()


def test_beside_a_gpu_it_has_the_priority_of_the_run(bench: Callable[..., Bench]) -> None:
    """It waits for its setup, since there is no GPU to load the model on."""
    one = bench(device="cuda", loads=False)
    cores = set(sorted(os.sched_getaffinity(0))[:1])
    wait_until(lambda: os.sched_getaffinity(one.pid) == cores)
    time.sleep(0.2)  # for what follows that
    assert os.getpriority(os.PRIO_PROCESS, one.pid) == os.getpriority(os.PRIO_PROCESS, 0)


@pytest.mark.slow
def test_a_process_that_is_killed_goes_on_at_the_last_checkpoint(
    bench: Callable[..., Bench], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one = bench()
    one.step(1, version=0)
    first = one.pid
    os.kill(first, signal.SIGSTOP)  # so that it is in the middle of what comes
    one.submit(2, version=1)
    os.kill(first, signal.SIGKILL)
    with caplog.at_level(logging.WARNING):
        done = one.done()
    assert (done.job.number, done.version) == (2, 2)
    assert one.pid != first
    (record,) = [each for each in caplog.records if each.name == "brood"]
    assert record.getMessage().endswith("; it is started again from its last checkpoint")
    other = bench(checkpoint=tmp_path / "000001")
    other.folder = tmp_path / "other"
    again = other.step(2, version=1)
    weights = "adapter_model.safetensors"
    assert (again.job.folder / weights).read_bytes() == (done.job.folder / weights).read_bytes()


def test_a_process_that_dies_again_and_again_is_lost(
    bench: Callable[..., Bench], caplog: pytest.LogCaptureFixture
) -> None:
    one = bench()
    one.submit(1, version=0)
    for _ in range(3):
        pid = one.pid
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda pid=pid: pid not in one.found())  # type: ignore[misc]
    done = one.done()
    assert one.process.is_lost
    assert done.step.skipped == "the trainer's process died 3 times in a row"
    assert (done.stands, done.version) == (False, 0)
    assert one.found() == []
    last = caplog.records[-1].getMessage()
    assert last.endswith("3 times in a row; the run goes on without learning")


@pytest.mark.slow
def test_a_damaged_checkpoint_is_told_in_a_line(
    bench: Callable[..., Bench],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    one = bench()
    folder = one.step(1, version=0).job.folder
    (folder / "trainer.pt").write_bytes(b"no state")
    other = bench(checkpoint=folder)
    other.submit(2, version=1)
    wait_until(lambda: other.process.is_lost)
    messages = [each.getMessage() for each in caplog.records if each.name == "brood"]
    assert len(messages) == 3
    for message in messages:
        assert f"the trainer's state in {folder} can't be read: it is damaged" in message
        assert "\n" not in message
    assert capfd.readouterr().err == ""


def test_a_process_that_is_stopped_holds_nobody_back(bench: Callable[..., Bench]) -> None:
    one = bench()
    os.kill(one.pid, signal.SIGSTOP)
    one.submit(1, version=0)
    assert one.process.completed() is None and one.process.is_busy
    one.process.close()
    assert one.found() == []


def unlearnable(good: Group) -> Group:
    """Return a group on which a step raises: it has a token that no model has."""
    first, *others = good.members
    answer = replace(first.answers[0], token_ids=(10**6,))
    return replace(good, members=(replace(first, answers=(answer,)), *others))


@pytest.mark.slow
def test_a_step_that_raises_is_skipped_and_learning_goes_on(
    bench: Callable[..., Bench], caplog: pytest.LogCaptureFixture
) -> None:
    one = bench()
    one.step(1, version=0)
    good, one.group = one.group, unlearnable(one.group)
    failed = one.step(2, version=1)
    assert failed.step.skipped is not None and failed.step.skipped.startswith("the step failed: ")
    assert (failed.stands, failed.version, one.process.is_lost) == (False, 1, False)
    (message,) = [each.getMessage() for each in caplog.records if each.name == "brood"]
    assert message.startswith("a step of training failed (")
    assert message.endswith("; it is started again from its last checkpoint")
    one.group = good
    assert one.step(3, version=1).version == 3
    assert sorted(path.name for path in one.folder.iterdir()) == ["000001", "000003"]


@pytest.mark.slow
def test_steps_that_raise_one_after_the_other_end_learning(
    bench: Callable[..., Bench], caplog: pytest.LogCaptureFixture
) -> None:
    one = bench()
    one.group = unlearnable(one.group)
    lost = []
    for number in range(1, 4):
        assert one.step(number, version=0).step.skipped is not None
        lost.append(one.process.is_lost)
    assert lost == [False, False, True]
    wait_until(lambda: one.found() == [])
    assert caplog.records[-1].getMessage().endswith("the run goes on without learning")


def test_a_checkpoint_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    left = tmp_path / ".000002"
    left.mkdir()
    (left / "trainer.pt").write_bytes(b"half of it")  # by a process that was killed
    with pytest.raises(OSError, match="disk"), new_checkpoint(tmp_path / "000002") as folder:
        assert list(folder.iterdir()) == []
        (folder / "trainer.pt").write_bytes(b"half")
        raise OSError("no space is left on the disk")
    assert list(tmp_path.iterdir()) == []


def test_a_process_ends_in_the_middle_of_a_step(bench: Callable[..., Bench]) -> None:
    for pause in (0.0, 0.3, 3.0):  # at its start, while it imports, while it trains
        one = bench()
        one.submit(1, version=0, times=500)
        time.sleep(pause)
        one.process.close()
        assert one.found() == []


@pytest.mark.slow
def test_a_step_that_goes_back_to_the_model_itself_is_gone_on_from(
    bench: Callable[..., Bench], caplog: pytest.LogCaptureFixture
) -> None:
    one = bench()
    one.step(1, version=0)
    good = one.group
    members = tuple(replace(each, is_new=False, reward=0.0) for each in good.members)
    for number in range(2, 4):
        one.step(number, version=1)
    one.group = replace(good, members=members)
    for number in range(4, 8):
        done = one.step(number, version=3)
    assert done.step.rolled_back is not None
    assert done.version == 0
    os.kill(one.pid, signal.SIGKILL)
    one.group = good
    again = one.step(8, version=0)
    assert again.version == 8
    first, last = one.folder / "000001", one.folder / "000008"
    weights = "adapter_model.safetensors"
    assert (first / weights).read_bytes() == (last / weights).read_bytes()
