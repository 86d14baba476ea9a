"""The operator ``infill``: the model fills one place of the parent.

Made for small base-like models. Such a model, asked for a whole program, copies the one it is
shown; asked to go on in the middle of one, it writes a few tokens that fit (``docs/log.md`` has the
measurements). The prompt is a Python file that states the task, shows other programs if the layout
has any, and ends with the parent's text up to a place chosen by chance. It does not show how the
parent goes on there. All K children fill the same place, so they share every token of the prompt.

Of a program with evolve blocks, or of several files, the places are in what may change
(``engine.syntax.blocks``). In a file that is not Python, a line is written anew or inserted.

Places, chosen by kind (see `Infill.kinds`): a number, an expression, a statement that is written
anew, a statement that is inserted, and an assignment to a known variable that is inserted.
Expressions, numbers and assignments are written under a grammar; statements are free text.

Does not cover models that were trained to see what follows the gap (fill-in-the-middle tokens).
"""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial

import numpy as np

from engine.core import (
    Block,
    Candidate,
    Gap,
    Generation,
    Part,
    Pending,
    Prompt,
    Proposal,
    Turn,
)
from engine.prompts.attempts import harmless
from engine.prompts.completions import filled
from engine.prompts.gaps import choose_site, gap_at, last_gap, line_gap
from engine.prompts.layouts import Writer, score_in_words
from engine.prompts.operator import OPERATORS, Parsing
from engine.syntax import parse
from engine.syntax.blocks import PLAIN, File, open_text, outline
from engine.syntax.places import Site, SiteKind, find_sites
from engine.syntax.reach import unreached_spans

EXPRESSION_TOKENS = 32
STATEMENT_TOKENS = 32
_SCORE_TOKENS = 64  # enough for the line with the score and the start of an assignment


@OPERATORS.register("infill")
class Infill(Writer):
    """Completes the parent at one place; docs/log.md has what was measured of its numbers.

    Attributes:
        kinds: weight of each kind of place.
        calls: of the assignments, the share that goes on with an imported module and a dot.
        bans: the share of prompts in which the parent's own next token is banned.
        most_lines: of a completion that are used.
    """

    kinds: Mapping[SiteKind, float] = {
        SiteKind.CONSTANT: 2.0,
        SiteKind.EXPRESSION: 1.0,
        SiteKind.STATEMENT: 0.5,
        SiteKind.GAP: 0.5,
        SiteKind.ASSIGNMENT: 2.5,
    }
    calls = 0.8
    bans = 0.5
    most_lines = 3

    asks_with_parent = True

    @cached_property
    def task(self) -> Block:
        """See `Writer.task`."""
        statement = f"{self.problem.statement}\n\n{self._better}\n"
        if self.form.comment == "#":
            text = statement.replace('"""', "'''")
            return self.block(Part.TASK, f'"""{text}"""\n\n')
        lines = (f"{self.form.comment} {line}".rstrip() for line in statement.splitlines())
        return self.block(Part.TASK, "\n".join(lines) + "\n\n")

    def shown(self, program: Candidate | Pending, part: Part) -> Block:
        """See `Writer.shown`."""
        text = f"{self._score_line(program)}{_whole(open_text(program.program))}\n"
        return self.block(part, text, shows=(program.id,))

    def exchange(self, turn: Turn, *, result: Candidate) -> Sequence[Block]:
        """See `Writer.exchange`.

        Not the tokens as sampled: a part of the completion may have been left out, and the rest of
        the program follows. Where they are the same, the cache finds them all the same.
        """
        text = f"{self._next}{_whole(result.program)}{self._score_line(result)}\n"
        return [self.block(Part.ANSWER, text, shows=(result.id,))]

    @property
    def longest_parent(self) -> int:
        """See `Operator.longest_parent`."""
        room = self.tokenizer.max_model_len - len(self.task.token_ids)
        room -= max(EXPRESSION_TOKENS, STATEMENT_TOKENS)
        return room // (1 if self.prompts.layout == "stable" else 2) - _SCORE_TOKENS

    def compose(self, proposal: Proposal) -> Prompt:
        """Choose a place in the parent and return the text up to it; see `Operator.compose`."""
        rng = np.random.default_rng([proposal.seed, 0])
        parent = proposal.parent.program
        gap, grammar = self._chosen(parent, rng)
        shown = parent[: gap.start] + gap.before
        # A conversation goes on where the parent was written; its score stands behind it.
        goes_on = self.prompts.layout == "transcript"
        heading = self._next if goes_on else self._score_line(proposal.parent)
        # A word's token holds the space before it, so a prompt must not end in that space.
        request = heading + shown.removesuffix(" ")
        cut = request.rindex("\n") + 1 if self._aligns else 0  # empty lines may stand there
        pieces = (request[:cut], request[cut:]) if cut else (request,)
        shows = (proposal.parent.id,)
        asks = [self.block(Part.ASK, text, shows=shows) for text in pieces]
        tokens = STATEMENT_TOKENS if gap.whole_lines else EXPRESSION_TOKENS
        room = self.tokenizer.max_model_len - tokens
        blocks = self._laid_out(proposal, lambda it: [*self._hinted(it.hint), *asks], room=room)
        banned: tuple[int, ...] = ()
        # An assignment that is inserted goes on as nothing in the parent does.
        if rng.random() < self.bans and not gap.before:
            unchanged = (heading + shown + parent[gap.start :])[cut:]
            banned = self._next_token(asks[-1], unchanged=unchanged)
        return Prompt(
            blocks=blocks,
            stop=("\n\n",) if gap.whole_lines else ("\n",),
            max_tokens=tokens,
            banned=banned,
            grammar=grammar,
            gap=gap,
        )

    def parsing(self, *, parent: Candidate, prompt: Prompt, generation: Generation) -> Parsing:
        """Return what fills the gap with the longest start of the completion that parses there."""
        if prompt.gap is None:
            raise ValueError("not a prompt of this operator")
        cut_off = generation.finish_reason != "stop"
        return partial(
            filled,
            parent.program,
            prompt.gap,
            generation.text,
            cut_off=cut_off,
            most_lines=self.most_lines,
        )

    def is_complete(self, *, parent: Candidate, prompt: Prompt, text: str) -> bool:
        """Return whether the completion has as many lines as are used of one."""
        gap = prompt.gap
        return gap is not None and gap.whole_lines and text.count("\n") >= self.most_lines

    def _chosen(self, parent: str, rng: np.random.Generator) -> tuple[Gap, str | None]:
        """Return what is left out of the parent, and the grammar of what replaces it, if any."""
        whole = outline(parent)
        parts = [
            (offset, file, span)
            for file in whole.open_files
            if (offset := whole.offset(file)) is not None
            for span in file.spans
        ]
        if not parts:
            raise ValueError("every file that may change has a line that looks like a #:file line")
        offset, file, span = parts[0]
        if len(parts) > 1:
            sizes = np.array([1.0 + end - start for _, _, (start, end) in parts])
            offset, file, span = parts[int(rng.choice(len(parts), p=sizes / sizes.sum()))]
        if file.name == PLAIN or file.name.endswith(".py"):
            gap, grammar = self._python_gap(file, span, rng)
        else:
            gap, grammar = line_gap(file.name, file.text, span, rng), None
        return replace(gap, start=gap.start + offset, end=gap.end + offset), grammar

    def _python_gap(
        self, file: File, span: tuple[int, int], rng: np.random.Generator
    ) -> tuple[Gap, str | None]:
        text, tree = file.text, parse(file.text)
        if tree is None:
            raise ValueError("the parent does not parse")
        sites = self.sites(file, tree, span)
        if not sites:
            return last_gap(text, span[1]), None
        site = choose_site(sites, self.kinds, rng)
        return gap_at(site, text, tree, calls=self.calls, rng=rng)

    def sites(self, file: File, tree: ast.Module, span: tuple[int, int]) -> Sequence[Site]:
        """Return where a file may be changed: in what is reached, if anything there may change."""
        sites = [s for s in find_sites(file.text, tree) if span[0] <= s.start and s.end <= span[1]]
        if file.name != PLAIN:  # of several files any may use what is defined in another
            return sites
        dead = unreached_spans(file.text, tree, entry=self.problem.entry_point)
        return [s for s in sites if not _is_within(s.start, dead)] or sites

    @property
    def _next(self) -> str:
        return f"{self.form.comment} a better version\n"

    def _hinted(self, hint: str) -> list[Block]:
        """Return a hint as comments, if there is one."""
        lines = (f"{self.form.comment} {line}".rstrip() for line in harmless(hint).splitlines())
        return [self.block(Part.ASK, "\n".join(lines) + "\n")] if hint else []

    def _score_line(self, program: Candidate | Pending) -> str:
        return f"{self.form.comment} score {score_in_words(program)}\n"

    def _next_token(self, ask: Block, *, unchanged: str) -> tuple[int, ...]:
        """Return the token with which the parent itself would go on after the request."""
        whole, shown = tuple(self.tokenizer.encode(unchanged, plain=True)), len(ask.token_ids)
        # Where the prompt's last token and the parent's next characters are one token, there is
        # no next token to ban.
        return whole[shown : shown + 1] if whole[:shown] == ask.token_ids else ()


def _whole(program: str) -> str:
    return program if program.endswith("\n") else f"{program}\n"


def _is_within(place: int, spans: Sequence[tuple[int, int]]) -> bool:
    return any(start <= place < end for start, end in spans)
