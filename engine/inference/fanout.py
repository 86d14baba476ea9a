"""K children of one prompt while they are generated.

Covers: their requests, what has come of each so far, ending them early, and what each cost. Does
not cover running the engine: ``llm.py``, and in a thread ``decoder.py``.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.core import Generation
from engine.inference.logprobs import show_no_tokens
from engine.inference.model import Sampling
from engine.settings import ModelSettings

_BANNED = -100.0  # the lowest logit bias that vLLM takes


@dataclass(frozen=True, kw_only=True, slots=True)
class Truncation:
    """Which tokens may be drawn at all, the same for every child.

    At high temperatures the many unlikely tokens add up (Holtzman et al., arXiv 1904.09751, for
    ``top_p``; Nguyen et al., arXiv 2407.01082, for ``min_p``).

    Attributes:
        top_p: share of the probability that the likeliest tokens have which may be drawn.
        top_k: how many of the likeliest tokens; 0 for all.
        min_p: the least probability, as a share of the likeliest token's.
    """

    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0


class FanOut:
    """The K children of one prompt; made by `LanguageModel.fanout`.

    Step the model as long as there are `indices`, or iterate to get the children in the order they
    finish. Several fan-outs may be in the engine at once: a step is one of all, and each keeps its
    own children until `take` hands them out. A caller that stops earlier must call `close`.
    """

    def __init__(
        self,
        *,
        engine: Any,
        step: Callable[[], None],
        call: int,
        token_ids: list[int],
        sampling: Sequence[Sampling],
        truncation: Truncation,
        adapter: Any = None,
        salt: str | None = None,
        learns: bool = False,
    ) -> None:
        """Hand the requests to the engine.

        Args:
            engine: vLLM's.
            step: runs it for one step and hands the outputs to their fan-outs.
            call: a number that no other fan-out has.
            token_ids: the prompt.
            sampling: of each child.
            truncation: of all children.
            adapter: vLLM's name of the one that they are sampled from; None for the model itself.
            salt: of the prefix cache, where the prompt's keys and values are the adapter's own.
            learns: whether the children have log-probabilities.

        Raises:
            ValueError: the engine refuses a request; then it has none of them.
        """
        from vllm.exceptions import VLLMClientError
        from vllm.inputs import tokens_input

        self._engine = engine
        self._step = step
        self._prompt_tokens = len(token_ids)
        self._running = {f"{call}.{index}": index for index in range(len(sampling))}
        self._latest: dict[str, Any] = {}
        self._finished: list[Generation] = []
        self._seconds = dict.fromkeys(self._running, 0.0)
        try:
            for request_id, each in zip(self._running, sampling, strict=True):
                params = sampling_params(each, truncation, learns=learns)
                prompt = tokens_input(token_ids, cache_salt=salt)
                named = engine.add_request(request_id, prompt, params, lora_request=adapter)
                if learns:
                    show_no_tokens(engine, named)
        except (ValueError, VLLMClientError) as error:
            self.close()
            raise ValueError(str(error)) from error

    def __iter__(self) -> Iterator[Generation]:
        """Step until every child was handed out."""
        while self._running:
            self._step()
            yield from self.take()
        yield from self.take()

    @property
    def indices(self) -> tuple[int, ...]:
        """Numbers of the children that are still generated."""
        return tuple(self._running.values())

    def take(self) -> list[Generation]:
        """Return the children that finished since the last time, without running the engine."""
        finished, self._finished = self._finished, []
        return finished

    def seconds(self) -> Mapping[int, float]:
        """Return what the children that are still generated have cost so far, by index."""
        return {number: self._seconds[name] for name, number in self._running.items()}

    def texts(self) -> Mapping[int, str]:
        """Return what the children that are still generated have so far, by index."""
        return {
            self._running[request_id]: output.outputs[0].text
            for request_id, output in self._latest.items()
        }

    def abort(self, index: int) -> None:
        """End child ``index`` now; it is still handed out, with the tokens that it has so far."""
        for request_id, number in list(self._running.items()):
            if number == index:
                self._engine.abort_request([request_id])
                self._finish(request_id, finish_reason="abort")

    def close(self) -> None:
        """Abort every child that is still running and forget those not handed out."""
        self._engine.abort_request(list(self._running))
        self._running.clear()
        self._latest.clear()
        self._finished.clear()

    def note(self, outputs: Mapping[str, Any], *, seconds: float) -> None:
        """Take in a step.

        Args:
            outputs: what vLLM says after it, by request.
            seconds: each running child's share of it.
        """
        for request_id in list(self._running):
            self._seconds[request_id] += seconds
            output = outputs.get(request_id)
            if output is not None:
                self._latest[request_id] = output
                if output.finished:
                    self._finish(request_id, finish_reason=str(output.outputs[0].finish_reason))

    def _finish(self, request_id: str, *, finish_reason: str) -> None:
        index = self._running.pop(request_id)
        output = self._latest.pop(request_id, None)  # None: aborted before its first token
        completion = output.outputs[0] if output else None
        self._finished.append(
            Generation(
                index=index,
                text=completion.text if completion else "",
                token_ids=tuple(completion.token_ids) if completion else (),
                finish_reason=finish_reason,
                prompt_tokens=self._prompt_tokens if output else 0,
                cached_prompt_tokens=(output.num_cached_tokens or 0) if output else 0,
                llm_seconds=self._seconds[request_id],
                logprobs=_logprobs(completion),
            )
        )


def _logprobs(completion: Any) -> tuple[float, ...]:
    """Return the log-probability of each token; empty if they were not asked for.

    Empty too if one is not finite, as numbers in a narrow format may come out: nothing is learned
    from such an answer, and no log could hold it.
    """
    if completion is None or completion.logprobs is None:
        return ()
    count = len(completion.token_ids)
    found = tuple(completion.logprobs.logprobs[:count])
    return found if all(map(math.isfinite, found)) else ()


def truncation(settings: ModelSettings, folder: Path) -> Truncation:
    """Return what the settings give, or else the model's own ``generation_config.json``."""
    try:
        own = json.loads((folder / "generation_config.json").read_text(encoding="utf-8"))
        top_p, top_k = float(own.get("top_p") or 1.0), int(own.get("top_k") or 0)
    except (OSError, ValueError, TypeError, AttributeError):  # most models come with none
        top_p, top_k = 1.0, 0
    return Truncation(
        top_p=top_p if settings.top_p is None else settings.top_p,
        top_k=top_k if settings.top_k is None else settings.top_k,
        min_p=settings.min_p,
    )


def sampling_params(sampling: Sampling, truncation: Truncation, *, learns: bool = False) -> Any:
    """Return what vLLM is told of one child; ``learns`` asks for its log-probabilities."""
    from vllm import SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

    form = None
    if sampling.grammar is not None:
        form = StructuredOutputsParams(grammar=sampling.grammar)
    elif sampling.schema is not None:
        form = StructuredOutputsParams(json=sampling.schema)
    return SamplingParams(
        temperature=sampling.temperature,
        top_p=truncation.top_p,
        top_k=truncation.top_k,
        min_p=truncation.min_p,
        seed=sampling.seed,
        stop=list(sampling.stop),
        max_tokens=sampling.max_tokens,
        logit_bias=dict.fromkeys(sampling.banned, _BANNED) or None,
        structured_outputs=form,
        skip_reading_prefix_cache=not sampling.reads_cache,
        logprobs=0 if learns else None,  # of the sampled token alone
        flat_logprobs=learns,
    )
