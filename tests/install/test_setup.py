"""What `make` says and leaves behind where the environment can't be made.

Each test runs the real Makefile in a copy of what the installation needs. An installation that
succeeds is not tested here: the tests themselves run in one.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"
BASE_PYTHON = f"{sys.base_prefix}/bin/python{VERSION}"
Make = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A folder with all that the installation reads."""
    folder = tmp_path / "a copy of brood"
    folder.mkdir()
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    for name in ("install", "native", "requirements"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A folder for PATH with nothing but what the Makefile and setup.sh call."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("awk", "dirname", "make", "sh"):
        found = shutil.which(name)
        assert found, name
        (folder / name).symlink_to(found)
    return folder


@pytest.fixture
def make(copy: Path, tools: Path) -> Make:
    """Run make in the copy, with `tools` as PATH and only the given variables beside it."""

    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        environ = {"PATH": str(tools), "HOME": str(copy.parent), **variables}
        command = ["make", *arguments]
        return subprocess.run(
            command, cwd=copy, env=environ, capture_output=True, text=True, timeout=120
        )

    return run


def put(folder: Path, name: str, text: str) -> None:
    """Make an executable script."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def put_python(tools: Path, name: str, before: str) -> None:
    """Make the real Python available, but with `before` run ahead of setup.sh's probe."""
    put(
        tools,
        name,
        f'for code; do :; done\nexec "{BASE_PYTHON}" -E -s -S -c "{before}\n$code"',
    )


def message(done: subprocess.CompletedProcess[str]) -> str:
    """The one sentence after which make ended; checks that it stands alone and nothing follows."""
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    *before, last, of_make = done.stderr.strip().splitlines()
    assert of_make.startswith("make: ***")
    assert all(line.startswith("brood: ") for line in [*before, last])
    return last


@pytest.mark.parametrize("target", ["run", "test"])
def test_no_python(make: Make, copy: Path, target: str) -> None:
    assert "install Python 3.11, 3.12 or 3.13" in message(make(target))
    assert not (copy / ".venv").exists()


def test_python_given_but_missing(make: Make) -> None:
    assert "/no/python was not found" in message(make("run", "PYTHON=/no/python"))


def test_python_that_does_not_run(make: Make, tools: Path) -> None:
    put(tools, "python3.11", "exit 1")
    assert "python3.11 does not run" in message(make("run"))


@pytest.mark.parametrize("version", ["(2, 7)", "(3, 10)", "(3, 14)"])
def test_python_of_unfit_version(make: Make, tools: Path, version: str) -> None:
    put_python(tools, "python3", f"import sys; sys.version_info = {version}")
    number = version.strip("()").replace(", ", ".")
    assert f"python3 is Python {number}, but 3.11, 3.12 or 3.13 is needed" in message(make("run"))


def test_python_without_venv(make: Make, tools: Path) -> None:
    put_python(tools, "python3", "import sys; sys.modules['ensurepip'] = None")
    assert f"apt install python{VERSION}-venv" in message(make("run"))


def test_python_without_headers(make: Make, tools: Path) -> None:
    put_python(tools, "python3", "import sysconfig; sysconfig.get_path = lambda name: '/no/folder'")
    assert f"apt install python{VERSION}-dev" in message(make("run"))


def test_the_nearest_miss_is_named(make: Make, tools: Path) -> None:
    """A Python that only lacks headers is easier to mend than one that is too old."""
    put_python(tools, "python3", "import sys; sys.version_info = (3, 9)")
    put_python(tools, "python3.12", "import sys; sys.modules['ensurepip'] = None")
    put(tools, "python3.13", "exit 127")
    assert "python3.12 has no venv module" in message(make("run"))


def test_no_compiler(make: Make, copy: Path) -> None:
    done = make("run", f"PYTHON={BASE_PYTHON}", "STACK=cpu")
    assert "apt install g++" in message(done)
    assert not (copy / ".venv").exists()


def test_unknown_compiler(make: Make) -> None:
    done = make("run", f"PYTHON={BASE_PYTHON}", "STACK=cpu", CXX="/no/compiler -O2")
    assert "looked for /no/compiler)" in message(done)


@pytest.mark.parametrize("stack", ["gpu", "CPU", "cpu cuda", "../cpu"])
def test_unknown_stack(make: Make, copy: Path, stack: str) -> None:
    done = make("run", f"PYTHON={BASE_PYTHON}", f"STACK={stack}")
    assert message(done) == (
        f"brood: STACK={stack} is unknown: use STACK=cpu or STACK=cuda, or leave it out."
    )
    assert not (copy / ".venv").exists()


def test_no_index_leaves_nothing_behind(make: Make, copy: Path, tools: Path) -> None:
    put(tools, "g++", "exit 1")
    before = sorted(path.name for path in copy.iterdir())
    arguments = ("run", f"PYTHON={BASE_PYTHON}", "STACK=cpu")
    done = make(*arguments, PIP_NO_INDEX="1", PIP_CONFIG_FILE=os.devnull)
    assert "check the network" in message(done)
    assert sorted(path.name for path in copy.iterdir()) == before


def test_half_made_environment_is_not_used(make: Make, copy: Path, tools: Path) -> None:
    """What an interrupted installation left is not taken for an environment."""
    put(tools, "g++", "exit 1")
    left = copy / ".venv" / "bin" / "python"
    left.parent.mkdir(parents=True)
    left.symlink_to(BASE_PYTHON)
    arguments = ("run", f"PYTHON={BASE_PYTHON}", "STACK=cpu")
    done = make(*arguments, PIP_NO_INDEX="1", PIP_CONFIG_FILE=os.devnull)
    assert "making .venv" in done.stderr
    assert not (copy / ".venv").exists()


def test_help_needs_no_environment(make: Make, copy: Path) -> None:
    done = make("help")
    assert done.returncode == 0
    for target in ("run", "test", "test-all", "lint", "lock", "clean", "help"):
        assert f"make {target} " in done.stdout
    assert "STACK=cpu|cuda" in done.stdout
    assert not (copy / ".venv").exists()
