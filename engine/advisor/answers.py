"""What the advisor answers: the grammars that hold it to a form, and reading what it wrote.

Each answer is one JSON object. The grammars bound its length, because a small model under a grammar
may go on for as long as it is let. They allow one way of writing each answer, without escapes, so
that few tokens are spent on its form. The readers believe none of this: they take any text, and
return None for one that is not such an object. An answer that was cut off is none, but for an
experiment, which counts as far as it goes.

    {"ideas": [{"hypothesis": "...", "reasoning": "..."}, (three of them)]}
    {"ideas": [{"is": "new"}, {"is": "refines", "idea": 2}, {"is": "repeats", "idea": 1}]}
    {"idea": 4, "experiment": "..."}
"""

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from engine.core import Novelty
from engine.prompts.attempts import harmless

IDEAS = 3
"""Ideas before each child (appendix E)."""
_TOKENS = 2  # for each word; prose has about 1.4
_HYPOTHESIS, _REASONING, _EXPERIMENT = 40, 80, 120
"""The most words of each. A bound on words costs 0.1 ms a token or less, the more the larger it is;
one on characters takes seconds to compile."""
_WORD = r'word ::= [^"\\\x00-\x20\x7f]{1,40}' + "\n"
_IDEA = r"""
root ::= "{\"ideas\": [" %s "]}"
idea ::= "{\"hypothesis\": \"" hypothesis "\", \"reasoning\": \"" reasoning "\"}"
hypothesis ::= word (" " word){1,%d}
reasoning ::= word (" " word){1,%d}
"""
_NOVELTY = r"""
root ::= "{\"ideas\": [" %s "]}"
verdict ::= "{\"is\": \"new\"}" | "{\"is\": \"" kind "\", \"idea\": " number "}"
kind ::= "refines" | "repeats"
number ::= %s
"""
_SELECTION = r"""
root ::= "{\"idea\": " number ", \"experiment\": \"" experiment "\"}"
experiment ::= word (" " word){2,%d}
number ::= %s
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Draft:
    """An idea as it was written, before it was compared with others."""

    hypothesis: str
    reasoning: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Judgement:
    """What an idea is beside those of the repository.

    Attributes:
        novelty: what it is.
        number: of the idea in the repository that it refines or repeats, as the prompt numbers
            them; None for a new one.
    """

    novelty: Novelty
    number: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    """Which idea is tested, as the prompt numbers them, and how."""

    number: int
    experiment: str


def ideas_grammar(*, tokens: int) -> str:
    """Return the grammar of three ideas, in an answer of at most about ``tokens`` tokens."""
    words = tokens // _TOKENS // IDEAS
    short = max(1, min(_HYPOTHESIS, words // 3))
    long = max(1, min(_REASONING, words - short))
    return _IDEA % (_listed("idea"), short, long) + _WORD


def novelty_grammar(*, known: int) -> str:
    """Return the grammar of what three ideas are beside ``known`` others, at least one."""
    return _NOVELTY % (_listed("verdict"), _numbers(range(1, known + 1)))


def selection_grammar(numbers: Collection[int], *, tokens: int) -> str:
    """Return the grammar of a choice among ``numbers``, at least one, with an experiment."""
    most = max(2, min(_EXPERIMENT, tokens // _TOKENS))
    return _SELECTION % (most, _numbers(numbers)) + _WORD


def read_ideas(text: str) -> tuple[Draft, ...] | None:
    """Return the three ideas of an answer."""
    drafts = []
    for each in _entries(text):
        hypothesis, reasoning = plain(each.get("hypothesis")), plain(each.get("reasoning"))
        if not hypothesis or not reasoning:
            return None
        drafts.append(Draft(hypothesis=hypothesis, reasoning=reasoning))
    return tuple(drafts) if len(drafts) == IDEAS else None


def read_novelty(text: str, *, known: int) -> tuple[Judgement, ...] | None:
    """Return what each of the three ideas is beside the ``known`` ones of the prompt."""
    judgements = []
    for each in _entries(text):
        novelty = next((one for one in Novelty if one == each.get("is")), None)
        number = each.get("idea")
        if novelty is Novelty.NEW:
            judgements.append(Judgement(novelty=novelty))
        elif novelty is not None and type(number) is int and 1 <= number <= known:
            judgements.append(Judgement(novelty=novelty, number=number))
        else:
            return None
    return tuple(judgements) if len(judgements) == IDEAS else None


def read_selection(text: str, *, numbers: Collection[int]) -> Selection | None:
    """Return which of the ideas that the prompt numbers so is tested, and how."""
    whole = _object(text) or _object(f'{text}"}}')
    number, experiment = whole.get("idea"), plain(whole.get("experiment"))
    if type(number) is not int or number not in numbers or not experiment:
        return None
    return Selection(number=number, experiment=experiment)


def plain(text: object) -> str:
    """Return a text of the advisor's in one line, without what a later prompt could mistake.

    Empty for what is no text.
    """
    if not isinstance(text, str):
        return ""
    return " ".join(harmless(text).replace("\N{REPLACEMENT CHARACTER}", " ").split())


def _entries(text: str) -> list[dict[str, Any]]:
    """Return the objects under ``ideas``; none where anything else is among them."""
    entries = _object(text).get("ideas")
    if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
        return []
    return entries


def _object(text: str) -> dict[str, Any]:
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return whole if isinstance(whole, dict) else {}


def _listed(rule: str) -> str:
    return ' ", " '.join([rule] * IDEAS)


def _numbers(numbers: Collection[int]) -> str:
    return " | ".join(f'"{number}"' for number in numbers)
