"""What runs recorded, as rows that trainers outside read.

Covers: the rows of each format; docs/learning.md has their columns. Does not cover files:
``engine.export``.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from engine.core import Call, Child, Direction
from engine.learning.groups import outcome_of, rewards_of
from engine.learning.rewards import Rewards
from engine.settings import LearningSettings
from engine.store import RunHistory

_IGNORED = -100  # the label of a token that is not learned, as in torch's cross-entropy


@dataclass(kw_only=True)
class Recording:
    """A run, read.

    Attributes:
        name: its folder.
        settings: how its children are rewarded.
        direction: of the problem's score.
        target: the score that the problem declares as one; None for none.
        history: what the log adds up to.
    """

    name: str
    settings: LearningSettings
    direction: Direction
    target: float | None
    history: RunHistory

    def __post_init__(self) -> None:
        self._rewards: Rewards = rewards_of(
            self.settings,
            direction=self.direction,
            target=self.target,
            history=self.history,
        )

    def calls(self) -> Iterator[tuple[Call, list[tuple[Child, float]]]]:
        """Yield each call with those of its children that were judged, and their rewards.

        A child without an answer of its own, which shares another one's, is left out.
        """
        history = self.history
        for call in history.calls.values():
            names = [f"{call.iteration}.{index}" for index in range(call.k)]
            judged = [n for n in names if n in history.children and n not in history.pending]
            parent = history.verdicts[call.parent].score
            assert parent is not None  # or it was no parent
            outcomes = [outcome_of(name, history) for name in judged]
            rewards = self._rewards.of(outcomes, parent_score=parent)
            children = [
                (history.children[name], reward)
                for name, reward in zip(judged, rewards, strict=True)
                if reward is not None and history.children[name].completion_ids
            ]
            if children:
                yield call, children

    def is_new(self, child: Child) -> bool:
        """Whether a child's program has a score, and no program before it was the same."""
        verdict = self.history.verdicts.get(child.id)
        return verdict is not None and verdict.score is not None


def groups(recording: Recording) -> Iterator[dict[str, Any]]:
    """Yield a row for each call, with a list for each thing that its children differ in."""
    for call, children in recording.calls():
        outcomes = [outcome_of(child.id, recording.history) for child, _ in children]
        given = call.sampled_from
        yield {
            "run": recording.name,
            "iteration": call.iteration,
            "island": call.island,
            "operator": call.operator,
            "parent": call.parent,
            "parent_score": recording.history.verdicts[call.parent].score,
            "adapter": call.adapter,
            "prompt": call.prompt,
            "prompt_ids": list(given.prompt_ids) if given else None,
            "banned": list(given.banned) if given else None,
            "grammar": given.grammar if given else None,
            "schema": given.schema if given else None,
            "completions": [child.completion for child, _ in children],
            "completion_ids": [list(child.completion_ids) for child, _ in children],
            "logprobs": [list(child.logprobs) for child, _ in children],
            "temperatures": [_temperature(call, child) for child, _ in children],
            "rewards": [reward for _, reward in children],
            "scores": [each.score for each in outcomes],
            "failures": [each.failure.value if each.failure else None for each in outcomes],
            "refusals": [each.refusal.value if each.refusal else None for each in outcomes],
        }


def sft(recording: Recording) -> Iterator[dict[str, Any]]:
    """Yield a row for each new child with a score."""
    for call, children in recording.calls():
        for child, reward in children:
            if recording.is_new(child):
                row: dict[str, Any] = {"prompt": call.prompt, "completion": child.completion}
                if call.sampled_from is not None:
                    prompt, answer = list(call.sampled_from.prompt_ids), list(child.completion_ids)
                    row["input_ids"] = prompt + answer
                    row["labels"] = [_IGNORED] * len(prompt) + answer
                yield {**row, "reward": reward}


def dpo(recording: Recording) -> Iterator[dict[str, Any]]:
    """Yield a row for each call whose children's rewards differ: the best and the worst answer.

    The worst one is not the best one's program: a copy may earn less than what it copies.
    """
    for call, children in recording.calls():
        best = max(children, key=_reward)
        others = [each for each in children if _made(each[0]) != _made(best[0])]
        worst = min(others, key=_reward, default=best)
        if best[1] > worst[1]:
            yield {
                "prompt": call.prompt,
                "chosen": best[0].completion,
                "rejected": worst[0].completion,
                "chosen_reward": best[1],
                "rejected_reward": worst[1],
            }


def kto(recording: Recording) -> Iterator[dict[str, Any]]:
    """Yield a row for each answer, and whether its child is new and has a score.

    Copies of such a child by its siblings are left out: they would say the opposite of it.
    """
    for call, children in recording.calls():
        new = {_made(child) for child, _ in children if recording.is_new(child)}
        for child, _ in children:
            label = recording.is_new(child)
            if label or _made(child) not in new:
                yield {"prompt": call.prompt, "completion": child.completion, "label": label}


def _reward(rewarded: tuple[Child, float]) -> float:
    return rewarded[1]


def _made(child: Child) -> str:
    """Return what equal answers share: their program, or else their text."""
    return child.completion if child.program is None else child.program.key


def _temperature(call: Call, child: Child) -> float:
    """Return what an answer was sampled at; one that lists several programs has one for all."""
    return call.temperatures[min(child.index, len(call.temperatures) - 1)]


ROWS: Mapping[str, Callable[[Recording], Iterator[dict[str, Any]]]] = {
    "groups": groups,
    "sft": sft,
    "dpo": dpo,
    "kto": kto,
}
"""By the name of the format."""
