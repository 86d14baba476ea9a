"""What ``bench.two_passes`` prints on a Hopper GPU, and that it says so where there is none."""

import json
import subprocess
import sys

import pytest
import torch

from bench import two_passes
from engine.core import UserError

IS_HOPPER = torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)


@pytest.mark.skipif(not IS_HOPPER, reason="it needs a Hopper GPU")
def test_the_last_line_has_each_step(capsys: pytest.CaptureFixture[str]) -> None:
    two_passes.main(["k=8,16", "prompts=1024", "islands=2", "layers=2", "repeats=4"])
    steps = json.loads(capsys.readouterr().out.splitlines()[-1])["steps"]
    assert [(each["islands"], each["prompt"], each["k"]) for each in steps] == [
        (2, 1024, 8),
        (2, 1024, 16),
    ]
    assert all(each["one"] > 0 and each["two"] > 0 for each in steps)


@pytest.mark.skipif(IS_HOPPER, reason="there is one")
def test_without_a_hopper_gpu_it_is_one_line() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench.two_passes"], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1] == "error: it needs a Hopper GPU"


@pytest.mark.parametrize(
    "given", ["k=", "prompts=8k", "heads=0", "kv_heads=3", "repeats=2", "model=x"]
)
def test_bad_input_is_one_line(given: str) -> None:
    with pytest.raises(UserError) as refusal:
        two_passes.main([given])
    assert str(refusal.value).isprintable() and "GPU" not in str(refusal.value)
