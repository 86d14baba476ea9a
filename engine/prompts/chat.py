"""The operators for models that follow instructions.

All show the task, the best programs so far and the parent, and ask for an improvement: ``rewrite``
for the whole program, ``diff`` for search/replace blocks, which cost fewer tokens to write. Two
show one program more and ask for a whole one: ``crossover`` another candidate, to be combined with
the parent, and ``repair`` a failed attempt at changing the parent, to be corrected. In a transcript
all may take turns: the conversation is one.

A request shows what only it is about: a hint, a crossover's second program, the failed attempt that
a repair corrects, and failed attempts at the parent. Where there is no room for the second program,
both operators ask for what a rewrite asks for.

Does not cover how failed attempts are told of (``attempts.py``), the order of the blocks
(``layouts.py``), the operator that asks for several programs at once (``verbalized.py``), or
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
from engine.prompts.answer import Answer, apply_blocks, fenced, spoken
from engine.prompts.attempts import Piece, broken, failed, harmless
from engine.prompts.form import Form
from engine.prompts.layouts import Writer, score_in_words
from engine.prompts.operator import OPERATORS, Parsing
from engine.settings import MOST_CHILDREN
from engine.syntax import read

_SIGNS = ("def ", "EVOLVE-BLOCK-START", "#:file ")  # of a program, in a text
_STANCES = {
    "explore": "Look for another approach than the programs above have, even if it is a risk.",
    "exploit": "Refine what makes the current program good; keep its approach.",
}
"""By the rules of ``engine.search.parents``' ``adaevolve`` and ``codeevolve``."""
_DIVERSE = (
    "The best program is kept of each combination of these measures: {dimensions}. A program that "
    "scores about as well as another one and differs in them is worth having too."
)
SCORE_TOKENS = 64
"""Enough for the digits of a score."""


class ChatOperator(Writer):
    """Writes the prompt that the operators share; they differ in what they ask for.

    Attributes:
        words: what is asked for; empty where a conversation can't hold the answer, so that it
            begins anew. ``{whole}`` and ``{named}`` stand for what `Form` calls so.
        words_for_two: the same where the request shows a second program.
    """

    instructs: ClassVar[bool] = True
    words: ClassVar[str] = ""
    words_for_two: ClassVar[str] = ""

    @cached_property
    def _frame(self) -> ChatFrame:
        """Asked for late: a model without a chat template may still be used for infills."""
        return self.tokenizer.chat_frame(system=self.form.system)

    @property
    def instruction(self) -> str:
        """What is asked for."""
        return _said(self.words, self.form)

    @property
    def longest_parent(self) -> int:
        """See `Operator.longest_parent`; such a parent leaves no room for other programs."""
        nothing = Candidate(id="", program="", score=0.0)
        widest = Proposal(
            iteration=0, parent=nothing, history=(), operator="", k=MOST_CHILDREN, seed=0
        )
        blocks = (self.task, self.shown(nothing, Part.PARENT), *self.ask(widest))
        size = sum(len(each.token_ids) for each in blocks)
        return self._room(widest) - size - SCORE_TOKENS

    def compose(self, proposal: Proposal) -> Prompt:
        """Return the prompt, with as much of the history as the model's context has room for.

        Raises:
            UserError: the task and the parent alone do not fit.
        """
        blocks = self._laid_out(proposal, self.ask, room=self._room(proposal))
        return Prompt(blocks=blocks, stop=(), max_tokens=self.answer_tokens(proposal))

    def stance(self, rule: str) -> str:
        """See `Operator.stance`."""
        return _STANCES.get(rule, "")

    def answer_tokens(self, proposal: Proposal) -> int:
        """Return the most tokens of an answer."""
        return self.max_tokens

    def _room(self, proposal: Proposal) -> int:
        return self.tokenizer.max_model_len - self.answer_tokens(proposal)

    @property
    def task(self) -> Block:
        """See `Writer.task`."""
        goals = self._better
        if self.dimensions:
            goals += " " + _DIVERSE.format(dimensions=", ".join(self.dimensions))
        statement = f"# Task\n{self.problem.statement}\n\n{goals}\n\n{self.form.fixed}"
        return self.block(Part.TASK, self._frame.opening + statement, framed=True)

    def shown(self, program: Candidate | Pending, part: Part) -> Block:
        """See `Writer.shown`."""
        title = "Current program" if part is Part.PARENT else f"Program {program.id}"
        return self.block(part, _shown(title, program, self.form), shows=(program.id,))

    def question(self, programs: Sequence[Candidate], words: str, *, max_tokens: int) -> Prompt:
        """Return a prompt that shows programs, as many as fit, and asks for no program.

        Args:
            programs: the most important first.
            words: what is asked.
            max_tokens: of the answer.
        """
        asked = self._asked([(words, ())])
        blocks = [self.task]
        room = self.tokenizer.max_model_len - max_tokens
        room -= sum(len(each.token_ids) for each in (self.task, *asked))
        for program in programs:
            block = self.shown(program, Part.HISTORY)
            if len(block.token_ids) <= room:
                room -= len(block.token_ids)
                blocks.append(block)
        return Prompt(blocks=(*blocks, *asked), stop=(), max_tokens=max_tokens)

    def ask(self, proposal: Proposal) -> Sequence[Block]:
        """Return the request."""
        request = self._request(proposal.parent, proposal, self.form)
        return self._asked(
            [
                *guided_by(proposal.guidance),
                *hinted(proposal.hint),
                *advice(proposal),
                *request,
            ]
        )

    def exchange(self, turn: Turn, *, result: Candidate) -> Sequence[Block] | None:
        """See `Writer.exchange`."""
        asker = OPERATORS.find(turn.operator, given=f"operator {turn.operator}")
        if not (issubclass(asker, ChatOperator) and asker.words):
            return None
        told = f"{self._frame.turn}That program has the score {score_in_words(result)}.\n\n"
        after = self.block(Part.ASK, told, framed=True)
        ids = turn.answer_ids
        if ids[-1:] == after.token_ids[:1]:
            ids = ids[:-1]  # the end of the answer, where the model wrote it
        answer = Block(part=Part.ANSWER, text=turn.answer, token_ids=ids, shows=(result.id,))
        return [*self._asked(asker._request(turn.candidate, turn, self.form)), answer, after]

    @classmethod
    def _request(cls, parent: Candidate, asked: Proposal | Turn, form: Form) -> list[Piece]:
        pieces: list[Piece] = []
        if asked.partner is not None:
            pieces.append((_shown("Other program", asked.partner, form), (asked.partner.id,)))
        if asked.repairs is not None:
            pieces.append((broken(asked.repairs, form) + "\n\n", (asked.repairs.id,)))
        pieces.append((_said(cls.words_for_two if pieces else cls.words, form), ()))
        return [*pieces, *failed(asked.failures, parent=parent, form=form)]

    def _asked(self, pieces: Sequence[Piece]) -> Sequence[Block]:
        asked = [self.block(Part.ASK, text, shows=shows) for text, shows in pieces]
        return [*asked, self.block(Part.ASK, self._frame.closing, framed=True)]


@OPERATORS.register("rewrite")
class Rewrite(ChatOperator):
    """Asks for the whole program."""

    words = "Write a better version of the current program. Answer with {whole} and nothing else."

    def parsing(self, *, parent: Candidate, prompt: Prompt, generation: Generation) -> Parsing:
        """Return what finds the program in the answer; see ``answer.py``."""
        return partial(_rewritten, self._reader(parent, prompt), generation.text)

    def is_complete(self, *, parent: Candidate, prompt: Prompt, text: str) -> bool:
        """Return whether the program's block is closed."""
        return self._reader(parent, prompt)(text).is_complete

    def _reader(self, parent: Candidate, prompt: Prompt) -> partial[Answer]:
        return partial(
            Answer,
            asked=prompt.ending,
            parent=parent.program,
            entry_point=self.problem.entry_point,
        )


@OPERATORS.register("crossover")
class Crossover(Rewrite):
    """Asks for a whole program that combines the parent with another candidate."""

    words_for_two = (
        "Write one program that joins what is good in the current program and in the other one, "
        "and is better than both. Answer with {whole} and nothing else."
    )


@OPERATORS.register("repair")
class Repair(Rewrite):
    """Asks for a whole program that corrects a failed attempt."""

    words_for_two = (
        "Find out why the broken program got no score and correct it; keep the idea that sets it "
        "apart from the current program. Answer with {whole} and nothing else, corrected."
    )


@OPERATORS.register("diff")
class Diff(ChatOperator):
    """Asks for search/replace blocks."""

    words = (
        "Change the current program so that its score gets better. Answer with one or more blocks "
        "of this form and nothing else; the search lines have to stand in the program letter by "
        "letter:\n"
        "<<<<<<< SEARCH\nlines to replace\n=======\nnew lines\n>>>>>>> REPLACE{named}"
    )

    def parsing(self, *, parent: Candidate, prompt: Prompt, generation: Generation) -> Parsing:
        """Return what applies all blocks to the parent; there is no program if one does not."""
        return partial(_changed, parent.program, spoken(generation.text, asked=prompt.ending))


def _rewritten(reader: partial[Answer], text: str) -> Sequence[Parsed]:
    return (Parsed(program=first_program(reader(text).programs())),)


def _changed(parent: str, answer: str) -> Sequence[Parsed]:
    program = apply_blocks(parent, answer)
    return (Parsed(program=None if program is None else read(program)),)


def first_program(texts: Iterable[str]) -> Program | None:
    """Return the first text that is a program: a bare "Sure" is valid Python too."""
    for text in texts:
        is_one = any(sign in text for sign in _SIGNS)
        if is_one and (program := read(text)) is not None:
            return program
    return None


def hinted(hint: str) -> list[Piece]:
    """Return the start of a request that shows a hint, if there is one.

    It stands in no earlier request of a conversation: those are written again without it.
    """
    if not hint:
        return []
    intro = "# Hint\nA person who watches this search says, about what to try and nothing else:"
    return [(f"{intro}\n{fenced('text', harmless(hint))}\n\n", ())]


def advice(proposal: Proposal) -> list[Piece]:
    """Return what a request says of the way in which the parent was chosen, and what to try.

    AdaEvolve tells the model its mode and its tactics. Like a hint, it stands in no earlier
    request of a conversation.
    """
    words = [_STANCES.get(proposal.rule, "")]
    if proposal.tactics:
        words.append(f"A direction to try:\n{fenced('text', harmless(proposal.tactics))}")
    return [(f"{each}\n\n", ()) for each in words if each]


def guided_by(guidance: str) -> list[Piece]:
    """Return the start of a request that shows guidance, if there is any.

    It stands in no earlier request of a conversation, as a hint does, and behind the programs, so
    that they are cached whatever it says.
    """
    return [(f"# Guidance\n{guidance}\n\n", ())] if guidance else []


def _said(words: str, form: Form) -> str:
    named = f"\n{form.named}" if form.named else ""
    return words.replace("{whole}", form.whole).replace("{named}", named)


def _shown(title: str, program: Candidate | Pending, form: Form) -> str:
    """Return a program under a title that says its score."""
    return f"# {title}, score {score_in_words(program)}\n{form.quoted(program.program)}\n\n"
