"""Layouts: in which order the blocks of a prompt stand, and so how much of it is cached.

The prefix cache serves a prompt up to the first token that differs from what it holds, so a layout
decides what is computed in each iteration:

- ``classic``: task, parent, other programs, request. What the peers send, and the baseline: a new
  parent breaks the prefix right after the task.
- ``stable``: task, history, parent, request. The history only grows at its end until it is
  compacted (``engine.search.window``), so an iteration computes what was appended, the parent and
  the request.
- ``transcript``: the conversation in which the parent came to be, continued. The parent itself was
  written into the cache when it was decoded, so an iteration computes little more than the
  request. A conversation that outgrows its budget begins anew with the program that it had reached.
  All descendants of that program begin anew at the same place.

- ``ancestors``: the last steps of that conversation, each program shown whole; then other programs
  as inspirations, the parent and the request. CodeEvolve's. An infill shows the ancestors alone.

All begin with the same task block, whatever the parent.

A proposal that is made before all verdicts are in also has programs whose scores are pending. They
stand behind the history or the conversation, so the cached start of the prompt stays as it was. A
transcript shows them in its last request only: K more programs in each turn would use up its
budget. The price is that the next call computes that request and its answer again.

A prompt can be filled up so that it ends one token into a block of the prefix cache. vLLM caches
whole blocks. Each of the K children computes the end of the prompt that fills no block: half a
block on average, which for short prompts is most of what is computed at all. Empty lines before
the last line reduce that to one token, for all children but the first. They stand before the part
that changes most, so everything before them is cached as without them.

Does not cover the words (``chat.py``, ``infill.py``) or which programs are shown
(``engine.search``).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property

from engine.core import Block, Candidate, Part, Pending, Proposal, Turn, UserError
from engine.prompts.form import Form
from engine.prompts.operator import Operator, Tokenizer
from engine.settings import PromptSettings

_FILLER = "\n"

Ask = Callable[[Proposal], Sequence[Block]]
"""Returns the request, which ends a prompt."""


class Writer(Operator):
    """An operator that shows programs in the order of a layout; it has the words.

    Attributes:
        asks_with_parent: whether the request itself shows the parent, as an infill's does.
    """

    asks_with_parent = False

    @property
    def task(self) -> Block:
        """What never changes in a run."""
        raise NotImplementedError

    def shown(self, program: Candidate | Pending, part: Part) -> Block:
        """Return a program with its score, or that this is pending.

        ``part`` says what it is: of the history, or the parent.
        """
        raise NotImplementedError

    def exchange(self, turn: Turn, *, result: Candidate) -> Sequence[Block] | None:
        """Return an earlier request, its answer and what came of it.

        None for a turn of another operator's kind, which can't stand in this conversation.
        """
        raise NotImplementedError

    @cached_property
    def form(self) -> Form:
        """The form of the problem's programs."""
        return Form(self.problem.initial_program)

    @cached_property
    def _layout(self) -> "Layout":
        return make_layout(self.prompts, longest_parent=self.longest_parent)

    @property
    def _aligns(self) -> bool:
        # No transcript is filled up: a later prompt repeats its requests behind a text of another
        # length, and would have to repeat their empty lines too.
        return self.prompts.align and self.prompts.layout != "transcript"

    @property
    def _better(self) -> str:
        higher = self.problem.direction.better(1.0, than=0.0)
        return f"{'Higher' if higher else 'Lower'} scores are better."

    def _laid_out(self, proposal: Proposal, ask: Ask, *, room: int) -> tuple[Block, ...]:
        """Return the blocks of a prompt, filled up if the run wants that; see `fitted`."""
        blocks = fitted(self._layout, proposal, self, ask, room=room)
        return aligned(blocks, self.tokenizer, room=room) if self._aligns else blocks


def _earlier(proposal: Proposal, writer: Writer) -> list[Block]:
    """Return the history and, behind it, the programs whose scores are pending."""
    programs: tuple[Candidate | Pending, ...] = (*proposal.history, *proposal.pending)
    return [writer.shown(each, Part.HISTORY) for each in programs]


class Classic:
    """Task, parent, others, pending ones, request."""

    def arrange(self, proposal: Proposal, writer: Writer) -> tuple[Block, ...]:
        """Return the blocks of the proposal's prompt before its request."""
        parent = writer.shown(proposal.parent, Part.PARENT)
        return (writer.task, parent, *_earlier(proposal, writer))

    def smaller(self, proposal: Proposal) -> Proposal | None:
        """Leave out the first of the others; None if there is none."""
        return replace(proposal, history=proposal.history[1:]) if proposal.history else None


class Stable:
    """Task, history that only grows at its end, pending programs, parent, request."""

    def arrange(self, proposal: Proposal, writer: Writer) -> tuple[Block, ...]:
        """Return the blocks of the proposal's prompt before its request."""
        before = (writer.task, *_earlier(proposal, writer))
        if writer.asks_with_parent:
            return before
        return (*before, writer.shown(proposal.parent, Part.PARENT))

    def smaller(self, proposal: Proposal) -> Proposal | None:
        """Leave out the end of the history, so that the prompt's start stays; None if none is."""
        return replace(proposal, history=proposal.history[:-1]) if proposal.history else None


class Transcript:
    """The parent's own conversation, continued."""

    def __init__(self, *, budget: int) -> None:
        """``budget``: the most tokens of a conversation; a longer one begins anew."""
        self._budget = budget
        # Tokens of each exchange, None where there is none: a lineage may have hundreds.
        self._sizes: dict[tuple[str, Candidate, Candidate], int | None] = {}

    def arrange(self, proposal: Proposal, writer: Writer) -> tuple[Block, ...]:
        """Return the blocks of the proposal's prompt before its request."""
        turns = self._conversation(proposal, writer)
        first = turns[0][0].candidate if turns else proposal.parent
        said = [writer.task, writer.shown(first, Part.PARENT)]
        for turn, result in turns:
            said += writer.exchange(turn, result=result) or ()
        return (*said, *_earlier(replace(proposal, history=()), writer))

    def smaller(self, proposal: Proposal) -> Proposal | None:
        """Leave out the conversation; None if there is none."""
        return replace(proposal, lineage=()) if proposal.lineage else None

    def _conversation(self, proposal: Proposal, writer: Writer) -> list[tuple[Turn, Candidate]]:
        """Return the turns since it last began anew, each with the program that came of it."""
        kept: list[tuple[Turn, Candidate]] = []
        spent = 0
        results = [*(turn.candidate for turn in proposal.lineage[1:]), proposal.parent]
        # An initial program has no lineage, but is a result.
        for turn, result in zip(proposal.lineage, results, strict=False):
            size = self._size(turn, result, writer)
            if not kept:
                spent = len(writer.shown(turn.candidate, Part.PARENT).token_ids)
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


class Ancestors:
    """The parent's nearest ancestors and what became of each, inspirations, parent, request."""

    def arrange(self, proposal: Proposal, writer: Writer) -> tuple[Block, ...]:
        """Return the blocks of the proposal's prompt before its request."""
        said = [writer.task]
        if writer.asks_with_parent:
            said += [writer.shown(turn.candidate, Part.HISTORY) for turn in proposal.lineage]
            return (*said, *_earlier(proposal, writer))
        results = [*(turn.candidate for turn in proposal.lineage[1:]), proposal.parent]
        for turn, result in zip(proposal.lineage, results, strict=False):
            exchange = writer.exchange(turn, result=result)
            if exchange is None:
                said = [writer.task]  # the conversation begins anew
            else:
                said += [writer.shown(turn.candidate, Part.PARENT), *exchange]
        return (*said, *_earlier(proposal, writer), writer.shown(proposal.parent, Part.PARENT))

    def smaller(self, proposal: Proposal) -> Proposal | None:
        """Leave out the first ancestor, or the last inspiration; None if there is neither."""
        if proposal.lineage:
            return replace(proposal, lineage=proposal.lineage[1:])
        return replace(proposal, history=proposal.history[:-1]) if proposal.history else None


Layout = Classic | Stable | Transcript | Ancestors


def make_layout(settings: PromptSettings, *, longest_parent: int) -> Layout:
    """Return the layout that the settings name.

    Args:
        settings: the run's.
        longest_parent: the most tokens that a parent may have. A conversation has no larger budget
            than that: so it fits the model's context, and never has to be cut from its start,
            which would change the prefix of every later prompt.
    """
    if settings.layout == "classic":
        return Classic()
    if settings.layout == "stable":
        return Stable()
    if settings.layout == "ancestors":
        return Ancestors()
    budget = settings.history_tokens + settings.growth_tokens
    return Transcript(budget=min(budget, longest_parent))


def fitted(
    layout: Layout, proposal: Proposal, writer: Writer, ask: Ask, *, room: int
) -> tuple[Block, ...]:
    """Return the blocks of a prompt of at most ``room`` tokens, leaving out no more than needed.

    Raises:
        UserError: the task, the parent and the request alone do not fit.
    """
    smaller: Proposal | None = proposal
    while smaller is not None:
        blocks = (*layout.arrange(smaller, writer), *ask(smaller))
        size = _tokens(blocks)
        if size <= room:
            return blocks
        smaller = less(layout, smaller)
    raise UserError(
        f"the task and candidate {proposal.parent.id} have {size} tokens, and the model takes "
        f"{room} beside its answer; raise model.max_model_len"
    )


def less(layout: Layout, proposal: Proposal) -> Proposal | None:
    """Return the proposal with one thing less to show; None if nothing more can be left out.

    The failed attempts go first, the oldest of them before the others; then the pending programs,
    from the last one on; then what the layout chooses; then a crossover's partner, or the attempt
    that a repair corrects; then guidance; then tactics; in the end a hint.
    """
    if proposal.failures:
        return replace(proposal, failures=proposal.failures[1:])
    if proposal.pending:
        return replace(proposal, pending=proposal.pending[:-1])
    smaller = layout.smaller(proposal)
    if smaller is None and (proposal.partner is not None or proposal.repairs is not None):
        return replace(proposal, partner=None, repairs=None)
    if smaller is None and proposal.guidance:
        return replace(proposal, guidance="")
    if smaller is None and proposal.tactics:
        return replace(proposal, tactics="")
    if smaller is None and proposal.hint:
        return replace(proposal, hint="")
    return smaller


def _tokens(blocks: Iterable[Block]) -> int:
    return sum(len(block.token_ids) for block in blocks)


def aligned(blocks: tuple[Block, ...], tokenizer: Tokenizer, *, room: int) -> tuple[Block, ...]:
    """Return the blocks with empty lines before the last one, as many as align its end.

    Where that takes more than ``room`` tokens, or an empty line is no token of its own, the blocks
    are returned as they are.
    """
    size = _tokens(blocks)
    count = (1 - size) % tokenizer.block_size
    filler = tuple(tokenizer.encode(_FILLER))
    if not count or len(filler) != 1 or size + count > room:
        return blocks
    filling = Block(part=Part.ASK, text=_FILLER * count, token_ids=filler * count)
    return (*blocks[:-1], filling, blocks[-1])


def score_in_words(program: Candidate | Pending) -> str:
    """Return a score with all its digits: two scores that differ must not look the same."""
    return repr(program.score) if isinstance(program, Candidate) else "pending"
