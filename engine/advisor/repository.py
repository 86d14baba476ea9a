"""What the advisor is shown of the idea repository: few enough tokens, the best and the latest.

Does not cover what is in it (``engine.store.ideas``).
"""

import itertools
from collections.abc import Callable, Iterator, Sequence

from engine.advisor.answers import plain
from engine.store import Experiment, Outcome, TriedIdea

_EXPERIMENTS = 3  # of an idea that are shown: the best one, then the latest
_MOST_REASON = 80  # characters of why there is no score
_MOST_TEXT = 240  # characters of a hypothesis, and of an experiment


def chosen(
    ideas: Sequence[TriedIdea], *, size: Callable[[str], int], most_tokens: int
) -> tuple[TriedIdea, ...]:
    """Return the ideas that are shown, in the order of the log.

    By turns the one with the best experiment and the latest are taken, as long as there is room.

    Args:
        ideas: of the repository, in the order of the log.
        size: returns how many tokens a text has.
        most_tokens: of all that are taken.
    """
    with_gain = sorted(
        (n for n, each in enumerate(ideas) if each.gain is not None),
        key=lambda n: (-(ideas[n].gain or 0.0), n),
    )
    latest = range(len(ideas) - 1, -1, -1)
    taken: set[int] = set()
    left = most_tokens
    for number in _by_turns(with_gain, latest):
        if number in taken:
            continue
        left -= size(described(ideas[number], number=len(ideas)))
        if left < 0:
            break
        taken.add(number)
    return tuple(ideas[number] for number in sorted(taken))


def described(tested: TriedIdea, *, number: int) -> str:
    """Return an idea under its number in a prompt, with the best and the latest experiments."""
    lines = [f"## Idea {number}", _cut(tested.idea.hypothesis)]
    shown = _shown(tested.experiments)
    lines += [f"- {_cut(each.description)} -> {_result(each.outcome)}" for each in shown]
    if len(shown) < len(tested.experiments):
        lines.append(f"- tried {len(tested.experiments)} times in all")
    if not shown:
        lines.append("- not tried yet")
    return "\n".join(lines) + "\n"


def _by_turns(first: Sequence[int], second: Sequence[int]) -> Iterator[int]:
    for pair in itertools.zip_longest(first, second):
        yield from (each for each in pair if each is not None)


def _shown(experiments: Sequence[Experiment]) -> list[Experiment]:
    """Return the best experiment and the latest, in their order."""
    numbers = sorted(range(len(experiments)), key=lambda n: (_rank(experiments[n]), -n))
    kept = {*numbers[:1], *range(len(experiments))[1 - _EXPERIMENTS :]}
    return [experiments[n] for n in sorted(kept)]


def _rank(experiment: Experiment) -> float:
    """Return what sorts experiments, the best one first, those without a score last."""
    gain = None if experiment.outcome is None else experiment.outcome.gain
    return float("inf") if gain is None else -gain


def _result(outcome: Outcome | None) -> str:
    if outcome is None:
        return "no result yet"
    if outcome.score is None or outcome.gain is None:
        return f"no score ({_cut(outcome.reason, _MOST_REASON)})"
    if not outcome.gain:
        return f"score {outcome.score:.6g}, no change"
    way = "better" if outcome.gain > 0 else "worse"
    return f"score {outcome.score:.6g}, {way} by {abs(outcome.gain):.3g}"


def _cut(text: str, most: int = _MOST_TEXT) -> str:
    text = plain(text)
    return text if len(text) <= most else text[: most - 3].rstrip() + "..."
