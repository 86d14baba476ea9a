"""The adapter's parameters and their optimizer: a gradient step, and taking it back.

AdamW with PACEvolve++'s betas (Table 1). Its weight decay pulls the adapter's matrices to zero,
which is the model itself.
"""

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from engine.settings import LearningSettings

_BETAS = (0.9, 0.98)
_MOST_NORM = 1.0  # of a gradient


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """Parameters, and their optimizer's state, at one time."""

    parameters: tuple[torch.Tensor, ...]
    optimizer: Mapping[str, Any]


class AdapterOptimizer:
    """Owns the optimizer of an adapter's parameters."""

    def __init__(self, parameters: Sequence[torch.Tensor], settings: LearningSettings) -> None:
        self._parameters = tuple(parameters)
        self._settings = settings
        self.adamw = self._new()

    def step(self) -> float:
        """Follow the gradients that were added up; return their norm before it was clipped.

        Does nothing if that is not finite. Clears them.
        """
        norm = float(torch.nn.utils.clip_grad_norm_(self._parameters, _MOST_NORM))
        if math.isfinite(norm):
            self.adamw.step()
        self.adamw.zero_grad()
        return norm

    def parameters(self) -> tuple[torch.Tensor, ...]:
        """Return a copy of the parameters."""
        return tuple(each.detach().clone() for each in self._parameters)

    def moment(self) -> Moment:
        """Return a copy of everything."""
        return Moment(self.parameters(), copy.deepcopy(self.adamw.state_dict()))

    def go_back(self, moment: Moment) -> None:
        """Make everything as it was."""
        self.begin_at(moment.parameters)
        self.adamw.load_state_dict(copy.deepcopy(dict(moment.optimizer)))

    @torch.no_grad()
    def begin_at(self, parameters: Sequence[torch.Tensor]) -> None:
        """Set the parameters; the optimizer begins anew."""
        for own, given in zip(self._parameters, parameters, strict=True):
            own.copy_(given)
        self.adamw = self._new()

    def _new(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(
            self._parameters,
            lr=self._settings.learning_rate,
            betas=_BETAS,
            weight_decay=self._settings.weight_decay,
        )
