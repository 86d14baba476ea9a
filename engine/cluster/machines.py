"""The machines of a Ray cluster: this one joins, all are listed, one is let go.

Ray's own commands do the work, with a token between the machines and without usage statistics.
"""

import os
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.cluster.before_ray import TOKEN, has_token, wants_token
from engine.core import UserError

_STARTING = 60.0  # seconds in which the head has to answer
_PAUSE = 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class Machine:
    """A machine of a cluster.

    Attributes:
        id: Ray's, hexadecimal.
        name: its host name.
        address: its IP address.
        cores: that Ray counts there.
        gpus: likewise.
        is_leaving: whether it is drained.
        processes: how many of each run's workers and outposts are there, by their names.
    """

    id: str
    name: str
    address: str
    cores: int
    gpus: int
    is_leaving: bool
    processes: Mapping[str, int]


def start(address: str, *, block: bool) -> str:
    """Start Ray on this machine: as the head if the address is its own, else as one that joins.

    Args:
        address: of the head, ``HOST:PORT``.
        block: whether to return only when Ray ends here.

    Returns:
        What became of it.

    Raises:
        UserError: it can't be started.
    """
    host, _, port = address.rpartition(":")
    number = _resolved(host)
    is_head = _is_here(number)
    if is_head:
        _make_token()
        which = ["--head", f"--node-ip-address={number}", f"--port={port}"]
        which += ["--include-dashboard=false"]
    else:
        _check_token(host)
        _wait_for(number, int(port))
        which = [f"--address={number}:{port}"]
    _ray("start", *which, "--disable-usage-stats", block=block)
    return (
        f"this machine is the head, at {address}" if is_head else f"this machine joined {address}"
    )


def machines() -> list[Machine]:
    """Return the living machines of the cluster that this process has joined."""
    from ray._private.state import actors, state  # Ray has no public way without its dashboard

    leaving = state.get_draining_nodes()
    processes: dict[str, Counter[str]] = {}
    for actor in actors(actor_state_name="ALIVE").values():
        name = actor["Name"].rpartition("/")[0] or actor["ActorClassName"]
        processes.setdefault(actor["Address"]["NodeID"], Counter())[name] += 1
    return [
        Machine(
            id=node["NodeID"],
            name=node["NodeManagerHostname"],
            address=node["NodeManagerAddress"],
            cores=int(node["Resources"].get("CPU", 0)),
            gpus=int(node["Resources"].get("GPU", 0)),
            is_leaving=node["NodeID"] in leaving,
            processes=processes.get(node["NodeID"], {}),
        )
        for node in state.node_table()  # type: ignore[no-untyped-call]
        if node["Alive"]
    ]


def drain(machine: Machine, *, address: str, seconds: int) -> None:
    """Let a machine go: nothing new is started there, and after a while what is left is ended.

    Args:
        machine: of the cluster.
        address: of the head.
        seconds: until what is still there is ended.

    Raises:
        UserError: Ray refuses.
    """
    _ray(
        "drain-node",
        f"--address={address}",
        f"--node-id={machine.id}",
        "--reason=DRAIN_NODE_REASON_PREEMPTION",
        "--reason-message=brood cluster drain",
        f"--deadline-remaining-seconds={seconds}",
    )


def matching(found: Sequence[Machine], wanted: str) -> Machine:
    """Return the one machine that has a name, an address, or an id that begins so.

    Raises:
        UserError: none has, or several have.
    """
    same = [each for each in found if wanted in (each.name, each.address)]
    same = same or [each for each in found if wanted and each.id.startswith(wanted)]
    if len(same) != 1:
        names = ", ".join(f"{each.address} ({each.name}, {each.id[:8]})" for each in found)
        raise UserError(
            f"{'no machine is' if not same else 'several machines are'} {wanted[:64]!r}; "
            f"there are: {names}"
        )
    return same[0]


def _ray(*arguments: str, block: bool = False) -> None:
    """Run one of Ray's commands.

    Raises:
        UserError: it fails.
    """
    command = [sys.executable, "-m", "ray.scripts.scripts", *arguments, *["--block"] * block]
    output = None if block else subprocess.PIPE
    done = subprocess.run(
        command, env=_environment(), stdout=output, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode:
        lines = [line.strip() for line in (done.stdout or "").splitlines() if line.strip()]
        said = lines[-1].partition(". ")[0] if lines else f"exit code {done.returncode}"
        raise UserError(f"`ray {arguments[0]}` failed: {said}")


def _environment() -> dict[str, str]:
    given = {"RAY_AUTH_MODE": "token", **os.environ, "RAY_USAGE_STATS_ENABLED": "0"}
    given.pop("RAY_ADDRESS", None)  # of another cluster
    return given


def _make_token() -> None:
    """Make a token unless there is one; only its owner can read the file."""
    if wants_token() and not has_token():
        path = TOKEN.expanduser()
        path.parent.mkdir(mode=0o700, exist_ok=True)
        _ray("get-auth-token", "--generate")
        path.chmod(0o600)


def _check_token(host: str) -> None:
    if wants_token() and not has_token():
        raise UserError(f"there is no token here; copy {TOKEN} of {host} to the same place")


def _resolved(host: str) -> str:
    try:
        return socket.gethostbyname(host)
    except OSError as error:
        raise UserError(f"address: {host!r} is no host: {error}") from error


def _is_here(number: str) -> bool:
    """Whether an IP address is one of this machine."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((number, 0))
        except OSError:
            return False
    return True


def _wait_for(host: str, port: int) -> None:
    """Wait until the head answers: machines are started in any order."""
    deadline = time.monotonic() + _STARTING
    while True:
        try:
            socket.create_connection((host, port), timeout=_PAUSE).close()
            return
        except OSError as error:
            if time.monotonic() > deadline:
                raise UserError(
                    f"{host}:{port} does not answer ({error}); start the head first, with the same "
                    "command there"
                ) from error
        time.sleep(_PAUSE)
