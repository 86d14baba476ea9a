"""What a run shows while it goes on, and when it ends.

Covers: a live panel where standard output is a terminal, and a plain line now and then where it is
not. Reads the run's history and changes nothing. A run does not end for an output that nobody
takes: it goes on without.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from engine.budget import Account, Limit
from engine.core import INITIAL
from engine.core.bundle import files_of, is_bundle
from engine.report.summary import place_of
from engine.settings import RunSettings
from engine.store import RunHistory, log_file
from engine.syntax.plain import language_of
from engine.terminal import going_on_without

_SECONDS_BETWEEN_PANELS = 0.25
_SECONDS_BETWEEN_LINES = 10.0
_DIGITS = 3  # in which a best score differs from the last line's for a line before its time


class _Output(Console):
    """Standard output; a reader that has gone is an error like any other."""

    def on_broken_pipe(self) -> None:
        """Raise it again, and do not end the process as rich does."""
        raise


class Display:
    """Shows a run for the length of a ``with`` block, which is given `update`."""

    def __init__(self, history: RunHistory, *, settings: RunSettings, title: str) -> None:
        self._history = history
        self._learns = settings.learning.method != "none"
        self._title = title
        self._console = _Output()
        self._live = Live(console=self._console, auto_refresh=False)
        self._began = time.monotonic()
        self._account = Account(settings.budget, history)
        self._at_start = self._account.used
        self._shown = float("-inf")
        self._best = ""

    def __enter__(self) -> Callable[[], None]:
        with going_on_without():
            if self._console.is_terminal:
                self._live.start()
            else:
                self._print(self._title)
        return self.update

    def __exit__(self, *error: object) -> None:
        with going_on_without():
            self._show()
            self._live.stop()

    def update(self) -> None:
        """Show the history as it stands, unless that was a moment ago and the best is as good."""
        waited, best = time.monotonic() - self._shown, _number(self._history.best_score, _DIGITS)
        if self._console.is_terminal:
            is_due = waited >= _SECONDS_BETWEEN_PANELS
        else:
            is_due = best != self._best or waited >= _SECONDS_BETWEEN_LINES
        if is_due:
            self._shown, self._best = time.monotonic(), best
            with going_on_without():
                self._show()

    def _show(self) -> None:
        figures = self._figures()
        if self._console.is_terminal:
            grid = Table.grid(padding=(0, 2))
            for name, value in figures.items():
                grid.add_row(Text(name, style="dim"), Text(value))
            panel = Panel(grid, title=Text(self._title), title_align="left")
            self._live.update(panel, refresh=True)
        else:
            self._print(" · ".join(f"{name} {value}" for name, value in figures.items()))

    def _print(self, line: str) -> None:
        # As it is: a folder's name may look like rich's markup.
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def _figures(self) -> dict[str, str]:
        history, limits = self._history, self._account.limits
        elapsed = time.monotonic() - self._began
        used = {**self._account.used, Limit.SECONDS: self._at_start[Limit.SECONDS] + elapsed}
        done = {limit: used[limit] - self._at_start[limit] for limit in used}
        # By this session's rates; that a row of candidates goes on can't be said.
        ends = [
            (most - used[limit]) * elapsed / done[limit]
            for limit, most in limits.items()
            if limit is not Limit.PATIENCE and done[limit]
        ]
        used[Limit.PATIENCE] = history.since_best
        first = history.verdicts.get(INITIAL)
        initial = None if first is None else first.score
        most = limits.get(Limit.CANDIDATES)
        figures = {
            "best": f"{_number(history.best_score)} (initial {_number(initial)})",
            "candidates": f"{history.evaluated}" + ("" if most is None else f"/{most}"),
            "valid": _share(history.valid, history.judged),
            "children": str(len(history.children)),
            "tokens/s": f"{done[Limit.TOKENS] / elapsed:.0f}" if elapsed > 0 else "-",
            "hit rate": f"{history.hit_rate:.1%}",
        }
        if (target := self._account.budget.target) is not None:
            figures[Limit.TARGET.value] = _number(target)
        for limit in (Limit.TOKENS, Limit.MONEY, Limit.PATIENCE):
            if limit in limits:
                figures[limit.value] = f"{_number(used[limit])}/{_number(limits[limit])}"
        figures["elapsed"] = _clock(used[Limit.SECONDS])
        figures["left"] = _clock(max(0.0, min(ends))) if ends else "-"
        if history.filled:
            judged = {name: each.judged for name, each in history.filled.items()}
            figures["idle evaluators"] = _reasons(judged)
        if self._learns:
            figures["learning"] = _learned(history)
        if history.screened:
            figures["screened out"] = str(history.screened)
        if history.switched_off:
            figures["switched off"] = ", ".join(
                f"{each.stage} (rank correlation {each.correlation:.2f})"
                for each in history.switched_off.values()
            )
        if history.refusals:
            figures["not evaluated"] = _reasons(history.refusals)
        return figures


def print_result(*, folder: Path, summary: Mapping[str, Any], program: str) -> None:
    """Print the best program, its score and the best known one, the hit rate, and the folder."""
    console = _Output()
    made_by = (
        "" if summary["best_made_by"] in ("model", "given") else f", a {summary['best_made_by']}"
    )
    console.print(
        f"\nBest program (candidate {summary['best_candidate']}{made_by}):", highlight=False
    )
    if console.is_terminal:
        text = Syntax(
            program.rstrip(), _language(program), background_color="default", word_wrap=True
        )
        console.print(text)
    else:  # letter by letter: `Syntax` cuts off or pads what is wider than the console
        print(program.rstrip(), file=console.file)
    lines = ["", *_lines(summary)]
    log = log_file(folder).name
    best = place_of(program)
    lines.append(f"Everything is in {folder}: {best}, summary.json, config.yaml, {log}")
    console.print("\n".join(lines), markup=False, highlight=False, soft_wrap=True)


def _language(program: str) -> str:
    """Return the language of a program's text; of several files, that of the first."""
    return language_of(next(iter(files_of(program)))) if is_bundle(program) else "python"


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
    for maker, fill in summary["fills"].items():
        yield (
            f"Idle evaluators, {maker}: {fill['judged']} programs, {fill['valid']} valid, "
            f"{fill['better']} better than their parents, the best {_number(fill['best_score'])}, "
            f"in {fill['seconds']:.0f} s"
        )
    if learned := summary["learning"]:
        yield (
            f"Learning ({learned['method']}, {learned['adapter']}): {learned['updates']} updates "
            f"in {learned['seconds']:.0f} s, {learned['rolled_back']} rolled back, "
            f"{learned['skipped']} skipped, {learned['stale_groups']} groups came too late"
        )
    if advised := summary["advisor"]:
        ideas = ", ".join(f"{count} {novelty}" for novelty, count in advised["ideas"].items())
        where = "" if advised["implementer"] == "model" else f" at {advised['endpoint_url']}"
        yield (
            f"Advisor: ideas {ideas}; {advised['tested_ideas']} tested; "
            f"{advised['advisor_tokens']} tokens; programs by the {advised['implementer']}{where}, "
            f"{advised['unread']} answers of no use, {advised['outages']} failed requests"
        )
    if guided := summary["guidance"]:
        yield (
            f"Guidance: {guided['written']} written, {guided['unread']} answers of no use, "
            f"{guided['tokens']} tokens"
        )
    if clock := summary["clock"]:
        number = max(1, len(clock["evaluators"]))
        busy, filling = (
            sum(each[name] for each in clock["evaluators"]) / number for name in ("busy", "filling")
        )
        filled = f" and filling {filling:.0%}" if filling else ""
        yield (
            f"Clock: model busy {clock['model']['busy']:.0%}, evaluators {busy:.0%}{filled}; the "
            f"model waited for verdicts "
            f"{clock['model']['awaiting_evaluations']:.0%}, for a parent "
            f"{clock['model']['awaiting_parent']:.0%}"
        )


def _learned(history: RunHistory) -> str:
    if not history.updates:
        return "no step yet"
    last = history.updates[-1]
    fate = last.skipped or last.rolled_back
    return (
        f"step {last.number}, version {last.version}, reward {last.reward:.3g}, unique "
        f"{last.unique:.0%}, entropy {last.entropy:.2f}, kl {last.kl:.3f}"
        + (f" ({fate})" if fate else "")
    )


def _reasons(counts: Mapping[Any, int]) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in Counter(counts).most_common())


def _number(value: float | None, digits: int = 6) -> str:
    if value is None:
        return "-"
    return str(value) if isinstance(value, int) else f"{value:.{digits}g}"


def _share(part: int, whole: int) -> str:
    return f"{part} ({part / whole:.0%})" if whole else "0"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
