"""What an operator is, and what it needs of the model's tokenizer.

An operator turns a proposal into a prompt, and a completion into programs. Text goes in and text
comes out: no operator runs a model or a program. Whether a child is worth an evaluation is not the
operator's to say: ``engine.search.population``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from engine.core import Candidate, ChatFrame, Generation, Parsed, Problem, Prompt, Proposal


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

    def parse(
        self, *, parent: Candidate, prompt: Prompt, generation: Generation
    ) -> Sequence[Parsed]:
        """Return what there is of each child in the completion, in its order.

        That is one entry for a prompt whose children have a completion each, and otherwise up to
        `Prompt.at_once`.
        """

    def is_hopeless(self, *, parent: Candidate, prompt: Prompt, text: str) -> bool:
        """Return whether `parse` finds no program in any completion that begins with ``text``.

        Asked of a completion that is still being written, at each new line; costs about 0.1 ms for
        a text of 100 lines, on average over its lines. False says nothing.
        """

    def is_complete(self, *, parent: Candidate, prompt: Prompt, text: str) -> bool:
        """Return whether a completion that ends with ``text`` is as good as any that goes on.

        `parse` then finds in ``text``, whatever its ``finish_reason``, what it finds in everything
        that begins with it, or nothing is to be found there. Asked and priced as `is_hopeless` is.
        """


def direction_in_words(problem: Problem) -> str:
    """Say which scores are better."""
    return "Higher" if problem.direction.better(1.0, than=0.0) else "Lower"
