"""Workers on Ray: they die, and the run is as if none had."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from command import SECONDS, processes_in
from disturbed import (
    ARGUMENTS,
    BUDGET,
    ISLANDS,
    SLOW,
    begun,
    cpu_ticks,
    deaths,
    evaluated,
    finished,
    texts,
    wait_for,
    workers,
)
from processes import command, descendants, eventually

from engine.cluster.exchange import OVER
from engine.cluster.places import island_folder
from engine.core import Sent
from engine.store import read_log

pytestmark = pytest.mark.slow
FAILING = """
from engine import config
from engine.cluster.before_ray import prepare_ray
from engine.core import UserError

prepare_ray()
import ray

from engine.cluster.on_ray import WorkerLost, got, open_ray


def fails(error):
    raise error


with open_ray(config.resolve(["cluster=ray"]).cluster):
    for error in (UserError("said"), RuntimeError("first\\nsecond")):
        try:
            got(ray.remote(fails).remote(error), seconds=300, lost=WorkerLost)
        except (UserError, WorkerLost) as found:
            print(f"got {type(found).__name__}: {found}")
"""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on one worker, of which nothing died."""
    runs = tmp_path_factory.mktemp("undisturbed")
    out = finished(begun(*ARGUMENTS, f"runs={runs}", "cluster.workers=1"))
    assert f"{BUDGET} candidates evaluated" in out
    return runs / "run"


@pytest.fixture
def left_nothing() -> Iterator[None]:
    """Check that no process of Ray is left."""
    yield
    assert eventually(lambda: not workers(os.getpid()))


def test_workers_that_are_killed_change_nothing(
    tmp_path: Path, undisturbed: Path, left_nothing: None
) -> None:
    process = begun(*ARGUMENTS, f"runs={tmp_path}", "cluster.workers=3")
    folder = tmp_path / "run"
    for candidates in (15, 30):
        wait_for(process, folder, candidates)
        os.kill(random.choice(workers(process.pid)), signal.SIGKILL)
    out = finished(process)
    assert 1 <= deaths(out) <= 2, out  # a worker whose islands are over may not be missed
    assert f"{BUDGET} candidates evaluated" in out
    for number in range(ISLANDS):
        assert texts(folder, number) == texts(undisturbed, number)


def test_an_outpost_ends_with_its_worker_and_is_replaced(
    tmp_path: Path, left_nothing: None
) -> None:
    few = ("budget.candidates=150", "cluster.workers=1", "cluster.outposts=1")
    process = begun(*ARGUMENTS, *few, f"runs={tmp_path}")
    wait_for(process, tmp_path / "run", 15)
    (outpost,) = workers(process.pid, kind="Outpost")
    (worker,) = workers(process.pid)
    os.kill(worker, signal.SIGKILL)
    assert eventually(lambda: outpost not in workers(process.pid, kind="Outpost"))
    assert "150 candidates evaluated" in finished(process)


def test_workers_that_die_again_and_again_end_the_run(
    tmp_path: Path, undisturbed: Path, left_nothing: None
) -> None:
    process = begun(*ARGUMENTS, f"runs={tmp_path}", "cluster.workers=1")
    folder = tmp_path / "run"
    wait_for(process, folder, 10)
    while process.poll() is None:
        for worker in workers(process.pid):
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
        time.sleep(0.1)
    out, _ = process.communicate()
    assert process.returncode == 2, out
    assert "5 workers died one after the other, and none evaluated anything" in out
    finished(begun(f"resume={folder}"))
    for number in range(ISLANDS):
        assert texts(folder, number) == texts(undisturbed, number)


def test_a_driver_that_is_killed_is_replaced(tmp_path: Path, undisturbed: Path) -> None:
    process = begun(*ARGUMENTS, f"runs={tmp_path}", "cluster.workers=2")
    folder = tmp_path / "run"
    wait_for(process, folder, 20)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    out = finished(begun(f"resume={folder}"))
    assert f"{BUDGET} candidates evaluated" in out
    for number in range(ISLANDS):
        assert texts(folder, number) == texts(undisturbed, number)


def test_a_run_that_is_asked_to_stop_goes_on_later(tmp_path: Path, undisturbed: Path) -> None:
    process = begun(*ARGUMENTS, f"runs={tmp_path}", "cluster.workers=2")
    folder = tmp_path / "run"
    wait_for(process, folder, 20)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 130 and f"resume={folder}" in out
    finished(begun(f"resume={folder}"))
    for number in range(ISLANDS):
        assert texts(folder, number) == texts(undisturbed, number)


def test_an_error_that_nobody_expects_is_that_of_a_lost_worker() -> None:
    done = subprocess.run([sys.executable, "-c", FAILING], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stdout.splitlines() if line.startswith("got ")]
    assert said == ["got UserError: said", "got WorkerLost: RuntimeError: first"]


def test_a_run_that_ends_by_time_ends(tmp_path: Path, left_nothing: None) -> None:
    # More islands than workers, which move and end at different moments.
    finished(
        begun(
            *("model=mutation", "fill=none", "name=run", f"runs={tmp_path}"),
            *(f"problem.path={SLOW}", "islands.count=6", "search.k=8", "evaluation.workers=1"),
            *("budget.candidates=null", "budget.seconds=25", "cluster=ray", "cluster.workers=3"),
        )
    )
    for number in range(6):
        *_, last = read_log(island_folder(tmp_path / "run", number))
        assert last.event == Sent(epoch=OVER, candidates=())


def test_a_run_that_cannot_begin_leaves_nothing(tmp_path: Path) -> None:
    for bad, words in (
        ("cluster.address=127.0.0.1:1", "can't be reached"),
        ("budget.patience=3", "budget.patience is 3"),
        ("problem=nothing", "nothing"),
    ):
        done = begun("problem=signal", *ARGUMENTS[1:], f"runs={tmp_path}", bad)
        out, _ = done.communicate(timeout=SECONDS)
        assert done.returncode == 2 and words in out, out
        assert not [*tmp_path.iterdir()]


def test_no_other_run_imports_ray(tmp_path: Path) -> None:
    code = (
        "import sys; from engine.run import main; "
        "assert main(['problem=signal', 'model=mutation', 'runs=' + sys.argv[1], "
        "'budget.candidates=1']) == 0; "
        "assert not {'ray', 'engine.cluster.session', 'psycopg'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, capture_output=True)


def test_a_model_on_two_workers_which_die(tmp_path: Path, left_nothing: None) -> None:
    process = begun(
        *("problem=signal", "fill=none", "islands.count=3", "name=run", f"runs={tmp_path}"),
        *("budget.seconds=null", "budget.candidates=45", "evaluation.workers=1"),
        *("cluster=ray", "cluster.workers=2"),
    )
    for candidates in (10, 25):
        wait_for(process, tmp_path / "run", candidates)
        os.kill(max(workers(process.pid), key=cpu_ticks), signal.SIGKILL)
    out = finished(process)
    assert 1 <= deaths(out) <= 2, out  # see above
    assert "45 candidates evaluated" in out, out
    # The children of a call share its prompt's prefill, on a worker as anywhere.
    (summary,) = tmp_path.glob("run/summary.json")
    for island in json.loads(summary.read_text())["islands"]:
        assert island["cached_prompt_tokens"] > 0.8 * island["prompt_tokens"]


def test_a_model_in_three_processes_of_a_worker_which_dies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tensor parallelism: three ranks, since the model has nine heads and three of KV."""
    monkeypatch.setenv("VLLM_CPU_OMP_THREADS_BIND", "0|1|0")
    monkeypatch.setenv("BROOD_TEST", str(tmp_path))  # by which its processes are known
    process = begun(
        *("problem=signal", "fill=none", "islands.count=2", "name=run", f"runs={tmp_path}"),
        *("budget.seconds=null", "budget.candidates=32", "evaluation.workers=1", "search.k=4"),
        *("cluster=ray", "cluster.workers=1", "model.engine.tensor_parallel_size=3"),
    )
    ranks: list[int] = []

    def sees_the_ranks() -> bool:
        ranks[:] = [
            each
            for worker in workers(process.pid)
            for each in descendants(worker)
            if b"Worker_TP" in command(each)
        ]
        return len(ranks) == 3 or process.poll() is not None

    wait_for(process, tmp_path / "run", 4)
    assert eventually(sees_the_ranks)  # one look may miss a process
    assert len(ranks) == 3, finished(process)
    (worker,) = workers(process.pid)
    os.kill(worker, signal.SIGKILL)
    assert eventually(lambda: not any(command(each) for each in ranks))
    out = finished(process)
    assert deaths(out) == 1 and "32 candidates evaluated" in out, out
    assert eventually(lambda: not processes_in(tmp_path))


def test_twenty_kills_change_nothing(tmp_path: Path) -> None:
    many = (*ARGUMENTS, "budget.candidates=1200")
    process = begun(*many, f"runs={tmp_path}", "cluster.workers=3")
    folder, kills, chance = tmp_path / "run", 0, random.Random(0)
    wait_for(process, folder, 1)
    while kills < 20:
        # Something is evaluated between two kills: else so many deaths in a row end the run.
        wait_for(process, folder, evaluated(folder) + 1)
        time.sleep(chance.uniform(1.5, 5.0))
        if alive := workers(process.pid):
            os.kill(chance.choice(alive), signal.SIGKILL)
            kills += 1
    out = finished(process)
    assert "1200 candidates evaluated" in out
    quiet = tmp_path / "quiet"
    finished(begun(*many, f"runs={quiet}", "cluster.workers=3"))
    for number in range(ISLANDS):
        assert texts(folder, number) == texts(quiet / "run", number)
