"""Layouts: in which order the blocks of a prompt stand, and so how much of it is cached.

The prefix cache serves a prompt up to the first token that differs from what it holds, so a layout
decides what is computed in each iteration:

- ``classic``: task, parent, other programs, request. What the peers send, and the baseline: a new
  parent breaks the prefix right after the task.
- ``stable``: task, history, parent, request. The history only grows at its end until it is
  compacted (``engine.search.window``), so an iteration computes what was appended, the parent and
  the request. A parent that stands in the history may be named instead of repeated.
- ``transcript``: the conversation in which the parent came to be, continued. The parent itself was
  written into the cache when it was decoded, so an iteration computes little more than the
  request. A conversation that outgrows its budget begins anew from the program that it had reached,
  at the same place for all that descend from it.

All three begin with the same task block, whatever the parent.

A proposal that is made before all verdicts are in also has programs whose scores are pending. They
are shown behind the history or the conversation, so that what may be cached stays as it was, and
once one joins the history only its score is another. A transcript shows them in its last request
alone: repeated in each later one, K programs a turn would use its budget up, where leaving them out
computes the parent's own request and answer again.

Does not cover the words (``chat.py``, ``infill.py``) or which programs are shown
(``engine.search``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from engine.core import Block, Candidate, Pending, Proposal, Turn
from engine.settings import PromptSettings


class Writer(Protocol):
    """The words of one operator: what a layout puts in order."""

    @property
    def task(self) -> Block:
        """What never changes in a run."""

    @property
    def asks_with_parent(self) -> bool:
        """Whether the request itself shows the parent, as an infill's does."""

    def earlier(self, candidate: Candidate) -> Block:
        """Return a program of the history with its score."""

    def pending(self, program: Pending) -> Block:
        """Return a program whose score is pending, else as `earlier` returns it."""

    def current(self, candidate: Candidate) -> Block:
        """Return the program to change, in full."""

    def named(self, candidate: Candidate) -> Block:
        """Return what points to a program that `earlier` shows."""

    def ask(self, proposal: Proposal) -> Sequence[Block]:
        """Return the request, after which the model answers."""

    def exchange(self, turn: Turn, *, result: Candidate) -> Sequence[Block] | None:
        """Return an earlier request, its answer and what came of it.

        None for a turn of another operator's kind, which can't stand in this conversation.
        """


class Layout(Protocol):
    """An order of blocks."""

    def arrange(self, proposal: Proposal, writer: Writer) -> tuple[Block, ...]:
        """Return the blocks of the proposal's prompt."""

    def smaller(self, proposal: Proposal) -> Proposal | None:
        """Return the proposal with one thing less to show, so that its prompt is shorter.

        What is left out is chosen so that the prefix stays what it was, where that can be. None if
        only the task, the parent and the request are left.
        """


class Classic:
    """Task, parent, others, pending ones, request."""

    def arrange(self, proposal: Proposal, writer: Writer) -> tuple[Block, ...]:
        """See `Layout.arrange`."""
        return (
            writer.task,
            writer.current(proposal.parent),
            *map(writer.earlier, proposal.history),
            *map(writer.pending, proposal.pending),
            *writer.ask(proposal),
        )

    def smaller(self, proposal: Proposal) -> Proposal | None:
        """Leave out failed attempts and pending programs, then the first of the others."""
        if proposal.failures or proposal.pending:
            return _briefer(proposal)
        if proposal.history:
            return replace(proposal, history=proposal.history[1:])
        return None


class Stable:
    """Task, history that only grows at its end, pending programs, parent, request."""

    def __init__(self, *, name_parent: bool) -> None:
        """``name_parent``: name a parent that stands in the history instead of repeating it."""
        self._name_parent = name_parent

    def arrange(self, proposal: Proposal, writer: Writer) -> tuple[Block, ...]:
        """See `Layout.arrange`."""
        return (
            writer.task,
            *map(writer.earlier, proposal.history),
            *map(writer.pending, proposal.pending),
            *self._parent(proposal, writer),
            *writer.ask(proposal),
        )

    def smaller(self, proposal: Proposal) -> Proposal | None:
        """Leave out failed attempts and pending programs, then the end of the history."""
        if proposal.failures or proposal.pending:
            return _briefer(proposal)
        if proposal.history:
            return replace(proposal, history=proposal.history[:-1])
        return None

    def _parent(self, proposal: Proposal, writer: Writer) -> list[Block]:
        if writer.asks_with_parent:
            return []
        if self._name_parent and proposal.parent in proposal.history:
            return [writer.named(proposal.parent)]
        return [writer.current(proposal.parent)]


class Transcript:
    """The parent's own conversation, continued."""

    def __init__(self, *, budget: int) -> None:
        """``budget``: the most tokens of a conversation; a longer one begins anew."""
        self._budget = budget
        # Tokens of each exchange, None where there is none: a lineage may have hundreds.
        self._sizes: dict[tuple[str, Candidate, Candidate], int | None] = {}

    def arrange(self, proposal: Proposal, writer: Writer) -> tuple[Block, ...]:
        """See `Layout.arrange`."""
        said: list[Block] = []
        for turn, result in self._conversation(proposal, writer):
            said += [] if said else [writer.current(turn.candidate)]
            said += writer.exchange(turn, result=result) or ()
        first = [] if said else [writer.current(proposal.parent)]
        return (
            writer.task,
            *said,
            *first,
            *map(writer.pending, proposal.pending),
            *writer.ask(proposal),
        )

    def smaller(self, proposal: Proposal) -> Proposal | None:
        """Leave out failed attempts and pending programs, then the conversation."""
        if proposal.failures or proposal.pending:
            return _briefer(proposal)
        if proposal.lineage:
            return replace(proposal, lineage=())
        return None

    def _conversation(self, proposal: Proposal, writer: Writer) -> list[tuple[Turn, Candidate]]:
        """Return the turns since it last began anew, each with the program that came of it."""
        kept: list[tuple[Turn, Candidate]] = []
        spent = 0
        results = [*(turn.candidate for turn in proposal.lineage[1:]), proposal.parent]
        # An initial program has no lineage, but is a result.
        for turn, result in zip(proposal.lineage, results, strict=False):
            size = self._size(turn, result, writer)
            if not kept:
                spent = len(writer.current(turn.candidate).token_ids)
            if size is None or spent + size > self._budget:
                kept = []  # from here on, the result is the first program shown
            else:
                kept.append((turn, result))
                spent += size
        return kept

    def _size(self, turn: Turn, result: Candidate, writer: Writer) -> int | None:
        key = (turn.operator, turn.candidate, result)
        if key not in self._sizes:
            exchange = writer.exchange(turn, result=result)
            self._sizes[key] = None if exchange is None else _tokens(exchange)
        return self._sizes[key]


def make_layout(settings: PromptSettings, *, longest_parent: int) -> Layout:
    """Return the layout that the settings name.

    Args:
        settings: the run's.
        longest_parent: the most tokens that a parent may have; a conversation that is no longer
            fits the model's context too, so none has to be cut from its start, which would break
            the prefix of each iteration that follows.
    """
    if settings.layout == "classic":
        return Classic()
    if settings.layout == "stable":
        return Stable(name_parent=settings.name_parent)
    budget = settings.history_tokens + settings.growth_tokens
    return Transcript(budget=min(budget, longest_parent))


def fitted(
    layout: Layout, proposal: Proposal, writer: Writer, *, room: int
) -> tuple[Block, ...] | int:
    """Return the blocks of a prompt of at most ``room`` tokens, with as much as that holds.

    The last thing to be left out is a crossover's partner, or the attempt that a repair corrects.
    Where not even the task, the parent and the request fit, return how many tokens they have.
    """
    while True:
        blocks = layout.arrange(proposal, writer)
        size = _tokens(blocks)
        if size <= room:
            return blocks
        smaller = layout.smaller(proposal)
        if smaller is None and proposal.partner is None and proposal.repairs is None:
            return size
        proposal = smaller or replace(proposal, partner=None, repairs=None)


def _briefer(proposal: Proposal) -> Proposal:
    """Leave out the oldest failed attempt; if there is none, the last pending program."""
    if proposal.failures:
        return replace(proposal, failures=proposal.failures[1:])
    return replace(proposal, pending=proposal.pending[:-1])


def _tokens(blocks: Iterable[Block]) -> int:
    return sum(len(block.token_ids) for block in blocks)
