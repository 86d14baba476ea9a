"""Python's collector of cycles, kept from looking where it finds nothing."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collections_put_off() -> Iterator[None]:
    """Have no cycles collected until the block ends: all that a log holds is kept as it is read."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextmanager
def left_alone() -> Iterator[None]:
    """Have no collection walk what is there now until the block ends; see `leave_alone`."""
    leave_alone()
    try:
        yield
    finally:
        gc.unfreeze()  # or cycles among it would never be freed


def leave_alone() -> None:
    """Have no collection walk what is there now: a model leaves millions of objects."""
    gc.collect()
    gc.freeze()
