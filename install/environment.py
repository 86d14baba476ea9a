"""Makes .venv, or brings it up to date; does nothing, quickly, where that is not needed.

Two parts, each with a stamp that is written when the part is complete and removed before it is
touched: the packages (of requirements/STACK.txt) and the project itself (installed editable, with
its C++ extension). A stamp tells what the part was made from. Where the packages' stamp is missing
or of another kind (stack, Python, folder), .venv is made anew.

Usage: python -m install.environment STACK, as setup.sh calls it.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from install.checks import SetupError, check_disk, check_tools, explain
from install.sources import Sources, read_sources
from install.stack import Stack, choose_stack
from install.toolkit import make_toolkit

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("engine", "evaluators", "kernels")  # as pyproject.toml has them


def say(text: str) -> None:
    """Tell the user; on stderr, because stdout belongs to the command that follows."""
    print(f"brood: {text}", file=sys.stderr, flush=True)


def digest(paths: Sequence[Path]) -> str:
    """A fingerprint of the names and contents of files."""
    total = hashlib.sha256()
    for path in sorted(paths):
        content = path.read_bytes()
        total.update(f"{path.relative_to(ROOT)}\0{len(content)}\0".encode())
        total.update(content)
    return total.hexdigest()


def digest_project() -> str:
    """A fingerprint of what the installed project is made from.

    Of the Python code that is only where each module lies: the editable install says that of every
    module, and would look for one that was moved, or became a package, where it was.
    """
    native = [path for path in (ROOT / "native").rglob("*") if path.is_file()]
    total = hashlib.sha256(digest([ROOT / "pyproject.toml", *native]).encode())
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            total.update(f"{path.relative_to(ROOT)}\0".encode())
    return total.hexdigest()


@dataclass(frozen=True, kw_only=True)
class Environment:
    """One .venv: where it lies and what it has to be made from."""

    venv: Path  # resolved: .venv may be a link to another disk
    stack: Stack
    kind: Mapping[str, str]  # what can't be changed in place
    packages: str  # digest of the lock file
    project: str  # digest of what the project's installation depends on

    @property
    def python(self) -> Path:
        return self.venv / "bin" / "python"

    @property
    def lock_file(self) -> Path:
        return ROOT / "requirements" / f"{self.stack.name}.txt"

    def uv(self, verb: str) -> list[str]:
        """The start of a uv pip command on this environment."""
        python = str(self.python)
        return [python, "-m", "uv", "pip", verb, "--python", python]

    def stamp(self, part: str) -> Path:
        return self.venv / f"brood-{part}.json"

    def wanted(self, part: str) -> dict[str, str]:
        stamp = {**self.kind, "packages": self.packages}
        if part == "project":
            stamp["project"] = self.project
        return stamp

    def has(self, part: str) -> bool:
        """Whether the part is there, complete and made from what it should be made from."""
        return read_stamp(self.stamp(part)) == self.wanted(part)

    def can_update(self) -> bool:
        """Whether the packages are complete, if perhaps of an older lock file."""
        stamp = read_stamp(self.stamp("packages"))
        return {key: stamp.get(key) for key in self.kind} == self.kind

    @contextlib.contextmanager
    def making(self, part: str) -> Iterator[None]:
        """Take the part's stamp away and put it back only if the block succeeds."""
        self.stamp(part).unlink(missing_ok=True)
        yield
        fresh = self.stamp(part).with_suffix(".new")
        fresh.write_text(json.dumps(self.wanted(part), indent=1))
        fresh.replace(self.stamp(part))


def read_stamp(path: Path) -> dict[str, str]:
    """What a stamp says; nothing if it is missing or damaged."""
    try:
        content = json.loads(path.read_text())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def describe_environment(stack: Stack) -> Environment:
    """The environment that `stack` needs in this folder with the Python that runs this."""
    kind = {
        "stack": stack.name,
        "root": str(ROOT),
        "python": f"{sys.version_info[0]}.{sys.version_info[1]}",
        "base": str(Path(sys.base_prefix).resolve()),
    }
    return Environment(
        venv=(ROOT / ".venv").resolve(),
        stack=stack,
        kind=kind,
        packages=digest([ROOT / "requirements" / f"{stack.name}.txt"]),
        project=digest_project(),
    )


@contextlib.contextmanager
def exclusive() -> Iterator[int]:
    """Hold the one lock for changing .venv; yields its descriptor.

    The commands that change .venv inherit it, so that one that outlives a killed make still holds
    the next make back. The Makefile itself is what is locked: it is there, and nothing is left.
    """
    with (ROOT / "Makefile").open("r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another make that changes .venv")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield file.fileno()


def start_over(env: Environment, lock: int) -> None:
    """Make an empty .venv with nothing but pip and the pinned uv in it."""
    shutil.rmtree(env.venv, ignore_errors=True)
    check_disk(env.venv.parent, f"the {env.stack.name} packages", env.stack.needed_gb)
    say(f"making .venv with Python {env.kind['python']} from {env.kind['base']}")
    # Not sys.executable: that may be the Python of the .venv that was just removed.
    base_python = f"{env.kind['base']}/bin/python{env.kind['python']}"
    command = [base_python, "-m", "venv", "--clear", str(env.venv)]
    if subprocess.run(command, pass_fds=[lock]).returncode:
        raise explain(ROOT, "Python could not make .venv (its message is above).")
    uv = pinned(env.lock_file, "uv")
    command = [str(env.python), "-m", "pip", "install", "--quiet", "--no-deps"]
    command += ["--no-user", "--disable-pip-version-check", uv]
    done = subprocess.run(command, pass_fds=[lock], capture_output=True, text=True)
    if done.returncode:
        last = done.stderr.strip().rpartition("\n")[2]
        raise explain(
            ROOT,
            f"pip could not install {uv} ({last}): check the network, or the index and find-links "
            "that pip is configured with, and try again.",
        )


def pinned(lock_file: Path, name: str) -> str:
    """The requirement for the package `name` in a lock file, such as uv==1.2.3."""
    for line in lock_file.read_text().splitlines():
        if line.startswith(f"{name}=="):
            return line.partition(";")[0].strip()
    raise SetupError(f"{lock_file} pins no {name}: run make lock.")


def torch_arguments(env: Environment, sources: Sources) -> list[str]:
    """What uv must be told so that it finds the pinned torch.

    PyTorch's own CPU index is named only where the configured sources lack the CPU build: it may
    not be reachable, and then it must not be asked.
    """
    if env.stack.name != "cpu":
        return []
    torch = pinned(env.lock_file, "torch")
    for arguments in ([], ["--torch-backend", "cpu"]):
        command = [*env.uv("install"), "--dry-run", "--no-deps", "--quiet"]
        command += [*sources.arguments, *arguments, torch]
        if not subprocess.run(command, env=sources.environ, capture_output=True).returncode:
            return arguments
    raise SetupError(
        f"{torch} for Python {env.kind['python']} is neither where pip is configured to look nor "
        "can it be had from PyTorch's own CPU index: check the network, or put its wheel into a "
        "folder and name that with PIP_FIND_LINKS."
    )


def install_packages(env: Environment, lock: int) -> None:
    """Install exactly what the lock file says, into an empty .venv or over an older state."""
    if not env.can_update():
        start_over(env, lock)
    sources = read_sources(env.python, os.environ)
    extra = torch_arguments(env, sources)
    with env.making("packages"):
        count = sum("==" in line for line in env.lock_file.read_text().splitlines())
        say(f"installing {count} packages from {env.lock_file.relative_to(ROOT)}")
        # An uncompiled vLLM takes half a minute longer to import, and a user may have told Python
        # to write no byte code.
        command = [*env.uv("sync"), "--compile-bytecode"]
        command += [*sources.arguments, *extra, str(env.lock_file)]
        if subprocess.run([*command, *quiet()], env=sources.environ, pass_fds=[lock]).returncode:
            raise explain(
                ROOT,
                "uv could not install the packages (its message is above): check the network, or "
                "the index and find-links that pip is configured with, and try again.",
            )
        if env.stack.name == "cuda":
            make_toolkit(env.venv)


def install_project(env: Environment, lock: int) -> None:
    """Compile the C++ extension and make the packages of this folder importable."""
    with env.making("project"):
        say("compiling the C++ extension")
        path = f"{env.venv / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        command = [*env.uv("install"), "--offline", "--no-deps", "--no-build-isolation"]
        command += ["--reinstall-package", "brood", "--editable", str(ROOT)]
        command += ["--config-setting", f"build-dir={env.venv / 'build'}"]
        environ = {**os.environ, "PATH": path}
        if subprocess.run([*command, *quiet()], env=environ, pass_fds=[lock]).returncode:
            raise explain(ROOT, "the C++ extension could not be compiled (the message is above).")


def quiet() -> list[str]:
    """uv's progress is for a terminal only."""
    return [] if sys.stderr.isatty() else ["--quiet"]


def ensure(env: Environment) -> None:
    """Bring .venv into the state that `env` describes.

    Raises:
        SetupError: that is not possible. Packages are left behind only if they are complete.
    """
    if env.has("packages") and env.has("project"):
        return
    check_tools()
    with exclusive() as lock:
        try:
            if not env.has("packages"):
                install_packages(env, lock)
            if not env.has("project"):
                install_project(env, lock)
        finally:
            if not env.can_update():
                shutil.rmtree(env.venv, ignore_errors=True)


def main(stack: str) -> int:
    """Exit status 0, or 2 after one sentence that says what is wrong, or 130 after Ctrl-C."""
    try:
        chosen = choose_stack(stack)
        say(f"{chosen.name} packages: {chosen.reason}")
        ensure(describe_environment(chosen))
    except SetupError as error:
        say(str(error))
        return 2
    except OSError as error:
        say(f"{error}: .venv can't be made or read here.")
        return 2
    except KeyboardInterrupt:
        say("interrupted; nothing half-made is left, the next make starts again")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
