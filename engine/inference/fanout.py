"""K children of one prompt while they are generated.

Covers: their requests, what has come of each so far, ending them early, and what each cost. Does
not cover running the engine: ``llm.py``, and in a thread ``decoder.py``.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from engine.core import Generation
from engine.inference.model import Sampling

_BANNED = -100.0  # the lowest logit bias that vLLM takes


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
    ) -> None:
        """Hand the requests to the engine.

        Args:
            engine: vLLM's.
            step: runs it for one step and hands the outputs to their fan-outs.
            call: a number that no other fan-out has.
            token_ids: the prompt.
            sampling: of each child.
        """
        from vllm.inputs import tokens_input

        self._engine = engine
        self._step = step
        self._prompt_tokens = len(token_ids)
        self._running = {f"{call}.{index}": index for index in range(len(sampling))}
        self._latest: dict[str, Any] = {}
        self._finished: list[Generation] = []
        self._seconds = dict.fromkeys(self._running, 0.0)
        for request_id, each in zip(self._running, sampling, strict=True):
            engine.add_request(request_id, tokens_input(token_ids), sampling_params(each))

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
            )
        )


def sampling_params(sampling: Sampling) -> Any:
    """Return what vLLM is told of one child."""
    from vllm import SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

    form = None
    if sampling.grammar is not None:
        form = StructuredOutputsParams(grammar=sampling.grammar)
    elif sampling.schema is not None:
        form = StructuredOutputsParams(json=sampling.schema)
    return SamplingParams(
        temperature=sampling.temperature,
        seed=sampling.seed,
        stop=list(sampling.stop),
        max_tokens=sampling.max_tokens,
        logit_bias=dict.fromkeys(sampling.banned, _BANNED) or None,
        structured_outputs=form,
    )
