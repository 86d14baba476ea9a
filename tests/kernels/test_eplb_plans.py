"""The checks and measures of expert plans: hand-worked plans, every fault, and the reference."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from kernels import eplb, eplb_reference
from kernels.eplb import Loads, Plan


def plan_of(phy2log: list[list[int]], experts: int, width: int) -> tuple[Plan, Plan, Plan]:
    """Return the whole plan that gives the slots to these experts."""
    slots = np.array(phy2log, dtype=np.int64)
    lists = np.full((len(slots), experts, width), -1, dtype=np.int64)
    counts = np.zeros((len(slots), experts), dtype=np.int64)
    for layer, row in enumerate(phy2log):
        for slot, expert in enumerate(row):
            lists[layer, expert, counts[layer, expert]] = slot
            counts[layer, expert] += 1
    return slots, lists, counts


def small() -> tuple[Plan, Plan, Plan]:
    """Return a plan of two layers, three experts, five slots, and room for four in a list."""
    return plan_of([[0, 1, 1, 2, 1], [2, 0, 2, 1, 0]], experts=3, width=4)


def test_a_whole_plan_has_no_fault() -> None:
    assert eplb.find_fault(*small()).kind == eplb.NO_FAULT
    slots, lists, counts = small()
    assert lists[0].tolist() == [[0, -1, -1, -1], [1, 2, 4, -1], [3, -1, -1, -1]]
    lists[0, 1] = [4, 1, 2, -1]  # in any order
    assert eplb.find_fault(slots, lists, counts).kind == eplb.NO_FAULT


@pytest.mark.parametrize(
    ("array", "index", "value", "fault"),
    [
        (0, (1, 3), 3, (eplb.BAD_EXPERT, 1, 0, 3, 3)),
        (0, (1, 3), -1, (eplb.BAD_EXPERT, 1, 0, 3, -1)),
        (0, (1, 3), 2**62, (eplb.BAD_EXPERT, 1, 0, 3, 2**62)),
        (0, (1, 3), 0, (eplb.BAD_COUNT, 1, 0, 0, 3)),  # found before expert 1, now without slot
        (0, (0, 3), 1, (eplb.BAD_COUNT, 0, 1, 0, 4)),
        (2, (0, 1), 2, (eplb.BAD_COUNT, 0, 1, 0, 3)),
        (2, (0, 1), -3, (eplb.BAD_COUNT, 0, 1, 0, 3)),
        (1, (0, 1, 0), 3, (eplb.BAD_SLOT, 0, 1, 0, 3)),  # a slot of another expert
        (1, (0, 1, 2), -1, (eplb.BAD_SLOT, 0, 1, 2, -1)),
        (1, (0, 1, 2), 5, (eplb.BAD_SLOT, 0, 1, 2, 5)),
        (1, (0, 1, 2), -5, (eplb.BAD_SLOT, 0, 1, 2, -5)),  # would be slot 0 from the end
        (1, (0, 1, 2), 1, (eplb.TWICE, 0, 1, 2, 1)),
        (1, (1, 2, 3), 0, (eplb.NOT_EMPTY, 1, 2, 3, 0)),
        (1, (1, 2, 3), -2, (eplb.NOT_EMPTY, 1, 2, 3, -2)),
    ],
)
def test_every_fault_is_found(
    array: int, index: tuple[int, ...], value: int, fault: tuple[int, ...]
) -> None:
    plan = small()
    plan[array][index] = value
    assert eplb.find_fault(*plan) == fault
    assert not eplb_reference.is_whole(*plan)


def test_an_expert_without_slot_is_found() -> None:
    plan = plan_of([[0, 2, 2]], experts=3, width=2)
    assert eplb.find_fault(*plan) == (eplb.NO_SLOT, 0, 1, 0, 0)
    assert not eplb_reference.is_whole(*plan)


def test_a_list_without_room_is_found() -> None:
    slots, lists, counts = small()
    narrow = np.ascontiguousarray(lists[:, :, :2])
    assert eplb.find_fault(slots, narrow, counts) == (eplb.NO_ROOM, 0, 1, 0, 3)
    assert not eplb_reference.is_whole(slots, narrow, counts)


@pytest.mark.parametrize("fault", [0, 1, 2])
def test_shapes_that_do_not_fit_are_refused(fault: int) -> None:
    plan = list(small())
    plan[fault] = np.ascontiguousarray(plan[fault][:1])
    with pytest.raises(ValueError, match="of one L and E"):
        eplb.find_fault(*plan)


small_plans = st.tuples(st.integers(1, 2), st.integers(1, 3), st.integers(1, 4), st.integers(1, 3))


@given(small_plans, st.data())
def test_faults_agree_with_the_reference(
    sizes: tuple[int, int, int, int], data: st.DataObject
) -> None:
    layers, experts, slots, width = sizes
    row = st.lists(st.integers(0, experts - 1), min_size=slots, max_size=slots)
    phy2log = data.draw(st.lists(row, min_size=layers, max_size=layers))
    plan = plan_of(phy2log, experts, width=slots)
    plan = (plan[0], np.ascontiguousarray(plan[1][:, :, :width]), plan[2])
    for _ in range(data.draw(st.integers(0, 2))):  # break it at random places, or not
        array = plan[data.draw(st.integers(0, 2))]
        array.flat[data.draw(st.integers(0, array.size - 1))] = data.draw(st.integers(-2, slots))
    whole = eplb.find_fault(*plan).kind == eplb.NO_FAULT
    assert whole == eplb_reference.is_whole(*plan)


def test_slot_loads_by_hand() -> None:
    slots, _, counts = small()
    loads = np.array([[1.0, 6.0, 3.0], [4.0, 0.0, 5.0]])
    expected = [[1, 2, 2, 3, 2], [2.5, 2, 2.5, 0, 2]]
    assert eplb.slot_loads(slots, counts, loads).tolist() == expected
    assert eplb_reference.slot_loads(slots, counts, loads).tolist() == expected


def test_the_load_blind_plan_by_hand() -> None:
    phy2log, logcnt = eplb.load_blind_plan(layers=2, experts=3, slots=7)
    assert phy2log.tolist() == [[0, 1, 2, 0, 1, 2, 0]] * 2
    assert logcnt.tolist() == [[3, 2, 2]] * 2
    assert phy2log.dtype == logcnt.dtype == np.int64


@pytest.mark.parametrize(
    ("loads", "expected"),
    [
        ([[1, 1, 1]], 1),
        ([[1, 2, 2, 3, 2], [2.5, 2, 2.5, 0, 2]], 3.8 / 5.5),  # means 2 and 1.8, largest 3 and 2.5
        ([[0, 0, 6], [0, 0, 0]], 1 / 3),
        ([[0, 0]], 0),  # nothing to balance: 0, as in the public evaluator
        ([[5]], 1),
    ],
)
def test_balancedness_by_hand(loads: list[list[float]], expected: float) -> None:
    array = np.array(loads, dtype=np.float64)
    assert eplb.balancedness(array) == pytest.approx(expected, rel=1e-15)
    assert eplb_reference.balancedness(array) == pytest.approx(expected, rel=1e-15)


tables = st.tuples(st.integers(1, 4), st.integers(1, 40)).flatmap(
    lambda shape: st.lists(
        st.sampled_from([0.0, 1.0, 3e5]) | st.floats(0, 1e9),
        min_size=shape[0] * shape[1],
        max_size=shape[0] * shape[1],
    ).map(lambda values: np.array(values, dtype=np.float64).reshape(shape))
)


@given(tables)
def test_balancedness_agrees_with_the_reference(loads: Loads) -> None:
    layers, places = loads.shape
    got = eplb.balancedness(loads)
    assert 0 <= got <= 1
    tolerance = 4 * (places + 2 * layers + 4) * 2.0**-53
    assert_allclose(got, eplb_reference.balancedness(loads), rtol=tolerance, atol=5e-324)


def test_the_real_size_agrees_with_the_reference() -> None:
    rng = np.random.default_rng(0)
    phy2log = np.array([rng.permutation(np.arange(288) % 256) for _ in range(58)])
    slots, lists, counts = plan_of(phy2log.tolist(), experts=256, width=2)
    assert eplb.find_fault(slots, lists, counts).kind == eplb.NO_FAULT
    assert eplb_reference.is_whole(slots, lists, counts)
    loads = rng.poisson(1000, (58, 256)).astype(np.float64)
    got = eplb.slot_loads(slots, counts, loads)
    assert_array_equal(got, eplb_reference.slot_loads(slots, counts, loads))
    assert_allclose(eplb.balancedness(got), eplb_reference.balancedness(got), rtol=5e-14)
