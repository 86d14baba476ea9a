"""What an iteration brought and cost, read off the recorded events once all its verdicts are in.

Does not cover when that is (``state.py``), what the search makes of an outcome, or which children
improved their island (``engine.search``).
"""

from engine.core import Call
from engine.search.widths import IterationOutcome
from engine.store import RunHistory


def outcome_of(call: Call, history: RunHistory, *, workers: int, improved: int) -> IterationOutcome:
    """Return the outcome of a call whose children are all judged.

    Args:
        call: of the iteration.
        history: of the run.
        workers: evaluators.
        improved: how many of its children improved their island.
    """
    children = [history.children[f"{call.iteration}.{i}"] for i in range(call.k)]
    computed = [child.prompt_tokens - child.cached_prompt_tokens for child in children]
    generated = [child.generated_tokens for child in children]
    verdicts = [history.verdicts[child.id] for child in children if child.refusal is None]
    return IterationOutcome(
        iteration=call.iteration,
        island=call.island,
        parent=call.parent,
        children=len(children),
        improved=improved,
        model_seconds=sum(child.llm_seconds for child in children),
        computed_tokens=sum(computed),
        repeated_tokens=sum(computed) - max(computed),
        decode_steps=max(generated),
        generated_tokens=sum(generated),
        evaluation_seconds=sum(each.evaluation.seconds for each in verdicts) / workers,
    )
