"""Policies and operators from outside the package: by ``module:Class`` and by an entry point."""

from __future__ import annotations

import os
import pickle
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from words import STABLE, Words

from engine import config
from engine.core import Candidate, Generation, Proposal, Turn, UserError
from engine.problem import load_problem, shipped
from engine.prompts import OPERATORS, make_operators
from engine.run import main
from engine.search.parents import PARENTS
from engine.store import Call, read_log
from engine.syntax.workers import SyntaxWorkers

MODULE = '''
"""A parent policy of somebody else."""

from pydantic import Field

from engine.search.parents import Draw, ParentPolicy, ParentSettings
from engine.section import Whole, section


@section
class Oldest(ParentSettings):
    first: Whole = Field(default=0, ge=0)

    def make(self, *, direction):
        return OldestPolicy(self.first)


class OldestPolicy(ParentPolicy):
    def __init__(self, first):
        self._first = first

    def choose(self, candidates, *, u, key):
        return Draw(candidate=candidates[self._first % len(candidates)], rule="oldest")


NOT_A_CLASS = 3
'''

OPERATOR = '''
"""An operator of somebody else."""

from functools import partial

from engine.core import Block, Parsed, Part, Prompt
from engine.prompts import Operator
from engine.prompts.chat import Rewrite
from engine.syntax import read


class Doubled(Operator):
    """Asks for nothing, and adds a line to the parent whatever the answer is."""

    longest_parent = 100_000

    def compose(self, proposal):
        block = self.block(Part.PARENT, proposal.parent.program)
        return Prompt(blocks=(block,), stop=(), max_tokens=self.max_tokens)

    def parsing(self, *, parent, prompt, generation):
        return partial(more, parent.program, generation.index)


class Shorter(Rewrite):
    words = "Write a shorter one."


def more(program, index):
    return (Parsed(program=read(f"{program}\\nADDED_{index} = {len(program)}\\n")),)
'''


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the path with a module and, as if it was installed, an entry point."""
    folder = tmp_path / "site"
    installed = folder / "outside_policies-1.0.dist-info"
    installed.mkdir(parents=True)
    (folder / "outside_policies.py").write_text(MODULE)
    (folder / "outside_operators.py").write_text(OPERATOR)
    (folder / "outside_broken.py").write_text("raise RuntimeError('not\\ntoday')\n")
    (installed / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: outside-policies\nVersion: 1\n"
    )
    (installed / "entry_points.txt").write_text(
        "[brood.parents]\noldest = outside_policies:Oldest\n"
        "[brood.operators]\ndoubled = outside_operators:Doubled\n"
    )
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "outside_policies", raising=False)
    return folder


def refused(*arguments: str) -> str:
    with pytest.raises(UserError) as refusal:
        config.resolve(arguments)
    assert str(refusal.value).isprintable()
    return str(refusal.value)


@pytest.mark.usefixtures("outside")
@pytest.mark.parametrize("name", ["oldest", "outside_policies:Oldest"])
def test_a_policy_from_outside_the_package_chooses_a_runs_parents(
    name: str, tmp_path: Path
) -> None:
    arguments = [
        *("problem=signal", "model=mutation", "budget.candidates=12", "search.k=4"),
        *(f"search.parent.policy={name}", "search.parent.first=1", "evaluation.workers=1"),
        *(f"runs={tmp_path}", "name=run"),
    ]
    assert main(arguments) == 0
    settings = config.load(tmp_path / "run" / "config.yaml")
    assert (settings.search.parent.policy, settings) == (name, config.resolve(arguments))
    events = [each.event for each in read_log(tmp_path / "run")]
    rules = [event.rule for event in events if isinstance(event, Call)]
    assert len(rules) >= 3 and set(rules) == {"oldest"}


@pytest.mark.usefixtures("outside")
@pytest.mark.parametrize("name", ["doubled", "outside_operators:Doubled"])
def test_an_operator_from_outside_the_package_composes_and_parses(
    name: str, tmp_path: Path
) -> None:
    settings = config.resolve([f"search.operators.{name}=0.5", "search.operators.rewrite=0"])
    config.save(settings, tmp_path / "config.yaml")
    assert config.load(tmp_path / "config.yaml") == settings
    assert settings.search.operators[name] == 0.5 and "diff" in settings.search.operators
    (operator,) = make_operators(
        [name],
        problem=load_problem(Path(settings.problem)),
        tokenizer=Words(),
        max_tokens=7,
        prompts=settings.prompts,
    ).values()
    parent = Candidate(id="p", program="x = 1\n", score=0.5)
    asked = Proposal(iteration=0, parent=parent, history=(), operator=name, k=1, seed=1)
    prompt = operator.compose(asked)
    assert (prompt.text, prompt.max_tokens) == ("x = 1\n", 7)
    answer = Generation(
        index=3,
        text="",
        token_ids=(),
        finish_reason="stop",
        prompt_tokens=1,
        cached_prompt_tokens=0,
        llm_seconds=0.0,
    )
    work = operator.parsing(parent=parent, prompt=prompt, generation=answer)
    with SyntaxWorkers(count=1, cores=[*os.sched_getaffinity(0)]) as workers:
        (found,) = workers.submit(pickle.loads(pickle.dumps(work))).result()
    assert found.program is not None and found.program.text == "x = 1\n\nADDED_3 = 6\n"


@pytest.mark.usefixtures("outside")
def test_a_request_from_outside_stands_in_a_conversation_as_any_other() -> None:
    name = "outside_operators:Shorter"
    (operator,) = make_operators(
        [name],
        problem=load_problem(Path(shipped()["signal"])),
        tokenizer=Words(),
        max_tokens=7,
        prompts=replace(STABLE, layout="transcript"),
    ).values()
    first, parent = (Candidate(id=each, program=f"{each} = 1\n", score=0.5) for each in "ab")
    turn = Turn(candidate=first, operator=name, failures=(), answer="b", answer_ids=(98,))
    asked = Proposal(
        iteration=1, parent=parent, history=(), operator=name, k=1, seed=1, lineage=(turn,)
    )
    assert operator.compose(asked).text.count("Write a shorter one.") == 2


@pytest.mark.usefixtures("outside")
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("rewriet", "is no operator; did you mean rewrite? it must be one of crossover, diff"),
        ("double", "did you mean doubled?"),
        ("no_such_module:Name", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("outside_operators:more", "it must be a class that derives from Operator"),
    ],
)
def test_an_operator_that_is_none_is_refused_in_one_line(name: str, words: str) -> None:
    message = refused(f"search.operators.{name}=1")
    assert message.startswith(f"search.operators.{name} is no operator; ") and words in message


@pytest.mark.usefixtures("outside")
def test_a_parameter_of_a_policy_from_outside_is_checked_by_it() -> None:
    chosen = "search.parent.policy=oldest"
    assert refused(chosen, "search.parent.first=-1").endswith("first is -1; it must be 0 or more")
    assert "fist is no key; did you mean first?" in refused(chosen, "search.parent.fist=1")


@pytest.mark.usefixtures("outside")
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("youngest", "it must be one of adaevolve, codeevolve, hybrid, power, puct, shinka, "),
        ("powr", "is 'powr'; did you mean power? it must be one of adaevolve, codeevolve, hyb"),
        ("no_such_module:Name", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("outside_policies:Youngest", "has no attribute 'Youngest'"),
        ("outside_policies:NOT_A_CLASS", "must be a class that derives from ParentSettings"),
        ("outside_broken:Name", "RuntimeError: not today"),
        ("3", "search.parent.policy is 3; it must be one of"),
        ("null", "search.parent.policy is None; it must be one of"),
        ("':'", "search.parent.policy is ':'; it must be"),
    ],
)
def test_a_policy_that_is_none_is_refused_in_one_line(name: str, words: str) -> None:
    message = refused(f"search.parent.policy={name}")
    assert message.startswith("search.parent.policy is ") and words in message


def test_each_module_of_a_policy_registers_it() -> None:
    assert PARENTS.names == [
        *("adaevolve", "codeevolve", "hybrid", "power", "puct", "shinka", "thompson"),
    ]


def test_each_module_of_an_operator_registers_it() -> None:
    names = ["crossover", "diff", "infill", "mutation", "repair", "rewrite", "verbalized"]
    assert OPERATORS.names == names
    assert set(config.resolve([]).search.operators) <= set(names)


def test_a_policy_has_the_defaults_of_its_source_and_no_other_ones_parameters() -> None:
    parent = config.resolve(["search.parent.policy=shinka"]).search.parent
    assert parent == PARENTS.read({"policy": "shinka", "sharpness": 10.0})
    message = refused("search.parent.policy=shinka", "search.parent.p_elite=0.5")
    assert "search.parent.p_elite is no key; valid keys: policy, archive, sharpness" in message
