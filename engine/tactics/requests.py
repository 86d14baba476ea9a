"""The question what to try, at the model beside the calls' requests.

One question is under way at a time. Its answer is recorded once it is back; if the run ends before,
it is asked again in the next session, if it is still due.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from engine.core import Event, Generation, Tactics
from engine.inference import Sampling
from engine.pipeline.request import Request
from engine.pipeline.requests import Requests, never
from engine.prompts.answer import spoken
from engine.prompts.chat import ChatOperator
from engine.search.search import Search

PROGRAMS = 3
"""The best programs, which the question shows."""
LONGEST = 600
"""Characters of an idea."""
_QUESTION = (
    "The search for a better program than these has come to a halt. Name {count} directions that "
    "none of them takes: another algorithm, another formulation, another library. Say of each in "
    "one line what to do and why it may score better.{tried}\n"
    "Answer with {count} lines that begin with '- ' and nothing else."
)
_TRIED = "\nThese were tried already; do not repeat them:\n{ideas}"
_LINE = re.compile(r"^[ \t]*(?:[-*]|\d+[.)])[ \t]+(\S.*)$", re.MULTILINE)


@dataclass(kw_only=True)
class TacticalRequests(Requests):
    """`Requests`, and a question when the search says that it is due.

    Attributes:
        search: says when, and takes the answer once it is recorded.
    """

    search: Search

    def __post_init__(self) -> None:
        super().__post_init__()
        self._asked: int | None = None  # the question's ticket
        self._question_ending = ""  # of its prompt: how it ends
        self._may_ask = False  # with the next `send`
        self._answers: list[Event] = []

    def ask(self) -> None:
        """Have the question sent, if it is due."""
        self._may_ask = True

    def send(self) -> None:
        """Send what was composed, and the question if that was asked for and it is due."""
        super().send()
        is_out = self._asked is not None or bool(self._answers)
        if self._may_ask and not is_out and self.search.wants_tactics:
            self._ask()
        self._may_ask = False

    def news(self) -> Sequence[Event]:
        """Return the answer that has come back, once."""
        answers, self._answers = self._answers, []
        return answers

    def _ask(self) -> None:
        settings = self.settings.tactics
        operator = next(o for o in self.operators.values() if isinstance(o, ChatOperator))
        tried = "\n".join(f"- {each}" for each in self.search.tried)
        words = _QUESTION.format(
            count=settings.ideas, tried=_TRIED.format(ideas=tried) if tried else ""
        )
        prompt = operator.question(
            self.search.best_of_all(PROGRAMS), words, max_tokens=settings.tokens
        )
        self._asked, self._question_ending = next(self._tickets), prompt.ending
        number = len(self.history.tactics)
        search = self.settings.search
        self.decoder.submit(
            self._asked,
            iteration=self.history.next_iteration,
            token_ids=prompt.token_ids,
            sampling=[
                Sampling(
                    temperature=(search.temperature_min + search.temperature_max) / 2,
                    seed=(self.settings.seed + number) % 2**32,
                    stop=(),
                    max_tokens=settings.tokens,
                )
            ],
            is_over=never,
        )

    def _completed(self) -> Iterator[tuple[Request, Generation]]:
        for ticket, generation in self.decoder.completed():
            if ticket == self._asked:
                self._asked = None
                self._answers.append(self._answer(generation))
            else:
                yield self._sent[ticket], generation

    def _answer(self, generation: Generation) -> Tactics:
        said = spoken(generation.text, asked=self._question_ending)
        return Tactics(
            number=len(self.history.tactics),
            ideas=ideas_of(said, most=self.settings.tactics.ideas),
            answer=generation.text,
            prompt_tokens=generation.prompt_tokens,
            cached_prompt_tokens=generation.cached_prompt_tokens,
            generated_tokens=generation.generated_tokens,
            llm_seconds=generation.llm_seconds,
        )


def ideas_of(answer: str, *, most: int) -> tuple[str, ...]:
    """Return the ideas of an answer: its first list items, each cut to `LONGEST` characters."""
    found = [each.strip()[:LONGEST] for each in _LINE.findall(answer)]
    return tuple(found[:most])
