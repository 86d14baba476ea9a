"""The ``eplb`` problem: its initial program, its formula, broken plans and data of the user's."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from engine.core import (
    SECONDS,
    Array,
    Case,
    Direction,
    Outputs,
    Problem,
    Rejected,
    Stage,
    UserError,
)
from engine.problem import load_problem, shipped

Plan = dict[str, Array]
Planner = Callable[..., Sequence[Array]]


@pytest.fixture(scope="module")
def problem() -> Problem:
    return load_problem(shipped()["eplb"])


@pytest.fixture(scope="module")
def plans(problem: Problem) -> list[Plan]:
    """The initial program's plans for all windows."""
    names: dict[str, Planner] = {}
    exec(problem.initial_program, names)
    return [plan(names[problem.entry_point], case) for case in problem.cases]


def plan(planner: Planner, case: Case) -> Plan:
    args = [np.array(a) if isinstance(a, np.ndarray) else a for a in case.args]
    arrays = planner(*args, **case.kwargs)
    return {name: np.asarray(array) for name, array in zip(case.outputs, arrays, strict=True)}


def timed(plans: Sequence[Plan], seconds: float = 0.02) -> list[Outputs]:
    return [plan | {SECONDS: np.array(seconds)} for plan in plans]


def plan_of(row: Array, weight: Array) -> tuple[Array, Array, Array]:
    """The plan with the experts of ``row`` in the slots of each layer."""
    layers, experts = weight.shape
    counts = np.bincount(row, minlength=experts)
    lists = np.full((experts, counts.max()), -1)
    for expert in range(experts):
        lists[expert, : counts[expert]] = np.flatnonzero(row == expert)
    return tuple(np.tile(a, (layers, *[1] * a.ndim)) for a in (row, lists, counts))


def cyclic(weight: Array, *_: int) -> tuple[Array, Array, Array]:
    """A plan that looks at no load: expert s mod E in slot s."""
    return plan_of(np.arange(288) % weight.shape[1], weight)


def first_often(weight: Array, *_: int) -> tuple[Array, Array, Array]:
    """A plan with one slot for each expert, and all further ones for the first."""
    return plan_of(np.concatenate([np.arange(256), np.zeros(32, int)]), weight)


def one_on_each_gpu(weight: Array, *_: int) -> tuple[Array, Array, Array]:
    """A plan that gives each GPU eight experts and the first one."""
    row = np.column_stack([np.arange(256).reshape(32, 8), np.zeros(32, int)]).ravel()
    return plan_of(row, weight)


def test_the_initial_program(problem: Problem, plans: list[Plan]) -> None:
    metrics = problem.score(timed(plans))
    assert metrics["balancedness"] == pytest.approx(0.770, abs=5e-3)
    assert metrics["slot_balancedness"] == pytest.approx(0.2186, abs=5e-4)
    assert metrics["speed"] == pytest.approx(0.1)
    assert metrics["score"] == pytest.approx((metrics["balancedness"] + 0.1) / 2)


def test_a_plan_that_looks_at_no_load_is_refused_however_fast(problem: Problem) -> None:
    blind = timed([plan(cyclic, case) for case in problem.cases], seconds=1e-9)
    message = r"^window 0: the plan's balancedness is 0\.236404; it has to be at least 0\.312764"
    with pytest.raises(Rejected, match=message):
        problem.score(blind)


@pytest.mark.parametrize("offset", range(0, 256, 15))
def test_other_plans_that_look_at_no_load_are_refused_too(problem: Problem, offset: int) -> None:
    row = np.concatenate([np.arange(256), (np.arange(32) + offset) % 256])
    given = [plan(lambda weight, *_: plan_of(row, weight), case) for case in problem.cases]
    with pytest.raises(Rejected, match="is that of a plan that looks at no load"):
        problem.score(timed(given))


def test_each_window_has_to_be_balanced(problem: Problem, plans: list[Plan]) -> None:
    given = [*plans[:3], plan(cyclic, problem.cases[3]), plans[4]]
    with pytest.raises(Rejected, match=r"^window 3: the plan's balancedness is 0\.239282"):
        problem.score(timed(given))


def test_the_screen_refuses_a_load_blind_plan_as_well(problem: Problem) -> None:
    screen = problem.stages[0]
    with pytest.raises(Rejected, match="is that of a plan that looks at no load"):
        screen.score(timed([plan(cyclic, screen.cases[0])]))


def test_slots_of_one_load_balance_fully(tmp_path: Path) -> None:
    loads = np.full((101, 2, 256), 7)
    loads[:, :, 0] *= 33
    problem = load_problem(shipped()["eplb"], data=write_history(tmp_path, loads))
    metrics = problem.score(timed([plan(first_often, case) for case in problem.cases]))
    assert metrics["balancedness"] == metrics["slot_balancedness"] == 1


def test_the_plan_is_scored_with_the_next_window(tmp_path: Path) -> None:
    # Layer 0: in the second window all load is on expert 0, which has 33 slots, two of them on
    # GPU 0 and one on each other: the mean load of a GPU is 1/32, the largest 2/33. Layer 1 has
    # none.
    loads = np.ones((101, 2, 256))
    loads[100] = 0
    loads[100, 0, 0] = 1
    problem = load_problem(shipped()["eplb"], data=write_history(tmp_path, loads))
    (case,) = problem.cases
    assert (case.args[0] == 100).all()
    metrics = problem.score(timed([plan(one_on_each_gpu, case)]))
    assert metrics["balancedness"] == pytest.approx(33 / 64)
    assert metrics["slot_balancedness"] == pytest.approx(33 / 288)


def test_where_the_slots_of_an_expert_are_counts(tmp_path: Path) -> None:
    # 33 copies of expert 0 carry half of the load: together on five GPUs, or spread over all.
    loads = np.ones((101, 1, 256))
    loads[:, :, 0] = 200
    problem = load_problem(shipped()["eplb"], data=write_history(tmp_path, loads))
    spread, heaped = (
        problem.score(timed([plan(planner, case) for case in problem.cases]))
        for planner in (one_on_each_gpu, first_often)
    )
    assert spread["slot_balancedness"] == pytest.approx(heaped["slot_balancedness"])
    assert spread["balancedness"] > 2 * heaped["balancedness"]


def test_the_speed_term_is_of_the_mean_time(problem: Problem, plans: list[Plan]) -> None:
    outputs = timed(plans)
    outputs[0] = {**outputs[0], SECONDS: np.array(0.12)}
    metrics = problem.score(outputs)
    assert metrics["seconds"] == pytest.approx(0.04)
    assert metrics["speed"] == pytest.approx(0.05)


def test_the_declaration(problem: Problem) -> None:
    assert problem.direction is Direction.MAXIMISE
    assert problem.isolate_cases  # no call may see a later window
    assert problem.entry_point == "rebalance_experts"
    assert len(problem.cases) == 5
    for case in problem.cases:
        assert case.args[0].shape == (58, 256)
        assert case.args[1:] == (288, 8, 4, 32)
        shapes = {name: spec.shape for name, spec in case.outputs.items()}
        assert shapes == {
            "phy2log": (58, 288),
            "log2phy": (58, 256, range(1, 34)),
            "logcnt": (58, 256),
        }
        assert {spec.dtype for spec in case.outputs.values()} == {"int64"}
    scores = [known.score for known in problem.known_scores]
    assert scores == [0.1265, 0.1272, 0.1450, 0.25, 0.267, 0.269, 0.2725]
    assert not any(known.comparable for known in problem.known_scores)


def test_the_screen_is_one_window_of_few_layers(problem: Problem, plans: list[Plan]) -> None:
    screen, full = problem.stages
    assert isinstance(screen, Stage)
    (case,) = screen.cases
    assert (case.args[0] == full.cases[0].args[0][:8]).all()
    few = {name: array[:8] for name, array in plans[0].items()}
    metrics = screen.score(timed([few]))
    assert set(metrics) == set(full.score(timed(plans)))
    assert metrics["slot_balancedness"] == pytest.approx(0.24, abs=0.01)
    assert metrics["score"] == pytest.approx((metrics["balancedness"] + 0.1) / 2)


@pytest.mark.parametrize(
    ("name", "index", "value", "message"),
    [
        ("phy2log", (3, 17), 256, r"phy2log\[3, 17\] is 256; experts are 0 to 255"),
        ("phy2log", (3, 17), -1, r"phy2log\[3, 17\] is -1"),
        ("phy2log", (3, 210), 250, "expert 210 of layer 3 has no slot in phy2log"),
        ("phy2log", (3, 0), 40, r"logcnt\[3, 0\] is 2, but phy2log gives that expert 1 slots"),
        ("logcnt", (3, 200), 2, r"logcnt\[3, 200\] is 2, but phy2log gives that expert 1 slots"),
        ("logcnt", (3, 200), 0, r"logcnt\[3, 200\] is 0"),
        ("log2phy", (3, 0, 1), 255, r"log2phy\[3, 0, 1\] is 255, and phy2log\[3\] has that expert"),
        ("log2phy", (3, 0, 1), 0, r"log2phy\[3, 0, 1\] is 0, a slot that it lists already"),
        ("log2phy", (3, 200, 1), 0, r"log2phy\[3, 200, 1\] is 0; after the expert's 1 slots"),
        ("log2phy", (3, 200, 0), -(2**63), r"log2phy\[3, 200, 0\] is -9223372036854775808"),
    ],
)
def test_arrays_that_disagree_are_refused(
    problem: Problem, plans: list[Plan], name: str, index: tuple[int, ...], value: int, message: str
) -> None:
    broken = [*plans[:2], plan(cyclic, problem.cases[2]), *plans[3:]]
    broken[2][name][index] = value
    with pytest.raises(Rejected, match=f"^window 2: {message}"):
        problem.score(timed(broken))


def test_a_list_without_room_is_refused(problem: Problem) -> None:
    broken = [plan(cyclic, case) for case in problem.cases]
    broken[0]["log2phy"] = broken[0]["log2phy"][:, :, :1]
    with pytest.raises(Rejected, match="expert 0 of layer 0 has 2 slots, and log2phy has room for"):
        problem.score(timed(broken))


def test_claiming_more_copies_than_slots_is_refused(problem: Problem) -> None:
    # The public evaluator reads log2phy and logcnt only; there, every expert could be everywhere.
    layers, experts = problem.cases[0].args[0].shape
    everywhere = {
        "phy2log": plan(cyclic, problem.cases[0])["phy2log"],
        "log2phy": np.tile(np.arange(288), (layers, experts, 1)),
        "logcnt": np.full((layers, experts), 288),
    }
    with pytest.raises(Rejected, match=r"logcnt\[0, 0\] is 288, but phy2log gives that expert 2"):
        problem.score(timed([everywhere] * len(problem.cases)))


def test_dropping_an_expert_is_refused(problem: Problem) -> None:
    # The public evaluator skips an expert without slots, so that its load was gone.
    dropped = [plan(cyclic, case) for case in problem.cases]
    for given in dropped:
        given["log2phy"] = np.pad(given["log2phy"], [(0, 0), (0, 0), (0, 1)], constant_values=-1)
        given["phy2log"][:, 200] = 0  # the slot of expert 200 goes to expert 0
        given["log2phy"][:, 0, 2], given["log2phy"][:, 200] = 200, -1
        given["logcnt"][:, 0], given["logcnt"][:, 200] = 3, 0
    with pytest.raises(Rejected, match="expert 200 of layer 0 has no slot"):
        problem.score(timed(dropped))


def write_history(folder: Path, loads: Array) -> Path:
    """Write loads of shape (entries, L, E) as a history."""
    path = folder / "expert-load.json"
    entries = [{"logical_expert_load": load} for load in loads.tolist()]
    path.write_text(json.dumps({"load_history": entries}))
    return path


def test_data_of_the_users_is_read(tmp_path: Path) -> None:
    loads = np.random.default_rng(0).integers(0, 1000, (250, 2, 144)) // np.arange(1, 145)
    path = write_history(tmp_path, loads)
    problem = load_problem(shipped()["eplb"], data=path)
    assert len(problem.cases) == 2
    assert (problem.cases[1].args[0] == loads[100:200].sum(axis=0)).all()
    assert problem.cases[0].outputs["log2phy"].shape == (2, 144, range(1, 146))
    assert problem.stages[0].cases[0].args[0].shape == (2, 144)
    names: dict[str, Planner] = {}
    exec(problem.initial_program, names)
    own = problem.score(timed([plan(names["rebalance_experts"], case) for case in problem.cases]))
    assert own["balancedness"] > 0.5


def test_data_that_leave_nothing_to_choose_are_the_users_error(tmp_path: Path) -> None:
    path = write_history(tmp_path, np.full((101, 2, 288), 7))
    with pytest.raises(UserError, match="288 experts in a layer, and there are 288 slots"):
        load_problem(shipped()["eplb"], data=path)


def test_data_that_can_not_be_read_are_the_users_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"missing\.json"):
        load_problem(shipped()["eplb"], data=tmp_path / "missing.json")
