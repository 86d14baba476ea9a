"""Who gets which core, on machines that are described in a folder like /sys."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from engine.evaluation.cores import evaluator_cores, model_cores

Available = Callable[[Sequence[int]], None]


@pytest.fixture
def available(monkeypatch: pytest.MonkeyPatch) -> Available:
    """Return a function that sets the cores that this process may use."""

    def may_use(cores: Sequence[int]) -> None:
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(cores))

    return may_use


def machine(folder: Path, cores: dict[int, tuple[int, str]]) -> Path:
    """Write a tree like /sys/devices/system: for each core, its node and its physical core."""
    for core, (node, siblings) in cores.items():
        topology = folder / f"cpu/cpu{core}/topology"
        topology.mkdir(parents=True)
        (topology / "thread_siblings_list").write_text(f"{siblings}\n")
        (topology.parent / f"node{node}").mkdir()
    return folder


def test_evaluators_get_the_last_cores(tmp_path: Path, available: Available) -> None:
    available(range(8))
    assert evaluator_cores(3, system=tmp_path) == [7, 6, 5]


def test_too_few_cores_are_used_again(tmp_path: Path, available: Available) -> None:
    available([2, 5])
    assert evaluator_cores(5, system=tmp_path) == [5, 2, 5, 2, 5]


def test_only_cores_that_it_may_use_are_given(tmp_path: Path, available: Available) -> None:
    available([1, 3])
    system = machine(tmp_path, {core: (0, str(core)) for core in range(4)})
    assert evaluator_cores(2, system=system) == [3, 1]


def test_second_threads_of_a_core_come_last(tmp_path: Path, available: Available) -> None:
    available(range(4))
    system = machine(tmp_path, {0: (0, "0,2"), 1: (0, "1,3"), 2: (0, "0,2"), 3: (0, "1,3")})
    assert evaluator_cores(4, system=system) == [3, 2, 1, 0]
    available(range(6))
    siblings = {core: (0, f"{core - core % 2}-{core - core % 2 + 1}") for core in range(6)}
    system = machine(tmp_path / "pairs", siblings)
    assert evaluator_cores(6, system=system) == [5, 3, 1, 4, 2, 0]


def test_nodes_take_turns(tmp_path: Path, available: Available) -> None:
    available(range(8))
    system = machine(tmp_path, {core: (core // 4, str(core)) for core in range(8)})
    assert evaluator_cores(4, system=system) == [7, 3, 6, 2]


def test_nodes_of_unequal_size(tmp_path: Path, available: Available) -> None:
    available(range(4))
    system = machine(tmp_path, {0: (0, "0"), 1: (1, "1"), 2: (1, "2"), 3: (1, "3")})
    assert evaluator_cores(4, system=system) == [3, 0, 2, 1]


def test_this_machine_has_a_core_for_an_evaluator() -> None:
    assert set(evaluator_cores(3)) <= os.sched_getaffinity(0)


@pytest.mark.parametrize(
    ("cores", "taken", "left"),
    [
        (8, [7, 6], [0, 1, 2, 3, 4, 5]),
        (2, [1], [0]),
        (2, [1, 0], [0, 1]),  # none is left
        (1, [0], [0]),
    ],
)
def test_the_model_gets_the_rest(
    available: Available, cores: int, taken: list[int], left: list[int]
) -> None:
    available(range(cores))
    assert model_cores(taken) == left


def test_beside_a_gpu_the_model_keeps_to_its_node(tmp_path: Path, available: Available) -> None:
    available(range(8))
    system = machine(tmp_path, {core: (core % 2, str(core)) for core in range(8)})
    taken = evaluator_cores(3, gpu_node=1, system=system)
    assert taken == [6, 4, 2]
    assert model_cores(taken, gpu_node=1, system=system) == [1, 3, 5, 7]
    taken = evaluator_cores(5, gpu_node=0, system=system)
    assert taken == [7, 5, 3, 1, 6]
    assert model_cores(taken, gpu_node=0, system=system) == [0, 2, 4]


def test_a_gpu_whose_node_has_no_core_left_changes_nothing(
    tmp_path: Path, available: Available
) -> None:
    available(range(4))
    system = machine(tmp_path, {core: (0, str(core)) for core in range(4)})
    taken = evaluator_cores(2, gpu_node=1, system=system)
    assert taken == evaluator_cores(2, system=system)
    assert model_cores(taken, gpu_node=1, system=system) == model_cores(taken, system=system)
