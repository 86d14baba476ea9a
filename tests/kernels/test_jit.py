"""Kernels: compiled when they are first called, and only then."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from kernels.jit import jit


@jit
def half(x: float) -> float:
    """Return half of it."""
    return x / 2


@jit
def quarter(x: float) -> float:
    return half(half(x))


def test_a_kernel_calls_another() -> None:
    assert quarter(2.0) == 0.5
    assert (half.__name__, half.__doc__) == ("half", "Return half of it.")


def test_threads_may_call_a_kernel_for_the_first_time_together() -> None:
    together = Barrier(4)

    @jit
    def third(x: float) -> float:
        return x / 3

    def call(x: float) -> float:
        together.wait()
        return third(x)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(call, [3.0, 6.0, 9.0, 12.0])) == [1.0, 2.0, 3.0, 4.0]


def test_a_kernel_works_where_no_cache_can_be_written() -> None:
    names: dict[str, object] = {}
    exec("def double(x):\n    return 2 * x", names)  # it has no file, so no place for a cache
    double = names["double"]
    assert callable(double)
    assert jit(double)(2) == 4


def test_numba_is_loaded_by_the_first_call() -> None:
    text = (
        "import sys, kernels.signal as k, numpy as np\n"
        "assert 'numba' not in sys.modules\n"
        "assert k.slope_changes(np.array([0.0, 1.0, 0.0])) == 1\n"
        "assert 'numba' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", text], check=True)
