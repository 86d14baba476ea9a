"""What the operators that hold a conversation ask for, in words.

Covers: the request at a prompt's end, with the programs that only it shows: a crossover's second
one, a repair's failed attempt. Where there is no room for that program, both ask for what a rewrite
asks for. Does not cover the rest of the prompt (``chat.py``) or the request for several programs
(``verbalized.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.core import Attempt, Candidate
from engine.prompts.attempts import describe_attempts, describe_broken
from engine.prompts.fence import fenced

REQUESTS = {
    "rewrite": (
        "Write a better version of the current program. Answer with the whole program in one "
        "```python block and nothing else."
    ),
    "diff": (
        "Change the current program so that its score gets better. Answer with one or more blocks "
        "of this form and nothing else; the search lines have to stand in the program letter by "
        "letter:\n"
        "<<<<<<< SEARCH\nlines to replace\n=======\nnew lines\n>>>>>>> REPLACE"
    ),
    "crossover": (
        "Write one program that joins what is good in the current program and in the other one, "
        "and is better than both. Answer with the whole program in one ```python block and nothing "
        "else."
    ),
    "repair": (
        "Find out why the broken program got no score and correct it; keep the idea that sets it "
        "apart from the current program. Answer with the whole corrected program in one ```python "
        "block and nothing else."
    ),
}
"""By the operator's name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Piece:
    """A part of a request, and the ids of the programs that can be read in it."""

    text: str
    shows: tuple[str, ...] = ()


def request(
    operator: str,
    *,
    parent: Candidate,
    failures: Sequence[Attempt],
    partner: Candidate | None,
    repairs: Attempt | None,
) -> list[Piece]:
    """Return the parts of a request, in order.

    Args:
        operator: name of the operator that asks.
        parent: the program that the prompt shows as the current one.
        failures: failed attempts at changing it.
        partner: a crossover's second program; None where it is not shown.
        repairs: a repair's failed attempt; None where it is not shown.
    """
    pieces = []
    if partner is not None:
        text = shown("Other program", partner.program, score_in_words(partner))
        pieces.append(Piece(text=text, shows=(partner.id,)))
    if repairs is not None:
        pieces.append(Piece(text=describe_broken(repairs) + "\n\n", shows=(repairs.id,)))
    is_alone = partner is None and repairs is None and operator in ("crossover", "repair")
    pieces.append(Piece(text=REQUESTS["rewrite" if is_alone else operator]))
    return [*pieces, *failed(failures, parent=parent)]


def failed(failures: Sequence[Attempt], *, parent: Candidate) -> list[Piece]:
    """Return the end of a request that shows failed attempts at changing ``parent``, if any."""
    if not failures:
        return []
    text = "\n\n" + describe_attempts(failures, parent=parent.program)
    return [Piece(text=text, shows=tuple(each.id for each in failures))]


def shown(title: str, program: str, score: str) -> str:
    """Return a program under a title that says its score."""
    return f"# {title}, score {score}\n{fenced('python', program.strip())}\n\n"


def score_in_words(candidate: Candidate) -> str:
    """Return a score with all its digits: two scores that differ must not look the same."""
    return repr(candidate.score)
