"""The operators for models that follow instructions: ``rewrite`` and ``diff``.

Both show the task, the best programs so far and the parent, and ask for an improvement:
``rewrite`` for the whole program, ``diff`` for search/replace blocks, which cost fewer tokens to
write. What changes least stands first, so that the prefix cache serves it: system message, task,
history, parent, what is asked for, failed attempts at the parent.

Does not cover retries: a block that does not apply fails the child.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from engine import program as programs
from engine.core import Attempt, Candidate, Generation, Problem, Prompt, Proposal, UserError
from engine.prompts.attempts import describe_attempts
from engine.prompts.diff import apply_blocks, plain_lines
from engine.prompts.fence import fenced
from engine.prompts.operator import Tokenizer, direction_in_words

_SCORE_TOKENS = 64  # enough for the digits of a score
_SYSTEM = (
    "You improve Python programs. You are given a task, earlier programs with their scores, and "
    "the program to improve. Keep the names and the signature of its entry point."
)
_FENCED = re.compile(
    r"(?<!`)(`{3,})[^\n`]*\n(.*?)(?:^[ \t]*\1|\Z)", re.DOTALL | re.MULTILINE
)  # ended by as many backticks as began it: a program with fences is shown between longer ones


class _ChatOperator:
    """Lays out the prompt that both operators share; they differ in what they ask for."""

    _ask: ClassVar[str]

    def __init__(self, *, problem: Problem, tokenizer: Tokenizer, max_tokens: int) -> None:
        """``max_tokens`` bounds the answer."""
        self._problem = problem
        self._tokenizer = tokenizer
        self._max_tokens = max_tokens
        self._room = tokenizer.max_model_len - max_tokens

    @property
    def longest_parent(self) -> int:
        """See `Operator.longest_parent`; beside such a parent there is no room for the others."""
        nothing = Candidate(id="", program="", score=0.0)
        return self._room - len(self._tokenizer.encode(self._text(nothing))) - _SCORE_TOKENS

    def compose(self, proposal: Proposal) -> Prompt:
        """Return the prompt, with as much history as the model's context has room for.

        Where not all fits, failed attempts are left out before history, the oldest first: what
        stands before them, and may be cached, stays as it is.

        Raises:
            UserError: the task and the parent alone do not fit.
        """
        history, failures = list(proposal.history), list(proposal.failures)
        while True:
            text = self._text(proposal.parent, history, failures)
            ids = tuple(self._tokenizer.encode(text))
            if len(ids) <= self._room:
                return Prompt(token_ids=ids, text=text, stop=(), max_tokens=self._max_tokens)
            if failures:
                failures.pop(0)
                continue
            if not history:
                raise UserError(
                    f"the task and candidate {proposal.parent.id} have {len(ids)} tokens, and the "
                    f"model takes {self._room} beside its answer; raise model.max_model_len"
                )
            history.pop(0)  # the worst of them

    def _text(
        self,
        parent: Candidate,
        history: Sequence[Candidate] = (),
        failures: Sequence[Attempt] = (),
    ) -> str:
        better = direction_in_words(self._problem)
        parts = [f"# Task\n{self._problem.statement}\n\n{better} scores are better."]
        parts += [_shown("Earlier program", candidate) for candidate in history]
        parts += [_shown("Current program", parent), self._ask]
        if failures:
            parts.append(describe_attempts(failures, parent=parent.program))
        return self._tokenizer.chat(system=_SYSTEM, user="\n\n".join(parts))


class Rewrite(_ChatOperator):
    """Asks for the whole program."""

    _ask = (
        "Write a better version of the current program. Answer with the whole program in one "
        "```python block and nothing else."
    )

    def parse(self, *, parent: Candidate, prompt: Prompt, generation: Generation) -> str | None:
        """Return the last fenced block that parses, or the whole answer if that does."""
        text = "\n".join(plain_lines(generation.text))
        blocks = [match.group(2) for match in _FENCED.finditer(text)]
        for block in [*reversed(blocks), text]:
            program = block.strip() + "\n"
            # A bare "Sure" is valid Python too; a program defines something.
            if "def " in program and programs.parse(program) is not None:
                return program
        return None


class Diff(_ChatOperator):
    """Asks for search/replace blocks."""

    _ask = (
        "Change the current program so that its score gets better. Answer with one or more blocks "
        "of this form and nothing else; the search lines have to stand in the program letter by "
        "letter:\n"
        "<<<<<<< SEARCH\nlines to replace\n=======\nnew lines\n>>>>>>> REPLACE"
    )

    def parse(self, *, parent: Candidate, prompt: Prompt, generation: Generation) -> str | None:
        """Return the parent with all blocks applied, or None if one does not apply."""
        program = apply_blocks(parent.program, generation.text)
        return program if program is not None and programs.parse(program) is not None else None


def _shown(title: str, candidate: Candidate) -> str:
    # repr keeps all digits: two scores that differ must not look the same.
    program = fenced("python", candidate.program.strip())
    return f"# {title}, score {candidate.score!r}\n{program}"
