"""Experiments: the table, figures and tests by hand, and runs that are made only once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hand_log import call, child, settings_of, verdict

from bench.experiments import lane
from bench.experiments.__main__ import main
from bench.experiments.comparison import compared, score_at
from bench.experiments.lanes import core_groups, make
from bench.experiments.page import page, read_results
from bench.experiments.results import Kept, Result, figures
from bench.experiments.table import TABLE, Experiment, Job, chosen, narrowed, read_table
from bench.figures import holm
from engine import config
from engine.core import INITIAL, Direction, Refusal, UserError
from engine.problem import load_problem, shipped
from engine.report.analysis import read_runs
from engine.report.analysis.figures import median_interval
from engine.store import Session, create_run, read_log, replay
from engine.sweep.shared import SharedModel
from engine.syntax import read

ROOT = Path(__file__).parents[2]
TABLE_OF_EXPERIMENTS = read_table()
WHOLE = dict.fromkeys(("problems", "arms", "seeds", "model", "amount", "cores"), "")
TINY = """\
tiny:
  question: Does it run?
  source: a test
  baseline: k4
  shared: [model=mutation, budget.target=5]
  arms:
    k4: [search.k=4]
    k8: [search.k=8]
  problems:
    signal:
    other: [problem=signal, evaluation.workers=1]
  seeds: 1
  budget: {evaluations: 8}
"""


def tiny(folder: Path, text: str = TINY) -> Experiment:
    """Return the experiment of a table in a file."""
    path = folder / "table.yaml"
    path.write_text(text)
    (experiment,) = read_table(path).values()
    return experiment


def result(problem: str, arm: str, seed: int, *curve: tuple[float, float, int]) -> Result:
    """Return a result from its curve: score, seconds, candidates; the last ends the run."""
    points = [
        {"score": score, "seconds": seconds, "candidates": candidates, "evaluations": candidates}
        for score, seconds, candidates in curve
    ]
    return {
        **{"problem": problem, "arm": arm, "seed": seed, "direction": "maximise"},
        **{"initial_score": curve[0][0], "target": 2.0, "stops_at": None, "best_known": None},
        **{"best_score": max(score for score, *_ in curve), "curve": points[:-1]},
        **{key: points[-1][key] for key in ("seconds", "candidates", "evaluations")},
        **{"valid": 4, "children": 20, "improving": 2, "by_k": {"4": [20, 2]}},
        **{"generated_tokens": 100, "hit_rate": 0.5, "idle_share": 0.25},
        **{"commit": "c", "machine": {"processor": "p", "cores": 2, "memory_gib": 4}},
        **{"budget": "candidates", "amount": 40},
    }


@pytest.mark.parametrize("name", TABLE_OF_EXPERIMENTS)
def test_every_arm_of_the_table_is_a_configuration_with_one_limit(
    name: str, tmp_path: Path
) -> None:
    experiment = TABLE_OF_EXPERIMENTS[name]
    for job in {(job.arm, job.problem): job for job in experiment.jobs}.values():
        settings = job.settings(tmp_path)
        limits = (settings.budget.seconds, settings.budget.candidates)
        assert sum(limit is not None for limit in limits) == 1
        assert (settings.seed, settings.name) == (job.seed, job.name)


def test_jobs_take_arms_in_turns_and_names_tell_them_apart(tmp_path: Path) -> None:
    experiment = tiny(tmp_path, TINY.replace("seeds: 1", "seeds: 2"))
    jobs = experiment.jobs
    assert [(job.seed, job.problem, job.arm) for job in jobs[:5]] == [
        *((0, "signal", "k4"), (0, "signal", "k8"), (0, "other", "k4"), (0, "other", "k8")),
        (1, "signal", "k4"),
    ]
    longer = narrowed(experiment, {**WHOLE, "amount": "9"}).jobs
    assert len({job.name for job in [*jobs, *longer]}) == 2 * len(jobs) == 16
    few = narrowed(experiment, {**WHOLE, "arms": "k8", "seeds": "1"})
    assert [(job.arm, job.seed) for job in few.jobs] == [("k8", 1), ("k8", 1)]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"arms": "k4,nope"}, "arms=nope is none of k4, k8"),
        ({"problems": "tour"}, "problems=tour is none of signal, other"),
        ({"seeds": "1,x"}, "seeds=x is no whole number, 0 or more"),
        ({"seeds": "0,1"}, "seeds=1 is none of 0, which tiny has"),
        ({"amount": "0"}, "amount=0 is no number above 0"),
        ({"cores": "0.5"}, "cores=0.5 is no whole number"),
    ],
)
def test_bad_options_are_named(options: dict[str, str], words: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=words):
        narrowed(tiny(tmp_path), {**WHOLE, **options})


def test_bad_tables_are_named(tmp_path: Path) -> None:
    for old, new, words in (
        ("baseline: k4", "baseline: k5", "baseline one of its arms"),
        ("source:", "sauce:", "no key 'sauce'"),
        ("  source: a test\n", "", "lacks 'source'"),
        ("signal:", "sgnal:", "sgnal is none of"),
        ("{evaluations: 8}", "8", "tiny: budget must be a number of one of seconds, candidates"),
        ("{evaluations: 8}", "{seconds: 8, evaluations: 8}", "tiny: budget must be a number of"),
        ("seeds: 1", "seeds: five", "tiny: seeds must be a number"),
        ("    k4: [search.k=4]\n    k8:", "    - k4\n    - k8:", "tiny: arms must be a mapping"),
        (TINY, "tiny: [1]", "experiment tiny is no mapping"),
        (TINY, "tiny", "is no mapping of experiments by name"),
        (TINY, "tiny: [", "table.yaml can't be read as YAML: "),
    ):
        with pytest.raises(UserError, match=words):
            tiny(tmp_path, TINY.replace(old, new))
    with pytest.raises(UserError, match="name=nope is none of k, stale"):
        chosen(["nope"], TABLE_OF_EXPERIMENTS)


def test_cores_are_shared_out_in_whole_groups() -> None:
    assert core_groups([0, 1, 2, 3], each=1) == [[0], [1], [2], [3]]
    assert core_groups([0, 1, 2], each=2) == [[0, 1]]
    with pytest.raises(UserError, match="a run needs 2 cores, and this process has 1"):
        core_groups([3], each=2)


def test_scores_are_compared_at_equal_seconds_and_at_equal_candidates(tmp_path: Path) -> None:
    """By hand: k8 is faster, so at equal candidates it is cut where k4 ends, after 4."""
    slow = [result("signal", "k4", seed, (1.0, 0, 0), (1.5, 9, 3), (1.5, 10, 4)) for seed in (0, 1)]
    fast = [
        result("signal", "k8", seed, (1.0, 0, 0), (1.2, 2, 3), (1.8, 8, 9), (1.8, 10, 12))
        for seed in (0, 1)
    ]
    assert score_at(fast[0], "seconds", 7.9) == 1.2 and score_at(fast[0], "seconds", 8) == 1.8
    found = compared(tiny(tmp_path, TINY.replace("evaluations", "seconds")), [*slow, *fast])
    one = found["problems"]["signal"]
    assert one["equal"] == {"seconds": 10, "candidates": 4}
    assert one["arms"]["k4"]["score"]["seconds"]["median"] == 1.5
    assert one["arms"]["k8"]["score"]["seconds"]["median"] == 1.8
    assert one["arms"]["k8"]["score"]["candidates"]["median"] == 1.2
    # From 1.0 to the target 2.0 is one: 0.3 better, and 0.3 worse.
    gain = one["arms"]["k8"]["gain"]
    assert gain["seconds"]["mean"] == pytest.approx(0.3)
    assert gain["candidates"]["mean"] == pytest.approx(-0.3)
    assert one["arms"]["k4"]["gain"] == {}
    assert one["arms"]["k4"]["candidates_per_hour"] == pytest.approx(8 / (20 / 3600))
    assert one["arms"]["k4"]["by_k"] == {"4": {"children": 40, "improvement_share": 0.1}}
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_a_run_that_waits_for_an_evaluation_until_its_end_counts_to_its_end(tmp_path: Path) -> None:
    """By hand: its last event came after 4 s of 10, and the other one's best program after 8."""
    ten = {"budget": "seconds", "amount": 10}
    waits = result("signal", "k4", 0, (1.0, 0, 0), (1.5, 3, 3), (1.5, 4, 4)) | ten
    goes_on = result("signal", "k8", 0, (1.0, 0, 0), (1.8, 8, 9), (1.8, 9.9, 12)) | ten
    experiment = tiny(tmp_path, TINY.replace("evaluations", "seconds"))
    found = compared(experiment, [waits, goes_on])["problems"]["signal"]
    assert found["equal"]["seconds"] == 10
    assert found["arms"]["k8"]["score"]["seconds"]["median"] == 1.8
    assert found["arms"]["k4"]["candidates_per_hour"] == pytest.approx(4 / (10 / 3600))


def test_a_run_that_stopped_at_a_score_keeps_it(tmp_path: Path) -> None:
    ends = {"target": 2.5, "stops_at": 2.0}
    short = result("signal", "k8", 0, (1.0, 0, 0), (2.0, 1, 2), (2.0, 1, 2)) | ends
    long = result("signal", "k4", 0, (1.0, 0, 0), (1.5, 9, 30), (1.5, 10, 40))
    found = compared(tiny(tmp_path), [short, long])["problems"]["signal"]
    assert found["equal"] == {"evaluations": 40, "seconds": 10, "candidates": 40}
    assert found["arms"]["k8"]["score"]["candidates"]["median"] == 2.0
    assert (found["arms"]["k8"]["reached"], found["arms"]["k4"]["reached"]) == (1, 0)


def test_a_run_that_went_on_from_its_target_is_compared_as_any_other(tmp_path: Path) -> None:
    """By hand: the slow run made 4 candidates in all its 10 s, and its last event came after 6."""
    ten = {"budget": "seconds", "amount": 10}
    slow = result("signal", "k4", 0, (1.0, 0, 0), (2.0, 5, 4), (2.0, 6, 4)) | ten
    fast = result("signal", "k8", 0, (1.0, 0, 0), (1.8, 8, 9), (1.8, 9.9, 12)) | ten
    experiment = tiny(tmp_path, TINY.replace("evaluations", "seconds"))
    found = compared(experiment, [slow, fast])["problems"]["signal"]
    assert found["equal"] == {"seconds": 10, "candidates": 4}
    assert found["arms"]["k8"]["score"]["candidates"]["median"] == 1.0
    assert (found["arms"]["k4"]["seconds"], found["arms"]["k4"]["reached"]) == (10, 1)
    older = [{key: each[key] for key in each if key != "stops_at"} for each in (slow, fast)]
    assert compared(experiment, older)["problems"]["signal"] == found


def test_what_a_cheap_stage_screened_out_is_not_invalid(tmp_path: Path) -> None:
    def share(run: Result) -> float:
        found = compared(tiny(tmp_path), [run])
        return float(found["problems"]["signal"]["arms"]["k4"]["valid_share"])

    run = result("signal", "k4", 0, (0.0, 0, 0), (1.0, 5, 10), (1.0, 10, 20))
    assert share(run) == 0.2  # of an earlier version, which did not say how many were judged
    assert share({**run, "judged": 10}) == 0.4


def test_a_run_that_was_over_at_its_beginning_is_compared(tmp_path: Path) -> None:
    over = result("signal", "k4", 0, (2.0, 0, 0), (2.0, 0, 0))
    found = compared(tiny(tmp_path), [{**over, "stops_at": 2.0}])
    assert found["problems"]["signal"]["arms"]["k4"]["candidates_per_hour"] == 0


def test_a_child_counts_as_the_evaluation_that_it_is(tmp_path: Path) -> None:
    """However late its verdict comes."""
    names = [f"0.{index}" for index in range(8)]
    log = [
        Session(number=0, engine="0", fingerprint="f"),
        verdict(INITIAL, 0.0),
        call(0, INITIAL, "diff", (1.0,) * 8),
        *(replace(child(name, INITIAL, "diff"), program=read(f"{name}\n")) for name in names),
        verdict(names[2], 1.0),
        *(verdict(name, 0.5) for name in names if name != names[2]),
    ]
    folder = tmp_path / "run"
    create_run(folder, write_config=partial(config.save, settings_of()), events=log)
    (record,) = read_runs([folder])
    curve = figures(record)["curve"]
    assert [(each["score"], each["evaluations"]) for each in curve] == [(0.0, 0), (1.0, 3)]
    assert figures(record)["idle_share"] == 0.0  # no timeline says more


def test_children_that_nobody_judged_are_not_counted(tmp_path: Path) -> None:
    """Of eight children one is better than its parent, three are not, and nobody judged four."""
    refusals = {3: Refusal.DUPLICATE, 4: Refusal.BUDGET, 5: Refusal.FAILED}
    children = [child(f"0.{i}", INITIAL, "diff", refusals.get(i)) for i in range(8)]
    log = [
        Session(number=0, engine="0", fingerprint="f"),
        verdict(INITIAL, 0.0),
        call(0, INITIAL, "diff", (1.0,) * 8),
        *(replace(each, program=read(f"{each.id}\n")) for each in children),
        *(verdict(name, score) for name, score in (("0.0", 1.0), ("0.1", 0.0), ("0.2", None))),
    ]
    folder = tmp_path / "run"
    create_run(folder, write_config=partial(config.save, settings_of()), events=log)
    (record,) = read_runs([folder])
    found = figures(record)
    assert (found["children"], found["improving"], found["improvement_share"]) == (4, 1, 0.25)
    assert found["by_k"] == {"8": [4, 1]}


def test_a_line_says_which_commit_began_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = tiny(tmp_path).jobs[0]
    line = json.dumps(asdict(job))
    commits = iter("ab")
    monkeypatch.setattr(lane, "commit", lambda: next(commits))
    monkeypatch.setattr(lane, "made", lambda job, **rest: {})
    with closing(SharedModel()) as model:
        answers = [*lane.answers([line, line], out=tmp_path, model=model)]
    assert [each["commit"] for each in answers] == ["a", "a"]


def test_large_amounts_are_whole_numbers(tmp_path: Path) -> None:
    job = narrowed(tiny(tmp_path), {**WHOLE, "amount": "1234567"}).jobs[0]
    assert job.settings(tmp_path).budget.candidates == 12_345_670


def test_one_pair_for_a_problem_makes_no_interval(tmp_path: Path) -> None:
    experiment = tiny(tmp_path, TINY.replace("seeds: 1", "seeds: 2"))
    runs = [
        result(problem, arm, seed, (1.0, 0, 0), (score, 1, 1), (score, 9, 9))
        for problem, seeds in (("signal", (0, 1)), ("other", (0,)))
        for seed in seeds
        for arm, score in (("k4", 1.1), ("k8", 1.3 + 0.1 * seed))
    ]
    found = {**compared(experiment, runs), "runs": runs}
    over = found["over_problems"]["seconds"]["k8"]
    assert over["mean"] == pytest.approx(0.225) and over["interval_95"] is None
    assert "| seconds | k8 | +22.5% (-) | 3 : 0 of 3 |" in page(
        {"tiny": experiment}, {"tiny": found}
    )


@pytest.mark.parametrize(
    ("fingerprints", "versions"), [(("a", "a"), 1), (("a", "b"), 2), ((None, "a"), 1)]
)
def test_the_page_says_that_runs_are_of_two_versions_of_a_problem(
    fingerprints: tuple[str | None, ...], versions: int, tmp_path: Path
) -> None:
    experiment = tiny(tmp_path)
    runs = [
        result("signal", arm, 0, (1.0, 0, 0), (1.1, 9, 9))
        | ({} if fingerprint is None else {"fingerprint": fingerprint})
        for arm, fingerprint in zip(("k4", "k8"), fingerprints, strict=True)
    ]
    found = {**compared(experiment, runs), "runs": runs}
    assert len(found["problems"]["signal"]["fingerprints"]) == versions
    made = page({"tiny": experiment}, {"tiny": found})
    assert ("**These runs are of 2 versions of the problem" in made) is (versions > 1)


def test_the_page_says_what_was_run_and_not_what_the_table_has(tmp_path: Path) -> None:
    experiment = tiny(tmp_path, TINY.replace("seeds: 1", "seeds: 3"))
    assert "2 problems, 3 seeds; each run 8 evaluations (failed ones counted) on 1 core." in page(
        {"tiny": experiment}, {}
    )
    ran = narrowed(experiment, {**WHOLE, "amount": "9", "cores": "2"})
    runs = [result("signal", "k4", seed, (1.0, 0, 0), (1.1, 9, 9)) for seed in (0, 2)]
    found = {**compared(ran, runs), "runs": runs}
    assert found["arms"].keys() == {"k4"}
    # The results of an earlier version have all of the table's arms.
    found["arms"]["k8"] = []
    made = page({"tiny": experiment}, {"tiny": found})
    assert (
        "1 of 2 problems, 2 of 3 seeds; each run 9 evaluations (failed ones counted) on 2 cores"
        in made
    )
    assert (
        "| **k4** | `model=mutation` `budget.target=5` `search.k=4` |" in made and "k8" not in made
    )


@pytest.mark.parametrize(
    ("target", "words"), [(2.0, "target 2"), (None, "no target (gains: to the best score)")]
)
def test_the_page_has_the_score_to_which_gains_are_shares_of_the_way(
    target: float | None, words: str, tmp_path: Path
) -> None:
    experiment = tiny(tmp_path)
    run = {**result("signal", "k4", 0, (1.0, 0, 0), (1.1, 9, 9)), "target": target}
    found = {**compared(experiment, [run]), "runs": [run]}
    made = page({"tiny": experiment}, {"tiny": found})
    assert f"From 1, {words}; higher is better." in made


def test_tests_over_all_problems_are_exact_and_corrected(tmp_path: Path) -> None:
    """By hand: five pairs of one sign have p = 2 / 2^5; ten 2 / 2^10; two problems 2 / 2^2."""
    found = compared(
        tiny(tmp_path, TINY.replace("k8: [search.k=8]", "k8: [search.k=8]\n    k2: [search.k=2]")),
        [
            result(problem, arm, seed, (1.0, 0, 0), (1.0 + gain, 1, 1), (1.0 + gain, 9, 9))
            for problem in ("signal", "other")
            for seed in range(5)
            for arm, gain in (("k4", 0.1), ("k8", 0.2 + 0.01 * seed), ("k2", 0.1))
        ],
    )
    one = found["problems"]["signal"]["arms"]["k8"]["gain"]["seconds"]
    assert (one["wins"], one["wilcoxon_p"], one["holm_p"]) == (5, 0.0625, 0.125)
    over = found["over_problems"]["seconds"]
    assert over["k8"]["mean"] == pytest.approx(0.12)
    assert (over["k8"]["wins"], over["k8"]["losses"], over["k8"]["pairs"]) == (10, 0, 10)
    assert over["k8"]["wilcoxon_p"] == pytest.approx(2 / 2**10)
    assert over["k8"]["holm_wilcoxon_p"] == pytest.approx(4 / 2**10)
    assert (over["k8"]["problems_ahead"], over["k8"]["problems_p"]) == (2, 0.5)
    low, high = over["k8"]["interval_95"]
    assert 0.10 <= low < 0.12 < high <= 0.14
    assert over["k2"]["wilcoxon_p"] is None and over["k2"]["holm_wilcoxon_p"] == 1.0


def test_a_median_interval_has_the_confidence_that_it_says() -> None:
    # P(all five on one side) is 2 / 2^5; P(Bin(6, 1/2) < 1) is 1/64, P(Bin(9, 1/2) < 2) 10/512.
    five = median_interval([5, 1, 4, 2, 3])
    assert five == {"median": 3, "low": 1, "high": 5, "confidence": pytest.approx(1 - 2 / 32)}
    six = median_interval(range(6))
    assert (six["low"], six["high"], six["confidence"]) == (0, 5, pytest.approx(1 - 2 / 64))
    nine = median_interval(range(9))
    assert (nine["low"], nine["high"], nine["confidence"]) == (1, 7, pytest.approx(1 - 20 / 512))
    assert median_interval([7.0]) == {"median": 7, "low": 7, "high": 7, "confidence": 0}


def test_holm_multiplies_the_smallest_most_and_never_turns_an_order_round() -> None:
    # Four tests: 0.01 * 4, then 0.02 * 3, then 0.04 * 2, then 0.05 -> after it, so 0.08 too.
    corrected = holm({"a": 0.04, "b": 0.01, "c": 0.02, "d": 0.05})
    expected = {"b": 0.04, "c": 0.06, "a": 0.08, "d": 0.08}
    assert corrected == pytest.approx(expected)
    assert holm({"a": 0.9, "b": 0.6}) == {"b": 1.0, "a": 1.0}
    assert holm({}) == {}


def test_a_line_that_was_cut_off_is_no_result_and_a_damaged_one_is_named(tmp_path: Path) -> None:
    job = tiny(tmp_path).jobs[0]
    kept = Kept(tmp_path / "out")
    kept.add({**job.key, "best_score": 1.0})
    file = tmp_path / "out" / "results.jsonl"
    file.write_text(file.read_text() + '{"problem": "sig')
    again = Kept(tmp_path / "out")
    assert len(again.results) == 1 and again.found(job) == {**job.key, "best_score": 1.0}
    again.add({**tiny(tmp_path).jobs[1].key, "best_score": 2.0})
    assert [each["best_score"] for each in Kept(tmp_path / "out").results] == [1.0, 2.0]
    file.write_text("{broken\n" + file.read_text())
    with pytest.raises(UserError, match="line 1 is no JSON"):
        Kept(tmp_path / "out")


def test_the_page_is_that_of_the_table_and_the_results() -> None:
    made = page(read_table(), read_results(ROOT / "bench" / "results" / "experiments"))
    assert made == (ROOT / "docs" / "experiments.md").read_text(encoding="utf-8")
    assert TABLE.name in made


@pytest.mark.parametrize("option", ["amount=9", "cores=2", "model=smollm2"])
def test_another_experiment_than_the_tables_is_written_only_where_asked(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = TINY.replace("  shared: [model=mutation, budget.target=5]\n", "")
    key, value = option.split("=")
    for experiment in (
        tiny(tmp_path, text),
        narrowed(tiny(tmp_path, text), {**WHOLE, key: value}),
    ):
        kept = Kept(tmp_path / "out" / "tiny")
        for job in experiment.jobs[:2]:
            kept.add(result(job.problem, job.arm, 0, (1.0, 0, 0), (1.1, 9, 9)) | job.key)
    monkeypatch.chdir(tmp_path)
    common = ["name=tiny", "make=false", "table=table.yaml", "out=out"]
    published = tmp_path / "bench" / "results" / "experiments"
    assert main([*common, option]) == 0
    assert not published.exists()
    assert main([*common, option, "results=asked"]) == 0
    asked = json.loads((tmp_path / "asked" / "tiny.json").read_text())
    assert main([*common, "results="]) == 0
    assert not published.exists()
    assert main(common) == 0
    found = json.loads((published / "tiny.json").read_text())
    assert found["budget"] == {"evaluations": 8} and found["cores"] == 1
    differs = {key for key in ("budget", "cores", "arms") if asked[key] != found[key]}
    assert differs == {{"amount": "budget", "model": "arms"}.get(key, key)}


def lanes_of(script: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have lanes start a shell script, which reads jobs and may answer by ``answer``."""
    program = folder / "program"
    program.write_text(
        f'#!/bin/sh\nanswer() {{ echo "$1" > "/proc/self/fd/$pipe"; }}\npipe=$4\n{script}'
    )
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))


def test_an_error_beside_a_run_ends_all_runs_and_is_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (core, *_) = os.sched_getaffinity(0)
    jobs = tiny(tmp_path).jobs
    answers = 'case "$job" in *search.k=4*) answer {} ;; *) exec sleep 100 ;; esac'
    lanes_of(f"while read -r job; do {answers}; done\n", tmp_path, monkeypatch)
    asked: list[str] = []

    def full(job: Job, _: Result) -> None:
        asked.append(job.arm)
        raise OSError("no space left")

    began = time.monotonic()
    with pytest.raises(OSError, match="no space left"):
        make(jobs, out=tmp_path, cores=[core, core], made=full)
    assert asked == ["k4"] and time.monotonic() - began < 50
    monkeypatch.setattr(sys, "executable", str(tmp_path / "none"))
    with pytest.raises(FileNotFoundError):
        make(jobs, out=tmp_path, cores=[core], made=full)


def run(folder: Path, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run the command on the tiny table."""
    tiny(folder)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "bench.experiments", "name=tiny"),
            *(f"table={folder / 'table.yaml'}", f"out={folder / 'out'}"),
            *(f"results={folder / 'results'}", *arguments),
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == code, done.stderr
    return done


@pytest.mark.slow
def test_finished_runs_are_kept_and_those_cut_off_made_anew(tmp_path: Path) -> None:
    run(tmp_path, "arms=k4", "problems=signal")
    file = tmp_path / "out" / "tiny" / "results.jsonl"
    (first,) = file.read_text().splitlines()
    cut_off = tiny(tmp_path).jobs[1]
    folder = tmp_path / "out" / "tiny" / "runs" / cut_off.name
    folder.mkdir(parents=True)  # of a run that has no line
    (folder / "left").touch()
    said = run(tmp_path, "problems=signal").stdout
    lines = file.read_text().splitlines()
    assert lines[0] == first and len(lines) == 2
    assert not (folder / "left").exists()
    assert json.loads(said.splitlines()[-1]) == {"tiny": {"runs": 2, "of": 2, "failed": []}}
    for line, k in zip(lines, (4, 8), strict=True):
        kept: dict[str, Any] = json.loads(line)
        assert (kept["target"], kept["stops_at"]) == (0.8, 5)
        assert kept["fingerprint"] == load_problem(Path(shipped()["signal"])).fingerprint
        assert kept["evaluations"] >= 8 and kept["by_k"].keys() == {str(k)}
        scores = [point["score"] for point in kept["curve"]]
        assert scores == sorted(scores) and scores[0] == kept["initial_score"]
        assert kept["best_score"] == scores[-1]
        log = read_log(tmp_path / "out" / "tiny" / kept["folder"])
        assert not replay(log, Direction.MAXIMISE).pending  # each evaluation has its verdict
    published = tmp_path / "results" / "tiny.jsonl"
    assert published.read_text() == file.read_text()
    found = json.loads(published.with_suffix(".json").read_text())
    assert found["problems"]["signal"]["arms"].keys() == {"k4", "k8"}
    to = [f"results={tmp_path / 'results'}", f"to={tmp_path / 'docs'}"]
    subprocess.run(
        [
            *(sys.executable, "-m", "bench.experiments.page", *to),
            f"table={tmp_path / 'table.yaml'}",
        ],
        check=True,
        cwd=ROOT,
    )
    written = (tmp_path / "docs" / "experiments.md").read_text()
    assert "### tiny on signal" in written
    assert (tmp_path / "docs" / "images" / "experiments" / "tiny-signal.svg").exists()
    runs = [f"runs={tmp_path / 'out' / 'tiny' / 'runs'}", f"results={tmp_path / 'results'}"]
    subprocess.run(
        [
            *(sys.executable, "-m", "bench.experiments.analyses", "name=tiny"),
            *(*runs, f"to={tmp_path / 'docs'}"),
        ],
        check=True,
        cwd=ROOT,
    )
    assert "2 runs" in (tmp_path / "docs" / "analyses" / "tiny.md").read_text()
    analysed = json.loads((tmp_path / "results" / "tiny.json").read_text())
    assert analysed["made_of"]["signal"]["fixed_k"] == 2
    assert analysed["made_of"]["signal"]["children"] >= 16
    assert not any(analysed["problems"]["signal"].values())  # too few calls to count for a K
    bad = run(tmp_path, "arms=nope", code=2)
    assert bad.stderr == "error: arms=nope is none of k4, k8\n"
