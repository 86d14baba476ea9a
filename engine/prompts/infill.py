"""The operator ``infill``: the model fills one place of the parent.

Made for small base-like models. A 135M model that is asked for a whole program copies the one it is
shown; asked to go on in the middle of one it writes something that fits, in 24 tokens instead of
300 (``docs/log.md`` has the measurements). The prompt is a Python file that states the task, then
the parent's text up to a place chosen by chance; the parent's rest is not shown. All K children
fill the same place, so they share every token of the prompt.

Places, with equal chances for each kind (see `KINDS`): a number, an expression, a statement that is
written anew, a statement that is inserted, and an assignment to a known variable that is inserted.

Does not cover models that were trained to see what follows the gap (fill-in-the-middle tokens).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import numpy as np

from engine import program as programs
from engine.core import Candidate, Gap, Generation, Problem, Prompt, Proposal, UserError
from engine.prompts.operator import Tokenizer, direction_in_words
from engine.prompts.sites import Site, SiteKind, assigned_before, find_sites

# Weights of the kinds of places, measured by bench/operators.py.
KINDS = {
    SiteKind.CONSTANT: 1.0,
    SiteKind.EXPRESSION: 1.0,
    SiteKind.STATEMENT: 1.0,
    SiteKind.GAP: 1.5,
}
# Of the insertions, the share that starts with a known variable and `=`.
ASSIGNMENTS = 0.6
# The share of prompts in which the parent's own next token is banned.
BANS = 0.5
EXPRESSION_TOKENS = 24
STATEMENT_TOKENS = 32
MOST_LINES = 3


class Infill:
    """Completes the parent at one place."""

    def __init__(self, *, problem: Problem, tokenizer: Tokenizer) -> None:
        """Prepare the part of the prompt that never changes."""
        self._tokenizer = tokenizer
        statement = problem.statement.replace('"""', "'''")
        better = direction_in_words(problem)
        self._head = f'"""{statement}\n\n{better} scores are better.\n"""\n\n'
        self._head_ids = tuple(tokenizer.encode(self._head))

    def compose(self, proposal: Proposal) -> Prompt:
        """Choose a place in the parent and return the text up to it; see `Operator.compose`."""
        rng = np.random.default_rng([proposal.seed, 0])
        parent = proposal.parent.program
        tree = programs.parse(parent)
        if tree is None:
            raise ValueError(f"parent {proposal.parent.id} does not parse")
        site = _choose_site(find_sites(parent, tree), rng)
        gap = _gap(site, parent, tree, rng)
        shown = parent[: gap.start] + gap.before
        score = f"# score {proposal.parent.score!r}\n"
        # A word's token holds the space before it, so a prompt must not end in that space.
        text = score + shown.removesuffix(" ")
        ids = tuple(self._tokenizer.encode(text))
        tokens = STATEMENT_TOKENS if gap.whole_lines else EXPRESSION_TOKENS
        if len(self._head_ids) + len(ids) + tokens > self._tokenizer.max_model_len:
            raise UserError(
                f"the task and candidate {proposal.parent.id} have "
                f"{len(self._head_ids) + len(ids)} tokens, and the model takes "
                f"{self._tokenizer.max_model_len - tokens}; raise model.max_model_len"
            )
        banned: tuple[int, ...] = ()
        if rng.random() < BANS:
            banned = self._next_token(text=text, ids=ids, goes_on=shown + parent[gap.start :])
        return Prompt(
            token_ids=self._head_ids + ids,
            text=self._head + text,
            stop=("\n\n",) if gap.whole_lines else ("\n",),
            max_tokens=tokens,
            banned=banned,
            gap=gap,
        )

    def parse(self, *, parent: Candidate, prompt: Prompt, generation: Generation) -> str | None:
        """Return the parent with the longest start of the completion that parses in the gap."""
        gap = prompt.gap
        if gap is None:
            raise ValueError("not a prompt of this operator")
        before, after = parent.program[: gap.start], parent.program[gap.end :]
        text = generation.text.lstrip(" ")
        cut_off = generation.finish_reason != "stop"
        for piece in _statements(text, cut_off) if gap.whole_lines else _expressions(text):
            program = before + gap.before + piece + gap.after + after
            if programs.parse(program) is not None:
                return program
        return None

    def _next_token(self, *, text: str, ids: tuple[int, ...], goes_on: str) -> tuple[int, ...]:
        """Return the token with which the parent itself would go on after ``ids``."""
        score_line = text[: text.index("\n") + 1]
        whole = tuple(self._tokenizer.encode(score_line + goes_on))
        # Where the prompt's last token and the parent's next characters are one token, there is
        # no next token to ban.
        return whole[len(ids) : len(ids) + 1] if whole[: len(ids)] == ids else ()


def _choose_site(sites: tuple[Site, ...], rng: np.random.Generator) -> Site:
    if not sites:
        raise ValueError("a program without a function has no place to fill")
    present = sorted({site.kind for site in sites})
    weights = np.array([KINDS[kind] for kind in present])
    kind = present[int(rng.choice(len(present), p=weights / weights.sum()))]
    among = [site for site in sites if site.kind == kind]
    return among[int(rng.integers(len(among)))]


def _gap(site: Site, parent: str, tree: ast.Module, rng: np.random.Generator) -> Gap:
    if site.kind in (SiteKind.CONSTANT, SiteKind.EXPRESSION):
        return Gap(start=site.start, end=site.end)
    if site.kind is SiteKind.STATEMENT:
        return Gap(start=site.start, end=site.end, whole_lines=True)
    # What is inserted is followed by a new line, indented as the statement that it pushes down.
    after = "\n" + _indentation(parent, site.start)
    names = assigned_before(parent, tree, site.start)
    if names and rng.random() < ASSIGNMENTS:
        name = names[int(rng.integers(len(names)))]
        return Gap(start=site.start, end=site.end, before=f"{name} = ", after=after)
    return Gap(start=site.start, end=site.end, after=after, whole_lines=True)


def _indentation(program: str, position: int) -> str:
    line = program[program.rfind("\n", 0, position) + 1 : position]
    return line[: len(line) - len(line.lstrip())]


def _statements(text: str, cut_off: bool) -> Iterator[str]:
    """Yield the completion's first lines, the most first; a last line cut off does not count."""
    lines = text.split("\n")
    if cut_off and len(lines) > 1:
        lines = lines[:-1]
    for count in range(min(MOST_LINES, len(lines)), 0, -1):
        piece = "\n".join(lines[:count]).rstrip()
        if piece.strip():
            yield piece


def _expressions(text: str) -> Iterator[str]:
    """Yield the starts of the completion's first line, the longest first, ending at a token."""
    line = text.split("\n", 1)[0]
    marks = re.finditer(r"\W", line)
    ends = {len(line), *(end for mark in marks for end in mark.span())}
    seen = ""
    for end in sorted(ends, reverse=True):
        piece = line[:end].rstrip()
        if piece and piece != seen:
            yield piece
        seen = piece
