"""Three machines: one is cut off and comes back, one is drained, and the run is as if not."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from command import SECONDS
from disturbed import ARGUMENTS, ISLANDS, begun, deaths, finished, texts, wait_for
from hosts import Host, network, why_not
from servers import Server, installed, running

pytestmark = pytest.mark.slow
RUN = (*ARGUMENTS, "budget.candidates=900")  # lasts longer than commands take to get there
CUT_OFF = 30.0  # seconds


def cluster(host: Host, *arguments: str) -> str:
    """What ``brood cluster`` prints on a host."""
    done = subprocess.run(
        [*host.inside, sys.executable, "-m", "engine.cluster", *arguments],
        env=host.environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def three() -> Iterator[list[Host]]:
    """Three hosts that are one Ray cluster; the first is the head."""
    if reason := why_not():
        pytest.skip(reason)
    with ExitStack() as stack:
        # A socket's path may have 107 characters, of which Ray needs most.
        scratch = Path(
            stack.enter_context(TemporaryDirectory(prefix="n", ignore_cleanup_errors=True))
        )
        found = stack.enter_context(network(3, scratch))
        head = found[0]
        for host in found:
            stack.callback(end_ray, host)
            if host is not head:
                (host.scratch / ".ray").mkdir()
                token = (head.scratch / ".ray/auth_token").read_bytes()
                (host.scratch / ".ray/auth_token").write_bytes(token)
            assert "this machine" in cluster(host, "start", f"address={head.address}:6379")
        yield found


def end_ray(host: Host) -> None:
    """Kill all processes in a host's network."""
    inside = host.inside[1].removeprefix("--net=")
    own = Path(inside).readlink()
    holder = int(inside.split("/")[2])
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != holder:
            try:
                if (entry / "ns/net").readlink() == own:
                    subprocess.run(["kill", "-9", entry.name], check=False)
            except OSError:
                continue


@pytest.fixture
def server_there(three: list[Host]) -> Iterator[Server]:
    """A PostgreSQL server on the head, for all hosts."""
    programs = installed()
    if programs is None:
        pytest.skip("the server of PostgreSQL is not installed (Debian: postgresql)")
    with running(programs, inside=three[0].inside, address=three[0].address) as found:
        yield found


@pytest.fixture
def arguments(tmp_path: Path, three: list[Host], server_there: Server) -> Iterator[tuple[str, ...]]:
    """Of a run on the three, whose server the test can ask too."""
    with three[0].entered():
        yield (
            *(*RUN, f"runs={tmp_path}", "cluster.workers=3", "cluster.patience=5"),
            *(f"cluster.address={three[0].address}:6379", f"store={server_there.url}"),
        )


@pytest.fixture(scope="module")
def one_machine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run on this machine alone."""
    runs = tmp_path_factory.mktemp("one")
    finished(begun(*RUN, f"runs={runs}", "cluster.workers=3"))
    return runs / "run"


def test_a_machine_that_is_cut_off_and_comes_back_changes_nothing(
    tmp_path: Path, one_machine: Path, three: list[Host], arguments: tuple[str, ...]
) -> None:
    process = begun(*arguments, on=three[0])
    folder = tmp_path / "run"
    wait_for(process, folder, 15)
    three[2].cut()
    time.sleep(CUT_OFF)
    assert process.poll() is None
    three[2].mend()
    out = finished(process)
    assert "900 candidates evaluated" in out and deaths(out)
    for number in range(ISLANDS):
        assert texts(folder, number) == texts(one_machine, number)


def test_a_machine_that_is_drained_is_left(
    tmp_path: Path, one_machine: Path, three: list[Host], arguments: tuple[str, ...]
) -> None:
    process = begun(*arguments, on=three[0])
    folder, head = tmp_path / "run", f"address={three[0].address}:6379"
    while (shown := cluster(three[1], "show", head)).count("run (1)") != 3:  # as long as it starts
        assert process.poll() is None
    assert all(host.address in shown for host in three)
    wait_for(process, folder, 15)
    cluster(three[1], "drain", three[2].address, head)
    while "leaving" in (shown := cluster(three[0], "show", head)):
        assert process.poll() is None
    assert three[2].address not in shown  # Ray ends there once nothing is left
    out = finished(process)
    assert "its machine is drained" in out and "900 candidates evaluated" in out
    for number in range(ISLANDS):
        assert texts(folder, number) == texts(one_machine, number)
