"""Programs with evolve blocks, of several files and of other languages, in prompts and answers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from engine.core import (
    Attempt,
    Candidate,
    ChatFrame,
    Evaluation,
    Failure,
    Generation,
    Problem,
    Prompt,
    Proposal,
)
from engine.core.bundle import bundle_of, files_of
from engine.problem import load_problem, shipped
from engine.prompts import make_operators
from engine.prompts.answer import apply_blocks
from engine.settings import PromptSettings
from engine.syntax.blocks import keeps_fixed

SETTINGS = PromptSettings(layout="stable", history_tokens=9000, growth_tokens=500, align=False)
NAMES = ("rewrite", "diff", "crossover", "repair", "verbalized", "infill", "mutation")


class Characters:
    """A tokenizer that gives each character a number."""

    max_model_len = 100_000
    block_size = 16

    def encode(self, text: str, *, plain: bool = False) -> list[int]:
        return [*map(ord, text)]

    def chat_frame(self, *, system: str) -> ChatFrame:
        return ChatFrame(opening=f"<s>{system}</s>", closing="</u><a>", turn="</a><u>")


@pytest.fixture(scope="module", params=["tour", "matrix_product"])
def problem(request: pytest.FixtureRequest) -> Problem:
    return load_problem(Path(shipped()[request.param]))


def prompt_of(name: str, problem: Problem, *, seed: int = 1) -> tuple[Prompt, Candidate]:
    """Return an operator's prompt with history and failures, and the parent in it."""
    text = problem.initial_program
    parent = Candidate(id="p", program=text, score=1.0)
    other = replace(parent, id="h", score=2.0)
    failed = Attempt(
        id="f",
        program=text.replace("8;", "9;").replace("= 6", "= 7"),
        evaluation=Evaluation(score=None, failure=Failure.ERROR, message="bad"),
    )
    proposal = Proposal(
        iteration=1,
        parent=parent,
        history=(other,),
        operator=name,
        k=2,
        seed=seed,
        failures=(failed,) if name == "rewrite" else (),
        partner=other if name == "crossover" else None,
        repairs=failed if name == "repair" else None,
    )
    return operator_of(name, problem).compose(proposal), parent


def operator_of(name: str, problem: Problem):  # noqa: ANN201
    made = make_operators(
        [name], problem=problem, tokenizer=Characters(), max_tokens=2000, prompts=SETTINGS
    )
    return made[name]


def answered(name: str, problem: Problem, text: str) -> str | None:
    """Return the child that an operator reads in an answer."""
    operator = operator_of(name, problem)
    prompt, parent = prompt_of(name, problem)
    generation = Generation(
        index=0,
        text=text,
        token_ids=(),
        finish_reason="stop",
        prompt_tokens=1,
        cached_prompt_tokens=0,
        llm_seconds=0.0,
    )
    found = operator.parsing(parent=parent, prompt=prompt, generation=generation)()
    return found[0].program.text if found and found[0].program is not None else None


FIXED = {"tour": "def plan_tour(points):", "matrix_product": "constexpr int n = 240;"}
FILE = {"tour": "start.py", "matrix_product": "kernel.cpp"}


@pytest.mark.parametrize("name", ["rewrite", "diff", "crossover", "repair", "verbalized"])
def test_the_fixed_text_stands_once_in_a_prompt(problem: Problem, name: str) -> None:
    text = prompt_of(name, problem)[0].text
    assert text.count(FIXED[problem.name]) == 1
    assert text.index("# Fixed text") < text.index("# Program h")
    language = "python" if problem.name == "tour" else "cpp"
    assert f"# Current program, score 1.0\n```{language}\n#:file " in text
    assert ("Python" in text.split("</s>")[0]) is False


def test_an_operator_says_what_an_answer_is_made_of(problem: Problem) -> None:
    several = problem.name == "tour"
    rewrite, diff = (prompt_of(name, problem)[0].text for name in ("rewrite", "diff"))
    assert ("each file that you change" in rewrite) is several
    assert "all its blocks with their EVOLVE-BLOCK lines" in rewrite
    assert ("the #:file line of its file" in diff) is several


def block_of(problem: Problem, old: str, new: str) -> str:
    """Return the block of a file with one thing changed, as a model would write it."""
    text = files_of(problem.initial_program)[FILE[problem.name]]
    start, end = text.index("// EVO" if "// EVO" in text else "# EVO"), text.rindex("-END") + 5
    return text[start:end].replace(old, new)


CHANGE = {"tour": ("tour = [0]", "tour = [0 + 0]"), "matrix_product": ("rows = 8", "rows = 9")}


def expected(problem: Problem) -> str:
    return problem.initial_program.replace(*CHANGE[problem.name])


def test_a_rewrite_of_one_file(problem: Problem) -> None:
    block = block_of(problem, *CHANGE[problem.name])
    answer = f"Here it is.\n```x\n#:file {FILE[problem.name]}\n{block}```\nDone."
    assert answered("rewrite", problem, answer) == expected(problem)
    if problem.name == "matrix_product":  # whose file needs no name
        assert answered("rewrite", problem, f"```cpp\n{block}```") == expected(problem)


def test_what_a_rewrite_says_of_the_fixed_text_is_left_out(problem: Problem) -> None:
    block = block_of(problem, *CHANGE[problem.name])
    answer = f"```\n#:file {FILE[problem.name]}\nHACK = 1\n{block}\nHACK = 2\n```"
    assert answered("rewrite", problem, answer) == expected(problem)


@pytest.mark.parametrize("name", ["rewrite", "diff", "verbalized"])
@pytest.mark.parametrize(
    "answer",
    ["", "Sure", "```\nx = 1\n```", "```\n#:file solve.py\nx = 1\n```", "#:file ../x\n", "\0"],
)
def test_an_answer_without_a_block_gives_no_child(problem: Problem, name: str, answer: str) -> None:
    assert answered(name, problem, answer) is None


def test_several_files_in_several_fences() -> None:
    problem = load_problem(Path(shipped()["tour"]))
    files = files_of(problem.initial_program)
    parts = [
        f"```python\n#:file {name}\n{files[name].replace('6', '9').replace('[0]', '[1]')}```"
        for name in ("improve.py", "start.py")
    ]
    child = answered("rewrite", problem, "\n".join(parts))
    assert child is not None and keeps_fixed(child, parent=problem.initial_program)
    assert "reach = 9" in child and "tour = [1]" in child


def test_verbalized_programs_have_the_same_form(problem: Problem) -> None:
    code = f"#:file {FILE[problem.name]}\n{block_of(problem, *CHANGE[problem.name])}"
    answer = json.dumps({"responses": [{"code": code, "probability": 0.5}]})
    assert answered("verbalized", problem, answer) == expected(problem)


def test_half_a_character_in_a_program_gives_no_child(problem: Problem) -> None:
    sign = "//" if problem.name == "matrix_product" else "#"
    old, new = CHANGE[problem.name]
    block = block_of(problem, old, f"{new}  {sign} \ud800")
    code = f"#:file {FILE[problem.name]}\n{block}"
    answer = json.dumps({"responses": [{"code": code, "probability": 1}]})
    assert answered("verbalized", problem, answer) is None


def edit(old: str, new: str) -> str:
    return f"<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE\n"


FILES = bundle_of(
    {
        "a.py": "import os\n# EVOLVE-BLOCK-START\nx = 1\ny = 2\n# EVOLVE-BLOCK-END\nz = 3\n",
        "b.py": "# EVOLVE-BLOCK-START\nx = 1\n# EVOLVE-BLOCK-END\n",
        "c.py": "x = 1\nq = 4\n",
    }
)


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        (edit("y = 2", "y = 5"), "y = 2", "y = 5"),
        (f"#:file a.py\n{edit('x = 1', 'x = 5')}", "x = 1\ny", "x = 5\ny"),
        (f"```\n#:file b.py\n{edit('x = 1', 'x = 5')}```", "x = 1\n# E", "x = 5\n# E"),
        (
            edit("# EVOLVE-BLOCK-START\nx = 1\ny = 2", "# EVOLVE-BLOCK-START\nw = 0"),
            "x = 1\ny = 2",
            "w = 0",
        ),
    ],
)
def test_an_edit_changes_the_file_that_it_is_for(text: str, old: str, new: str) -> None:
    place = FILES.rindex(old, 0, FILES.index("#:file c.py"))
    assert apply_blocks(FILES, text) == FILES[:place] + new + FILES[place + len(old) :]


@pytest.mark.parametrize(
    "text",
    [
        edit("import os", "import sys"),  # fixed
        edit("q = 4", "q = 5"),  # of a fixed file
        edit("# EVOLVE-BLOCK-END\nz = 3", "z = 4"),  # half fixed
        edit("y = 2\n# EVOLVE-BLOCK-END", "y = 5"),  # without its mark
        f"#:file c.py\n{edit('x = 1', 'x = 5')}",
        f"#:file d.py\n{edit('x = 1', 'x = 5')}",
        f"#:file b.py\n{edit('y = 2', 'y = 5')}",
    ],
)
def test_an_edit_of_what_is_fixed_does_not_apply(text: str) -> None:
    assert apply_blocks(FILES, text) is None


def test_infills_fill_places_that_may_change(problem: Problem) -> None:
    operator = operator_of("infill", problem)
    filled = set()
    for seed in range(30):
        prompt, parent = prompt_of("infill", problem, seed=seed)
        gap = prompt.gap
        assert gap is not None
        child = parent.program[: gap.start] + gap.before + gap.after + parent.program[gap.end :]
        assert keeps_fixed(child, parent=parent.program)
        asked = parent.program[: gap.start] + gap.before
        assert prompt.text.endswith(asked.removesuffix(" "))
        filled.add(asked[asked.rfind("#:file ") :].split()[1])
        assert not operator.is_complete(parent=parent, prompt=prompt, text="x")
    assert filled == {"improve.py", "start.py"} or filled == {"kernel.cpp"}


@pytest.mark.parametrize("name", NAMES)
def test_every_operator_composes_the_same_prompt_again(problem: Problem, name: str) -> None:
    assert prompt_of(name, problem)[0] == prompt_of(name, problem)[0]
