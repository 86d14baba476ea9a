"""The rejection rule on vectors that are laid out by hand, and on programs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from engine.core import Candidate, Pending
from engine.embedding import Vectors, embed
from engine.search.novelty.cosine import Cosine

DEGREES = {"new": 0.0, "near": 5.0, "far": 60.0, "across": 180.0, "copy": 0.0, "empty": None}


def laid(programs: Sequence[str]) -> Vectors:
    """Return for each text the direction that the table has for it."""

    def row(degrees: float | None) -> tuple[float, float]:
        if degrees is None:
            return 0.0, 0.0
        return math.cos(math.radians(degrees)), math.sin(math.radians(degrees))

    return np.array([row(DEGREES[text]) for text in programs], dtype=np.float32)


def island(*names: str) -> list[Candidate | Pending]:
    return [Candidate(id=f"id {name}", program=name, score=1.0) for name in names]


THRESHOLD = 0.99  # ShinkaEvolve's


def novelty(threshold: float = THRESHOLD) -> Cosine:
    return Cosine(threshold=threshold, embed=laid)


def rejected_for(
    new: str, known: Sequence[Candidate | Pending], *, threshold: float = THRESHOLD
) -> str | None:
    """Return the id of the program that a new one is a near-copy of."""
    found = novelty(threshold).near_copy(new, known)
    return None if found is None else found.id


def test_hand_worked() -> None:
    """cos 5 degrees = 0.9962 is over 0.99, cos 60 degrees = 0.5 is not."""
    assert rejected_for("new", island("far", "near", "across")) == "id near"
    assert rejected_for("new", island("far", "across")) is None
    assert rejected_for("new", island("far", "across"), threshold=0.4) == "id far"


@pytest.mark.parametrize(("name", "cosine"), [("near", math.cos(math.radians(5))), ("far", 0.5)])
def test_only_what_is_over_the_threshold_is_rejected(name: str, cosine: float) -> None:
    assert rejected_for("new", island(name), threshold=cosine + 1e-6) is None
    assert rejected_for("new", island(name), threshold=cosine - 1e-6) == f"id {name}"


def test_a_cosine_at_the_threshold_is_not_over_it() -> None:
    assert rejected_for("new", island("copy"), threshold=1.0) is None
    assert rejected_for("new", island("copy"), threshold=math.nextafter(1, 0)) == "id copy"


def test_programs_without_a_verdict_count_too_and_the_first_of_equal_ones_is_named() -> None:
    waiting = Pending(id="waiting", program="copy")
    assert rejected_for("new", [*island("far"), waiting, *island("copy")]) == "waiting"


def test_on_an_island_without_programs_everything_is_new() -> None:
    assert rejected_for("new", [], threshold=-0.5) is None


def test_what_has_no_direction_is_like_nothing() -> None:
    """Its cosine with any program is 0, with itself too."""
    assert rejected_for("empty", island("empty", "new"), threshold=0.0) is None
    assert rejected_for("empty", island("empty", "new"), threshold=-1e-9) == "id empty"


def test_only_programs_that_it_has_not_seen_are_embedded_on_any_island() -> None:
    asked: list[Sequence[str]] = []

    def spy(programs: Sequence[str]) -> Vectors:
        asked.append(programs)
        return embed(programs)

    known = [
        Candidate(id=f"0.{number}", program=f"x{number} = [{number}]\n", score=0.0)
        for number in range(200)
    ]
    kept = Cosine(threshold=0.5, embed=spy)
    # One more, one that had no verdict before, those of another island, and some of both.
    waiting: list[Candidate | Pending] = [Pending(id="0.100", program=known[100].program)]
    islands = [known[:100], known[:100] + waiting, known[:101], known[101:], known[90:120]]
    for number, island in enumerate(islands):
        new = known[95 + 10 * (number % 2)].program
        found, afresh = (rule.near_copy(new, island) for rule in (kept, Cosine(threshold=0.5)))
        assert found == afresh
    assert [len(programs) for programs in asked] == [101, 2, 1, 100, 1]


def test_with_real_programs() -> None:
    parent = (
        "def smooth(x, width=5):\n    return [sum(x[i : i + width]) / width for i in range(9)]\n"
    )
    renamed = parent.replace("width=5", "width = 5")
    other = "import math\n\ndef smooth(x):\n    while len(x) > 3:\n        x.pop()\n    return x\n"
    rule = Cosine(threshold=THRESHOLD)
    known = [
        Candidate(id="other", program=other, score=0.5),
        Candidate(id="parent", program=parent, score=0.5),
    ]
    assert rule.near_copy(renamed, known) == known[1]
    assert rule.near_copy(renamed, known[:1]) is None
