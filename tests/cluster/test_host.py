"""Islands with a run each: what they make follows from the seed, wherever they are."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from command import SECONDS
from processes import zygotes
from servers import Server

from engine import config
from engine.beginning import archive_features
from engine.cluster import islands
from engine.cluster.host import Host, open_host
from engine.cluster.islands import check_cluster, found, island_settings
from engine.cluster.known import Known
from engine.cluster.places import island_folder
from engine.cluster.sharing import SharedEvaluators
from engine.cluster.worker import Worker
from engine.cluster.worker_report import WorkerReport
from engine.core import (
    INITIAL,
    Child,
    Evaluation,
    Migrant,
    ProcessUnfitError,
    Program,
    Sent,
    UserError,
    Verdict,
)
from engine.evaluation import EvaluatorsLost, lane
from engine.parts import open_parts, read_problem
from engine.search.features import cell_of
from engine.settings import RunSettings
from engine.steering import Request, leave
from engine.store import EventLog, locked, read_log
from engine.syntax import read

ISLANDS = 3


def settings_of(*more: str) -> RunSettings:
    return config.resolve(
        [
            *("problem=signal", "model=mutation", "fill=none", f"islands.count={ISLANDS}"),
            *("islands.migrate_every=3", "islands.migrants=2", "budget.seconds=null"),
            *("budget.candidates=100", "search.k=4", "evaluation.workers=1", *more),
        ]
    )


def founded(folder: Path, settings: RunSettings) -> Path:
    problem = read_problem(settings)
    with open_parts(settings, problem) as parts:
        found(settings, problem, parts=parts, folder=folder)
    return folder


def hosted(settings: RunSettings, folder: Path) -> AbstractContextManager[Host]:
    timeline = folder / f"timeline-{len([*folder.iterdir()])}.json"
    return open_host(settings, read_problem(settings), folder=folder, timeline=timeline)


def go_on(folder: Path, settings: RunSettings, islands: Sequence[int], *, turns: int = -1) -> None:
    """Let islands go on in one process: until all are over, or for some turns."""
    with hosted(settings, folder) as host:
        for number in islands:
            host.add(number)
        while host.islands and turns:
            host.turn()
            host.wait()
            turns -= 1


def made(folder: Path, number: int) -> list[tuple[str, str]]:
    """What an island has made, arrived programs and epochs included, in the order of its log."""
    found = list[tuple[str, str]]()
    for recorded in read_log(island_folder(folder, number)):
        event = recorded.event
        if isinstance(event, Child):
            found.append((event.id, str(event.program and event.program.text)))
        elif isinstance(event, Migrant):
            found.append((event.id, event.program.text))
        elif isinstance(event, Sent):
            found.append((f"sent {event.epoch}", " ".join(event.candidates)))
    return found


def evaluated(folder: Path, number: int) -> int:
    events = [recorded.event for recorded in read_log(island_folder(folder, number))]
    children = {each.id for each in events if isinstance(each, Child)}
    judged = [each.candidate for each in events if isinstance(each, Verdict)]
    assert len(judged) == len(set(judged))
    return sum(each in children for each in judged)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All islands in one process."""
    settings = settings_of()
    folder = founded(tmp_path_factory.mktemp("whole") / "run", settings)
    go_on(folder, settings, range(ISLANDS))
    return folder


def test_the_budget_is_shared_out_and_met_exactly(whole: Path) -> None:
    assert [evaluated(whole, number) for number in range(ISLANDS)] == [34, 33, 33]


def test_islands_differ_and_send_each_other_programs(whole: Path) -> None:
    every = [dict(made(whole, number)) for number in range(ISLANDS)]
    assert len({str(each) for each in every}) == ISLANDS
    arrived = {name: text for each in every for name, text in each.items() if name[0] == "i"}
    assert arrived
    for name, text in arrived.items():
        origin, _, candidate = name.removeprefix("i").partition(".")
        assert every[int(origin)][candidate] == text
    assert all("sent -1" in each for each in every)


def test_islands_make_the_same_wherever_they_are_and_however_often_they_move(
    whole: Path, tmp_path: Path
) -> None:
    settings = settings_of()
    folder = founded(tmp_path / "run", settings)
    # One at a time, each for a while, and again: a neighbour that is not as far is waited for.
    for turns in (3, 11, 40, 5):
        for number in range(ISLANDS):
            go_on(folder, settings, [number], turns=turns)
    go_on(folder, settings, range(ISLANDS))
    for number in range(ISLANDS):
        assert sorted(made(folder, number)) == sorted(made(whole, number))
        assert evaluated(folder, number) == evaluated(whole, number)


def test_an_island_that_leaves_and_comes_back_is_not_given_old_answers(
    whole: Path, tmp_path: Path
) -> None:
    settings = settings_of()
    folder = founded(tmp_path / "run", settings)
    with hosted(settings, folder) as host:
        for number in range(ISLANDS):
            host.add(number)
        turns = 0
        while host.islands:
            host.turn()
            turns += 1
            # While its calls and candidates are under way, which it then asks for again.
            if turns % 7 == 0 and (number := turns // 7 % ISLANDS) in host.islands:
                host.remove(number)
                host.add(number)
            host.wait()
    for number in range(ISLANDS):
        assert sorted(made(folder, number)) == sorted(made(whole, number))
        assert evaluated(folder, number) == evaluated(whole, number)


def test_an_island_whose_time_is_up_while_it_waits_is_over(tmp_path: Path) -> None:
    settings = settings_of(
        *("islands.count=2", "islands.migrate_every=1", "budget.candidates=null"),
        "budget.seconds=3",
    )
    folder = founded(tmp_path / "run", settings)
    # Alone it waits for the other's migrants, and nothing more is recorded.
    with hosted(settings, folder) as host:
        host.add(0)
        host.run()
        assert host.over == {0}
    assert made(folder, 0)[-1] == ("sent -1", "")
    with hosted(settings, folder) as host:
        host.add(0)
        assert host.over == {0} and not host.islands


def test_a_worker_says_which_stay_of_an_island_its_report_is_about(tmp_path: Path) -> None:
    settings = settings_of("budget.candidates=3")
    folder = founded(tmp_path / "run", settings)
    with locked(folder), working(settings, folder) as worker:
        worker.ready()
        worker.add(0, 1, {})
        first = until(worker, lambda report: report.islands[0].is_over if report.islands else False)
        assert first.stays == {0: 1}
        with EventLog(island_folder(folder, 1)):
            worker.add(1, 7, {})  # it is somewhere else
            second = until(worker, lambda report: bool(report.lost))
        assert second.stays == {0: 1, 1: 7}


def test_a_worker_keeps_of_an_island_that_is_lost_no_more_than_how_it_stood(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_of("islands.migrate_every=0")
    folder = founded(tmp_path / "run", settings)
    write, full = EventLog.commit, list[int]()

    def commit(log: EventLog) -> None:
        if full and log._open:
            log._open = []
            raise UserError("the disk is full")
        write(log)

    monkeypatch.setattr(EventLog, "commit", commit)
    with locked(folder), working(settings, folder) as worker:
        worker.ready()
        worker.add(0, 1, {})
        until(worker, lambda report: bool(report.candidates))
        full.append(0)
        lost = until(worker, lambda report: not worker._histories)
        assert lost.lost == {0: "the disk is full"} and lost.islands[0].candidates > 0
        assert not lost.islands[0].is_over and not lost.islands[0].has_stopped
        full.clear()
        worker.add(0, 2, {})
        back = until(worker, lambda report: report.stays == {0: 2})
        assert not back.lost and [*worker._histories] == [0]


@contextmanager
def working(
    settings: RunSettings, folder: Path, *, fingerprint: str | None = None
) -> Iterator[Worker]:
    """Hold a worker that begins; without a fingerprint, with the problem as it is here."""
    with TemporaryDirectory() as scratch:
        config.save(settings, path := Path(scratch, "settings.yaml"))
        text = path.read_text()
    fingerprint = fingerprint or read_problem(settings).fingerprint
    worker = Worker(text, name="run", folder=str(folder), fingerprint=fingerprint)
    worker.start(os.sched_getaffinity(0), None)
    try:
        yield worker
    finally:
        worker.close()


def test_a_worker_does_not_begin_where_the_problem_is_another(tmp_path: Path) -> None:
    with (
        working(settings_of(), tmp_path / "run", fingerprint="another") as worker,
        pytest.raises(UserError, match=r"signal, its data.* so scores would not compare"),
    ):
        worker.ready()


@pytest.mark.parametrize("is_there", [False, True])
def test_a_worker_does_not_begin_where_the_runs_folder_is_not(
    tmp_path: Path, is_there: bool
) -> None:
    """On another machine, that is; another run of the name, which nobody works on, is none."""
    folder = tmp_path / "run"
    if is_there:
        founded(folder, settings_of())
    with (
        working(settings_of(), folder) as worker,
        pytest.raises(UserError, match=r"begin the run with store=postgresql://"),
    ):
        worker.ready()
    assert folder.exists() == is_there


def test_a_worker_removes_the_folder_of_one_that_was_killed(tmp_path: Path) -> None:
    settings, temporary = tmp_path / "settings.yaml", tmp_path / "temporary"
    config.save(settings_of(), settings)
    temporary.mkdir()

    def made_and_killed() -> set[Path]:
        code = (
            "import os, signal, sys; from pathlib import Path; "
            "from engine.cluster.worker import Worker; "
            "worker = Worker("
            "Path(sys.argv[1]).read_text(), name='run', folder=None, fingerprint=''); "
            "os.kill(os.getpid(), signal.SIGKILL)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, settings],
            env={**os.environ, "TMPDIR": str(temporary)},
            check=False,
        )
        assert done.returncode == -signal.SIGKILL
        return {*temporary.glob("brood-worker-*")}

    (first,) = made_and_killed()
    (second,) = made_and_killed()
    assert second != first


def until(worker: Worker, is_so: Callable[[WorkerReport], bool]) -> WorkerReport:
    """Return the first report that says so."""
    deadline = time.monotonic() + SECONDS
    while not is_so(report := worker.report()):
        assert time.monotonic() < deadline and not report.error, report
        time.sleep(0.05)
    return report


def test_an_island_is_in_one_place_at_a_time(tmp_path: Path) -> None:
    settings = settings_of("budget.candidates=3")
    folder = founded(tmp_path / "run", settings)

    def add(host: Host) -> None:
        with pytest.raises(UserError, match="another process works on"):
            host.add(0)

    with hosted(settings, folder) as here:
        here.add(0)
        with hosted(settings, folder) as there:
            add(there)


def test_an_island_whose_log_cannot_be_written_is_lost_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_of("islands.migrate_every=0", "budget.candidates=12")
    folder = founded(tmp_path / "run", settings)
    write, full = EventLog.commit, list[EventLog]()

    def commit(log: EventLog) -> None:
        if log in full and log._open:
            log._open = []
            raise UserError("the disk is full")
        write(log)

    monkeypatch.setattr(EventLog, "commit", commit)
    lost = dict[int, str]()
    with hosted(settings, folder) as host:
        for number in range(ISLANDS):
            host.add(number)
        full.append(host.islands[0].run.log)
        while host.islands:
            lost |= host.turn()
            host.wait()
        assert lost == {0: "the disk is full"} and host.over == {1, 2}
        full.clear()
        host.add(0)
        host.run()
        assert host.over == {0, 1, 2}
    assert [evaluated(folder, number) for number in range(ISLANDS)] == [4, 4, 4]


def test_a_worker_whose_evaluators_are_lost_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else each island that is lost there would be offered to it again, as it has none."""
    settings = settings_of("islands.migrate_every=0")
    folder = founded(tmp_path / "run", settings)
    monkeypatch.setattr(lane, "_PAUSES", (0.01,))
    with hosted(settings, folder) as host:
        history = host.add(0)
        while history.evaluated < 3:  # processes for syntax are there too by then
            assert not host.turn()
            host.wait()
        monkeypatch.setattr(sys, "executable", "/no/such/python")
        for zygote in zygotes(os.getpid()):
            os.kill(zygote, signal.SIGKILL)
        with pytest.raises(EvaluatorsLost, match=r"a sandbox did not start: .*/no/such/python"):
            host.run()


def test_a_worker_that_can_start_no_process_for_syntax_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody else on it could go on either, and it would seem to have the least to do."""
    settings = settings_of("islands.migrate_every=0")
    folder = founded(tmp_path / "run", settings)
    with hosted(settings, folder) as host:
        host.add(0)
        monkeypatch.setattr(sys, "executable", "/no/such/python")
        with pytest.raises(ProcessUnfitError, match="no process that parses programs can be"):
            host.run()


def test_the_clock_of_a_paused_island_stands(tmp_path: Path) -> None:
    seconds = 4.0
    settings = settings_of("islands.migrate_every=0", f"budget.seconds={seconds}")
    folder = founded(tmp_path / "run", settings)
    with hosted(settings, folder) as host:
        host.add(0)
        island = host.islands[0]
        leave(island_folder(folder, 0), Request(kind="pause"))
        began = time.monotonic()
        while time.monotonic() < began + seconds + 0.5:
            host.turn()
            host.wait()
        assert host.islands == {0: island} and island.loop.stands
        assert not island.loop.allowance.is_spent


def test_each_island_has_its_programs_in_cells_of_its_own(tmp_path: Path) -> None:
    settings = settings_of("search.archive=structure", "search.cells.policy=cvt")
    folder, problem = tmp_path / "run", read_problem(settings)
    go_on(founded(folder, settings), settings, range(ISLANDS))
    firsts, arrived = set(), 0
    for number in range(ISLANDS):
        features = archive_features(island_settings(settings, number), problem)
        programs: dict[str, Program | None] = {}
        for recorded in read_log(island_folder(folder, number)):
            event = recorded.event
            if isinstance(event, Child | Migrant):
                programs[event.id] = event.program
                arrived += isinstance(event, Migrant)
            elif isinstance(event, Verdict):
                program = programs.get(event.candidate) or read(event.program or "")
                assert event.cell == cell_of(program, event.evaluation, features=features)
                if event.candidate == INITIAL:
                    firsts.add(event.cell)
    assert arrived and len(firsts) > 1


def test_what_an_island_had_is_freed_when_it_goes(tmp_path: Path) -> None:
    settings = settings_of()
    folder = founded(tmp_path / "run", settings)
    with hosted(settings, folder) as host:
        for number in (0, 1):
            host.add(number)
        search = weakref.ref(host.islands[0].loop.state.search)
        host.remove(0)
        gc.collect()
        assert search() is None
        host.add(0)


def test_the_seconds_of_a_program_go_to_an_island_that_is_there() -> None:
    class Pool:
        def submit(self, *, candidate_id: str, **rest: object) -> None:
            self.key = candidate_id

        def completed(self, *, timeout: float | None) -> list[tuple[str, Evaluation]]:
            key, self.key = self.key, ""
            return [(key, Evaluation(score=1.0, failure=None, seconds=3.0))] if key else []

    pool: Any = Pool()
    shared = SharedEvaluators(pool, known=Known(None))
    with shared.client() as first:
        first.submit(candidate_id="0.0", program="same")
    with shared.client() as second, shared.client() as third:
        for each in (second, third):
            each.submit(candidate_id="5.0", program="same")
        found = [each.completed(timeout=0)[0][1].seconds for each in (second, third)]
    assert found == [3.0, 0.0]


def test_settings_of_islands_share_what_a_run_has() -> None:
    settings = settings_of("budget.tokens=10", "budget.money=3", "budget.prices.generated=1")
    every = [island_settings(settings, number) for number in range(ISLANDS)]
    assert [each.budget.candidates for each in every] == [34, 33, 33]
    assert [each.budget.tokens for each in every] == [4, 3, 3]
    assert [each.budget.money for each in every] == [1, 1, 1]
    assert len({each.seed for each in every}) == ISLANDS
    assert all(each.islands.count == 1 for each in every)


@pytest.mark.parametrize(
    "override",
    ["budget.patience=3", "islands.schedule.policy=adaevolve"],
)
def test_what_needs_all_islands_in_one_place_is_refused(override: str) -> None:
    with pytest.raises(UserError, match=override.partition("=")[0].removesuffix(".policy")):
        check_cluster(settings_of(override))


def test_a_program_that_two_islands_find_is_evaluated_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Islands of one seed make the same programs.
    monkeypatch.setattr(islands, "island_settings", lambda settings, number: alike)
    settings = settings_of("islands.migrate_every=0")
    alike = replace(
        settings,
        islands=replace(settings.islands, count=1),
        budget=replace(settings.budget, candidates=30),
        pipeline=replace(settings.pipeline, speculate=False),
    )
    folder = founded(tmp_path / "run", settings)
    go_on(folder, settings, range(ISLANDS))
    logs = [
        [recorded.event for recorded in read_log(island_folder(folder, number))]
        for number in range(ISLANDS)
    ]
    every = [{e.candidate: e.evaluation for e in log if isinstance(e, Verdict)} for log in logs]
    assert len({tuple((n, e.score) for n, e in sorted(each.items())) for each in every}) == 1
    spent = {name: [each[name].seconds > 0 for each in every] for name in every[0]}
    ran = [name for name, seconds in spent.items() if sum(seconds) == 1]
    scored = [name for name, each in every[0].items() if each.score is not None and "." in name]
    assert scored and set(scored) <= set(ran)


def test_islands_that_cannot_all_be_founded_leave_nothing(tmp_path: Path, server: Server) -> None:
    server.sql('CREATE SCHEMA "run.1"')  # somebody else's
    settings = settings_of(f"store={server.url}")
    with pytest.raises(UserError, match=r"run\.1.*give another name="):
        founded(tmp_path / "run", settings)
    assert not [*(tmp_path / "run" / "islands").iterdir()]
    schemas = {name for (name,) in server.sql("SELECT nspname FROM pg_namespace")}
    assert "run.1" in schemas and not {"run", "run.0", "run.2"} & schemas
