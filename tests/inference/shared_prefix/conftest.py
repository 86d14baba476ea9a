"""A process in which Triton's kernels are interpreted, on tensors of the CPU.

Whether they are is decided when triton is imported, and vLLM's own kernels would be, too. So it is
a process of its own, whose functions are in ``interpreted.py``.
"""

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

import pytest
from interpreted import interpret


@pytest.fixture(scope="session")
def interpreter() -> Iterator[ProcessPoolExecutor]:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context, initializer=interpret) as pool:
        yield pool
