"""The problem in C++: kernels are compiled, checked and timed behind the walls."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.core import Evaluation, Failure, Problem
from engine.core.bundle import bundle_of, files_of
from engine.evaluation import open_pool
from engine.mutation import mutated
from engine.problem import load_problem, shipped
from engine.syntax.blocks import keeps_fixed

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no C++ compiler")

Judged = Callable[[str], Evaluation]
SLOW = "for (int i = 0; i < n * n; ++i) c[i] = 0.0;"


@pytest.fixture(scope="module")
def problem() -> Problem:
    return load_problem(Path(shipped()["matrix_product"]))


@pytest.fixture(scope="module")
def judge(problem: Problem) -> Iterator[Judged]:
    with open_pool(problem=problem, workers=1) as pool:

        def evaluate(source: str) -> Evaluation:
            pool.submit(candidate_id="x", program=bundle_of({"kernel.cpp": source}))
            ((_, evaluation),) = pool.completed(timeout=None)
            return evaluation

        yield evaluate


@pytest.fixture(scope="module")
def source(problem: Problem) -> str:
    return files_of(problem.initial_program)["kernel.cpp"]


def test_the_statement_says_how_often_a_kernel_is_called(problem: Problem) -> None:
    judge = (problem.folder / "evaluate.py").read_text()
    rounds = int(judge.partition("\nROUNDS = ")[2].partition("\n")[0])
    each = judge.partition("def _seconds(")[2].partition("\ndef ")[0].count("process.multiply(")
    said = f"calls it {rounds * each} times, twice in each of {rounds} processes"
    assert each == 2 and said in problem.statement


def faster(source: str) -> str:
    """Change the order of two loops, and the sizes of the tiles."""
    lines = source.split("\n")
    place = next(i for i, line in enumerate(lines) if "int j = j0" in line)
    lines[place], lines[place + 1] = lines[place + 1], lines[place]
    source = "\n".join(lines).replace("columns = 8", "columns = 240")
    return source.replace("depth = 8", "depth = 4").replace("rows = 8", "rows = 240")


def test_the_initial_kernel_is_about_as_fast_as_the_one_it_is_timed_against(
    judge: Judged, source: str
) -> None:
    evaluation = judge(source)
    assert evaluation.failure is None, evaluation
    assert 0.2 < evaluation.score < 5  # whatever else the machine does meanwhile
    assert set(evaluation.metrics) == {
        *("score", "milliseconds", "baseline_milliseconds", "spread"),
    }


def test_a_better_order_of_the_loops_has_a_better_score(judge: Judged, source: str) -> None:
    assert judge(faster(source)).score > 1.5


@pytest.mark.parametrize(
    ("old", "new", "failure", "message"),
    [
        (SLOW, SLOW + " int x = ;", Failure.ERROR, "does not compile"),
        ("multiply(", "product(", Failure.ERROR, "does not compile"),
        ("// EVOLVE", "int main() {}\n// EVOLVE", Failure.ERROR, "does not compile"),
        ("+= a[", "= a[", Failure.REJECTED, "the product is wrong"),
        (SLOW, "return;", Failure.REJECTED, "the product is wrong"),
        (SLOW, SLOW + " if (a[0] < 2) throw 1;", Failure.CRASH, "killed by SIGABRT"),
        (SLOW, SLOW + " c[1L << 40] = 1;", Failure.CRASH, "killed by SIGSEGV"),
        (SLOW, SLOW + " __builtin_trap();", Failure.CRASH, "killed by SIGILL"),
        (SLOW, SLOW + " for (volatile int x = 0;; ) x = x;", Failure.TIMEOUT, "more than 2 s"),
        ("<algorithm>", '<algorithm>\n#include "/etc/passwd"', None, ""),
        ("<algorithm>", "<algorithm>\n#include </etc/passwd>", None, ""),
        ("<algorithm>", '<algorithm>\n#include "../../proc/self/environ"', None, ""),
        ("<algorithm>", '<algorithm>\n#define F "/etc/group"\n#include F', None, ""),
        (
            "<algorithm>",
            '<algorithm>\n#pragma GCC optimize("fast-math")',
            Failure.REJECTED,
            "#prag",
        ),
        ("<algorithm>", '<algorithm>\n_Pragma("GCC target(\\"avx512f\\")")', Failure.REJECTED, ""),
        ("<algorithm>", '<algorithm>\n__attribute__((optimize("O0"))) int f();', None, "optimize("),
        (
            "<algorithm>",
            '<algorithm>\n__attribute__((optimize(\n"Ofast"))) int f();',
            Failure.REJECTED,
            "optimize(",
        ),
        (
            "<algorithm>",
            '<algorithm>\n__attribute__((target\n(R"(avx512f)"))) int f();',
            Failure.REJECTED,
            "target",
        ),
        (
            "<algorithm>",
            '<algorithm>\n#line 1 "/usr/include/x.h"\n#pragma GCC optimize("Ofast")',
            Failure.REJECTED,
            "#line",
        ),
        ("<algorithm>", '<algorithm>\n# 1 "/usr/include/x.h" 1', Failure.REJECTED, "# 1"),
        ("<algorithm>", '<algorithm>\n/*\n*/ %: /**/ 1 "/usr/x.h" 1', Failure.REJECTED, "%:"),
        ("<algorithm>", '<algorithm>\n#\\\nline 1 "/usr/x.h"', Failure.REJECTED, "#line"),
        ("<algorithm>", '<algorithm>\nasm(".incbin \\"/etc/passwd\\"");', Failure.REJECTED, "asm"),
    ],
)
def test_a_kernel_that_is_none(
    judge: Judged, source: str, old: str, new: str, failure: Failure | None, message: str
) -> None:
    assert old in source
    evaluation = judge(source.replace(old, new, 1))
    assert evaluation.score is None
    assert evaluation.failure in ((failure,) if failure else (Failure.REJECTED, Failure.ERROR))
    assert message in evaluation.message, evaluation
    assert "root:" not in str(evaluation), "what a file of the machine says is shown"


def test_a_kernel_cannot_read_the_judges_memory(judge: Judged, source: str) -> None:
    """It would find the generator of the next matrices there, and multiply before the clock."""
    headers = "<algorithm>\n#include <fcntl.h>\n#include <string>\n#include <unistd.h>"
    reads = 'open(("/proc/" + std::to_string(getppid()) + "/mem").c_str(), O_RDONLY)'
    spy = source.replace("<algorithm>", headers, 1)
    assert judge(spy.replace(SLOW, f"{SLOW} if ({reads} < 0) return;", 1)).score is None
    assert judge(spy.replace(SLOW, f"{SLOW} if ({reads} >= 0) return;", 1)).failure is None


def test_a_kernel_that_fills_the_box_with_processes_ends_with_its_verdict(
    judge: Judged, source: str
) -> None:
    """One parent and sleeping children, so that a machine without the wall survives the test."""
    many = source.replace("<algorithm>", "<algorithm>\n#include <unistd.h>", 1)
    forks = "for (int i = 0; i < 200; ++i) if (fork() == 0) { sleep(20); _exit(0); }"
    many = many.replace(SLOW, f"{SLOW} {forks}", 1)
    evaluation = judge(many)
    # The box sees them, or the judge does, whichever looks first.
    assert evaluation.failure in (Failure.CRASH, Failure.REJECTED), evaluation
    assert "processes" in evaluation.message
    assert judge(source).failure is None


CHEATS = Path(shipped()["matrix_product"]) / "cheats"
SPINS = "close(1); for (volatile int x = 0;;) x = x;"


@pytest.mark.parametrize("cheat", sorted(CHEATS.iterdir()), ids=lambda path: path.stem)
def test_the_shipped_cheats_are_refused(judge: Judged, cheat: Path) -> None:
    evaluation = judge(cheat.read_text())
    assert (evaluation.score, evaluation.failure) == (None, Failure.REJECTED), evaluation
    assert "left processes behind" in evaluation.message


@pytest.mark.parametrize(
    "forks",
    [
        f"if (fork() == 0) {{ {SPINS} }}",
        f"if (fork() == 0) {{ setsid(); if (fork() == 0) {{ {SPINS} }} _exit(0); }}",
        f"if (vfork() == 0) {{ if (fork() == 0) {{ {SPINS} }} _exit(0); }}",
        "if (fork() == 0) sleep(20);",  # and holds the answers' pipe open
        "if (fork() == 0) _exit(0);",  # nobody waits for it
    ],
)
def test_a_process_that_a_kernel_leaves_behind_is_seen(
    judge: Judged, source: str, forks: str
) -> None:
    forking = source.replace("<algorithm>", "<algorithm>\n#include <unistd.h>", 1)
    forking = forking.replace(SLOW, f"{SLOW} {forks}", 1)
    evaluation = judge(forking)
    assert (evaluation.score, evaluation.failure) == (None, Failure.REJECTED), evaluation
    assert "left processes behind" in evaluation.message
    assert judge(source).failure is None


def test_a_kernel_may_wait_for_what_it_starts(judge: Judged, source: str) -> None:
    headers = "<algorithm>\n#include <sys/wait.h>\n#include <unistd.h>"
    harmless = source.replace("<algorithm>", headers, 1)
    work = "const pid_t pid = fork(); if (pid == 0) _exit(0); waitpid(pid, nullptr, 0);"
    evaluation = judge(harmless.replace(SLOW, f"{SLOW} {work}", 1))
    assert evaluation.failure is None, evaluation


def test_a_kernel_that_changes_the_compiled_programs_is_timed_against_the_same_one(
    judge: Judged, source: str
) -> None:
    writer = source.replace("<algorithm>", "<algorithm>\n#include <cstdio>", 1)
    empties = 'if (FILE* f = std::fopen("/tmp/build/baseline", "w")) std::fclose(f);'
    evaluation = judge(writer.replace(SLOW, f"{SLOW} {empties}", 1))
    assert evaluation.failure is None, evaluation


def test_nothing_is_written_outside_the_scratch_folder(
    judge: Judged, source: str, tmp_path: Path
) -> None:
    target = tmp_path / "written"
    writer = source.replace("<algorithm>", "<algorithm>\n#include <cstdio>\n#include <cstdlib>", 1)
    writer = writer.replace(SLOW, f'{SLOW} if (!std::fopen("{target}", "w")) std::abort();', 1)
    evaluation = judge(writer)
    assert not target.exists()
    assert evaluation.failure is Failure.CRASH
    assert "SIGABRT" in evaluation.message


def test_the_scratch_folder_is_bounded(judge: Judged, source: str) -> None:
    filler = source.replace("<algorithm>", "<algorithm>\n#include <cstdio>\n#include <cstdlib>", 1)
    filler = filler.replace(
        SLOW,
        f'{SLOW} FILE* f = std::fopen("/tmp/full", "w"); static char m[1 << 20];'
        " for (int i = 0; i < 200; ++i) if (!std::fwrite(m, sizeof m, 1, f)) std::abort();",
        1,
    )
    evaluation = judge(filler)
    assert evaluation.failure is Failure.CRASH, evaluation


def test_an_early_answer_gains_nothing(judge: Judged, source: str) -> None:
    early = source.replace("<algorithm>", "<algorithm>\n#include <unistd.h>", 1)
    early = early.replace(SLOW, f'write(1, "x", 1); {SLOW}', 1)
    assert judge(early).failure is Failure.REJECTED


def test_mutated_kernels_keep_what_is_fixed_and_most_of_them_compile(
    judge: Judged, problem: Problem
) -> None:
    children = {mutated(problem.initial_program, seed=seed, temperature=0.0) for seed in range(8)}
    assert all(keeps_fixed(child, parent=problem.initial_program) for child in children)
    scores = [judge(files_of(child)["kernel.cpp"]).score for child in children]
    assert any(score is not None for score in scores)
