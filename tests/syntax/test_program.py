"""What is said of a program without running it: its tree, its key, its undefined names."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest

from engine import syntax
from engine.fill.improvements import defines
from engine.syntax import read
from engine.syntax.names import known_modules
from engine.syntax.reading import program_key


def key(program: str) -> str:
    tree = syntax.parse(program)
    assert tree is not None, program
    return program_key(tree)


def undefined(program: str) -> tuple[str, ...]:
    known = read(program)
    assert known is not None, program
    return known.undefined


@pytest.mark.parametrize(
    "program",
    [
        "def f(:\n",
        "return 1\n",
        "x = [await y]\n",
        "x = 1\0",
        "x = '\udc80'",
        "\udc80 = 1",
        "  x = 1\n y = 2\n",
        "x = " + "1" * 5000,
        "(" * 100_000 + ")" * 100_000,
        "x = " + "+".join(["1"] * 100_000),
        "x = a" + ".b" * 50_000,
        "x = " + "not " * 3000 + "1",
        "if 1:\n    x = 1\n" + "".join(f"elif {i}:\n    x = {i}\n" for i in range(3000)),
    ],
    ids=lambda program: program[:12],
)
def test_what_is_not_a_program_has_no_tree(program: str) -> None:
    assert syntax.parse(program) is None


@pytest.mark.parametrize(
    "program",
    [
        "",
        " \n\t\n",
        "x = '" + "a" * 1_000_000 + "'",
        "x = 0x" + "f" * 100_000,  # too long for Python to write it in base 10
        "x = 1\n" * 5000,
        "x = " + " ".join(["'a'"] * 10_000),
        "x = '\\ud800'\n",
        "# -*- coding: no-such-thing -*-\nx = 1\n",
        "s = 'a\x0cb\u2028c'\n\x0cdef f():\n    return s\n",
        "".join(" " * i + "if 1:\n" for i in range(99)) + " " * 99 + "x = 1\n",
        "x = " + "[" * 90 + "1" + " for i in [2]]" * 90,
        "f = " + "lambda: " * 80 + "1",
    ],
    ids=lambda program: repr(program[:12]),
)
def test_odd_programs_have_a_key_and_no_undefined_names(program: str) -> None:
    assert len(key(program)) == 64
    assert undefined(program) == ()


def test_the_deepest_program_that_parses_can_be_walked_with_little_stack_left() -> None:
    terms = syntax.MAX_DEPTH
    while syntax.parse("x = " + "+".join(["y"] * terms)) is None:
        terms -= 1
    assert terms > syntax.MAX_DEPTH - 10
    program = "y = 1\nx = " + "+".join(["y"] * terms)

    def deep(frames: int) -> str:
        return deep(frames - 1) if frames else key(program) + str(undefined(program))

    assert deep(sys.getrecursionlimit() - 400) == key(program) + "()"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x = 1  # one\n\n", "x  =  1;"),
        ("x = 'a'\n", 'x = "a"\n'),
        ("x = u'a'\n", "x = 'a'\n"),
        ("x = 16 + 1e3\n", "x = (0x10 + 1_000.0)\n"),
        ("x = 'a' 'b'\n", "x = 'ab'\n"),
        ("x = 1\r\ny = 2\r\n", "x = 1\ny = 2\n"),
        ('def f():\n    """Doc."""\n    return 1\n', "def f():\n\n    return 1\n"),
        ("def f():\n    'Doc.'\n", "def f():\n    pass\n"),
        ("def f(x: int, *a: str, k: int = 1, **b: int) -> int: ...", "def f(x,*a,k=1,**b): pass"),
        ("async def f() -> int:\n    return 1\n", "async def f():\n    return 1\n"),
        ("def f():\n    x: int = 1\n    return x\n", "def f():\n    x = 1\n    return x\n"),
        ("if a:\n    b()\nelse:\n    pass\n", "if a: b()\n"),
        ("if a:\n    b()\nelif c:\n    d()\n", "if a:\n    b()\nelse:\n    if c:\n        d()\n"),
        ("for i in a:\n    pass\n    b(i)\n    ...\n", "for i in a: b(i)"),
        ("@g\ndef f(): return (1)", "@ g\ndef f ():\n\treturn 1"),
        ("match a:\n    case 1:\n        pass\n        b()", "match a:\n  case 1: b()"),
    ],
)
def test_programs_that_do_the_same_by_their_tree_have_one_key(one: str, other: str) -> None:
    assert key(one) == key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x = 1", "x = 2"),
        ("x = 1", "x = 1.0"),
        ("x = 1", "x = True"),
        ("x = 'a'", "x = b'a'"),
        ("x = '1'", "x = 1"),
        ("x = None", "x = ..."),
        ("x = 1", "y = 1"),
        ("x = 1", "x += 1"),
        ("x = a - b", "x = b - a"),
        ("x = a + b + c", "x = a + (b + c)"),
        ("x = f(a, b)", "x = f(a, b=b)"),
        ("x = f(a)(b)", "x = f(a, b)"),
        ("x = [[a], b]", "x = [[a, b]]"),
        ("x = [a, [], b]", "x = [a, [b]]"),
        ("x = -1", "x = +1"),
        ("x = a[1:]", "x = a[:1]"),
        ("x = a[:, 1]", "x = a[1]"),
        ("def f(a, /): pass", "def f(a): pass"),
        ("def f(a, *, b=1): pass", "def f(a, b=1): pass"),
        ("def f(a=None): pass", "def f(a): pass"),
        ("if a:\n    b()\n    c()", "if a:\n    b()\nc()"),
        ("for i in a:\n    b()\nelse:\n    c()", "for i in a:\n    b()\nc()"),
        ("try:\n    a()\nfinally:\n    b()", "try:\n    a()\nexcept E:\n    b()"),
        ("x = a\ny = b", "x, y = a, b"),
        ("global_ = 1", "def f():\n    global global_"),
        ("x = f'{a}'", "x = f'{a!r}'"),
        ("x = 0x" + "f" * 5000, "x = 0x" + "f" * 5001),
        ("class A:\n    x: int = 1", "class A:\n    x = 1"),  # a dataclass would differ
        ("class A:\n    x: int", "class A:\n    x: str"),
        ("import a", "import a as b"),
        ("from . import a", "from .. import a"),
        ("async def f(): pass", "def f(): pass"),
        ("return_ = lambda: 0", "return_ = lambda x: 0"),
    ],
)
def test_programs_that_differ_have_different_keys(one: str, other: str) -> None:
    assert key(one) != key(other)


def test_a_key_is_the_same_in_every_process_and_does_not_change_the_tree() -> None:
    program = "def f(x: int = 1) -> int:\n    'Doc.'\n    return {x, 'a'}\n"
    tree = syntax.parse(program)
    assert tree is not None
    assert program_key(tree) == program_key(tree)
    code = f"from engine import syntax; print(syntax.read({program!r}).key)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == program_key(tree)


def test_lines_end_where_pythons_do() -> None:
    program = "a = 1\r\nb = '\x0b\x0c\x1c\x85\u2028\u2029'\rc = 3\n\nd = 4"
    assert syntax.source_lines(program) == [
        "a = 1\r\n",
        "b = '\x0b\x0c\x1c\x85\u2028\u2029'\r",
        "c = 3\n",
        "\n",
        "d = 4",
    ]
    assert syntax.source_lines("") == []
    tree = syntax.parse(program)
    assert tree is not None
    assert [statement.lineno for statement in tree.body] == [1, 2, 3, 5]


DEFINED = {
    "builtins": "print(len([]), __name__, __file__, __builtins__, __doc__)\n",
    "nested functions": "def f(a):\n    def g(): return a + b\n    b = 1\n    return g()\n",
    "nonlocal": "def f():\n    x = 1\n    def g():\n        nonlocal x\n        x += 1\n    g()\n",
    "global": "def f():\n    global z\n    z = 1\ndef g():\n    return z\n",
    "global import": "def f():\n    global m\n    import math as m\ndef g():\n    return m.pi\n",
    "global def": "def f():\n    global h\n    def h(): return 1\ndef g():\n    return h()\n",
    "global class": "def f():\n    global H\n    class H: pass\ndef g():\n    return H()\n",
    "global loop": "def f():\n    global i\n    for i in []: pass\ndef g():\n    return i\n",
    "global walrus": "def f():\n    global i\n    (i := 2)\ndef g():\n    return i\n",
    "class scope": "class A:\n    x = 1\n    y = x + 1\n    z = [a for a in [x]]\n",
    "class names": "class A:\n    n = __qualname__\n    m = __module__\n    x: int = 1\n",
    "super": "class A:\n    def f(self):\n        return super().f(), __class__, A\n",
    "private": "_A__x = 3\nclass A:\n    def f(self):\n        return __x\n",
    "star import": "from math import *\nprint(sin(1))\n",
    "except": "def f():\n    try: pass\n    except ValueError as e: return e\n",
    "walrus": "def f(a):\n    if (n := len(a)):\n        return [y := x for x in a], n, y",
    "module walrus": "z = [y for x in range(3) if (y := x)]\nprint(y)\n",
    "match": (
        "def f(a):\n    match a:\n        case {'x': x, **rest}:\n            return x, rest\n"
        "        case [b, *c]:\n            return b, c\n        case int() as d:\n"
        "            return d\n        case e:\n            return e\n"
    ),
    "lambda": "f = lambda x, *a, k=1, **b: (x, a, k, b)\n",
    "comprehensions": "x = [(i, j) for i in range(3) for j in range(i) if i != j]\n",
    "del": "x = 1\ndel x\n",
    "with": "with open('x') as (a, *b):\n    print(a, b)\n",
    "for": "for i, (j, *k) in []:\n    print(i, j, k)\n",
    "async": "async def f(g):\n    async for x in g:\n        yield x\n",
    "decorator": "import functools\n@functools.cache\ndef f(): return 1\n",
    "conditional import": "try: import orjson as j\nexcept ImportError: import json as j\nj.x\n",
    "recursion": "def f(n):\n    return f(n - 1)\n",
    "used before bound": "def f():\n    return LATER\nLATER = 1\n",
    "postponed": "from __future__ import annotations\ndef f(x: Foo) -> Bar: ...\n",
    "local annotation": "def f():\n    x: List[float] = []\n    y: np.nothing\n    return x\n",
    "bound by exec": "exec('foo = 1')\nprint(foo)\n",
    "bound by globals": "globals()['foo'] = 1\nprint(foo)\n",
    "fallback name": "try:\n    text = unicode\nexcept NameError:\n    text = str\n",
    "module annotations": "x: int = 1\nprint(__annotations__)\n",
    # Attributes of modules.
    "scipy.signal": "import scipy.signal\nscipy.signal.butter(2, 0.1)\n",
    "lazy submodule": "import scipy\nscipy.signal.butter(2, 0.1)\n",
    "linalg as la": "from numpy import linalg as la\nla.norm([1])\n",
    "as": "import scipy.ndimage as ndi, scipy.signal as sg\nndi.median_filter; sg.medfilt\n",
    "both": "import numpy\nimport numpy.linalg\nnumpy.linalg.norm; numpy.array\n",
    "deep": "import numpy as np\nnp.lib.stride_tricks.sliding_window_view; np.pi.real; np.r_\n",
    "private module": "from numpy import _core as c\nc.whatever\n",
    "no such module": "import numpy.nothing as m\nm.x\n",
    "a command": "import numpy.f2py.__main__ as m\nm.x\n",
    "a function": "from math import sin\nsin.whatever\n",
    "other modules": "import os\nos.nothing\n",
    "attribute set": "import math\nmath.mine = 3\nprint(math.mine)\n",
    "fallback": "import numpy as np\ntry:\n    t = np.nope\nexcept AttributeError:\n    t = 1\n",
    "hasattr": "import numpy as np\nt = np.nope if hasattr(np, 'nope') else 1\n",
    "two modules": "if print():\n    import math as m\nelse:\n    import cmath as m\nm.phase\n",
    "rebound": "import math\nmath = object()\nmath.x\n",
    "parameter": "import math\ndef f(math):\n    return math.x\n",
    "keyword only": "import math\nf = lambda *, math: math.x\n",
    "function": "import math\ndef math(): ...\nmath.x\n",
    "class": "import math\nclass math: x = 1\nmath.x\n",
    "exception": "import math\ntry: ...\nexcept E as math: math.x\nE = 1\n",
    "loop": "import math\nfor math in []: math.x\n",
    "capture": "import math\nmatch 1:\n    case [*math]: math.x\n",
    "capture rest": "import math\nmatch 1:\n    case {**math}: math.x\n",
    "as pattern": "import math\nmatch 1:\n    case int() as math: math.x\n",
    "other import": "import math\nfrom os import path as math\nmath.join\n",
    "relative": "import math\ndef f():\n    from . import math\n    math.x\n",
}


@pytest.mark.parametrize("program", DEFINED.values(), ids=DEFINED.keys())
def test_a_program_that_may_run_is_not_refused(program: str) -> None:
    assert undefined(program) == ()


@pytest.mark.parametrize(
    ("program", "names"),
    [
        ("def f():\n    return foo\n", ("foo",)),
        ("print(b, a, b)\n", ("a", "b")),
        ("class A:\n    x = 1\n    def f(self):\n        return x\n", ("x",)),
        ("class A:\n    x = 1\n    y = [x for _ in range(2)]\n", ("x",)),
        ("def f():\n    a = [i for i in range(3)]\n    return i\n", ("i",)),
        ("def f():\n    def g():\n        y = 1\n    return y\n", ("y",)),
        ("def f():\n    import math\ndef g():\n    return math.pi\n", ("math",)),
        ("f = lambda: undefined_thing\n", ("undefined_thing",)),
        ("def f(x=missing): pass\n", ("missing",)),
        ("def f(x: List): pass\n", ("List",)),
        ("@missing\ndef f(): pass\n", ("missing",)),
        ("x: List = []\n", ("List",)),
        ("x = f'{missing:{width}}'\n", ("missing", "width")),
        ("try:\n    a\nexcept ValueError:\n    pass\n", ("a",)),
        ("try:\n    pass\nexcept NameError:\n    a\n", ("a",)),
        ("def f():\n    x: np.foo = np.foo\n    import numpy as np\n", ("np.foo",)),
        ("import numpy as np\nnp.foo\n", ("np.foo",)),
        ("import numpy as np\nnp.linalg.foo(np.bar)\n", ("np.bar", "np.linalg.foo")),
        ("import scipy\nscipy.signal.foo(1)\n", ("scipy.signal.foo",)),
        ("import scipy\nscipy.foo(1)\n", ("scipy.foo",)),
        ("from numpy import linalg as la\nla.foo\n", ("la.foo",)),
        ("import math\nmath.pi.foo\n", ("math.pi.foo",)),
        ("import numpy as np\nnp.exp(x, out=np.whatever)\n", ("np.whatever", "x")),
        ("from scipy import signal\nsignal.savgol(1)\n", ("signal.savgol",)),
    ],
)
def test_what_a_program_would_fail_on_is_named(program: str, names: tuple[str, ...]) -> None:
    assert undefined(program) == names


def test_looking_at_deprecated_names_warns_nobody(recwarn: pytest.WarningsRecorder) -> None:
    undefined("import numpy as np\nnp.trapz; np.in1d; np.core.foo; np.float; np.matlib\n")
    assert [str(warning.message) for warning in recwarn] == []


def test_known_modules_are_those_that_a_name_can_only_mean() -> None:
    tree = syntax.parse(
        "import numpy as np, math, os\nimport scipy.signal as sg\nfrom scipy import ndimage\n"
        "from numpy import exp\nimport scipy.nothing as gone\ndef f(math): pass\n"
    )
    assert tree is not None
    assert known_modules(tree) == {
        "np": "numpy",
        "sg": "scipy.signal",
        "ndimage": "scipy.ndimage",
    }


class Cycle:
    """Something whose end runs Python, and so lets another thread in."""

    def __init__(self) -> None:
        self._myself = self

    def __del__(self) -> None:
        sum(range(200))


@pytest.mark.parametrize(
    "look",
    [
        pytest.param(key, id="parse"),
        pytest.param(lambda program: defines(program, "f"), id="defines"),
    ],
)
def test_threads_that_parse_at_once_all_get_their_trees(look: Callable[[str], object]) -> None:
    """Bare `ast.parse` failed within 0.2 s here, with a SystemError of CPython 3.11."""
    lines = [f"    y{i} = [x + {i} * (x - {i}) for x in range({i})]" for i in range(150)]
    program = "\n".join(["def f(x):", *lines])
    found: set[object] = set()
    errors: list[Exception] = []

    def work() -> None:
        try:
            for _ in range(8):
                for _ in range(20):
                    Cycle()
                found.add(look(program))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    interval, thresholds = sys.getswitchinterval(), gc.get_threshold()
    try:
        sys.setswitchinterval(1e-6)
        gc.set_threshold(100)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
        gc.set_threshold(*thresholds)
    assert errors == []
    assert len(found) == 1 and all(found)
