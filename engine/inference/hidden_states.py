"""Mean hidden states of texts, from the served model, while it goes on decoding.

What vLLM's generating engine computes for a prompt token on the way to the logits, the model's
output after its last norm, is thrown away but for the last token. Here it is summed on the way: a
text is a request of one sampled token like any other, in the same batch, on the same weights, and
between two lines of vLLM's own step, after the forward pass and before sampling, its rows are read
from what the model returned. Nothing of a step changes, and once the texts are done nothing of
this is left in the engine.

- A token whose KV is in the prefix cache is not computed, and has no hidden state. So these
  requests do not look the cache up (``skip_reading_prefix_cache``, which vLLM has for the log
  probabilities of prompts), and nothing is loaded for them from LMCache; their blocks do join
  both.
- A prefill may be split over steps, and start again after a preemption: rows are told apart by
  their request and their position, and counted.

vLLM 0.32 has two model runners, one for a CPU and, where there is Triton, a newer one. On a GPU
this was not run, and what it reads of the newer runner follows that runner's source. Does not
cover engines whose workers are other processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray


def mean_hidden_states(
    *, engine: Any, step: Callable[[], None], prompts: Mapping[str, Sequence[int]]
) -> NDArray[np.float32]:
    """Return the mean of each prompt's last hidden states, shape (len(prompts), hidden size).

    Runs the engine until all are computed; what else is in it goes on meanwhile. Call it in the
    thread that steps the engine.

    Args:
        engine: vLLM's.
        step: runs it for one step, and takes what comes of the other requests.
        prompts: token ids by the name of their request, at least one prompt of at least one
            token each; the names are no other request's.
    """
    from vllm import SamplingParams
    from vllm.inputs import tokens_input

    sums: dict[str, _Sum] = {}
    once = SamplingParams(temperature=0.0, max_tokens=1, skip_reading_prefix_cache=True)
    with _watching(_runner(engine), sums):
        try:
            for name, token_ids in prompts.items():
                inside = engine.add_request(name, tokens_input(list(token_ids)), once)
                sums[inside] = _Sum(len(token_ids))
            while not all(each.is_complete for each in sums.values()):
                step()
        finally:
            engine.abort_request(list(prompts))  # ends what is left if a step failed
    return np.stack([each.mean() for each in sums.values()])


class _Sum:
    """The sum of a request's hidden states so far."""

    def __init__(self, tokens: int) -> None:
        self._tokens = tokens
        self._seen = 0
        self._total: Any = None

    @property
    def is_complete(self) -> bool:
        return self._seen == self._tokens

    def add(self, rows: Any, *, first: int) -> None:
        """Take in the rows of a step, (tokens, hidden size), the first one at position ``first``.

        Raises:
            RuntimeError: they do not follow those before.
        """
        rows = rows[: self._tokens - first]  # what was sampled is no part of the text
        if not len(rows):
            return
        if first == 0:  # for the first time, or again after a preemption
            self._seen, self._total = 0, 0.0
        if first != self._seen:
            raise RuntimeError(
                f"Expected hidden states from position {self._seen} on, but they began at {first}"
            )
        # A tensor of its own: the engine writes over the rows in its next step.
        self._total = self._total + rows.float().sum(dim=0)
        self._seen += len(rows)

    def mean(self) -> NDArray[np.float32]:
        mean: NDArray[np.float32] = (self._total / self._tokens).cpu().numpy()
        return mean


def _runner(engine: Any) -> Any:
    """Return what runs the model, in this process."""
    executor = engine.engine_core.engine_core.model_executor
    return executor.driver_worker.worker.model_runner


@contextmanager
def _watching(runner: Any, sums: Mapping[str, _Sum]) -> Iterator[None]:
    """Add to ``sums``, by vLLM's own request ids, what the runner's steps compute."""
    execute = runner.execute_model

    def execute_and_add(*args: Any, **kwargs: Any) -> Any:
        result = execute(*args, **kwargs)
        state = runner.execute_model_state
        if state is not None:  # else no token was to be computed
            _add_rows(runner, state, sums)
        return result

    runner.execute_model = execute_and_add
    try:
        yield
    finally:
        del runner.execute_model  # the class's own shows again


def _add_rows(runner: Any, state: Any, sums: Mapping[str, _Sum]) -> None:
    if hasattr(state, "input_batch"):  # vllm/v1/worker/gpu/model_runner.py
        batch = state.input_batch
        starts, computed = batch.query_start_loc_np, batch.num_computed_tokens_np
    else:  # vllm/v1/worker/gpu_model_runner.py
        batch = runner.input_batch
        starts, computed = runner.query_start_loc.np, batch.num_computed_tokens_cpu
    for index, name in enumerate(batch.req_ids):
        if name in sums:
            rows = state.hidden_states[int(starts[index]) : int(starts[index + 1])]
            sums[name].add(rows, first=int(computed[index]))
