"""What a run shows while it goes on, and when it ends.

Covers: a live panel where standard output is a terminal, and a plain line now and then where it is
not. Reads the run's history and changes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from engine.budget import Account, Limit
from engine.core import INITIAL
from engine.settings import RunSettings
from engine.store import RunHistory, ScreenOff

_REFRESHES_PER_SECOND = 4.0
_SECONDS_BETWEEN_LINES = 10.0


class Display:
    """Shows a run; a context manager. Call `update` as often as you like."""

    def __init__(self, *, settings: RunSettings, history: RunHistory, title: str) -> None:
        self._settings = settings
        self._history = history
        self._title = title
        self._console = Console()
        self._began = time.monotonic()
        self._before = history.wall_seconds
        self._account = Account(settings.budget, history)
        self._at_start = self._account.used
        self._generated_before = history.generated_tokens
        self._shown = float("-inf")
        self._best: float | None = None
        self._live: Live | None = None

    def __enter__(self) -> Display:
        if self._console.is_terminal:
            self._live = Live(console=self._console, auto_refresh=False)
            self._live.__enter__()
        else:
            self._print(self._title)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.update(force=True)
        if self._live is not None:
            self._live.__exit__(kind, error, traceback)

    def update(self, *, force: bool = False) -> None:
        """Show the history as it stands, unless it was shown a moment ago."""
        now = time.monotonic()
        if self._live is not None:
            if force or now - self._shown >= 1 / _REFRESHES_PER_SECOND:
                self._shown = now
                self._live.update(self._panel(), refresh=True)
            return
        best = self._history.best.score if self._history.best else None
        improved = best != self._best
        if force or improved or now - self._shown >= _SECONDS_BETWEEN_LINES:
            self._shown, self._best = now, best
            figures = self._figures() | self._screens()
            line = " · ".join(f"{name} {value}" for name, value in figures.items())
            self._print(line)

    def _print(self, line: str) -> None:
        # As it is: a folder's name may look like rich's markup.
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def _figures(self) -> dict[str, str]:
        history, limits = self._history, self._account.limits
        elapsed = time.monotonic() - self._began
        initial = history.verdicts[INITIAL].score if INITIAL in history.verdicts else None
        tokens = history.generated_tokens - self._generated_before
        most = limits.get(Limit.CANDIDATES)
        return {
            "best": f"{_score(history.best.score if history.best else None)} "
            f"(initial {_score(initial)})",
            "candidates": f"{history.evaluated}" + ("" if most is None else f"/{most}"),
            "valid": _share(history.valid, history.judged),
            "children": str(len(history.children)),
            "tokens/s": f"{tokens / elapsed:.0f}" if elapsed > 0 else "-",
            "hit rate": f"{history.hit_rate:.1%}",
            **self._limits(),
            "elapsed": _clock(self._before + elapsed),
            "left": self._left(elapsed),
        }

    def _limits(self) -> dict[str, str]:
        """Return how much was used of the limits that only some runs have, and the target."""
        limits, target = self._account.limits, self._settings.budget.target
        used = {**self._account.used, Limit.PATIENCE: self._history.since_best}
        figures = {} if target is None else {Limit.TARGET.value: _score(target)}
        for limit in (Limit.TOKENS, Limit.MONEY, Limit.PATIENCE):
            if limit in limits:
                figures[limit.value] = f"{_amount(used[limit])}/{_amount(limits[limit])}"
        return figures

    def _screens(self) -> dict[str, str]:
        """Return what cheap stages do, where there are any."""
        figures = {}
        if self._history.screened:
            figures["screened out"] = str(self._history.screened)
        if self._history.screens_off:
            figures["switched off"] = ", ".join(
                map(_screen_off, self._history.screens_off.values())
            )
        return figures

    def _left(self, elapsed: float) -> str:
        """Estimate the time to the end of the budget from this session's rates."""
        used = self._account.used
        ends = []
        for limit, most in self._account.limits.items():
            if limit is Limit.SECONDS:
                ends.append(most - self._before - elapsed)
            elif limit is not Limit.PATIENCE and (done := used[limit] - self._at_start[limit]):
                ends.append((most - used[limit]) * elapsed / done)
        return _clock(max(0.0, min(ends))) if ends else "-"

    def _share_done(self) -> float:
        """Return how much of the limit that is nearest was used, as a share."""
        elapsed = self._before + time.monotonic() - self._began
        used = {**self._account.used, Limit.SECONDS: elapsed}
        shares = [
            used[limit] / most if most else 1.0
            for limit, most in self._account.limits.items()
            if limit is not Limit.PATIENCE
        ]
        return min(1.0, max(shares))

    def _panel(self) -> Panel:
        figures = Table.grid(padding=(0, 2))
        for name, value in self._figures().items():
            figures.add_row(f"[dim]{name}[/dim]", value)
        refused = self._history.refusals
        if refused:
            reasons = ", ".join(f"{count} {reason}" for reason, count in refused.most_common())
            figures.add_row("[dim]not evaluated[/dim]", reasons)
        missed = self._history.missed
        if missed:
            reasons = ", ".join(f"{count} {reason}" for reason, count in missed.most_common())
            figures.add_row("[dim]computed prompt tokens[/dim]", reasons)
        for name, value in self._screens().items():
            figures.add_row(f"[dim]{name}[/dim]", value)
        bar = ProgressBar(total=1.0, completed=self._share_done())
        return Panel(Group(figures, bar), title=Text(self._title), title_align="left")


def print_result(*, folder: Path, summary: Mapping[str, Any], program: str | None) -> None:
    """Print the best program, its score and the best known one, the hit rate, and the folder."""
    console = Console()
    if program is not None:
        console.print(f"\nBest program (candidate {summary['best_candidate']}):", highlight=False)
        if console.is_terminal:
            console.print(
                Syntax(program.rstrip(), "python", background_color="default", word_wrap=True)
            )
        else:  # letter by letter: `Syntax` cuts off or pads what is wider than the console
            print(program.rstrip(), file=console.file)
    console.print(
        f"\nBest score {summary['best_score']!r} (initial {summary['initial_score']!r})\n"
        f"{_known(summary['best_known'])}"
        f"{summary['candidates']} candidates evaluated, {summary['valid']} valid, of "
        f"{summary['children']} children in {_clock(summary['wall_seconds'])}\n"
        f"{_end(summary)}"
        f"{_unevaluated(summary)}"
        f"{_screening(summary)}"
        f"Prefix cache: {summary['cached_prompt_tokens']} of {summary['prompt_tokens']} prompt "
        f"tokens cached, hit rate {summary['hit_rate']:.1%}\n"
        f"{_computed(summary)}"
        f"{_paid(summary)}"
        f"{_speculation(summary['speculation'])}"
        f"{_clock_use(summary['clock'])}"
        f"Everything is in {folder}: best.py, summary.json, config.yaml, run.db",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )


def _known(known: Mapping[str, Any] | None) -> str:
    """Say which published score to compare with, in one line; nothing where there is none."""
    return "" if known is None else f"Best known score {known['score']!r}: {known['source']}\n"


def _end(summary: Mapping[str, Any]) -> str:
    """Say which limit ended the run, in one line; nothing for a run that may go on."""
    if summary["ended_by"] is None:
        return ""
    limit = Limit(summary["ended_by"])
    return f"Ended by budget.{limit}={summary['budget'][limit]}\n"


def _unevaluated(summary: Mapping[str, Any]) -> str:
    """Say how many candidates have no verdict, in one line; nothing where all have."""
    count = summary["unevaluated"]
    return f"Candidates whose evaluation the end came before: {count}\n" if count else ""


def _computed(summary: Mapping[str, Any]) -> str:
    """Say how many prompt tokens a child cost and why, in one line; nothing before the first."""
    missed = summary["computed_prompt_tokens"]
    if not missed or not summary["children"]:
        return ""
    reasons = sorted(missed.items(), key=lambda each: -each[1])
    shares = ", ".join(f"{tokens} {reason}" for reason, tokens in reasons)
    each = sum(missed.values()) / summary["children"]
    return f"Computed: {each:.0f} prompt tokens a child ({shares})\n"


def _paid(summary: Mapping[str, Any]) -> str:
    """Say what the tokens cost, in one line; nothing where they have no prices."""
    if not any(summary["budget"]["prices"].values()):
        return ""
    return f"Money: {summary['money']:.6g} for all tokens at the prices of budget.prices\n"


def _speculation(figures: Mapping[str, Any]) -> str:
    """Say what became of guesses, in one line; nothing where there were none."""
    if not figures["guesses"]:
        return ""
    return (
        f"Speculation: {figures['hits']} of {figures['guesses']} guesses came true; "
        f"{figures['wasted_tokens']} tokens were generated for nothing\n"
    )


def _clock_use(clock: Mapping[str, Any] | None) -> str:
    """Say who was busy, in one line; nothing where no time was recorded."""
    if clock is None:
        return ""
    evaluators = [each["busy"] for each in clock["evaluators"]]
    busy = sum(evaluators) / len(evaluators) if evaluators else 0.0
    return (
        f"Clock: model busy {clock['model']['busy']:.0%}, evaluators {busy:.0%}; the model waited "
        f"for verdicts {clock['model']['awaiting_evaluations']:.0%}, for a parent "
        f"{clock['model']['awaiting_parent']:.0%}\n"
    )


def _screening(summary: Mapping[str, Any]) -> str:
    """Say what cheap stages did, in whole lines; nothing where there are none."""
    lines = ""
    if summary["screened"]:
        lines += f"{summary['screened']} screened out by cheap stages\n"
    for name, off in summary["screens_off"].items():
        lines += (
            f"Stage {name} was switched off from iteration {off['iteration']} on: its rank "
            f"correlation with the full score was {off['correlation']:.3f} over {off['pairs']} "
            "programs\n"
        )
    return lines


def _screen_off(event: ScreenOff) -> str:
    return f"{event.stage} (rank correlation {event.correlation:.2f})"


def _score(score: float | None) -> str:
    return "-" if score is None else f"{score:.6g}"


def _amount(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.6g}"


def _share(part: int, whole: int) -> str:
    return f"{part} ({part / whole:.0%})" if whole else "0"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
