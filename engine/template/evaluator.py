"""Bin packing: how a program is called, and what its answers are worth.

This is trusted code. It runs outside the sandbox, and no program can read it: what the score needs
beside a program's inputs stays in here. A problem of your own needs other `cases` and another
`score`; neighbours of this file are imported as `from .neighbour import ...`, and data files may
lie beside it or in a folder `data`.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from engine.core import Array, ArraySpec, Case, Outputs, Rejected

CAPACITY = 150
ITEMS = (60, 80, 100, 120)


def lists() -> list[Array]:
    """Return the sizes of the items, one array for each case; always the same ones."""
    # CHANGE: what the programs are tried on. Seed what is drawn: scores have to compare.
    rng = np.random.default_rng(7)
    return [rng.integers(10, 80, size=count) for count in ITEMS]


def cases() -> Sequence[Case]:
    """Return the calls that make up one evaluation, ``pack(sizes, capacity)`` for each list."""
    # CHANGE: the arguments (arrays and numbers), and the outputs: names, shapes, dtypes. A length
    # that is left to the program is a range: shape=(range(1, 101),). Declare only what the score
    # needs: what a program says of itself ("bins used: 12") should be no part of it.
    return [
        Case(
            name=f"{sizes.size} items",
            args=(sizes, CAPACITY),
            outputs={"bins": ArraySpec(shape=sizes.shape, dtype="int64")},
        )
        for sizes in lists()
    ]


def score(outputs: Sequence[Outputs]) -> Mapping[str, float]:
    """Score the arrays that a program returned, in the order of the cases.

    Returns:
        ``score``, which the search improves, and any other numbers that are worth knowing.

    Raises:
        Rejected: an answer is not allowed. The message is shown to the model: say what is wrong.
    """
    # CHANGE: all of it. Recompute everything from the arrays, and from your own copy of the inputs:
    # the program may have changed the one that it got.
    ratios, emptiest = [], []
    for sizes, output in zip(lists(), outputs, strict=True):
        bins = output["bins"]
        if bins.min() < 0 or bins.max() >= bins.size:
            raise Rejected(f"{sizes.size} items: bins have the numbers 0 to {bins.size - 1}")
        filled = np.bincount(bins, weights=sizes)
        if filled.max() > CAPACITY:
            fullest = int(filled.argmax())
            raise Rejected(
                f"{sizes.size} items: bin {fullest} holds {filled[fullest]:.0f} of {CAPACITY}"
            )
        used = filled[filled > 0]
        ratios.append(np.ceil(sizes.sum() / CAPACITY) / used.size)
        emptiest.append(1 - used.min() / CAPACITY)
    return {"score": float(np.mean(ratios)), "emptiest": float(np.mean(emptiest))}
