"""A model that outlives its engine: vLLM's may fail in any step, and is loaded again.

Whatever a step raises, the engine is not trusted any more. It is shut down, its weights and the
adapters are loaded again, its prefix cache starts empty, and the children that were under way are
generated again with their seeds: nothing of them was recorded, so that is what a run does that was
killed there. Each failure is one line.

**A call on which the engine fails** would make it fail for ever. So a call that was in the engine
at two failures is generated alone from then on, while all others wait. If the engine fails again
then, and answers another prompt once it is loaded, the call is given up: its children end with
`engine.core.GIVEN_UP`. A request that vLLM refuses to take ends its own call likewise, and costs no
engine.

**Out of memory** is no call's fault: the engine is loaded with room for half as many requests at
once as it had been generating, as long as that is at least one.

**An end**, `ModelLost`, is what is left where the engine can't be loaded, does not even answer a
prompt of one token, or fails again and again while no call comes to its end.

Does not cover a step that hangs (``watchdog.py``), or what becomes of a run whose model is lost
(``engine.restart``).
"""

import logging
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.core import ChatFrame
from engine.inference.llm import LanguageModel
from engine.inference.model import EngineLoad, ModelLost, Sampling
from engine.inference.steady_children import SteadyChildren

_SUSPECT = 2
"""Failures after which a call is generated alone."""
_HOPELESS = 3
"""Failures, the last one alone, after which a call is given up."""
_MOST = 8
"""Failures and refusals in a row, while no call comes to its end, after which the model is lost."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """What an engine raised, as words: the error itself would keep the engine in memory.

    Attributes:
        said: a line.
        of_memory: whether there was too little.
    """

    said: str
    of_memory: bool

    @classmethod
    def of(cls, error: Exception) -> "Failure":
        """Return what is to be known of an error."""
        import torch

        words = " ".join(str(error).split())
        name = type(error).__name__
        frames = traceback.extract_tb(error.__traceback__)
        place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
        # PyTorch's own allocator of a CPU raises a plain RuntimeError.
        of_memory = isinstance(error, (torch.OutOfMemoryError, MemoryError))
        return cls(
            said=f"{name}: {words[:300]}{place}" if words else f"{name}{place}",
            of_memory=of_memory or "not enough memory" in words,
        )


class SteadyModel:
    """See the module, and `engine.inference.model.Model`."""

    def __init__(self, model: LanguageModel) -> None:
        """Begin with a model that is loaded; who loaded it closes it."""
        self._model = model
        self._calls: list[SteadyChildren] = []  # that are not over
        self._adapters: dict[int, Path] = {}
        self._failures = 0  # in a row, while no call came to its end
        self.max_model_len = model.max_model_len
        self.block_size = model.block_size

    def encode(self, text: str, *, plain: bool = False) -> list[int]:
        """See `engine.inference.model.Model`."""
        return self._model.encode(text, plain=plain)

    def chat_frame(self, *, system: str) -> ChatFrame:
        """See `engine.inference.model.Model`."""
        return self._model.chat_frame(system=system)

    def load(self) -> EngineLoad:
        """See `engine.inference.model.Model`."""
        return self._model.load()

    def forget(self) -> None:
        """See `engine.inference.model.Model`."""
        self._model.forget()

    def close(self) -> None:
        """Free what the model holds."""
        self._model.close()

    def adopt(self, version: int, folder: Path) -> None:
        """See `engine.inference.model.Model`."""
        failure = None
        try:
            self._model.adopt(version, folder)
        except RuntimeError as error:
            failure = Failure.of(error)
        self._adapters[version] = folder
        if failure is not None:
            self._recover(failure)

    def fanout(
        self, *, token_ids: Sequence[int], sampling: Sequence[Sampling], adapter: int = 0
    ) -> SteadyChildren:
        """See `engine.inference.model.Model`; the next step hands the requests to the engine."""
        if adapter and adapter not in self._adapters:
            raise ValueError(f"version {adapter} of the adapter was not loaded")
        call = SteadyChildren(token_ids=token_ids, sampling=sampling, adapter=adapter)
        self._calls.append(call)
        return call

    def step(self) -> None:
        """See `engine.inference.model.Model`."""
        failure = _failure_of(self._step)
        if failure is not None:
            self._recover(failure)
        elif any(not call.is_waiting and not call.indices for call in self._calls):
            self._failures = 0
        self._calls = [call for call in self._calls if call.indices]

    def _step(self) -> None:
        self._calls = [call for call in self._calls if call.indices]  # others were ended meanwhile
        suspects = [call for call in self._calls if call.failures >= _SUSPECT]
        for call in suspects[:1] or self._calls:
            if call.is_waiting:
                self._enter(call)
        if any(not call.is_waiting for call in self._calls):
            self._model.step()

    def _enter(self, call: SteadyChildren) -> None:
        try:
            call.enter(self._model)
        except ValueError as error:
            refused = Failure.of(error)
            self._count(refused)
            self._give_up(call, f"vLLM refuses it: {refused.said}")

    def _recover(self, failure: Failure) -> None:
        """Have another engine, and wait for it with all that is under way."""
        inside = [call for call in self._calls if not call.is_waiting]
        for call in inside:
            call.leave()
        running = min(self._model.most_at_once, sum(len(call.indices) for call in inside))
        most = None
        if failure.of_memory and running > 1:
            most = running // 2
        else:
            self._count(failure)
            for call in inside:
                call.failures += 1
        _log.warning(
            "the engine failed (%s); it is loaded again%s, and %d children are generated again",
            failure.said,
            "" if most is None else f", for {most} at once instead of {running}",
            sum(len(call.indices) for call in self._calls),
        )
        self._reload(failure, most_at_once=most)
        if len(inside) == 1 and inside[0].failures >= _HOPELESS:
            self._try_another(failure)
            self._give_up(inside[0], f"the engine failed on it {inside[0].failures} times")

    def _reload(self, failure: Failure, *, most_at_once: int | None) -> None:
        def reload() -> None:
            self._model.reload(most_at_once=most_at_once)
            for version, folder in [*self._adapters.items()]:
                if folder.is_dir():  # else no call needs it any more
                    self._model.adopt(version, folder)
                else:
                    del self._adapters[version]

        again = _failure_of(reload)
        if again is not None:
            raise ModelLost(
                f"the engine failed ({failure.said}) and can't be loaded again: {again.said}"
            )

    def _try_another(self, failure: Failure) -> None:
        """Have the engine answer a prompt of one token, so that it is the call that it fails on."""
        one = Sampling(temperature=0.0, seed=0, stop=(), max_tokens=1)

        def ask() -> None:
            for _ in self._model.fanout(token_ids=[0], sampling=[one]):
                pass

        again = _failure_of(ask)
        if again is not None:
            raise ModelLost(f"the engine fails on any prompt: {again.said}")

    def _give_up(self, call: SteadyChildren, why: str) -> None:
        _log.warning(
            "a call of %d children is given up: %s; they are recorded as refused (failed)",
            len(call.indices),
            why,
        )
        call.give_up()

    def _count(self, failure: Failure) -> None:
        """Count a failure or a refusal."""
        self._failures += 1
        if self._failures >= _MOST:
            raise ModelLost(
                f"the engine failed {_MOST} times while no call came to its end, last with: "
                f"{failure.said}"
            )


def _failure_of(work: Callable[[], None]) -> Failure | None:
    """Do something with the engine; return how that failed, None if it did not."""
    try:
        work()
    except ModelLost:
        raise
    except Exception as error:
        return Failure.of(error)
    return None
