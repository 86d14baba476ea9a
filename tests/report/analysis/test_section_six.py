"""TurboEvolve's section 6 on logs that were written so that the answers can be worked out by hand.

A run's first call has five children, with scores 1 to 5 beside the initial program's 0. Five calls
of seven children follow, each with the initial program as its parent and one of the five on show,
from the worst to the best; they are given as the seven children's scores, None for a failure.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hand_log import call, child, hand_run, verdict

from engine.core import INITIAL, Direction
from engine.report.analysis import RunRecord
from engine.report.analysis.figures import quartiles
from engine.report.analysis.ranks import PARTS, part_of, ranks
from engine.report.analysis.top_m import top_m
from engine.store import Call, Event, Recorded, Session
from engine.syntax import read

Scores = Sequence[float | None]
FLAT = (-1.0,) * 7


def constructed(
    *calls: Scores, sign: float = 1.0, name: str = "runs/a", known: int = 1000
) -> RunRecord:
    """Return a run with these calls; a ``sign`` of -1 has the problem minimise.

    The last one was composed when so many events were ``known``.
    """
    events: list[Event] = [
        Session(number=0, engine="0", fingerprint="f"),
        verdict(INITIAL, 0.0),
        *_call(0, [1.0, 2.0, 3.0, 4.0, 5.0], sign),
    ]
    for number, scores in enumerate(calls, start=1):
        first, *others = _call(number, scores, sign)
        assert isinstance(first, Call)
        since = known if number == len(calls) else first.known
        events += [replace(first, shown=(f"0.{number - 1}",), known=since), *others]
    return hand_run(
        name=name,
        direction=Direction.MAXIMISE if sign > 0 else Direction.MINIMISE,
        events=[Recorded(session=0, elapsed=float(n), event=e) for n, e in enumerate(events)],
    )


def _call(iteration: int, scores: Scores, sign: float) -> list[Event]:
    """Return a call's events; child i of it has i + 1 lines more than the initial program."""
    made: list[Event] = [call(iteration, INITIAL, "diff", (1.0,) * len(scores))]
    for index, score in enumerate(scores):
        program = read("a\nb\nc\nd\n" + "".join(f"e{i}\n" for i in range(index + 1)))
        name = f"{iteration}.{index}"
        made += [
            replace(child(name, INITIAL, "diff"), program=program),
            verdict(name, None if score is None else sign * score),
        ]
    return made


def rows(run_or_runs: Sequence[RunRecord], **fields: Any) -> list[dict[str, Any]]:
    """Return the rows of the replay with these values."""
    return [
        dict(row)
        for row in top_m(run_or_runs).rows
        if all(row[key] == value for key, value in fields.items())
    ]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_first_m_children_bring_what_is_best_among_them(sign: float) -> None:
    run = constructed((-3.0, -1.0, None, 2.0, 1.0, 4.0, -9.0), sign=sign)
    found = rows([run], K=7, tier=0)
    assert [row["m"] for row in found] == [1, 2, 3, 4, 5, 6, 7]
    assert [row["gain"] for row in found] == [-3, -1, -1, 2, 2, 4, 4]
    assert [row["improving"] for row in found] == [0, 0, 0, 1, 1, 1, 1]
    # The five children of the first call are another K, and do not mix with these.
    assert {row["calls"] for row in found} == {1}


def test_a_gain_is_over_the_same_calls_for_each_m() -> None:
    """The means of -3, -1, -1, 2 ... and -5, -5, 1, 1 ...; the call with -9 is in none of them."""
    none = (None,) * 3
    run = constructed(
        (-3.0, -1.0, None, 2.0, *none),
        (-5.0, None, 1.0, -2.0, *none),
        (None, -9.0, 7.0, 1.0, *none),
    )
    found = rows([run], K=7, tier=0)
    assert [row["gain"] for row in found] == [-4, -3, 0, 1.5, 1.5, 1.5, 1.5]
    assert [row["improving"] for row in found[:3]] == [0, 0, pytest.approx(2 / 3)]
    assert {row["calls"] for row in found} == {3}
    # Of the third call it can only be said whether it improves.
    last = rows([run], K=7, tier=4)
    assert {row["gain"] for row in last} == {None} and last[-1]["improving"] == 1


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_calls_are_cut_into_fifths_by_the_best_program_on_show(sign: float) -> None:
    """Call i shows the program with score i, so it is tier i; only tiers 4 and 5 improve."""
    calls = [FLAT, FLAT, FLAT, (-1.0,) * 6 + (1.0,), (2.0,) + (-1.0,) * 6]
    run = constructed(*calls, sign=sign)
    last = rows([run], K=7, m=7)
    assert [(row["tier"], row["improving"], row["gain"]) for row in last] == [
        *((0, 0.4, pytest.approx(0.0)), (1, 0, -1), (2, 0, -1), (3, 0, -1), (4, 1, 1)),
        (5, 1, 2),
    ]
    first = rows([run], K=7, m=1)
    assert [row["improving"] for row in first] == [0.2, 0, 0, 0, 0, 1]


def test_a_program_that_was_pending_when_it_was_shown_says_nothing() -> None:
    """The last call shows the best program, whose verdict was out: its parent's score counts."""
    calls = [FLAT, FLAT, FLAT, FLAT, (2.0,) + (-1.0,) * 6]
    assert [row["tier"] for row in rows([constructed(*calls)], K=7, m=7, improving=1)] == [5]
    run = constructed(*calls, known=3)
    assert [row["tier"] for row in rows([run], K=7, m=7, improving=1)] == [1]


def test_quartiles_of_gains_as_far_apart_as_can_be_are_finite() -> None:
    most = sys.float_info.max
    assert quartiles([-most, most]) == (0.0, -most / 2, most / 2)


def test_runs_count_alike_however_many_calls_they_have() -> None:
    """Shares of improving calls by run: 1 of 1, 0 of 2, 1 of 2, 0 of 1, so 0, 0, 0.5, 1.

    Median 0.25; quartiles at 0.75 and 2.25 of the places 0 to 3: 0 and 0.5 + 0.25 * 0.5.
    """
    good = (1.0,) + (-1.0,) * 6
    runs = [
        constructed(*calls, name=f"runs/{number}")
        for number, calls in enumerate([[good], [FLAT, FLAT], [FLAT, good], [FLAT]])
    ]
    (row,) = rows(runs, K=7, tier=0, m=7)
    assert (row["calls"], row["runs"]) == (6, 4)
    assert (row["improving"], row["improving_q1"], row["improving_q3"]) == (0.25, 0, 0.625)
    # Mean gains by run 1, -1, 0 and -1.
    assert (row["gain"], row["gain_q1"], row["gain_q3"]) == (-0.5, -1, 0.25)


def test_a_prompt_that_shows_nothing_counts_by_its_parent() -> None:
    bare = constructed(FLAT)
    plain = replace(bare.trials[-1].call, shown=())
    trials = tuple(replace(each, call=plain) if each.call.k == 7 else each for each in bare.trials)
    assert rows([replace(bare, trials=trials)], K=7, m=7)[0]["calls"] == 1


@pytest.mark.parametrize(
    ("k", "parts"),
    [
        (1, "h"),
        (2, "ht"),
        (3, "hmt"),
        (5, "hmmmt"),
        (7, "hhmmmtt"),  # the source's
        (8, "hhmmmmtt"),
        (16, "hhhhhmmmmmmttttt"),
    ],
)
def test_parts_are_the_sources_for_seven_and_alike_for_others(k: int, parts: str) -> None:
    assert "".join(PARTS[part_of(place, k)][0] for place in range(1, k + 1)) == parts


def test_places_are_profiled_for_each_k_and_run() -> None:
    """Places 1 and 2 are good in one run and bad in the other; place 7 fails in both."""
    good = (3.0, 1.0, -1.0, -1.0, -1.0, -1.0, None)
    bad = (-1.0, -3.0, -1.0, -1.0, -1.0, None, None)
    found = ranks([constructed(good, good, name="runs/a"), constructed(bad, name="runs/b")])
    profile = [row for row in found["profile"].rows if row["K"] == 7]
    assert [row["place"] for row in profile] == [1, 2, 3, 4, 5, 6, 7]
    assert [row["children"] for row in profile] == [3] * 7
    assert [row["valid"] for row in profile] == [1, 1, 1, 1, 1, 0.5, 0]
    assert [row["improving"] for row in profile] == [0.5, 0.5, 0, 0, 0, 0, 0]
    assert [row["gain"] for row in profile] == [1, -1, -1, -1, -1, -1, None]
    assert (profile[0]["gain_q1"], profile[0]["gain_q3"]) == (0, 2)
    # Later children are longer, so they are further from their parent.
    distances = [row["distance"] for row in profile[:6]]
    assert distances == sorted(distances) and distances[0] < distances[-1]
    assert profile[-1]["distance"] is None and profile[-1]["cells"] is None
    head, middle, tail = (row for row in found["parts"].rows if row["K"] == 7)
    assert [row["part"] for row in (head, middle, tail)] == [*PARTS]
    assert [row["children"] for row in (head, middle, tail)] == [6, 9, 6]
    # By run: 2 of 2 improve, and 0 of 2; gains 2 and -2; of the tail 1 of 2 is valid, and 0 of 2.
    assert (head["improving"], head["gain"], tail["valid"]) == (0.5, 0, 0.25)
    # Longer programs gained less in the first run, and a little more in the second.
    (novelty,) = (row for row in found["novelty"].rows if row["K"] == 7)
    assert novelty["runs"] == 2


def test_other_widths_are_not_put_together() -> None:
    found = ranks([constructed((5.0,) * 7)])
    assert {row["K"] for row in found["parts"].rows} == {5, 7}
    five = [row for row in found["profile"].rows if row["K"] == 5]
    assert [row["gain"] for row in five] == [1, 2, 3, 4, 5]
    (novelty,) = found["novelty"].rows  # of the seven none gained more than another
    assert (novelty["K"], novelty["correlation"]) == (5, pytest.approx(1.0))
