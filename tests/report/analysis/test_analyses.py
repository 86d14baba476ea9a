"""Each analysis against a run that was written by hand (``hand_log.py``)."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hand_log import changed, hand_run, recorded, with_others, with_questions

from engine.core import INITIAL, Direction, Evaluation, Feature, Refusal
from engine.report.analysis import ANALYSES, RunRecord
from engine.report.tables.calls import calls
from engine.report.tables.rates import widths
from engine.store import Verdict

START = {"candidates": 0, "tokens": 0, "seconds": 1.0, "money": 0.0}
FIRST_BEST = {"candidates": 1, "tokens": 14, "seconds": 5.0, "money": pytest.approx(300e-6)}
LAST_BEST = {"candidates": 3, "tokens": 85, "seconds": 12.0, "money": pytest.approx(1500e-6)}
END = {"candidates": 5, "tokens": 92, "seconds": 16.0, "money": pytest.approx(1650e-6)}


@pytest.fixture(scope="module")
def run() -> RunRecord:
    return hand_run()


def found(name: str, *runs: RunRecord, top: int = 5) -> dict[str, Any]:
    """Return the rows of an analysis's tables, which JSON has to hold as they are."""
    figures = {each: list(table.rows) for each, table in ANALYSES[name](runs, top).items()}
    json.dumps(figures, allow_nan=False)
    return figures


def shown(name: str, *runs: RunRecord, top: int = 5) -> str:
    return "".join(table.text() for table in ANALYSES[name](runs, top).values())


def begun(*, until: int) -> RunRecord:
    """Return the run as it stood after some events."""
    return hand_run(name="runs/begun", events=recorded()[:until])


# Progress.


def test_progress_has_a_point_for_each_new_best(run: RunRecord) -> None:
    figures = found("progress", run)
    assert figures["points"] == [
        {"run": "runs/a", **START, "best": 0.5},
        {"run": "runs/a", **FIRST_BEST, "best": 0.75},
        {"run": "runs/a", **LAST_BEST, "best": 0.9},
    ]
    assert figures["ends"] == [{"run": "runs/a", **END, "best": 0.9}]


def test_progress_at_equal_budgets(run: RunRecord) -> None:
    axes = found("progress", run)
    by_candidates = [(row["candidates"], row["median"]) for row in axes["candidates"]]
    assert by_candidates == [(0, 0.5), (1, 0.75), (2, 0.75), (3, 0.9), (4, 0.9), (5, 0.9)]
    # Steps of 9.2 tokens, cut to whole ones; 14 at the first new best and 85 at the second.
    tokens = [0, 9, 18, 27, 36, 46, 55, 64, 73, 82, 92]
    assert [row["tokens"] for row in axes["tokens"]] == tokens
    assert [row["median"] for row in axes["tokens"]] == [0.5, 0.5, *[0.75] * 8, 0.9]
    # Steps of 1.6 s: 4.8 is before the first new best at 5 s, 11.2 before the second at 12 s.
    bests = [None, 0.5, 0.5, 0.5, *[0.75] * 4, *[0.9] * 3]
    assert [row["median"] for row in axes["seconds"]] == bests
    # Steps of 165 millionths: 300 and 1500 lie between the first two and the last two.
    assert [row["median"] for row in axes["money"]] == [0.5, 0.5, *[0.75] * 8, 0.9]
    assert axes["money"][-1]["money"] == pytest.approx(1650e-6)


def test_progress_of_several_runs_goes_as_far_as_all_of_them(run: RunRecord) -> None:
    """The shortest has 3 candidates, 85 tokens and 12 s; what the others reached is in `ends`."""
    other = begun(until=13)
    worse = hand_run(name="runs/w", direction=Direction.MINIMISE)  # 0.5 stays the best
    figures = found("progress", run, worse, other)
    rows = [tuple(row.values()) for row in figures["candidates"]]
    assert rows == [
        *((0, 0.5, 0.5, 0.5, 3), (1, 0.75, 0.5, 0.75, 3), (2, 0.75, 0.5, 0.75, 3)),
        (3, pytest.approx(0.9), 0.5, 0.9, 3),
    ]
    assert [figures[axis][-1][axis] for axis in ("tokens", "seconds")] == [85, 12.0]
    assert [each["candidates"] for each in figures["ends"]] == [5, 5, 3]
    assert "As far as the shortest of the runs went." in shown("progress", run, other)
    assert "shortest" not in shown("progress", run)
    # Nothing compares with a run that has not begun but when each began.
    assert list(found("progress", run, begun(until=2))) == ["seconds", "points", "ends"]


def test_progress_leaves_money_out_where_there_are_no_prices() -> None:
    free = hand_run(
        *(f"budget.prices.{each}=0" for each in ("prompt", "cached_prompt", "generated"))
    )
    assert list(found("progress", free)) == ["candidates", "tokens", "seconds", "points", "ends"]
    assert "against money" not in shown("progress", free)
    assert "Best score so far against wall seconds\n" in shown("progress", free)


# Replay.


def test_replay_tells_who_made_the_best_from_whom_and_at_what_cost(run: RunRecord) -> None:
    figures = found("replay", run, top=3)
    programs = figures["programs"]
    assert [(each["rank"], each["candidate"], each["score"]) for each in programs] == [
        (1, "1.1", 0.9),
        (2, "0.0", 0.75),
        (3, "1.0", 0.6),
    ]
    best = programs[0]
    assert {name: best[f"after_{name}"] for name in LAST_BEST} == LAST_BEST
    costs = {
        "generated_tokens": 14,
        "prompt_tokens": 200,
        "cached_prompt_tokens": 160,
        "model_s": 1.0,
        "evaluation_s": 0.5,
        "money": pytest.approx(300e-6),
    }
    assert {name: best[name] for name in costs} == costs
    first, second = (step for step in figures["lineages"] if step["rank"] == 1)
    assert (first["candidate"], first["parent"], first["operator"]) == ("0.0", INITIAL, "infill")
    assert (first["K"], first["temperature"], first["island"], first["gain"]) == (2, 0.5, 0, 0.25)
    assert (second["candidate"], second["parent"], second["operator"]) == ("1.1", "0.0", "diff")
    assert (second["K"], second["temperature"], second["island"]) == (3, 0.75, 1)
    assert second["gain"] == pytest.approx(0.15)
    assert second["money"] == pytest.approx(150e-6)


def test_a_step_cost_what_the_model_was_asked_before_it_too() -> None:
    figures = found("replay", hand_run(events=with_questions()), top=2)
    first = figures["lineages"][0]
    assert first["candidate"] == "0.0"
    costs = ("generated_tokens", "prompt_tokens", "cached_prompt_tokens", "model_s")
    assert [first[each] for each in costs] == [7 + 3 + 4, 100 + 40 + 60, 80 + 10 + 20, 1.0]
    # 90 computed prompt tokens for 2, 110 cached ones for 0.5, and 14 tokens for 10 millionths.
    assert first["money"] == pytest.approx(375e-6)
    assert figures["programs"][0]["generated_tokens"] == 14 + 7


def test_a_program_of_a_list_cost_what_its_answer_did() -> None:
    # One answer holds 1.0, another one 1.1 and 1.2; it is recorded with the first of these.
    listed = {"1.0": 0, "1.1": 0, "1.2": 1}
    nothing: dict[str, dict[str, object]] = {
        "completion_ids": {"1.0": (1, 2, 3), "1.2": ()},
        **{each: {"1.2": 0} for each in ("prompt_tokens", "cached_prompt_tokens", "llm_seconds")},
    }
    run = hand_run(
        events=changed(
            rank=listed, evaluation={"1.2": Evaluation(score=1.0, failure=None)}, **nothing
        )
    )
    figures = found("replay", run, top=1)
    (best,) = figures["programs"]
    assert best["candidate"] == "1.2"
    first, step = figures["lineages"]
    assert (first["answer_of"], step["answer_of"]) == ("0.0", "1.1")
    costs = ("generated_tokens", "prompt_tokens", "cached_prompt_tokens", "model_s")
    assert [step[each] for each in costs] == [7, 100, 80, 0.5]
    assert step["money"] == pytest.approx(150e-6)
    assert best["generated_tokens"] == 14


def test_replay_goes_back_through_what_idle_evaluators_and_other_islands_made() -> None:
    run = hand_run(events=with_others())
    figures = found("replay", run, top=4)
    programs = figures["programs"]
    assert [(each["candidate"], each["steps"]) for each in programs] == [
        ("4.0", 2),  # the migrant was made elsewhere
        ("f1", 1),
        ("3.0", 4),
        ("f0", 3),
    ]
    ways = {
        rank: [(s["candidate"], s["operator"]) for s in figures["lineages"] if s["rank"] == rank]
        for rank in (1, 3)
    }
    assert ways[1] == [("f1", "tuning"), ("4.0", "diff")]
    assert ways[3] == [("0.0", "infill"), ("1.1", "diff"), ("f0", "mutation"), ("3.0", "infill")]
    step = next(s for s in figures["lineages"] if s["candidate"] == "f0")
    assert (step["parent"], step["island"], step["K"], step["answer_of"]) == ("1.1", 1, None, None)
    assert (step["score"], step["gain"]) == (0.95, pytest.approx(0.05))
    assert (step["generated_tokens"], step["model_s"], step["money"]) == (0, 0, 0)
    assert step["evaluation_s"] == 0.25
    # A fill adds its evaluation and nothing else to what its parent cost.
    fill, best = programs[3], found("replay", hand_run(), top=1)["programs"][0]
    assert fill["evaluation_s"] == best["evaluation_s"] + 0.25
    assert fill["money"] == best["money"] and fill["generated_tokens"] == best["generated_tokens"]
    assert "tuning" in shown("replay", run)


def test_replay_takes_the_smallest_scores_where_those_are_better() -> None:
    run = hand_run(direction=Direction.MINIMISE)
    figures = found("replay", run, top=2)
    assert [each["candidate"] for each in figures["programs"]] == ["2.0", "1.0"]
    assert figures["lineages"][0]["gain"] == pytest.approx(-0.05)


def test_replay_of_several_runs_ranks_their_programs_together(run: RunRecord) -> None:
    programs = found("replay", run, begun(until=6), top=100)["programs"]
    assert [(each["run"], each["candidate"]) for each in programs] == [
        ("runs/a", "1.1"),
        ("runs/a", "0.0"),  # of equal scores the first run's
        ("runs/begun", "0.0"),
        ("runs/a", "1.0"),
        ("runs/a", "2.0"),
    ]


def test_replay_of_the_first_children_of_whole_calls(run: RunRecord) -> None:
    within = found("replay", run)["within_calls"]
    whole = [row for row in within if row["tier"] == 0]
    figures = [(row["K"], row["m"], row["calls"], row["improving"]) for row in whole]
    # Of K = 2 only the first call is whole; of K = 3 the second child is the first that improves.
    assert figures == [(2, 1, 1, 1), (2, 2, 1, 1), (3, 1, 1, 0), (3, 2, 1, 1), (3, 3, 1, 1)]
    assert [row["gain"] for row in whole] == pytest.approx([0.25, 0.25, -0.15, 0.15, 0.15])
    assert [{**row, "tier": 0} for row in within if row["tier"] == 1] == whole


def test_replay_of_a_run_that_made_nothing_yet() -> None:
    nothing: dict[str, list[Any]] = {"programs": [], "lineages": [], "within_calls": []}
    assert found("replay", begun(until=2)) == nothing
    assert "The best programs, and what they and their ancestors cost: nothing to show\n" in shown(
        "replay", begun(until=2)
    )


# Ranks.


def test_ranks_of_the_places_in_a_call(run: RunRecord) -> None:
    # From their parents 0.0 is 2/3 away, 1.0 1/3, 1.1 1, 1.2 0 and 2.0 1/3; 0.1 has no program.
    places = found("ranks", run)["places"]
    keys = ("K", "place", "children", "valid", "improved")
    assert [tuple(row[each] for each in keys) for row in places] == [
        *((2, 1, 2, 2, 2), (2, 2, 1, 0, 0)),
        *((3, 1, 1, 1, 0), (3, 2, 1, 1, 1), (3, 3, 1, 0, 0)),
    ]
    gains = [row["median_gain"] for row in places]
    assert (gains[0], gains[2], gains[3]) == pytest.approx((0.15, -0.15, 0.15))
    assert (gains[1], gains[4]) == (None, None)
    distances = [row["median_distance"] for row in places]
    assert (distances[0], *distances[2:]) == pytest.approx((0.5, 1 / 3, 1.0, 0.0))
    assert distances[1] is None


def test_programs_of_a_list_have_the_places_and_the_temperature_of_their_answer() -> None:
    # The first answer of the second call holds a program, the second one the two others.
    run = hand_run(
        events=changed(rank={"1.0": 0, "1.1": 0, "1.2": 1}, temperatures={"1": (0.75, 0.75)})
    )
    places = [row for row in found("ranks", run)["places"] if row["K"] == 3]
    counts = [(row["place"], row["children"], row["valid"], row["improved"]) for row in places]
    assert counts == [(1, 2, 2, 1), (2, 1, 0, 0)]
    assert [each.temperature for each in run.trials if each.call.k == 3] == [0.75, 0.75, 0.75]


# Distance.


def test_improvement_by_distance_of_the_parent_from_what_is_shown() -> None:
    """The parent is abcd in calls 0 and 2, and abce in call 1.

    Call 0 shows 1.1 (x), 1 away. Call 1 shows the initial program, 2/3 away, and 1.0 (abcef), 1/3
    away, so 1/2 on average; 1.2 has no score and does not count. Call 2 shows 2.0 (abcde), 1/3.
    """
    shows = {"0": ("1.1",), "1": (INITIAL, "1.2", "1.0"), "2": ("2.0",)}
    run = hand_run(events=changed(shown=shows))
    rows = found("distance", run)["by_shown"]
    keys = ("decile", "K", "calls", "runs", "improving")
    assert [tuple(row[each] for each in keys) for row in rows] == [
        (1, 2, 1, 1, 1.0),
        (4, 3, 1, 1, 1.0),
        (7, 2, 1, 1, 1.0),
    ]
    assert [row["distance"] for row in rows] == pytest.approx([1 / 3, 1 / 2, 1])
    assert [row["best_gain"] for row in rows] == pytest.approx([0.05, 0.15, 0.25])
    assert "improving" in shown("distance", run)
    # The last verdict is not in, so nobody knows whether its call improves anything.
    waiting = found("distance", hand_run(events=changed(shown=shows)[:-1]))["by_shown"]
    assert [row["distance"] for row in waiting] == pytest.approx([1 / 2, 1])


def test_calls_that_show_nothing_with_a_score_are_left_out(run: RunRecord) -> None:
    assert found("distance", run)["by_shown"] == []
    failed = hand_run(events=changed(shown={"0": ("1.2",), "1": ("9.9",)}))
    assert found("distance", failed)["by_shown"] == []
    # The embedded model's prompts show no other program, as the setting says.
    why = "nothing to show, since no call shows another program with a score"
    assert f"{why} (prompts.history_tokens=0)\n" in shown("distance", run)
    shows = hand_run("prompts.history_tokens=1024", name="runs/b")
    assert f"{why}\n" in shown("distance", run, shows)


def test_calls_are_put_together_within_a_run_and_then_over_the_runs() -> None:
    """Calls 0 and 2 show the same at the same distance; they gain 0.25 and 0.05, or -0.05."""
    same = {"0": ("1.1",), "2": ("1.1",)}
    better = hand_run(events=changed(shown=same))
    worse = [
        hand_run(
            name=name,
            events=changed(shown=same, evaluation={"2.0": Evaluation(score=0.45, failure=None)}),
        )
        for name in ("b", "c")
    ]
    (row,) = found("distance", better, *worse)["by_shown"]
    assert (row["decile"], row["calls"], row["runs"]) == (1, 6, 3)
    assert (row["improving"], row["best_gain"]) == (0.5, pytest.approx(0.1))
    (row,) = found("distance", better)["by_shown"]
    assert (row["improving"], row["best_gain"]) == (1.0, pytest.approx(0.15))


# Coverage.


BINS = [
    {"feature": "nodes", "from": 0, "to": 52, "bins": 16},
    {"feature": "depth", "from": 0, "to": 6, "bins": 8},
]
"""Of the initial program's 13 nodes and 3 levels: 3.25 nodes and 0.75 levels each."""


def test_coverage_by_hand(run: RunRecord) -> None:
    """13, 13, 16, 4, 16 nodes are in bins 4, 4, 4, 1, 4; all levels are in one."""
    figures = found("coverage", run)
    assert figures["features"] == BINS
    rows = [(row["run"], row["candidates"], row["cells"]) for row in figures["runs"]]
    assert rows == [("runs/a", at, cells) for at, cells in enumerate((1, 1, 1, 2, 2, 2))]
    quality = [row["quality"] for row in figures["runs"]]
    # 0.75 takes the first cell, 0.9 fills another; 0.6 and 0.55 are no better than 0.75.
    assert quality == pytest.approx([0.5, 0.75, 0.75, 0.825, 0.825, 0.825])
    smaller = found("coverage", hand_run(direction=Direction.MINIMISE))["runs"]
    assert [row["quality"] for row in smaller] == pytest.approx([0.5, 0.5, 0.5, 0.7, 0.7, 0.7])


def test_coverage_of_several_runs_is_on_one_grid(run: RunRecord) -> None:
    figures = found("coverage", run, begun(until=6))
    assert figures["features"] == BINS
    assert [row["run"] for row in figures["runs"]] == ["runs/a"] * 6 + ["runs/begun"] * 2
    _, row = figures["together"]
    assert (row["median"], row["lowest"], row["highest"], row["runs"]) == (1, 1, 1, 2)


def test_coverage_is_of_the_runs_own_archive_where_they_have_one() -> None:
    """The recorded cells are taken, here others than the programs have."""
    cells = {INITIAL: (4, 4), "0.0": (4, 4), "1.0": (5, 4), "1.1": (1, 4), "2.0": (4, 4)}
    own = hand_run("search.archive=structure", events=changed(cell=cells))
    plain = hand_run(name="runs/b")
    for runs in ((own,), (own, plain), (plain, own)):
        figures = found("coverage", *runs)
        assert figures["features"] == BINS
        recorded_cells = [row["cells"] for row in figures["runs"] if row["run"] == "runs/a"]
        assert recorded_cells == [1, 1, 2, 3, 3, 3]


def test_coverage_by_what_the_problem_names() -> None:
    declared = (
        Feature(name="nodes", low=0, high=20, bins=2),
        Feature(name="lag", low=0, high=1, bins=1),
    )
    cells = {INITIAL: (1, 0), "0.0": (1, 0), "1.0": (1, 0), "1.1": (0, 0), "2.0": (1, 0)}
    given = {name: hand_run().history.verdicts[name].evaluation for name in cells}
    lags = {name: replace(each, metrics={"lag": 0.5}) for name, each in given.items()}
    lagging = changed(cell=cells, evaluation=lags)
    run = hand_run("search.archive=problem", declared=declared, events=lagging)
    figures = found("coverage", run)
    assert [tuple(row.values()) for row in figures["features"]] == [
        ("nodes", 0, 20, 2),
        ("lag", 0, 1, 1),
    ]
    assert figures["runs"][-1]["cells"] == 2  # 4 nodes, and more than 10
    # A run without an archive beside it is measured; here the cells come out as the other's.
    plain = hand_run(name="runs/b", events=changed(evaluation=lags))
    beside = found("coverage", run, plain)["runs"]
    assert [{**row, "run": "runs/a"} for row in beside[6:]] == beside[:6] == figures["runs"]
    without = hand_run("search.archive=problem", declared=declared)
    assert found("coverage", without)["runs"][-1]["cells"] == 0
    # Two runs whose archives differ are compared by their structure.
    other = hand_run("search.archive=structure", name="runs/b")
    assert found("coverage", run, other)["features"] == BINS


# Rates.


def test_improvement_rate_of_each_operator(run: RunRecord) -> None:
    diff, infill = found("operators", run)["operators"]
    assert (diff["operator"], infill["operator"]) == ("diff", "infill")
    counts = ("children", "evaluated", "valid", "improved", "new_bests", "tokens", "model_s")
    assert [infill[each] for each in counts] == [3, 2, 2, 2, 1, 7, 0.5]
    assert [diff[each] for each in counts] == [3, 3, 2, 1, 1, 7, 0.5]
    assert diff["rate"] == pytest.approx(1 / 3)
    # Wilson's formula for 1 of 3, with z = 1.96: (1/3 + 1.2805/2 -+ 1.1999)/2.2805 by hand.
    assert diff["from"] == pytest.approx(0.0615, abs=5e-5)
    assert diff["to"] == pytest.approx(0.7923, abs=5e-5)
    line = next(line for line in shown("operators", run).splitlines() if "infill" in line)
    assert line.split()[:6] == ["infill", "3", "2", "2", "2", "66.7%"]


def test_improvement_rate_of_each_parent_policy(run: RunRecord) -> None:
    greedy = hand_run("search.parent.p_elite=1", "search.parent.p_uniform=0", name="runs/greedy")
    rates = found("parents", run, greedy)["parents"]
    kinds = [("p_elite=1 " in each["policy"], each["rule"]) for each in rates]
    assert kinds == [(False, "elite"), (False, "weighted"), (True, "elite"), (True, "weighted")]
    assert [each["children"] for each in rates] == [3, 3, 3, 3]
    assert [each["improved"] for each in rates] == [2, 1, 2, 1]
    together = found("parents", run, hand_run(name="runs/b"))["parents"]
    assert [each["children"] for each in together] == [6, 6]


def test_children_that_nobody_judged_count_nowhere() -> None:
    """1.1 was refused since the budget was spent, 1.2 since the engine failed; 2.0 is out.

    What was refused for what it is, 0.1, was judged, and counts.
    """
    refused = {"1.1": Refusal.BUDGET, "1.2": Refusal.FAILED}
    events = [
        each
        for each in changed(refusal=refused, shown={"1": ("0.0",)})[:-1]
        if not (isinstance(each.event, Verdict) and each.event.candidate in refused)
    ]
    run = hand_run(events=events)
    assert [each.child.id for each in run.judged] == ["0.0", "0.1", "1.0"]
    counts = {name: found(name, run)[name] for name in ("operators", "parents")}
    for rows in counts.values():
        assert [(row["children"], row["valid"], row["improved"]) for row in rows] in (
            [(1, 1, 0), (2, 1, 1)],  # diff and infill
            [(2, 1, 1), (1, 1, 0)],  # elite and weighted
        )
    ranks = found("ranks", run)
    keys = ("K", "place", "children")
    expected = [(2, 1, 1), (2, 2, 1), (3, 1, 1)]
    assert [tuple(row[each] for each in keys) for row in ranks["places"]] == expected
    assert [tuple(row[each] for each in keys) for row in ranks["profile"]] == expected
    assert [row["valid"] for row in ranks["profile"]] == [1, 0, 1]
    # A call counts whole, so the second and the third one do not.
    assert {row["K"] for row in found("replay", run)["within_calls"]} == {2}
    (row,) = found("distance", run)["by_shown"]
    assert (row["K"], row["improving"]) == (3, 0)
    assert sum(row["children"] for row in found("learning", run)["children"]) == 3
    made = {row["iteration"]: row for row in calls([run]).rows}
    assert [(row["children"], row["judged"]) for row in made.values()] == [(2, 2), (3, 1), (1, 0)]
    assert [row["children"] for row in widths([run]).rows] == [2, 1]


@pytest.mark.parametrize("name", ANALYSES)
@pytest.mark.parametrize("until", range(2, 19))
def test_a_run_may_stand_anywhere(name: str, until: int) -> None:
    assert found(name, begun(until=until))
    assert shown(name, begun(until=until))
