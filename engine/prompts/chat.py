"""The operators for models that follow instructions: ``rewrite`` and ``diff``.

Both show the task, the better programs so far and the parent, and ask for an improvement:
``rewrite`` for the whole program, ``diff`` for search/replace blocks, which cost fewer tokens to
write. What changes least stands first, so that the prefix cache serves it: system message, task,
history, parent.

Does not cover retries: a block that does not apply fails the child.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from engine import program as programs
from engine.core import Candidate, Generation, Problem, Prompt, Proposal, UserError
from engine.prompts.operator import Tokenizer, direction_in_words

_SCORE_TOKENS = 64  # enough for the digits of a score
_SYSTEM = (
    "You improve Python programs. You are given a task, earlier programs with their scores, and "
    "the program to improve. Keep the names and the signature of its entry point."
)
_ASK_REWRITE = (
    "Write a better version of the current program. Answer with the whole program in one "
    "```python block and nothing else."
)
_ASK_DIFF = (
    "Change the current program so that its score gets better. Answer with one or more blocks of "
    "this form and nothing else; the search lines have to stand in the program letter by letter:\n"
    "<<<<<<< SEARCH\nlines to replace\n=======\nnew lines\n>>>>>>> REPLACE"
)
_FENCED = re.compile(r"```[^\n`]*\n(.*?)(?:^[ \t]*```|\Z)", re.DOTALL | re.MULTILINE)
_SEARCH, _DIVIDER, _REPLACE = (
    re.compile(mark) for mark in (r"<{5,} SEARCH\s*$", r"={5,}\s*$", r">{5,} REPLACE\b")
)


class Rewrite:
    """Asks for the whole program."""

    def __init__(self, *, problem: Problem, tokenizer: Tokenizer, max_tokens: int) -> None:
        """``max_tokens`` bounds the answer."""
        self._conversation = _Conversation(problem=problem, tokenizer=tokenizer, ask=_ASK_REWRITE)
        self._max_tokens = max_tokens

    @property
    def longest_parent(self) -> int:
        """See `Operator.longest_parent`."""
        return self._conversation.longest_parent(max_tokens=self._max_tokens)

    def compose(self, proposal: Proposal) -> Prompt:
        """See `Operator.compose`."""
        return self._conversation.compose(proposal, max_tokens=self._max_tokens)

    def parse(self, *, parent: Candidate, prompt: Prompt, generation: Generation) -> str | None:
        """Return the last fenced block that parses, or the whole answer if that does."""
        text = "\n".join(_lines(generation.text))
        blocks = [match.group(1) for match in _FENCED.finditer(text)]
        for block in [*reversed(blocks), text]:
            program = block.strip() + "\n"
            # A bare "Sure" is valid Python too; a program defines something.
            if "def " in program and programs.parse(program) is not None:
                return program
        return None


class Diff:
    """Asks for search/replace blocks."""

    def __init__(self, *, problem: Problem, tokenizer: Tokenizer, max_tokens: int) -> None:
        """``max_tokens`` bounds the answer."""
        self._conversation = _Conversation(problem=problem, tokenizer=tokenizer, ask=_ASK_DIFF)
        self._max_tokens = max_tokens

    @property
    def longest_parent(self) -> int:
        """See `Operator.longest_parent`."""
        return self._conversation.longest_parent(max_tokens=self._max_tokens)

    def compose(self, proposal: Proposal) -> Prompt:
        """See `Operator.compose`."""
        return self._conversation.compose(proposal, max_tokens=self._max_tokens)

    def parse(self, *, parent: Candidate, prompt: Prompt, generation: Generation) -> str | None:
        """Return the parent with all blocks applied, or None if one does not apply."""
        program = apply_blocks(parent.program, generation.text)
        return program if program is not None and programs.parse(program) is not None else None


def apply_blocks(program: str, text: str) -> str | None:
    """Apply the search/replace blocks in ``text`` in order.

    A search text has to stand in the program as whole lines; trailing spaces do not count. Where it
    stands more than once, the first place is changed. A block that does not end is left out.

    Returns:
        The changed program; None if there is no block, or one does not apply.
    """
    blocks = list(_blocks(text))
    if not blocks:
        return None
    lines = _lines(program)
    for search, replace in blocks:
        changed = _replace_lines(lines, search, replace)
        if changed is None:
            return None
        lines = changed
    return "\n".join(lines) + "\n"


def _lines(text: str) -> list[str]:
    return [line.rstrip("\r\n") for line in programs.source_lines(text)]


def _blocks(text: str) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the (search lines, new lines) of each block."""
    search: list[str] | None = None
    replace: list[str] | None = None
    for line in _lines(text):
        if _SEARCH.match(line):
            search, replace = [], None
        elif search is not None and replace is None and _DIVIDER.match(line):
            replace = []
        elif search is not None and replace is not None and _REPLACE.match(line):
            yield search, replace
            search = replace = None
        elif search is not None:
            (search if replace is None else replace).append(line)


def _replace_lines(
    lines: Sequence[str], search: Sequence[str], replace: Sequence[str]
) -> list[str] | None:
    wanted = [line.rstrip() for line in search]
    if not any(wanted):
        return None  # nothing but blank lines says no place
    present = [line.rstrip() for line in lines]
    for start in range(len(lines) - len(wanted) + 1):
        if present[start : start + len(wanted)] == wanted:
            return [*lines[:start], *replace, *lines[start + len(wanted) :]]
    return None


class _Conversation:
    """Lays out the prompt that both operators share."""

    def __init__(self, *, problem: Problem, tokenizer: Tokenizer, ask: str) -> None:
        self._problem = problem
        self._tokenizer = tokenizer
        self._ask = ask

    def longest_parent(self, *, max_tokens: int) -> int:
        """Return the tokens that are left for a parent beside the task and the answer."""
        nothing = Candidate(id="", program="", score=0.0)
        text = self._tokenizer.chat(system=_SYSTEM, user=self._message(nothing, []))
        used = len(self._tokenizer.encode(text)) + max_tokens + _SCORE_TOKENS
        return self._tokenizer.max_model_len - used

    def compose(self, proposal: Proposal, *, max_tokens: int) -> Prompt:
        """Return the prompt, with as much history as the model's context has room for.

        Raises:
            UserError: the task and the parent alone do not fit.
        """
        room = self._tokenizer.max_model_len - max_tokens
        history = list(proposal.history)
        while True:
            text = self._tokenizer.chat(
                system=_SYSTEM, user=self._message(proposal.parent, history)
            )
            ids = tuple(self._tokenizer.encode(text))
            if len(ids) <= room:
                return Prompt(token_ids=ids, text=text, stop=(), max_tokens=max_tokens)
            if not history:
                raise UserError(
                    f"the task and candidate {proposal.parent.id} have {len(ids)} tokens, and the "
                    f"model takes {room} beside its answer; raise model.max_model_len"
                )
            history.pop(0)  # the worst of them

    def _message(self, parent: Candidate, history: Sequence[Candidate]) -> str:
        better = direction_in_words(self._problem)
        parts = [f"# Task\n{self._problem.statement}\n\n{better} scores are better."]
        parts += [_shown("Earlier program", candidate) for candidate in history]
        parts += [_shown("Current program", parent), self._ask]
        return "\n\n".join(parts)


def _shown(title: str, candidate: Candidate) -> str:
    # repr keeps all digits: two scores that differ must not look the same.
    program = candidate.program.strip()
    return f"# {title}, score {candidate.score!r}\n```python\n{program}\n```"
