"""What is asked where guidance is rewritten: for better guidance, and then for the program.

Both prompts begin with the task, the programs and the parent, as the layout has them, so they are
computed once. Guidance stands behind them.

Does not cover the words of the second prompt (``engine.prompts.chat``), who is asked when
(``chain.py``), or which guidance is shown (``choice.py``).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from engine.core import Block, Candidate, Generation, Part, Prompt, Proposal
from engine.guidance.text import INITIAL_GUIDANCE
from engine.prompts import Operator, Parsing
from engine.prompts.chat import SCORE_TOKENS, ChatOperator, guided_by
from engine.prompts.layouts import fitted
from engine.settings import GUIDED, MOST_CHILDREN, GuidanceSettings

_REQUEST = (
    "# What to do\nThe guidance above is what a programmer is told, besides the task, who is to "
    "improve the current program. Improve the guidance, so that better programs come of it: learn "
    "from the current program and its score, add what you know about such problems, name "
    "approaches, algorithms and patterns that are worth a try, and leave out what misleads. Do "
    "not write the program. Answer with one or more blocks of this form and nothing else; the "
    "search lines have to stand in the guidance letter by letter:\n"
    "<<<<<<< SEARCH\nlines to replace\n=======\nnew lines\n>>>>>>> REPLACE"
)
_SLACK = 24  # tokens of a title, and of the lines round it


@dataclass(kw_only=True, eq=False)
class GuidedOperator(ChatOperator):
    """An operator whose request shows guidance, and that can ask for better guidance first.

    Attributes:
        base: the operator.
        settings: the guidance's.
    """

    base: ChatOperator
    settings: GuidanceSettings

    @property
    def longest_parent(self) -> int:
        """See `ChatOperator.longest_parent`."""
        nothing = Candidate(id="", program="", score=0.0)
        widest = Proposal(
            iteration=0, parent=nothing, history=(), operator="", k=MOST_CHILDREN, seed=0
        )
        asked = (self.task, self.shown(nothing, Part.PARENT), *self._asking(widest))
        asking = sum(len(each.token_ids) for each in asked)
        room = self._room_to_ask - asking - self.settings.tokens - SCORE_TOKENS
        return min(room, self.base.longest_parent - self.settings.tokens - _SLACK)

    @cached_property
    def initial(self) -> str:
        """The guidance that each island begins with."""
        return INITIAL_GUIDANCE

    def compose(self, proposal: Proposal) -> Prompt:
        """Return the prompt for the proposal's children, with its guidance."""
        return self.base.compose(proposal)

    def rewriting(self, proposal: Proposal) -> Prompt:
        """Return what asks for better guidance than the proposal's."""
        bare = replace(proposal, failures=(), history=(), pending=(), partner=None, repairs=None)
        blocks = fitted(self._layout, bare, self, self._asking, room=self._room_to_ask)
        return Prompt(blocks=blocks, stop=(), max_tokens=self.settings.answer_tokens)

    def size(self, text: str) -> int:
        """Return how many tokens a text has."""
        return len(self.tokenizer.encode(text))

    def parsing(self, *, parent: Candidate, prompt: Prompt, generation: Generation) -> Parsing:
        """Return what parses the program's answer."""
        return self.base.parsing(parent=parent, prompt=prompt, generation=generation)

    def is_complete(self, *, parent: Candidate, prompt: Prompt, text: str) -> bool:
        """Return whether the program's answer need not go on."""
        return self.base.is_complete(parent=parent, prompt=prompt, text=text)

    @property
    def _room_to_ask(self) -> int:
        return self.tokenizer.max_model_len - self.settings.answer_tokens

    def _asking(self, proposal: Proposal) -> tuple[Block, ...]:
        return tuple(self._asked([*guided_by(proposal.guidance), (_REQUEST, ())]))


def guided(operators: Mapping[str, Operator], settings: GuidanceSettings) -> Mapping[str, Operator]:
    """Return operators of which those of ``engine.settings.GUIDED`` show guidance."""
    return {
        name: GuidedOperator(
            problem=each.problem,
            tokenizer=each.tokenizer,
            max_tokens=each.max_tokens,
            prompts=each.prompts,
            dimensions=each.dimensions,
            base=each,
            settings=settings,
        )
        if name in GUIDED and isinstance(each, ChatOperator)
        else each
        for name, each in operators.items()
    }
