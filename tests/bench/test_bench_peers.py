from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from multiprocessing.connection import Client
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bench import bare, peer, peers, rates
from bench.evaluation import CONVOLUTION
from bench.judge import SOCKET, Judge, Judged, metrics, refusals
from bench.options import model_arguments
from bench.serving import Counters
from engine import config
from engine.core import Evaluation, Failure, Problem, Refusal, UserError
from engine.problem import load_problem, shipped

INITIAL = "x = 1\n"
FILES = ("metrics", "correct")  # that ShinkaEvolve reads
SCRAPED = """\
# TYPE vllm:prefix_cache_queries_total counter
vllm:prefix_cache_queries_total{engine="0",model_name="model"} 4164.0
# TYPE vllm:prefix_cache_queries_created gauge
vllm:prefix_cache_queries_created{engine="0",model_name="model"} 1.7952649077825198e+09
# TYPE vllm:prefix_cache_hits_total counter
vllm:prefix_cache_hits_total{engine="0",model_name="model"} 2016.0
# TYPE vllm:external_prefix_cache_hits_total counter
vllm:external_prefix_cache_hits_total{engine="0",model_name="model"} 7.0
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{engine="0",model_name="model"} 4170.0
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{engine="0",model_name="model"} 412.0
# TYPE vllm:request_success_total counter
vllm:request_success_total{engine="0",finished_reason="stop",model_name="model"} 1.0
vllm:request_success_total{engine="0",finished_reason="length",model_name="model"} 3.0
vllm:request_success_total{engine="0",finished_reason="abort",model_name="model"} 5.0
# TYPE vllm:e2e_request_latency_seconds histogram
vllm:e2e_request_latency_seconds_bucket{engine="0",le="+Inf",model_name="model"} 4.0
vllm:e2e_request_latency_seconds_count{engine="0",model_name="model"} 4.0
vllm:e2e_request_latency_seconds_sum{engine="0",model_name="model"} 51.5
# TYPE http_requests_total counter
http_requests_total{handler="/v1/chat/completions",method="POST",status="2xx"} 4.0
http_requests_total{handler="/v1/chat/completions",method="POST",status="4xx"} 2.0
http_requests_total{handler="/other",method="GET",status="4xx"} 9.0
"""
COUNTED = Counters(
    completions=4,
    abandoned=5,
    refused=2,
    prompt_tokens=4170,
    generated_tokens=412,
    queried_tokens=4164,
    cached_tokens=2016,
    seconds=51.5,
)


def _problem(name: str) -> Problem:
    return load_problem(Path(shipped()[name]))


def _valid(score: float, **others: float) -> Evaluation:
    return Evaluation(score=score, failure=None, metrics={"score": score, **others})


FAILED = Evaluation(score=None, failure=Failure.ERROR, message="ZeroDivisionError: no")


def _judged(*programs: str, evaluation: Evaluation = FAILED) -> list[Judged]:
    first = Judged(at=0.0, program=INITIAL, evaluation=_valid(0.5))
    return [first] + [
        Judged(at=10.0 * place, program=program, evaluation=evaluation)
        for place, program in enumerate(programs, start=1)
    ]


def test_metrics_are_the_problems_under_the_peers_name() -> None:
    given = metrics(_problem("signal"), _valid(0.7, lag=0.1), _valid(0.5))
    assert given == {"combined_score": 0.7, "lag": 0.1}


def test_a_smaller_score_of_a_minimised_problem_is_larger_for_the_peers() -> None:
    problem, first = _problem("first_autocorr"), _valid(1.5)
    scores = [
        metrics(problem, each, first)["combined_score"]
        for each in (FAILED, _valid(3.0), first, _valid(1.2))
    ]
    assert scores == [0.0, 0.5, 1.0, 1.25]


def test_a_failure_is_told_with_its_message() -> None:
    given = metrics(_problem("signal"), FAILED, _valid(0.5))
    assert given == {"combined_score": 0.0, "error": "ZeroDivisionError: no"}


def test_programs_are_refused_as_the_engine_refuses_them() -> None:
    programs = [
        "y = 2\n",  # new
        "Here is a program:",
        "# with a comment\ny = 2\n",
        "x = 1",  # the initial one
        "y = nothing_like_it\n",
        "y = 3\n",  # new
    ]
    assert refusals(_judged(*programs)) == {
        Refusal.UNPARSED: 1,
        Refusal.DUPLICATE: 2,
        Refusal.UNDEFINED: 1,
    }
    assert refusals(_judged()) == {}


def test_counters_are_vllms() -> None:
    assert Counters.read(SCRAPED) == COUNTED
    assert Counters.read("") == COUNTED.since(COUNTED)


def test_counters_are_subtracted_one_by_one() -> None:
    later = Counters.read(SCRAPED.replace("} 4164.0", "} 5164.0").replace("} 51.5", "} 60.0"))
    difference = later.since(COUNTED)
    assert (difference.queried_tokens, difference.seconds) == (1000.0, 8.5)
    assert difference.cached_tokens == 0


def test_a_peers_figures_are_those_worked_out_by_hand() -> None:
    judged = _judged("y = 2", "y = 2", "no program", "y = 4")
    judged[1] = Judged(at=10.0, program="y = 2", evaluation=_valid(0.4))
    judged[4] = Judged(at=40.0, program="y = 4", evaluation=_valid(0.6))
    later = Judged(at=40.1, program="y = 5", evaluation=_valid(0.9))  # after the time was up
    figures = rates.peer_figures([*judged, later], COUNTED, _problem("signal"), seconds=40.0)
    expected = {
        "candidates": 4,
        "new": 2,
        "valid": 2,
        "completions": 4,
        "candidates_per_hour": 360.0,
        "new_per_hour": 180.0,
        "judged_per_hour": 360.0,
        "valid_share": 0.5,
        "hit_rate": 0.4841,
        "wall_seconds": 40.0,
        "llm_seconds_per_candidate": 12.875,
        "refusals": {"duplicate": 1, "unparsed": 1},
        "abandoned_calls": 5,
        "refused_calls": 2,
        "completions_per_hour": 360.0,
        "steps": [(0.0, 0.5), (40.0, 0.6)],
        "best_at": [0.5, 0.5, 0.5, 0.6],
        "best_score": 0.6,
    }
    assert {name: figures[name] for name in expected} == expected


def test_the_best_score_of_a_minimised_problem_is_the_smallest() -> None:
    judged = _judged("y = 2", evaluation=_valid(0.4))
    for problem, best in (("first_autocorr", 0.4), ("signal", 0.5)):
        figures = rates.peer_figures(judged, COUNTED, _problem(problem), seconds=80.0)
        assert (figures["best_score"], figures["best_at"][0]) == (best, best)


def test_a_peer_without_a_candidate_has_its_first_score() -> None:
    figures = rates.peer_figures(_judged(), COUNTED, _problem("signal"), seconds=60.0)
    assert (figures["candidates"], figures["best_at"]) == (0, [0.5] * 4)


def test_an_engines_figures_are_its_summarys() -> None:
    summary = {
        "candidates": 6,
        "valid": 3,
        "children": 18,
        "wall_seconds": 12.0,
        "llm_seconds": 9.0,
        "hit_rate": 0.9,
        "refused": {"unparsed": 10, "budget": 2},
        "prompt_tokens": 100,
        "generated_tokens": 50,
    }
    steps = [(0.1, 0.5), (2.0, 0.6), (12.5, 0.7)]  # the last came when the time was up
    figures = rates.engine_figures(summary, steps=steps, seconds=12.0)
    assert figures["candidates_per_hour"] == figures["new_per_hour"] == 1800.0
    assert figures["judged_per_hour"] == 4800.0
    assert figures["completions"] == figures["judged"]  # the end of the run cut off the others
    assert figures["llm_seconds_per_candidate"] == 1.5
    assert figures["refusals"] == {"unparsed": 10, "budget": 2}
    assert figures["best_at"] == [0.5, 0.6, 0.6, 0.6]
    late = rates.engine_figures({**summary, "wall_seconds": 14.4}, steps=steps, seconds=12.0)
    assert late["candidates_per_hour"] == 1500.0  # of the time until the last one was there


def _round(
    openevolve: float, adaevolve: float, rewrite: float, *, tokens: int = 300
) -> dict[str, dict[str, object]]:
    sides = {"openevolve": openevolve, "adaevolve": adaevolve, "rewrite": rewrite}
    return {
        side: {
            **dict.fromkeys(rates.COMPARED, rate),
            **{"candidates": 24, "completions": 10, "generated_tokens": 10 * tokens},
            **{"best_at": [0.1, 0.2, 0.3, 0.4], "refusals": {"unparsed": 1}},
        }
        for side, rate in sides.items()
    }


def _summed_up(rounds: list[dict[str, dict[str, object]]], *, least: int = 24) -> dict[str, Any]:
    works = dict.fromkeys((*peer.PEERS, "rewrite"), "whole rewrites") | {"default": "infill"}
    return rates.summed_up(rounds, peers=peer.PEERS, works=works, least=least)


def test_ratios_are_to_the_better_peer_of_each_round() -> None:
    result = _summed_up([_round(100, 50, 800), _round(50, 80, 800), _round(40, 50, 600)])
    expected = {"median": 10.0, "low": 8.0, "high": 12.0}
    assert [each["figure"] for each in result["ratios"]] == [*rates.COMPARED]
    for each in result["ratios"]:
        assert {name: each[name] for name in expected} == expected
        assert "NOT" not in each["says"]
    assert result["sides"]["openevolve"]["new_per_hour"] == {"median": 50, "low": 40, "high": 100}
    assert result["sides"]["rewrite"]["refusals"] == {"unparsed": 3}


def test_there_is_no_ratio_to_nothing() -> None:
    result = _summed_up([_round(100, 50, 800), _round(0, 0, 800)])
    assert result["ratios"] == []
    alone = {"rewrite": _round(0, 0, 800)["rewrite"]}
    assert _summed_up([alone])["ratios"] == []


def test_a_ratio_says_in_the_same_breath_that_the_work_is_another() -> None:
    one = _round(100, 50, 0)
    infill = {"default": _round(0, 0, 16600, tokens=12)["rewrite"]}
    result = _summed_up([{**one, **infill}])
    of_default = [each for each in result["ratios"] if each["side"] == "default"]
    assert len(of_default) == len(rates.COMPARED)
    for each in of_default:
        assert "infill (12 tokens an answer)" in each["says"]
        assert "whole rewrites (300 tokens an answer)" in each["says"]
        assert each["says"].endswith("NOT the same work")
        assert f"166.0 times (166.0 to 166.0) the {each['says']}" in rates.table(result)


def test_searches_of_too_few_candidates_are_named() -> None:
    rounds = [_round(100, 50, 800), _round(100, 50, 800)]
    assert _summed_up(rounds)["short"] == {}
    rounds[1]["adaevolve"]["candidates"] = 7
    result = _summed_up(rounds)
    assert result["short"] == {"adaevolve": [24, 7]}
    assert "too few candidates of adaevolve: [24, 7]" in rates.table(result)


@pytest.mark.parametrize(
    "arguments",
    [
        ["peers=evox"],
        ["engine=openevolve"],
        ["peers=", "engine="],
        ["problem=none"],
        ["threads=2"],
        ["rounds=0"],
        ["rounds=0.5"],
        ["seed=x"],
        ["candidates=few"],
        ["seconds=long"],
    ],
)
def test_bad_options_are_refused_before_anything_runs(arguments: list[str], tmp_path: Path) -> None:
    with pytest.raises(UserError, match=arguments[-1].partition("=")[0]):
        peers.main([*arguments, f"out={tmp_path / 'out'}"])
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("line", ['{"case": 1', "7", '{"case": {}}'])
def test_a_damaged_file_of_finished_searches_is_named(line: str, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    out.write_text('{"case": {}, "figures": {}}\n' + line)
    with pytest.raises(UserError, match=f"out={out}: line 2 is no finished search"):
        peers.main([f"out={out}"])


def test_rewrites_alone_have_no_fills_and_the_default_says_that_it_has_them() -> None:
    model = model_arguments({"model": "smollm2"})
    makers = {
        side: config.resolve([*model, *arguments]).fill.makers
        for side, arguments in peers.ENGINE.items()
    }
    assert not makers["rewrite"] and makers["default"]
    options = {"model": "smollm2", "settings": ""}
    assert peers._works(options)["default"] == "default, infill, with fills in its scores alone"
    assert peers._works({**options, "settings": "fill=none"})["default"] == "default, infill"


@pytest.mark.parametrize(
    ("side", "given", "settings"),
    [
        ("adaevolve", "", ""),
        ("adaevolve", "islands.count=2", "islands.count=2"),
        ("rewrite", "islands.count=2", " ".join([*peers.ENGINE["rewrite"], "islands.count=2"])),
    ],
)
def test_finished_searches_are_not_run_again(
    side: str, given: str, settings: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = {
        "side": side,
        "seed": 3,
        "problem": "signal",
        "seconds": 60.0,
        "model": "smollm2",
        "max_model_len": 8192,
        "threads": "auto",
        "workers": 1,
        "settings": settings,
    }
    figures = _round(0, 7, 0)["adaevolve"]
    out = tmp_path / "out"
    out.write_text(json.dumps({"case": case, "figures": figures}) + "\n")
    asked = {"peers": "", "engine": "", "engine" if side in peers.ENGINE else "peers": side}
    arguments = ["rounds=1", "seed=3", "seconds=60", f"settings={given}", f"out={out}"]
    peers.main([*arguments, *(f"{key}={value}" for key, value in asked.items())])
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert result["sides"][side]["new_per_hour"]["median"] == 7
    assert result["short"] == {}
    assert len(out.read_text().splitlines()) == 1


def test_the_locks_agree_where_both_need_a_package() -> None:
    locks = []
    for each in peer.PEERS.values():
        text = (peer.ROOT / "requirements" / f"{each.package}.txt").read_text()
        lines = [line for line in text.splitlines() if not line.startswith("#")]
        assert all(re.match(r"[a-z0-9-]+==[0-9][^ ]*( ; .+)?$", line) for line in lines)
        locks.append(dict(line.split(" ; ")[0].split("==") for line in lines))
        assert each.package in locks[-1]
        assert (peer.ROOT / "bench" / each.side).is_file()
    first, second, third = locks
    assert {name: first[name] for name in first.keys() & second.keys()} == {
        name: second[name] for name in first.keys() & second.keys()
    }
    # A part of ShinkaEvolve's wants older clients of OpenAI's, and one package two versions of it.
    assert all(first[name] == third[name] for name in ("numpy", "scipy"))


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Judge, ModuleType, Path]]:
    """A judge of ``signal``, its evaluation file as a module, and their folder."""
    folder = tmp_path_factory.mktemp("judge")
    spec = importlib.util.spec_from_file_location("judged", peer.lay_out_judged(folder))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with Judge(problem=_problem("signal"), folder=folder) as judge:
        yield judge, module, folder


def _evaluate(
    module: ModuleType, folder: Path, program: str, *, name: str = "program"
) -> dict[str, object]:
    path = folder / f"{name}.py"
    path.write_text(program)
    result: dict[str, object] = module.evaluate(str(path))
    return result


def test_an_evaluation_file_gives_the_problems_score(
    judge: tuple[Judge, ModuleType, Path],
) -> None:
    _, module, folder = judge
    problem = _problem("signal")
    expected = bare.evaluate(problem, CONVOLUTION)
    assert _evaluate(module, folder, CONVOLUTION)["combined_score"] == expected


@pytest.mark.parametrize("program", ["", "def run_signal_processing(", "Here it is: ü"])
def test_whatever_a_model_writes_gets_an_answer(
    judge: tuple[Judge, ModuleType, Path], program: str
) -> None:
    _, module, folder = judge
    given = _evaluate(module, folder, program)
    assert given["combined_score"] == 0.0
    assert given["error"]


def test_verdicts_are_kept_in_order_with_their_times(
    judge: tuple[Judge, ModuleType, Path],
) -> None:
    judge_, module, folder = judge
    before = len(judge_.judged())
    assert not judge_.wait(before + 2, seconds=0.01)
    threads = [
        threading.Thread(
            target=_evaluate, args=(module, folder, CONVOLUTION), kwargs={"name": name}
        )
        for name in ("one", "other")
    ]
    for thread in threads:
        thread.start()
    assert judge_.wait(before + 2, seconds=60)
    for thread in threads:
        thread.join()
    kept = judge_.judged()
    assert [each.program for each in kept[before:]] == [CONVOLUTION] * 2
    assert [each.at for each in kept] == sorted(each.at for each in kept)


def test_a_search_that_hangs_up_or_sends_no_text_harms_nothing(
    judge: tuple[Judge, ModuleType, Path],
) -> None:
    judge_, module, folder = judge
    before = len(judge_.judged())
    with Client(str(folder / SOCKET), family="AF_UNIX"):
        pass  # ended before it asked
    with Client(str(folder / SOCKET), family="AF_UNIX") as client:
        client.send_bytes(b"\xff\xfe")
    with Client(str(folder / SOCKET), family="AF_UNIX") as client:
        client.send_bytes(CONVOLUTION.encode())  # ended before the answer
    assert float(str(_evaluate(module, folder, CONVOLUTION)["combined_score"])) > 0
    assert len(judge_.judged()) == before + 2


def test_shinkaevolve_gets_a_verdict_in_files(judge: tuple[Judge, ModuleType, Path]) -> None:
    _, module, folder = judge
    program = folder / "main.py"
    verdicts = {}
    for name, text in (("good", CONVOLUTION), ("bad", "def run_signal_processing(")):
        program.write_text(text)
        command = [sys.executable, str(module.__file__), "--program_path", str(program)]
        subprocess.run([*command, "--results_dir", str(folder / name)], check=True)
        found = [json.loads((folder / name / f"{each}.json").read_text()) for each in FILES]
        verdicts[name] = found
    (good, correct), (bad, wrong) = verdicts["good"], verdicts["bad"]
    assert good["combined_score"] == bare.evaluate(_problem("signal"), CONVOLUTION)
    assert correct == {"correct": True, "error": None}
    assert bad["combined_score"] == 0.0
    assert wrong["correct"] is False and wrong["error"]
