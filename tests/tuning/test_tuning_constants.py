"""Which numbers of a program are constants, and writing others in their place."""

import pytest

from engine.core.bundle import bundle_of
from engine.tuning import constants_of, with_values


def values_of(program: str) -> list[int | float]:
    return [each.value for each in constants_of(program)]


def test_what_nothing_reaches_is_not_tuned() -> None:
    called = "def run():\n    return 1.5 * used()\n\ndef used():\n    return 2.5\n"
    program = f"{called}\ndef g():\n    return 3.5\n"
    assert [each.value for each in constants_of(program, entry="run")] == [1.5, 2.5]
    assert [each.value for each in constants_of(program, entry="g")] == [3.5]
    assert [each.value for each in constants_of(program)] == [1.5, 2.5, 3.5]


def test_numbers_with_their_signs() -> None:
    program = "def f(x):\n    return -0.5 * x ** 2 + 1_000 - 3e-2\n"
    assert values_of(program) == [-0.5, 2, 1000, 0.03]
    kinds = [type(value) for value in values_of(program)]
    assert kinds == [float, int, int, float]


@pytest.mark.parametrize(
    "program",
    [
        "def f(x):\n    return x[0] + x[1:] + x[:2]\n",
        "def f(x):\n    return x.sum(axis=1) + x.sum(axis=-1)\n",
        "def f(x):\n    return x[-1] + x[-1, y] + x[:-2] + x[-3:]\n",
        "def f(x):\n    'of 3'\n    return 'a 4' # 5\n",
        "def f(x):\n    return x * 0x10 + 2j\n",
    ],
)
def test_structure_and_text_are_none(program: str) -> None:
    assert values_of(program) == []


def test_what_is_too_large_to_be_moved_is_none() -> None:
    program = "def f(x):\n    return (x * 6364136223846793005 + 1e999) % -(10000000000000) + 1.5\n"
    assert values_of(program) == [1.5]
    assert values_of(f"x = {10**400} + {10**12} - 1e308\n") == [10**12, 1e308]
    assert values_of("def f(x):\n    return x * 6364136223846793005\n") == []


def test_numbers_of_other_languages_have_suffixes_and_other_bases() -> None:
    c = "int f(void) { return 0644 + 64uz + 1'000L + 0x1f; }\n"
    program = bundle_of({"main.c": c, "run.py": "X = 2.5\n"})
    assert values_of(program) == [64, 1000, 2.5]  # C reads 0644 as octal


def test_only_what_may_change() -> None:
    program = "A = 1.5\n# EVOLVE-BLOCK-START\nB = 2.5\n# EVOLVE-BLOCK-END\nC = 3.5\n"
    assert values_of(program) == [2.5]
    (constant,) = constants_of(program)
    assert with_values(program, [constant], [7]) == program.replace("2.5", "7")


def test_everything_else_stays_as_it_is_written() -> None:
    program = "def f(x):  # twice\n    y  =  2.0*x\n    return (y -1.0)+  -3\n"
    found = constants_of(program)
    assert with_values(program, found, [each.value for each in found]) == program.replace(
        "  -3", "  (-3)"
    )
    changed = with_values(program, found, [-0.25, -4.0, 5])
    assert changed == "def f(x):  # twice\n    y  =  -0.25*x\n    return (y -(-4.0))+  5\n"


@pytest.mark.parametrize(
    ("program", "values", "others", "changed"),
    [
        ("y = x * -2 ** 3\n", [2, 3], [-5, 4], "y = x * -(-5) ** 4\n"),
        ("y = 2.0 ** x\n", [2.0], [-1.5], "y = (-1.5) ** x\n"),
        ("y = x ** -2\n", [-2], [-3], "y = x ** (-3)\n"),
        ("def f():\n    return-3\n", [-3], [5], "def f():\n    return 5\n"),
        ("y = -2 * x\n", [-2], [-3], "y = -3 * x\n"),
    ],
)
def test_a_sign_stays_the_numbers_own(
    program: str, values: list[int], others: list[int], changed: str
) -> None:
    found = constants_of(program)
    assert [each.value for each in found] == values
    assert with_values(program, found, others) == changed
    scope: dict[str, float] = {"x": 3}
    exec(with_values(program, found, values), scope)
    as_it_was: dict[str, float] = {"x": 3}
    exec(program, as_it_was)
    assert scope.get("y") == as_it_was.get("y")


def test_some_of_them() -> None:
    program = "a = [1.0, 2.0, 3.0]\n"
    assert with_values(program, constants_of(program)[1:2], [9.0]) == "a = [1.0, 9.0, 3.0]\n"


def test_files_and_other_languages() -> None:
    cpp = "// EVOLVE-BLOCK-START\nfloat a = -2.5f;\nint t = 64;\n// EVOLVE-BLOCK-END\n"
    program = bundle_of({"main.cpp": cpp, "note.txt": "12 apples\n"})
    found = constants_of(program)
    assert [(each.file, each.value) for each in found] == [("main.cpp", -2.5), ("main.cpp", 64)]
    changed = with_values(program, found, [0.5, 32])
    assert changed == program.replace("-2.5f", "0.5f").replace("64", "32")
