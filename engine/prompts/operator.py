"""What an operator is, and what it needs of the model's tokenizer.

An operator turns a proposal into a prompt, and a completion into programs. Text goes in and text
comes out: no operator runs a model or a program. Whether a child is worth an evaluation is not the
operator's to say: ``engine.search.population``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from engine.core import Candidate, ChatFrame, Generation, Parsed, Problem, Prompt, Proposal

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

    def encode(self, text: str) -> list[int]:
        """Return the token ids of ``text``, with no token added."""

    def chat_frame(self, *, system: str) -> ChatFrame:
        """Return what the model's chat template puts round the messages of a conversation."""


class Operator(Protocol):
    """One way of asking a language model for the next version of a program."""

    @property
    def longest_parent(self) -> int:
        """The most tokens that a parent may have for its prompt to fit the model's context."""

    def compose(self, proposal: Proposal) -> Prompt:
        """Return the prompt for the proposal's children; the same proposal gives the same one."""

    def parsing(self, *, parent: Candidate, prompt: Prompt, generation: Generation) -> Parsing:
        """Return what parses a completion."""

    def is_hopeless(self, *, parent: Candidate, prompt: Prompt, text: str) -> bool:
        """Return whether the parsing finds no program in any completion that begins with ``text``.

        Asked in the decoder's thread, at each new line of a completion that is still being written,
        so it has to be quick. False says nothing.
        """
        return False

    def is_complete(self, *, parent: Candidate, prompt: Prompt, text: str) -> bool:
        """Return whether a completion that ends with ``text`` is as good as any that goes on.

        If it is, then every completion that begins with ``text`` is parsed to the same programs, or
        to none, whatever its ``finish_reason``. Asked when `is_hopeless` is.
        """
        return False


def direction_in_words(problem: Problem) -> str:
    """Say which scores are better."""
    return "Higher" if problem.direction.better(1.0, than=0.0) else "Lower"
