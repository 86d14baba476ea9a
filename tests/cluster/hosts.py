"""Hosts with a network of their own, made of network namespaces; the network can be cut."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

NETWORK = "10.231.77"


def why_not() -> str | None:
    """Return why there can be no hosts here; None if there can."""
    if os.geteuid() != 0:
        return "network namespaces of a test's own need root"
    for program in ("unshare", "nsenter", "ip", "bridge", "setpriv"):
        if shutil.which(program) is None:
            return f"the program {program} is not installed"
    with ExitStack() as stack:
        inside = stack.enter_context(_namespace())
        command = [*inside, *["ip", "link", "add", "switch", "type", "bridge"]]
        made = subprocess.run(command, check=False)
    return "no bridge can be made here" if made.returncode else None


@dataclass(frozen=True)
class Host:
    """A host: its address, and what a command begins with that is to run there."""

    address: str
    inside: Sequence[str]
    port: str
    switch: Sequence[str]
    scratch: Path

    @property
    def environment(self) -> dict[str, str]:
        """What processes there have around them: folders that no other host's processes use."""
        home = {"HOME": str(self.scratch), "RAY_TMPDIR": str(self.scratch)}
        return {**os.environ, **home, "PYTHONUNBUFFERED": "1"}

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Let this thread reach what a process on the host reaches."""
        libc = ctypes.CDLL(None, use_errno=True)
        there = Path(self.inside[1].removeprefix("--net="))
        with Path("/proc/self/ns/net").open() as own, there.open() as host:
            assert libc.setns(host.fileno(), 0) == 0, os.strerror(ctypes.get_errno())
            try:
                yield
            finally:
                assert libc.setns(own.fileno(), 0) == 0

    def cut(self) -> None:
        """Let nothing through to this host or from it; it notices nothing."""
        _do(self.switch, f"bridge link set dev {self.port} state 0")

    def mend(self) -> None:
        """Let everything through again."""
        _do(self.switch, f"bridge link set dev {self.port} state 3")


@contextmanager
def network(count: int, scratch: Path) -> Iterator[list[Host]]:
    """Hold some hosts on a switch. Whoever starts processes there ends them."""
    with ExitStack() as stack:
        switch = stack.enter_context(_namespace())
        _do(switch, "ip link add switch type bridge", "ip link set switch up")
        found = []
        for number in range(1, count + 1):
            inside, address = stack.enter_context(_namespace()), f"{NETWORK}.{number}"
            folder = scratch / f"h{number}"
            folder.mkdir()
            _do(
                inside,
                "ip link set lo up",
                f"ip link add eth type veth peer name port{number} netns {_process(switch)}",
                f"ip address add {address}/24 dev eth",
                "ip link set eth up",
                "ip route add default dev eth",
            )
            _do(switch, f"ip link set port{number} master switch up")
            found.append(
                Host(
                    address=address,
                    inside=inside,
                    port=f"port{number}",
                    switch=switch,
                    scratch=folder,
                )
            )
        yield found


@contextmanager
def _namespace() -> Iterator[Sequence[str]]:
    """Hold a network namespace; yield what a command begins with that is to run in it."""
    holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
    try:
        own = Path("/proc/self/ns/net").readlink()
        while Path(f"/proc/{holder.pid}/ns/net").readlink() == own:
            assert holder.poll() is None
        yield ["nsenter", f"--net=/proc/{holder.pid}/ns/net"]
    finally:
        holder.kill()
        holder.wait()


def _process(inside: Sequence[str]) -> str:
    return inside[1].split("/")[2]


def _do(inside: Sequence[str], *commands: str) -> None:
    for command in commands:
        subprocess.run([*inside, *command.split()], check=True)
