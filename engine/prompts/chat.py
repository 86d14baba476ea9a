"""The operators for models that follow instructions.

All show the task, the best programs so far and the parent, and ask for an improvement: ``rewrite``
for the whole program, ``diff`` for search/replace blocks, which cost fewer tokens to write. Two
show one program more and ask for a whole one: ``crossover`` another candidate, to be combined with
the parent, and ``repair`` a failed attempt at changing the parent, to be corrected. In a transcript
all may take turns: the conversation is one.

Does not cover the order of the blocks (``layouts.py``), the words of the requests
(``requests.py``), the operator that asks for several programs at once (``verbalized.py``), or
retries: a block that does not apply fails the child.
"""

from collections.abc import Iterable, Sequence
from functools import cached_property, partial
from typing import ClassVar

from engine.core import (
    Block,
    Candidate,
    ChatFrame,
    Generation,
    Parsed,
    Part,
    Pending,
    Program,
    Prompt,
    Proposal,
    Turn,
)
from engine.prompts.answer import Answer
from engine.prompts.blocks import aligned
from engine.prompts.diff import apply_blocks
from engine.prompts.layouts import Layout, fitted, make_layout
from engine.prompts.operator import OPERATORS, Operator, Parsing, direction_in_words
from engine.prompts.requests import Piece, request, score_in_words, shown
from engine.settings import MOST_CHILDREN
from engine.syntax import read

_SCORE_TOKENS = 64  # enough for the digits of a score
_SYSTEM = (
    "You improve Python programs. You are given a task, earlier programs with their scores, and "
    "the program to improve. Keep the names and the signature of its entry point."
)


class ChatOperator(Operator):
    """Writes the prompt that the operators share; they differ in what they ask for.

    Attributes:
        words: what is asked for; empty where a conversation can't hold the answer, so that it
            begins anew.
        words_alone: the same where the request shows no second program.
    """

    words: ClassVar[str] = ""
    words_alone: ClassVar[str] = ""
    asks_with_parent = False  # see `Writer.asks_with_parent`

    @cached_property
    def _frame(self) -> ChatFrame:
        """Asked for late: a model without a chat template may still be used for infills."""
        return self._tokenizer.chat_frame(system=_SYSTEM)

    @cached_property
    def _layout(self) -> Layout:
        return make_layout(self._prompts, longest_parent=self.longest_parent)

    @property
    def longest_parent(self) -> int:
        """See `Operator.longest_parent`; such a parent leaves no room for other programs."""
        nothing = Candidate(id="", program="", score=0.0)
        widest = Proposal(
            iteration=0, parent=nothing, history=(), operator="", k=MOST_CHILDREN, seed=0
        )
        blocks = (self.task, self.current(nothing), *self.ask(widest))
        size = sum(len(each.token_ids) for each in blocks)
        return self._room(widest) - size - _SCORE_TOKENS

    def compose(self, proposal: Proposal) -> Prompt:
        """Return the prompt, with as much of the history as the model's context has room for.

        Raises:
            UserError: the task and the parent alone do not fit.
        """
        room = self._room(proposal)
        blocks = fitted(self._layout, proposal, self, room=room)
        if self._aligns:
            blocks = aligned(blocks, self._tokenizer, room=room)
        return Prompt(blocks=blocks, stop=(), max_tokens=self.answer_tokens(proposal))

    def answer_tokens(self, proposal: Proposal) -> int:
        """Return the most tokens of an answer."""
        return self._max_tokens

    def _room(self, proposal: Proposal) -> int:
        return self._tokenizer.max_model_len - self.answer_tokens(proposal)

    @property
    def task(self) -> Block:
        """See `Writer.task`."""
        better = direction_in_words(self._problem)
        statement = f"# Task\n{self._problem.statement}\n\n{better} scores are better.\n\n"
        return self._blocks.make(Part.TASK, self._frame.opening + statement)

    def earlier(self, program: Candidate | Pending) -> Block:
        """See `Writer.earlier`."""
        text = shown(f"Program {program.id}", program)
        return self._blocks.make(Part.HISTORY, text, shows=(program.id,))

    def current(self, candidate: Candidate) -> Block:
        """See `Writer.current`."""
        text = shown("Current program", candidate)
        return self._blocks.make(Part.PARENT, text, shows=(candidate.id,))

    def ask(self, proposal: Proposal) -> Sequence[Block]:
        """See `Writer.ask`."""
        return self._asked(self._request(proposal.parent, proposal))

    def exchange(self, turn: Turn, *, result: Candidate) -> Sequence[Block] | None:
        """See `Writer.exchange`."""
        asker = OPERATORS.find(turn.operator, given=f"operator {turn.operator}")
        if not (issubclass(asker, ChatOperator) and asker.words):
            return None
        after = self._blocks.make(
            Part.ASK, f"{self._frame.turn}That program has the score {score_in_words(result)}.\n\n"
        )
        ids = turn.answer_ids
        if ids[-1:] == after.token_ids[:1]:
            ids = ids[:-1]  # the end of the answer, where the model wrote it
        answer = Block(part=Part.ANSWER, text=turn.answer, token_ids=ids, shows=(result.id,))
        return [*self._asked(asker._request(turn.candidate, turn)), answer, after]

    @classmethod
    def _request(cls, parent: Candidate, asked: Proposal | Turn) -> list[Piece]:
        return request(cls.words, cls.words_alone or cls.words, parent, asked)

    def _asked(self, pieces: Sequence[Piece]) -> Sequence[Block]:
        asked = [self._blocks.make(Part.ASK, text, shows=shows) for text, shows in pieces]
        return [*asked, self._blocks.make(Part.ASK, self._frame.closing)]


@OPERATORS.register("rewrite")
class Rewrite(ChatOperator):
    """Asks for the whole program."""

    words = (
        "Write a better version of the current program. Answer with the whole program in one "
        "```python block and nothing else."
    )

    def parsing(self, *, parent: Candidate, prompt: Prompt, generation: Generation) -> Parsing:
        """Return what finds the program in the answer; see ``answer.py``."""
        return partial(_rewritten, self._reader(parent, prompt), generation.text)

    def is_complete(self, *, parent: Candidate, prompt: Prompt, text: str) -> bool:
        """Return whether the program's block is closed."""
        return self._reader(parent, prompt)(text).is_complete

    def _reader(self, parent: Candidate, prompt: Prompt) -> partial[Answer]:
        asked = prompt.blocks[-1].text if prompt.blocks else ""
        entry_point = self._problem.entry_point
        return partial(Answer, asked=asked, parent=parent.program, entry_point=entry_point)


@OPERATORS.register("crossover")
class Crossover(Rewrite):
    """Asks for a whole program that combines the parent with another candidate."""

    words = (
        "Write one program that joins what is good in the current program and in the other one, "
        "and is better than both. Answer with the whole program in one ```python block and nothing "
        "else."
    )
    words_alone = Rewrite.words


@OPERATORS.register("repair")
class Repair(Rewrite):
    """Asks for a whole program that corrects a failed attempt."""

    words = (
        "Find out why the broken program got no score and correct it; keep the idea that sets it "
        "apart from the current program. Answer with the whole corrected program in one ```python "
        "block and nothing else."
    )
    words_alone = Rewrite.words


@OPERATORS.register("diff")
class Diff(ChatOperator):
    """Asks for search/replace blocks."""

    words = (
        "Change the current program so that its score gets better. Answer with one or more blocks "
        "of this form and nothing else; the search lines have to stand in the program letter by "
        "letter:\n"
        "<<<<<<< SEARCH\nlines to replace\n=======\nnew lines\n>>>>>>> REPLACE"
    )

    def parsing(self, *, parent: Candidate, prompt: Prompt, generation: Generation) -> Parsing:
        """Return what applies all blocks to the parent; there is no program if one does not."""
        return partial(_changed, parent.program, generation.text)


def _rewritten(reader: partial[Answer], text: str) -> Sequence[Parsed]:
    return (Parsed(program=first_program(reader(text).programs())),)


def _changed(parent: str, answer: str) -> Sequence[Parsed]:
    program = apply_blocks(parent, answer)
    return (Parsed(program=None if program is None else read(program)),)


def first_program(texts: Iterable[str]) -> Program | None:
    """Return the first text that is a program: a bare "Sure" is valid Python too."""
    for text in texts:
        if "def " in text and (program := read(text)) is not None:
            return program
    return None
