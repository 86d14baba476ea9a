"""What became of children and of prompt tokens, over equal spans of a run's time."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from engine.core import Child, Consultation, Guidance, Miss
from engine.report.analysis import RunRecord
from engine.report.analysis.figures import Table
from engine.report.analysis.runs import Trial
from engine.report.tables.programs import FAILED, REFUSED, SCORED, WAITING, Row

SPANS = 48
"""Into how many spans a run's time is cut."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Span:
    """A span, in seconds, and the children that were generated in it."""

    since: float
    until: float
    trials: Sequence[Trial]


def outcomes(runs: Sequence[RunRecord]) -> Table:
    """Count the children of each span by what became of them."""
    return Table(
        title="What became of the children",
        rows=[row for run in runs for row in outcomes_of(run)],
        note="since, until: seconds in which the children were generated.",
    )


def outcomes_of(run: RunRecord) -> list[Row]:
    """Return the rows of one run: a span, an outcome with its reason, and how many children."""
    rows = []
    for span in _spans(run):
        for (outcome, reason), children in Counter(map(_fate, span.trials)).items():
            rows.append(
                {
                    "run": run.name,
                    "since": span.since,
                    "until": span.until,
                    "outcome": outcome,
                    "reason": reason,
                    "children": children,
                }
            )
    return rows


def prompts(runs: Sequence[RunRecord]) -> Table:
    """Count the prompt tokens of each span: cached, and computed by reason."""
    return Table(
        title="Prompt tokens",
        rows=[row for run in runs for row in prompts_of(run)],
        note="What an advisor was asked, or a rewriter of guidance, counts with the child that "
        "follows; questions for tactics, after which no child follows, are left out.",
    )


def prompts_of(run: RunRecord) -> list[Row]:
    """Return the rows of one run, a column for each reason to compute a token."""
    rows = []
    for span in _spans(run):
        asked = [each for trial in span.trials for each in _asked(run, trial.child)]
        prompt_tokens = sum(prompt for prompt, _, _ in asked)
        cached = sum(cached for _, cached, _ in asked)
        missed: Counter[Miss] = Counter()
        for _, _, reasons in asked:
            missed.update(reasons)
        rows.append(
            {
                "run": run.name,
                "since": span.since,
                "until": span.until,
                "children": len(span.trials),
                "prompt_tokens": prompt_tokens,
                "cached_prompt_tokens": cached,
                "hit_rate": cached / prompt_tokens if prompt_tokens else None,
                **{miss.value: missed[miss] for miss in Miss},
            }
        )
    return rows


def _asked(run: RunRecord, child: Child) -> Iterator[tuple[int, int, Counter[Miss]]]:
    """Yield the tokens of a child's prompt, and of what the model was asked before it."""
    asked: tuple[Child | Consultation | Guidance, ...] = (
        child,
        *run.history.asked_before(child.id),
    )
    for each in asked:
        yield each.prompt_tokens, each.cached_prompt_tokens, Counter(each.missed)


def _spans(run: RunRecord) -> Iterable[_Span]:
    """Cut a run's time into equal spans, those without a child left out."""
    total = max((run.at[each.child.KIND, each.child.id] for each in run.trials), default=0.0)
    by_number: dict[int, list[Trial]] = {}
    for trial in run.trials:
        share = run.at[trial.child.KIND, trial.child.id] / total if total else 0.0
        by_number.setdefault(min(int(share * SPANS), SPANS - 1), []).append(trial)
    for number, trials in sorted(by_number.items()):
        yield _Span(since=total * number / SPANS, until=total * (number + 1) / SPANS, trials=trials)


def _fate(trial: Trial) -> tuple[str, str]:
    if trial.child.refusal is not None:
        return REFUSED, trial.child.refusal.value
    if trial.verdict is None:
        return WAITING, ""
    failure = trial.verdict.evaluation.failure
    return (SCORED, "") if failure is None else (FAILED, failure.value)
