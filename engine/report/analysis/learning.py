"""``analysis=learning``: the steps of training, and what calls brought before and after them.

Covers: the figures of each `engine.core.Update`; and the children by the version of the adapter
that they were sampled from, in windows of calls. Their parents differ from window to window, so a
rate that falls may mean harder parents. ``python -m engine.probe`` compares the model with the
adapter on the same prompts.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from engine.core import Update
from engine.report.analysis.figures import Share, Table
from engine.report.analysis.runs import RunRecord, Trial

_WINDOWS = 12  # of equally many calls


def learning(runs: Sequence[RunRecord]) -> dict[str, Table]:
    """Return the steps of all runs, and what their calls brought."""
    return {
        "updates": Table(
            title="Steps of training",
            rows=[_step(run, each) for run in runs for each in run.history.updates],
            note=(
                "version: that calls begin with after the step; spread: standard deviation of the "
                "advantages in a group; entropy, kl (to the model itself), mismatch (sampler and "
                "trainer): nats a token; clipped: share of the tokens; lag: versions; unique: new "
                "valid children; common: share of the most frequent answer."
            ),
        ),
        "children": Table(
            title="Children in the order of their calls",
            rows=[row for run in runs for row in _windows(run)],
            note=(
                "children: that were judged; valid: new programs with a score; improved: better "
                "than their parents."
            ),
        ),
    }


def _step(run: RunRecord, update: Update) -> dict[str, Any]:
    return {
        "run": run.name,
        "step": update.number,
        "version": update.version,
        "fate": update.skipped or update.rolled_back or "",
        "groups": len(update.groups),
        "stale": update.stale,
        "reward": update.reward,
        "spread": update.spread,
        "entropy": update.entropy,
        "gradient": update.gradient_norm,
        "clipped": Share(update.clip_share),
        "lag": update.lag,
        "kl": update.kl,
        "mismatch": update.mismatch,
        "unique": Share(update.unique),
        "common": Share(update.common),
        "tokens": update.tokens,
        "seconds": update.seconds,
        "swap_ms": update.swap_ms,
    }


def _windows(run: RunRecord) -> Iterator[dict[str, Any]]:
    """Yield what the children of successive windows of calls came to."""
    by_call: dict[int, list[Trial]] = {}
    for trial in run.judged:
        by_call.setdefault(trial.call.iteration, []).append(trial)
    calls = list(by_call.values())
    size = max(1, -(-len(calls) // _WINDOWS))
    for first in range(0, len(calls), size):
        window = calls[first : first + size]
        trials = [trial for call in window for trial in call]
        yield {
            "run": run.name,
            "calls": f"{first} to {first + len(window) - 1}",
            "versions": f"{window[0][0].call.adapter} to {window[-1][0].call.adapter}",
            "children": len(trials),
            "valid": Share(sum(each.score is not None for each in trials) / len(trials)),
            "improved": Share(sum(each.is_better for each in trials) / len(trials)),
            "tokens": sum(each.child.generated_tokens for each in trials) / len(trials),
        }
