"""What a run shows while it goes on, and when it ends.

Covers: a live panel where standard output is a terminal, and a plain line now and then where it is
not. Reads the run's history and changes nothing.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
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
from engine.store import RunHistory

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
            self._live.start()
        else:
            self._print(self._title)
        return self

    def __exit__(self, *error: object) -> None:
        self.update(force=True)
        if self._live is not None:
            self._live.stop()

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
        off = (
            f"{each.stage} (rank correlation {each.correlation:.2f})"
            for each in self._history.switched_off.values()
        )
        figures = {
            "screened out": str(self._history.screened or ""),
            "switched off": ", ".join(off),
        }
        return {name: figure for name, figure in figures.items() if figure}

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
        rows = {
            **self._figures(),
            "not evaluated": _reasons(self._history.refusals),
            "computed prompt tokens": _reasons(self._history.missed),
            **self._screens(),
        }
        for name, value in rows.items():
            if value:
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
    lines = ["", *_lines(summary)]
    lines.append(f"Everything is in {folder}: best.py, summary.json, config.yaml, run.db")
    console.print("\n".join(lines), markup=False, highlight=False, soft_wrap=True)


def _lines(summary: Mapping[str, Any]) -> Iterator[str]:
    """Yield what there is to say of a run's figures."""
    yield f"Best score {summary['best_score']!r} (initial {summary['initial_score']!r})"
    if known := summary["best_known"]:
        yield f"Best known score {known['score']!r}: {known['source']}"
    yield (
        f"{summary['candidates']} candidates evaluated, {summary['valid']} valid, of "
        f"{summary['children']} children in {_clock(summary['wall_seconds'])}"
    )
    if limit := summary["ended_by"]:
        yield f"Ended by budget.{limit}={summary['budget'][limit]}"
    if summary["unevaluated"]:
        yield f"Candidates whose evaluation the end came before: {summary['unevaluated']}"
    if summary["screened"]:
        yield f"{summary['screened']} screened out by cheap stages"
    for name, off in summary["screens_off"].items():
        yield (
            f"Stage {name} was switched off from iteration {off['iteration']} on: its rank "
            f"correlation with the full score was {off['correlation']:.3f} over {off['pairs']} "
            "programs"
        )
    yield (
        f"Prefix cache: {summary['cached_prompt_tokens']} of {summary['prompt_tokens']} prompt "
        f"tokens cached, hit rate {summary['hit_rate']:.1%}"
    )
    if summary["children"] and (missed := summary["computed_prompt_tokens"]):
        each = sum(missed.values()) / summary["children"]
        yield f"Computed: {each:.0f} prompt tokens a child ({_reasons(missed)})"
    if any(summary["budget"]["prices"].values()):
        yield f"Money: {summary['money']:.6g} for all tokens at the prices of budget.prices"
    if (guessed := summary["speculation"])["guesses"]:
        yield (
            f"Speculation: {guessed['hits']} of {guessed['guesses']} guesses came true; "
            f"{guessed['wasted_tokens']} tokens were generated for nothing"
        )
    if clock := summary["clock"]:
        evaluators = [each["busy"] for each in clock["evaluators"]]
        yield (
            f"Clock: model busy {clock['model']['busy']:.0%}, evaluators "
            f"{sum(evaluators) / max(1, len(evaluators)):.0%}; the model waited for verdicts "
            f"{clock['model']['awaiting_evaluations']:.0%}, for a parent "
            f"{clock['model']['awaiting_parent']:.0%}"
        )


def _reasons(counts: Mapping[Any, int]) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in Counter(counts).most_common())


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
