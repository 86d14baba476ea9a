"""Replaying a log: all that is read is kept, so looking through it for cycles frees nothing."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collections_put_off() -> Iterator[None]:
    """Have no objects collected that are part of cycles until the block ends."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
