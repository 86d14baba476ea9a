"""Programs of several files and of other languages are read as programs."""

import pytest

from engine.core import Program
from engine.core.bundle import bundle_of
from engine.syntax import read

CPP = """#include <cmath>
// a comment
#define SIZE 4
int f(int a) {
    for (int i = 0; i < SIZE; ++i) {
        if (a) { a = g(a); }
    }
    return a;
}
"""


def of(name: str, text: str) -> Program:
    """Read a program of one file."""
    program = read(bundle_of({name: text}))
    assert program is not None
    return program


def test_comments_and_spaces_do_not_make_another_program() -> None:
    same = (
        CPP.replace("// a comment", "/* another\none */").replace("    ", "\t").replace("= 0", "=0")
    )
    assert of("a.cpp", CPP).key == of("a.cpp", same).key
    assert of("a.cpp", CPP).key != of("a.cpp", CPP.replace("SIZE 4", "SIZE 5")).key
    assert of("a.cpp", CPP).key != of("a.cpp", CPP.replace("<cmath>", "<vector>")).key
    assert of("a.cpp", CPP).key != of("b.cpp", CPP).key


def test_indentation_counts_where_it_may_mean_something() -> None:
    text = "main = do\n  print 1\n"
    assert of("a.hs", text).key != of("a.hs", text.replace("  ", "    ")).key
    assert of("a.hs", text).key == of("a.hs", text.replace("print 1", "print   1 -- one")).key


def test_what_is_measured_of_another_language() -> None:
    program = of("a.cpp", CPP)
    assert (program.loops, program.branches, program.calls) == (1, 1, 2)  # f and g
    assert program.depth == 4
    assert program.undefined == ()


def test_several_python_files_are_one_program() -> None:
    files = {"a.py": "x = 1\n", "b.py": "def f():\n    for i in []:\n        g()\n", "c.txt": "if"}
    program = read(bundle_of(files))
    assert program is not None
    assert program.undefined == ("g",)
    assert program.loops == 1
    same = read(bundle_of({**files, "a.py": "x  =  1  # one\n"}))
    assert same is not None and same.key == program.key


@pytest.mark.parametrize("name", ["a.unknown", "noend", "Makefile", "a.txt", "a.md", "a.json"])
def test_any_name_has_a_language(name: str) -> None:
    assert of(name, "a 1 b\n").key != of(name, "a 2 b\n").key


def test_what_is_no_program() -> None:
    assert read(bundle_of({"a.py": "x = (\n", "b.py": "x = 1\n"})) is None
    assert read("#:file ../a.cpp\nint x;\n") is None


def test_half_a_pair_is_no_text() -> None:
    assert read(bundle_of({"a.cpp": "\ud800 1"})) is None
