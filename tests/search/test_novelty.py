"""The rejection rule on vectors that are laid out by hand, and on programs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from engine.core import Candidate, Pending
from engine.embedding import KeptEmbeddings, NGramEmbedder, Vectors
from engine.search.novelty import Likeness, Novelty


class Laid:
    """An embedder that gives each text the direction that a table has for it, in degrees."""

    dimensions = 2

    def __init__(self, degrees: Mapping[str, float | None]) -> None:
        self._degrees = degrees

    def embed(self, programs: Sequence[str]) -> Vectors:
        rows = [self._row(self._degrees[text]) for text in programs]
        return np.array(rows, dtype=np.float32)

    def _row(self, degrees: float | None) -> tuple[float, float]:
        if degrees is None:
            return 0.0, 0.0
        return math.cos(math.radians(degrees)), math.sin(math.radians(degrees))


TABLE = {"new": 0.0, "near": 5.0, "far": 60.0, "across": 180.0, "copy": 0.0, "empty": None}


def island(*names: str) -> list[Candidate | Pending]:
    return [Candidate(id=f"id {name}", program=name, score=1.0) for name in names]


THRESHOLD = 0.99  # ShinkaEvolve's


def novelty(threshold: float = THRESHOLD) -> Novelty:
    return Novelty(embedder=Laid(TABLE), threshold=threshold)


def test_hand_worked() -> None:
    """cos 5 degrees = 0.9962 is over 0.99, cos 60 degrees = 0.5 is not."""
    found = novelty().near_copy("new", island("far", "near", "across"))
    assert found is not None
    assert found.id == "id near"
    assert found.cosine == pytest.approx(math.cos(math.radians(5)), abs=1e-7)
    assert novelty().near_copy("new", island("far", "across")) is None
    assert novelty(0.4).near_copy("new", island("far", "across")) == Likeness(
        id="id far", cosine=pytest.approx(0.5, abs=1e-7)
    )


def test_only_what_is_over_the_threshold_is_rejected() -> None:
    assert novelty(1.0).near_copy("new", island("copy")) is None
    assert novelty(math.nextafter(1, 0)).near_copy("new", island("copy")) is not None
    likeness = novelty().most_like("new", island("near"))
    assert likeness is not None
    assert novelty(likeness.cosine).near_copy("new", island("near")) is None


def test_programs_without_a_verdict_count_too_and_the_first_of_equal_ones_is_named() -> None:
    waiting = Pending(id="waiting", program="copy")
    both = [*island("far"), waiting, *island("copy")]
    assert novelty().near_copy("new", both) == Likeness(id="waiting", cosine=1.0)


def test_on_an_island_without_programs_everything_is_new() -> None:
    assert novelty(-0.5).most_like("new", []) is None
    assert novelty(-0.5).near_copy("new", []) is None


def test_what_has_no_direction_is_like_nothing() -> None:
    found = novelty().most_like("empty", island("empty", "new"))
    assert found == Likeness(id="id empty", cosine=0.0)


@pytest.mark.parametrize("threshold", [-1.0, -2.0, math.nan])
def test_the_threshold_is_checked(threshold: float) -> None:
    with pytest.raises(ValueError, match="above -1"):
        novelty(threshold)


def test_with_real_programs() -> None:
    parent = (
        "def smooth(x, width=5):\n    return [sum(x[i : i + width]) / width for i in range(9)]\n"
    )
    renamed = parent.replace("width=5", "width = 5")
    other = "import math\n\ndef smooth(x):\n    while len(x) > 3:\n        x.pop()\n    return x\n"
    rule = Novelty(embedder=KeptEmbeddings(NGramEmbedder(), most=8), threshold=THRESHOLD)
    known = [
        Candidate(id="other", program=other, score=0.5),
        Candidate(id="parent", program=parent, score=0.5),
    ]
    assert rule.near_copy(renamed, known) == Likeness(id="parent", cosine=1.0)
    assert rule.near_copy(renamed, known[:1]) is None
