"""The trainer: groups of children in, an adapter out.

Covers: the steps, their safety, saving and going on. What children are worth to each other is
``advantages.py``; how their tokens are computed, ``batch.py`` and ``network.py``.

A step is taken back, adapter and optimizer, to where it began if its gradient is not finite or if
the new adapter is too far from the model itself. If the entropy or the share of new children has
collapsed, which several steps brought about, the adapter goes back to the oldest of the last four
steps' beginnings, and the optimizer, whose momentum led there, begins anew.
"""

import math
import pickle
import time
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from engine.core import SampledFrom, UserError
from engine.learning.adapter import load_adapter, save_adapter
from engine.learning.advantages import advantages
from engine.learning.batch import Batch, batches
from engine.learning.collapse import Variety, of_entropy
from engine.learning.expert import Example, Examples
from engine.learning.group import Answer, Group
from engine.learning.loss import token_losses
from engine.learning.masks import Masks
from engine.learning.network import Network
from engine.learning.optimizer import AdapterOptimizer
from engine.learning.refit import Refit
from engine.learning.step import Step, plain_step
from engine.settings import LearningSettings

_STATE = "trainer.pt"
_KEPT = 4  # adapters that steps began with
_NO_STEP = Variety()
# What a damaged file has torch, its optimizer and what else reads the state raise.
_DAMAGE = (
    *(OSError, EOFError, RuntimeError, ValueError, TypeError, LookupError),
    *(AttributeError, AssertionError, OverflowError),
)


class Trainer:
    """Owns the model that is trained, its adapter and the optimizer."""

    def __init__(
        self,
        *,
        weights: Path,
        settings: LearningSettings,
        seed: int,
        device: str = "cpu",
        dtype: torch.dtype = torch.bfloat16,
    ) -> None:
        """Load the model; its adapter is new, and so the model itself.

        Args:
            weights: folder in Hugging Face's layout.
            settings: of the run.
            seed: of the new adapter, and of what is drawn by chance.
            device: ``cpu`` or ``cuda``.
            dtype: of the model's weights; the adapter's are float32.

        Raises:
            UserError: the model can't be trained; the message says why and what to do.
        """
        if device == "cuda":
            whole = torch.cuda.get_device_properties(0).total_memory
            torch.cuda.set_per_process_memory_fraction(min(1.0, settings.memory_gb * 2**30 / whole))
        self._weights = weights
        self._settings = settings
        self._network = Network(
            weights=weights, settings=settings, seed=seed, device=device, dtype=dtype
        )
        self._masks = Masks(weights=weights, vocabulary=len(self._network.head))
        self._optimizer = AdapterOptimizer(self._network.parameters, settings)
        self._new = self._optimizer.parameters()
        self._earlier: deque[tuple[int, tuple[torch.Tensor, ...]]] = deque(maxlen=_KEPT)
        self._examples = Examples()
        self._refit = Refit(network=self._network, masks=self._masks, optimizer=self._optimizer)
        self._random = torch.Generator().manual_seed(seed)

    def step(
        self,
        groups: Sequence[Group],
        *,
        version: int,
        progress: float,
        kept: Collection[int] | None = None,
        variety: Variety = _NO_STEP,
    ) -> Step:
        """Learn from groups.

        Args:
            groups: at least one; groups without members are left out.
            version: of the adapter that the trainer holds.
            progress: share of the budget that is spent, from 0 to 1.
            kept: versions that it may go back to; None for all.
            variety: of the steps before.
        """
        began = time.perf_counter()
        if kept is not None:
            # A trainer that is restored has, from its checkpoint, adapters from before the version
            # that a collapse went back to, which the trainer that collapsed had forgotten.
            there = [each for each in self._earlier if each[0] in kept]
            self._earlier = deque(there, maxlen=_KEPT)
            if kept == {version}:  # nor has its optimizer begun anew then, as that trainer's had
                self._optimizer.begin_at(self._optimizer.parameters())
        groups = [group for group in groups if group.members]
        step = self._guarded(groups, version=version, progress=progress, variety=variety)
        self._masks.forget()
        return replace(step, seconds=time.perf_counter() - began)

    def logprobs(self, answers: Sequence[Answer]) -> list[torch.Tensor]:
        """Return each answer's log-probabilities, of all its tokens, under the adapter.

        Tokens that were no choice have 0; those from which on the grammar refuses it have NaN.
        """
        found = [torch.full((len(answer.token_ids),), torch.nan) for answer in answers]
        for each, answer in zip(found, answers, strict=True):
            each[: len(self._masks.supports(answer))] = 0.0
        with torch.no_grad():
            for batch in batches(answers, network=self._network, masks=self._masks):
                values, _ = batch.compute(self._network)
                places = zip(batch.owners.tolist(), batch.steps.tolist(), strict=True)
                for (owner, place), value in zip(places, values.tolist(), strict=True):
                    found[owner][place] = value
        return found

    def save(self, folder: Path) -> None:
        """Write everything that a later step depends on; the adapter in peft's format."""
        folder.mkdir(parents=True, exist_ok=True)
        save_adapter(self._network.peft, folder, weights=self._weights)
        state = {
            "optimizer": self._optimizer.adamw.state_dict(),
            "earlier": list(self._earlier),
            "examples": [asdict(example) for example in self._examples],
            "random": self._random.get_state(),
        }
        torch.save(state, folder / _STATE)

    def load(self, folder: Path) -> None:
        """Go on where `save` was called.

        Raises:
            UserError: the folder does not hold it, or another model's or other settings'.
        """
        load_adapter(self._network.peft, folder)
        try:
            state = torch.load(folder / _STATE, weights_only=True)
            self._optimizer.begin_at(self._optimizer.parameters())
            self._optimizer.adamw.load_state_dict(state["optimizer"])
            self._earlier = deque(state["earlier"], maxlen=_KEPT)
            self._examples.restore(_example(each) for each in state["examples"])
            self._random.set_state(state["random"])
        except _DAMAGE as error:
            reason = " ".join(str(error).split())[:300]
            raise UserError(
                f"the trainer's state in {folder} can't be read: {reason}; begin another run"
            ) from error
        except pickle.UnpicklingError as error:  # torch's message is long, and on other things
            raise UserError(
                f"the trainer's state in {folder} can't be read: it is damaged; begin another run"
            ) from error

    def _guarded(
        self, groups: Sequence[Group], *, version: int, progress: float, variety: Variety
    ) -> Step:
        """Make a step, and take it back if it went wrong."""
        if not groups:
            return Step(reward=0.0, version=version, skipped="there is no child to learn from")
        step = plain_step(groups)
        wrong = variety.after(step.unique).fault
        if wrong is None:
            before, drawn = self._optimizer.moment(), self._random.get_state()
            if not self._earlier or self._earlier[-1][0] != version:
                self._earlier.append((version, before.parameters))
            learn = self._imitated if self._settings.method == "expert" else self._learned
            step, chosen = learn(step, groups, progress=progress)
            if step.skipped is not None:
                return replace(step, version=version)
            kl, entropy, own = self._against_model(chosen)
            step = replace(step, kl=kl)
            bad = _badness(step, self._settings)
            if bad is not None:
                self._optimizer.go_back(before)
                self._random.set_state(drawn)
                return replace(step, version=version, rolled_back=bad)
            wrong = of_entropy(entropy, own=own)
            if wrong is None:
                return step
            self._random.set_state(drawn)
        return self._back(step, wrong, version=version)

    def _back(self, step: Step, wrong: str, *, version: int) -> Step:
        """Go back to the oldest adapter that is kept, or else begin anew at this one."""
        own = version, self._optimizer.parameters()
        earliest, parameters = self._earlier[0] if self._earlier else own
        self._earlier.clear()
        self._optimizer.begin_at(parameters)
        return replace(step, version=earliest, rolled_back=wrong)

    def _learned(
        self, step: Step, groups: Sequence[Group], *, progress: float
    ) -> tuple[Step, list[Batch]]:
        """Follow the gradient of the clipped loss (PACEvolve++ Eq. 6)."""
        answers: list[Answer] = []
        worth: list[float] = []
        spreads: list[float] = []
        for group in groups:
            rewards = np.array([member.reward for member in group.members])
            found = advantages(
                self._settings.method, rewards, progress=progress, settings=self._settings
            )
            if found is None:
                continue
            spreads.append(float(found.std()))
            for member, value in zip(group.members, found.tolist(), strict=True):
                answers += member.answers
                worth += [value] * len(member.answers)
        if not spreads:
            reason = "no group's rewards tell its children apart"
            return replace(step, skipped=reason), []
        chosen = list(batches(answers, network=self._network, masks=self._masks))
        if not chosen:
            return replace(step, skipped="no token was a choice"), []
        step = replace(step, spread=sum(spreads) / len(spreads))
        return self._passes(step, chosen, torch.tensor(worth, dtype=torch.float32)), chosen

    def _passes(self, step: Step, chosen: Sequence[Batch], worth: torch.Tensor) -> Step:
        tokens = sum(len(batch.owners) for batch in chosen)
        olds: list[torch.Tensor] = []
        entropy = mismatch = clipped = 0.0
        norm = 0.0
        for number in range(self._settings.passes):
            for index, batch in enumerate(chosen):
                logprobs, entropies = batch.compute(self._network)
                recorded = batch.recorded.to(logprobs.device)
                if number == 0:
                    olds.append(logprobs.detach())
                    entropy += float(entropies.sum()) / tokens
                    gaps = (logprobs.detach() - recorded).abs()
                    mismatch += float(gaps.nan_to_num().sum()) / tokens
                losses, cut = token_losses(
                    logprobs,
                    old=olds[index],
                    recorded=recorded,
                    advantages=worth[batch.owners].to(logprobs.device),
                    settings=self._settings,
                )
                (losses.sum() / tokens).backward()  # type: ignore[no-untyped-call]
                clipped += float(cut.sum()) / tokens / self._settings.passes
            norm = max(norm, self._optimizer.step(), key=_largeness)
        return replace(
            step,
            entropy=entropy,
            mismatch=mismatch,
            clip_share=clipped,
            gradient_norm=norm,
            tokens=tokens,
        )

    def _imitated(
        self, step: Step, groups: Sequence[Group], *, progress: float
    ) -> tuple[Step, list[Batch]]:
        """Fit the model itself to the best children so far; see ``expert.py``."""
        answers = [
            answer for group in groups for member in group.members for answer in member.answers
        ]
        chosen = list(batches(answers, network=self._network, masks=self._masks))
        self._examples.take(groups)
        if not chosen or not list(self._examples):
            return replace(step, skipped="there is no new valid child to imitate"), []
        tokens = sum(len(batch.owners) for batch in chosen)
        entropy = mismatch = 0.0
        with torch.no_grad():
            for batch in chosen:
                logprobs, entropies = batch.compute(self._network)
                gaps = (logprobs - batch.recorded.to(logprobs.device)).abs()
                entropy += float(entropies.sum()) / tokens
                mismatch += float(gaps.nan_to_num().sum()) / tokens
        self._optimizer.begin_at(self._new)
        norm, learned = self._refit.fit(
            [answer for example in self._examples for answer in example.answers],
            generator=self._random,
        )
        step = replace(step, entropy=entropy, mismatch=mismatch, gradient_norm=norm, tokens=learned)
        return step, chosen

    def _against_model(self, chosen: Sequence[Batch]) -> list[float]:
        """Return the tokens' mean divergence from the model, entropy and entropy in the model."""
        tokens = sum(len(batch.owners) for batch in chosen)
        sums = torch.stack([batch.against_model(self._network) for batch in chosen]).sum(dim=0)
        found: list[float] = (sums / tokens).tolist()
        return found


def _badness(step: Step, settings: LearningSettings) -> str | None:
    """Return why a step can't stand, or None."""
    if not math.isfinite(step.gradient_norm):
        return "the gradient is not finite"
    if not math.isfinite(step.kl):
        return "the new adapter's probabilities are not finite"
    if step.kl > settings.most_kl:
        return f"the new adapter is {step.kl:.3f} nats a token away, above {settings.most_kl:g}"
    return None


def _largeness(norm: float) -> float:
    return norm if math.isfinite(norm) else math.inf


def _example(state: dict[str, Any]) -> Example:
    answers = tuple(
        Answer(**{**answer, "sampled_from": SampledFrom(**answer["sampled_from"])})
        for answer in state["answers"]
    )
    return Example(key=state["key"], worth=tuple(state["worth"]), answers=answers)
