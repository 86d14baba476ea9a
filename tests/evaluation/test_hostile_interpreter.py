"""Programs that play with their interpreter, or look for what it may hold of others."""

import ast
import dataclasses
from collections.abc import Iterator

import pytest
from hostile import Check, Hostile, table
from verdicts import evaluate

from engine.core import Failure, Problem
from engine.evaluation import EvaluatorPool


def harmless(name: str, attempt: str, before: str = "") -> Hostile:
    return Hostile(name=name, attempt=attempt, before=before, failure=None)


@table(
    harmless("numpy patched", "np.sum = np.ones = np.random.rand = None\nnp.pi = 3"),
    harmless("scipy patched", "import scipy.signal\nscipy.signal.medfilt = None"),
    harmless("os patched", "os.getpid = os._exit = os.fork = None"),
    harmless("json patched", "import json\njson.loads = json.dumps = None"),
    harmless(
        "time patched", "for name in ('time', 'monotonic', 'sleep'): setattr(time, name, None)"
    ),
    harmless("a path in front", "sys.path.insert(0, FOLDER)"),
    harmless(
        "an import hook",
        "sys.meta_path.insert(0, Hook)\nsys.path_hooks.clear()",
        before="class Hook:\n    find_spec = staticmethod(lambda *_: sys.exit())\n",
    ),
    harmless("a trace", "sys.settrace(lambda *_: None)\nsys.setprofile(lambda *_: None)"),
    harmless("an audit hook", "sys.addaudithook(lambda *_: None)"),
    harmless("signal handlers", "signal.signal(signal.SIGTERM, signal.SIG_IGN)"),
    harmless(
        "environment variables", "os.environ['OMP_NUM_THREADS'] = '64'\nos.environ['X'] = 'x'"
    ),
    harmless("a recursion limit", "sys.setrecursionlimit(1 << 20)"),
    harmless("floating point errors", "np.seterr(all='raise')"),
    harmless("random numbers used up", "import random\nrandom.seed(7)\nnp.random.seed(7)"),
    harmless("no collector", "import gc\ngc.disable()\ngc.unfreeze()\ngc.collect()"),
    harmless("standard output replaced", "sys.stdout = sys.stderr = None"),
    harmless(
        "our own extension",
        "from engine.evaluation import _native\nassert _native.enter_namespaces()",
    ),
    harmless("an integer overwritten", "ctypes.memset(id(250) + 24, 7, 1)\nassert 249 + 1 == 7"),
    harmless(
        "the cases' names changed",
        """
        import gc
        for each in gc.get_objects():
            if type(each).__name__ == 'Case': object.__setattr__(each, 'name', 'mine')
        """,
    ),
    harmless(
        "the contract's check removed",
        "import engine.evaluation.contract as c\nc._check_finite = c.check_contract = None"
        "\nc._check_finite = lambda *_: None",
    ),
)
def test_what_it_changes_ends_with_it(attack: Check, hostile: Hostile) -> None:
    attack(hostile)


PACK = """
import engine.evaluation.contract, engine.evaluation.program, engine.evaluation.wire
"""


@table(
    Hostile(
        name="numpy's isfinite patched",
        attempt="np.isfinite = lambda x: np.ones(np.shape(x), bool)\nreturn values * np.nan, 4",
        failure=Failure.OUTPUT,
        words="doubled[0] is nan, expected finite",
    ),
    Hostile(
        name="numpy's comparison patched",
        attempt="np.array_equal = lambda *_, **__: True\nreturn 2 * values, 4.9",
        failure=None,
    ),
    Hostile(
        name="packing replaced",
        attempt="engine.evaluation.program.pack = lambda *_: b'mine'",
        before=PACK,
        failure=Failure.OUTPUT,
        words="expected 32",
    ),
    Hostile(
        name="the tag replaced",
        attempt="engine.evaluation.program.RETURNED = b'W'",
        before=PACK,
        failure=Failure.OUTPUT,
        words="malformed",
    ),
    Hostile(
        name="the verdict replaced",
        attempt="import engine.evaluation.verdict as v\nv.judge = None\nreturn values * 0, 98",
        failure=Failure.REJECTED,
        words="a count of 98 is not allowed",
    ),
    Hostile(
        name="the exit replaced",
        attempt="os.close(5)\nos._exit = lambda code: None",
        failure=Failure.CRASH,
        words="before a result was returned",
    ),
    Hostile(
        name="the builtins emptied",
        attempt="import builtins\nvars(builtins).clear()",
        failure=Failure.CRASH,
        words="before a result was returned",
    ),
    Hostile(
        name="a module replaced",
        attempt="sys.modules['numpy'] = None",
        words="import of numpy halted",
    ),
    Hostile(
        name="workers of its own",
        attempt="from engine.evaluation import _native"
        "\n_native.Workers(lanes=[], cores=[], seconds=1.0)",
        words="PermissionError",
        wall="calls",
    ),
    Hostile(name="all modules gone", attempt="sys.modules.clear()", words="AttributeError"),
    Hostile(name="an exit", attempt="sys.exit(0)", words="SystemExit: 0"),
    Hostile(name="an interrupt", attempt="raise KeyboardInterrupt", words="KeyboardInterrupt"),
    Hostile(name="a generator's exit", attempt="raise GeneratorExit", words="GeneratorExit"),
    Hostile(
        name="an exception of its own",
        attempt="raise Mine",
        before="class Mine(BaseException): pass",
        words="Mine",
    ),
    Hostile(
        name="an exception that raises",
        attempt="raise Mine",
        before="class Mine(Exception):\n    def __str__(self): raise SystemExit\n",
        words="Mine",
    ),
    Hostile(name="a long exception", attempt="raise ValueError('x' * 1000000)", words="ValueError"),
    Hostile(
        name="an exception with escapes",
        attempt="raise ValueError('\\x1b[2J\\nscore 1.0')",
        words="\N{REPLACEMENT CHARACTER}[2J score 1.0",
    ),
    Hostile(name="text that is none", attempt="print('\\ud800')", words="UnicodeEncodeError"),
)
def test_what_it_breaks_is_its_own(attack: Check, hostile: Hostile) -> None:
    attack(hostile)


@pytest.fixture(scope="module")
def isolated(patient: Problem) -> Iterator[EvaluatorPool]:
    with EvaluatorPool(problem=dataclasses.replace(patient, isolate_cases=True), workers=1) as pool:
        yield pool


SEEN = {
    "variables of the module": "print('found', len(store))\nstore.append(values)",
    "attributes of numpy": "print('found', hasattr(np, 'mine'))\nnp.mine = values",
    "frames": """
        frame, text = sys._getframe(), ''
        while frame is not None: text, frame = text + repr(frame.f_locals), frame.f_back
        print('found', [i for i in range(3) if f'double {i}' in text])
        """,
    "objects": """
        import gc
        arrays = [each for each in gc.get_objects() if type(each).__name__ == 'Case']
        print('found', [case.name for case in arrays])
        """,
    "positions in files": """
        print('found', os.lseek(4, 0, os.SEEK_CUR))
        os.lseek(4, 12345, os.SEEK_SET)
        """,
    "the result's memory": "import mmap\nprint('found', any(mmap.mmap(4, 0)[:]))",
}
FOUND = {
    "variables of the module": ("0", "0"),
    "attributes of numpy": ("False", "False"),
    "frames": ("[0]", "[1]"),
    "objects": ("['double 0']", "['double 1']"),
    "positions in files": ("0", "0"),
    "the result's memory": ("False", "False"),
}


@pytest.mark.parametrize("place", SEEN)
def test_nothing_of_one_case_is_found_in_another(isolated: EvaluatorPool, place: str) -> None:
    text = Hostile(name=place, attempt=SEEN[place], before="store = []").program({})
    evaluation = evaluate(isolated, text)
    assert evaluation.score == 1.0, evaluation
    assert evaluation.artifacts["stdout"].split("\n")[:-1] == [
        f"found {each}" for each in FOUND[place]
    ]


SCAN = """
import errno
libc.sbrk.restype = ctypes.c_void_p

def mapped(page):
    "Whether the kernel can read a path there."
    ctypes.set_errno(0)
    libc.access(ctypes.c_void_p(page), 0)
    return ctypes.get_errno() != errno.EFAULT

def count(word, top):
    "Count a word in all memory from a page down to the first hole."
    top = bottom = top & -4096
    while mapped(bottom - 4096): bottom -= 4096
    return ctypes.string_at(bottom, top - bottom).count(word)

def everywhere(word):
    stack = ctypes.c_void_p.in_dll(libc, "environ").value
    return count(word, libc.sbrk(0)), count(word, stack)
"""


def test_what_one_case_printed_is_not_in_the_next_ones_memory(isolated: EvaluatorPool) -> None:
    attempt = """
    word = bytes(c ^ 1 for c in b'ROTFIUJ`SBUMFY')
    if values[0] == 1:
        print(word.decode() * 100)
        kept = everywhere(word)[0] > 0
        time.sleep(0.05)
    else: print(f'\\nfound {everywhere(word)}')
    """
    text = Hostile(name="scan", attempt=attempt, before=SCAN).program({})
    evaluation = evaluate(isolated, text)
    assert evaluation.artifacts["stdout"].endswith("\nfound (0, 0)\n")


def test_a_programs_text_is_not_in_the_next_ones_memory(pool: EvaluatorPool) -> None:
    word = "a_name_of_the_last_program"
    evaluate(pool, f"{word} = 1\n" * 1000)
    changed = bytes(c ^ 1 for c in word.encode())
    attempt = f"print(everywhere(bytes(c ^ 1 for c in {changed})))"
    before = evaluate(pool, Hostile(name="scan", attempt=attempt, before=SCAN).program({}))
    assert before.artifacts["stdout"] == "(0, 0)\n(0, 0)\n"


def test_random_numbers_start_alike_for_every_program(pool: EvaluatorPool) -> None:
    attempt = "import random\nprint(np.random.rand(), random.random(), hash('x'))"
    text = Hostile(name="random", attempt=attempt).program({})
    first, second = (evaluate(pool, text).artifacts["stdout"] for _ in range(2))
    assert first == second != ""


def test_it_sees_neither_our_environment_nor_our_files(
    monkeypatch: pytest.MonkeyPatch, patient: Problem
) -> None:
    monkeypatch.setenv("BROOD_TEST_SECRET", "secret")
    before = """
    def target(fd):
        try: return os.readlink(f"/proc/self/fd/{fd}").split(":")
        except FileNotFoundError: return ["none"]
    """
    attempt = """
    print(sorted(os.environ), sys.argv[1:])
    print({":".join(target(fd)[:2]).rstrip("[]0123456789") for fd in range(64)})
    """
    with EvaluatorPool(problem=patient, workers=1) as pool:
        text = Hostile(name="seen", attempt=attempt, before=before).program({})
        seen = evaluate(pool, text).artifacts["stdout"].splitlines()
    assert "OMP_NUM_THREADS" in seen[0] and "SECRET" not in seen[0] and seen[0].endswith(" []")
    files = {"none", "pipe:", "/memfd:result (deleted)"}
    assert ast.literal_eval(seen[1]) == files
