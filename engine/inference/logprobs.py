"""Log-probabilities of the sampled tokens alone, where vLLM would do more for them.

On a CPU vLLM 0.32 makes the logarithms of all probabilities and counts the likelier tokens of each
row: a sixth of the tokens a second at 64 children. Here a row's normaliser is computed, and one
token looked up. Everywhere vLLM also decodes each token a second time, to show it beside its
log-probability; here it need not.
"""

from typing import Any


def gather_on_cpu(engine: Any) -> None:
    """Let an engine on a CPU, made with ``logprobs_mode=processed_logits``, do no more."""
    engine.collective_rpc(_gather_sampled)


def show_no_tokens(engine: Any, request_id: str) -> None:
    """Let the engine return a request's log-probabilities without the text of each token."""
    state = engine.output_processor.request_states[request_id]
    state.logprobs_processor.tokenizer = None


def _gather_sampled(worker: Any) -> None:
    worker.model_runner.sampler.gather_logprobs = _of_sampled


def _of_sampled(logits: Any, num_logprobs: int, token_ids: Any) -> Any:
    """Return the sampled tokens' log-probabilities, in vLLM's form; ranks are left at 0.

    Args:
        logits: processed, (rows, vocabulary).
        num_logprobs: how many likelier tokens are wanted: none.
        token_ids: of each row.
    """
    import torch
    from vllm.v1.outputs import LogprobsTensors

    assert not num_logprobs
    # By rows: all at once would write and read another matrix of that size.
    normalisers = torch.stack([row.logsumexp(0) for row in logits])
    tokens = token_ids.unsqueeze(-1)
    found = logits.gather(-1, tokens) - normalisers.unsqueeze(-1)
    return LogprobsTensors(
        logprob_token_ids=tokens.to(torch.int32),
        logprobs=found.clamp_(max=0.0),
        selected_token_ranks=torch.zeros_like(token_ids),
    )
