"""Hashed n-grams: a hand-worked vector, what counts and what does not, hostile programs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine.embedding import embed
from kernels.cosine import cosines

PROGRAM = '''\
import numpy as np


def smooth(x, width=5):
    """Return a moving average."""
    kernel = np.ones(width) / width
    return np.convolve(x, kernel, mode="same")
'''


def cosine(one: str, other: str) -> float:
    vectors = embed([one, other])
    return float(cosines(vectors[:1], vectors[1:])[0, 0])


def test_hand_worked() -> None:
    """``a = 1`` and ``b = 1`` differ in one feature of eight, and every feature occurs once.

    Runs of types: Assign, Name, Constant; Assign Name, Name Constant; Assign Name Constant.
    Values: Name='a' and Constant=1. Each has the weight ln 2, so the cosine is 7 / 8.
    """
    # So many places that no two features meet.
    one, other = embed(["a = 1", "b = 1"], dimensions=1 << 20)
    assert np.count_nonzero(one) == 8
    assert np.unique(np.abs(one[one != 0])).tolist() == [np.float32(1 / math.sqrt(8))]
    assert float(one @ other) == pytest.approx(7 / 8, abs=1e-6)


def test_a_feature_that_occurs_c_times_weighs_ln_1_c() -> None:
    (vector,) = embed(["a\na"], dimensions=1 << 20)  # Expr Name Expr Name
    # Twice: Expr, Name, Expr Name, and the value a. Once: Name Expr, and both runs of three.
    twice, once = math.log(3), math.log(2)
    length = math.sqrt(4 * twice**2 + 3 * once**2)
    assert sorted(np.abs(vector[vector != 0]).tolist()) == pytest.approx(
        [once / length] * 3 + [twice / length] * 4, rel=1e-6
    )


@pytest.mark.parametrize(
    "same",
    [
        PROGRAM.replace("\n    kernel", "\n\n    # a comment\n    kernel"),
        PROGRAM.replace('    """Return a moving average."""\n', ""),
        PROGRAM.replace("(x, width=5)", "(x: np.ndarray, width: int = 5) -> np.ndarray"),
        PROGRAM.replace("    kernel =", "    kernel: np.ndarray ="),
        PROGRAM.replace("    kernel =", "    kernel: np.ndarray\n    kernel ="),
        PROGRAM.replace("import numpy as np\n", "import numpy as np\nlimit: int\n"),
        PROGRAM.replace("np.ones(width) / width", "(np.ones( width )/(width))"),
    ],
)
def test_layout_comments_docstrings_and_annotations_do_not_count(same: str) -> None:
    assert same != PROGRAM
    assert cosine(PROGRAM, same) == 1.0


def test_in_a_class_it_counts_whether_a_name_is_annotated_and_not_how() -> None:
    """A dataclass has the fields that are annotated."""
    made, typed = "class A:\n    b = 1\n", "class A:\n    b: int = 1\n"
    assert cosine(typed, typed.replace("int", "float")) == 1.0
    assert cosine(made, typed) < 1
    assert cosine("class A:\n    pass\n", "class A:\n    pass\n    b: int\n") < 1
    method = "class A:\n    def f(self):\n        x = 1\n"
    assert cosine(method, method.replace("x =", "x: int =")) == 1.0


def test_the_more_differs_the_less_alike() -> None:
    constant = PROGRAM.replace("width=5", "width=7")
    call = PROGRAM.replace("np.convolve(x, kernel, mode", "np.correlate(x, kernel[::-1], mode")
    other = "def smooth(x):\n    for i in range(3):\n        x = sorted(x)\n    return x\n"
    alike = [cosine(PROGRAM, each) for each in (constant, call, other)]
    assert 1 > alike[0] > alike[1] > alike[2]
    assert alike[0] > 0.97
    assert alike[2] < 0.6


def test_vectors_depend_on_the_program_alone_and_have_length_1() -> None:
    together = embed([PROGRAM, "x = 1\n", PROGRAM], dimensions=64)
    assert together.shape == (3, 64)
    assert together.dtype == np.float32
    np.testing.assert_array_equal(together[0], together[2])
    np.testing.assert_array_equal(together[1:2], embed(["x = 1\n"], dimensions=64))
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, rtol=1e-6)


@pytest.mark.parametrize("nothing", ["", "# only a comment", "'''a docstring'''", "def f(:", "\0"])
def test_what_holds_no_program_has_no_direction(nothing: str) -> None:
    assert not embed([nothing]).any()


@pytest.mark.parametrize(
    "strange",
    [
        "x = 0x" + "f" * 5000,  # an int that Python refuses to write in base 10
        "x = '\\ud800'",  # half a surrogate pair
        "x = 1e999 - 1j * ...",
        "match x:\n    case {'a': None, **rest}: pass\n    case True: pass\n",
        "async def f():\n    global g\n    g = [f'{x!r:>{y}}' async for y in z]\n",
    ],
)
def test_strange_programs_are_embedded(strange: str) -> None:
    vector = embed([strange])
    assert np.linalg.norm(vector) == pytest.approx(1)


def test_no_programs_are_no_rows() -> None:
    assert embed([], dimensions=8).shape == (0, 8)


def test_what_is_kept_of_a_vector_does_not_change_with_a_copy() -> None:
    embed([PROGRAM])[:] = 7
    assert np.linalg.norm(embed([PROGRAM])) == pytest.approx(1)
