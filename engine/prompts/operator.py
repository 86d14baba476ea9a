"""The contract of the operators: each is one way of asking for the next version of a program.

An operator turns a proposal into a prompt, and a completion into programs. Text goes in and text
comes out: no operator runs a model or a program. Whether a child is worth an evaluation is not the
operator's to say: ``engine.pipeline.reader``.

A prompt is a list of blocks. A block has the same tokens wherever it stands. So two prompts that
begin with the same blocks begin with the same tokens, which is what the prefix cache matches.

An operator registers itself in `OPERATORS`, and a run has those whose weights in
``search.operators`` are above 0. Only ``crossover`` and ``repair`` are given a second program.

Does not cover the order of blocks (``layouts.py``) or what they say (``chat.py``, ``infill.py``).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, ClassVar, Protocol

from engine.core import (
    Block,
    Candidate,
    ChatFrame,
    Generation,
    Parsed,
    Part,
    Problem,
    Prompt,
    Proposal,
)
from engine.registry import Registry

if TYPE_CHECKING:  # the settings look up the operators that they name
    from engine.settings import PromptSettings

_KEPT = 4096  # the most recently used blocks; a prompt has tens

Parsing = Callable[[], Sequence[Parsed]]
"""Parses a completion: returns what there is of each child in it, in its order.

The result has one entry where each child has a completion of its own, and otherwise up to
`Prompt.at_once`. A parsing is a `functools.partial` of a module's function, so that it can be
pickled and done in another process (``engine.syntax.workers``)."""


class Tokenizer(Protocol):
    """What prompts need to know of a model."""

    @property
    def max_model_len(self) -> int:
        """The longest prompt plus completion, in tokens."""

    @property
    def block_size(self) -> int:
        """Tokens of a block of the prefix cache."""

    def encode(self, text: str, *, plain: bool = False) -> list[int]:
        """Return the token ids of ``text``, with no token added.

        Args:
            text: what is encoded.
            plain: whether marks of turns in it are characters, and not the tokens that end a turn.
        """

    def chat_frame(self, *, system: str) -> ChatFrame:
        """Return what the model's chat template puts round the messages of a conversation."""


@dataclass(kw_only=True, eq=False)
class Operator:
    """One way of asking a language model for the next version of a program.

    Attributes:
        problem: what the task is made of.
        tokenizer: of the model.
        max_tokens: of a whole program, or of what stands for one.
        prompts: the run's.
        dimensions: names of the features of the islands' archives; none without archives.
    """

    problem: Problem
    tokenizer: Tokenizer
    max_tokens: int
    prompts: "PromptSettings"
    dimensions: tuple[str, ...] = ()

    instructs: ClassVar[bool] = False
    """Whether it asks in words, for a model that follows instructions."""

    @cached_property
    def _tokens(self) -> Callable[[str, bool], tuple[int, ...]]:
        return lru_cache(maxsize=_KEPT)(
            lambda text, plain: tuple(self.tokenizer.encode(text, plain=plain))
        )

    def block(
        self, part: Part, text: str, *, shows: tuple[str, ...] = (), framed: bool = False
    ) -> Block:
        """Return the block that holds a text.

        Args:
            part: of the prompt.
            text: what it holds. A program in it may have any characters, marks of turns too.
            shows: ids of the programs that can be read in it.
            framed: whether marks of turns in it are meant: it has some of the chat's frame.
        """
        return Block(part=part, text=text, token_ids=self._tokens(text, not framed), shows=shows)

    @property
    def longest_parent(self) -> int:
        """The most tokens that a parent may have for its prompt to fit the model's context."""
        raise NotImplementedError

    def compose(self, proposal: Proposal) -> Prompt:
        """Return the prompt for the proposal's children; the same proposal gives the same one."""
        raise NotImplementedError

    def stance(self, rule: str) -> str:
        """Return what a prompt says of the rule by which its parent was drawn; here nothing."""
        return ""

    def parsing(self, *, parent: Candidate, prompt: Prompt, generation: Generation) -> Parsing:
        """Return what parses a completion."""
        raise NotImplementedError

    def is_complete(self, *, parent: Candidate, prompt: Prompt, text: str) -> bool:
        """Return whether a completion that ends with ``text`` is as good as any that goes on.

        If it is, then every completion that begins with ``text`` is parsed to the same programs, or
        to none, whatever its ``finish_reason``. Asked in the decoder's thread, at each new line of
        a completion that is still being written, so it has to be quick. False says nothing.
        """
        return False


OPERATORS = Registry(Operator, package=__package__, group="brood.operators")


def make_operators(
    names: Iterable[str],
    *,
    problem: Problem,
    tokenizer: Tokenizer,
    max_tokens: int,
    prompts: "PromptSettings",
    dimensions: tuple[str, ...] = (),
) -> Mapping[str, Operator]:
    """Return the operators that have these names; the rest as `Operator` takes it."""
    return {
        name: OPERATORS.find(name, given=f"operator {name}")(
            problem=problem,
            tokenizer=tokenizer,
            max_tokens=max_tokens,
            prompts=prompts,
            dimensions=dimensions,
        )
        for name in names
    }
