"""One run as the live page sees it: read on from the last event seen, and what of it is kept.

Kept are the figures of every event and none of its long texts, so that hundreds of thousands of
events fit into memory; a program's text is read from the store when somebody asks for it.
"""

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Any

from engine.budget import Account
from engine.core import Fill, Guidance, Migrant, Seed, UserError
from engine.documents import read_json
from engine.report.analysis import GrowingRun, growing_run
from engine.report.page.text import cut, shown
from engine.report.tables import overview
from engine.steering import is_paused
from engine.store import (
    Call,
    Child,
    Recorded,
    Verdict,
    identity,
    is_held,
    read_event,
    read_log,
    stamp,
)

_MADE = (Child, Fill, Migrant)  # events with a program
_STRIDE = 64  # events between two looks at the clock
_LONGEST = 100_000  # characters of a program that are shown
_KEPT_OF_MESSAGE = 300  # characters
_REST = 5  # times what reading in vain took is between two times that it is tried
_LEAST_REST = 2.0  # seconds between those, at least

Row = dict[str, Any]


class WatchedRun:
    """A run in a folder. Nothing here raises for what its folder holds: `error` tells it.

    Attributes:
        name: by which the page knows it.
        folder: where it lies.
        state: ``running``, ``paused``, ``over`` (its budget is spent), ``stopped`` (nobody works on
            it, and it could go on), ``unreadable``.
        is_behind: whether its log holds events that were not taken in.
        error: why it can't be read; empty if it can.
        flaw: why its figures, when they were last made, lacked something; empty if they were whole.
        changes: counts how often events were taken in.
        growing: what was taken in; None before the first event.
        lock: held by whoever reads or extends ``growing``.
    """

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.folder = folder
        self.state = "stopped"
        self.is_behind = True
        self.error = ""
        self.flaw = ""
        self.changes = 0
        self.growing: GrowingRun | None = None
        self.lock = threading.Lock()
        self._file: object = None  # of which the events were taken in
        self._seen: tuple[object, ...] = ()  # of the files, when all was taken in
        self._rests_until = float("-inf")  # by the monotonic clock
        self._facts: Row = {}

    def refresh(self, *, deadline: float) -> None:
        """Take in what the log goes on with, until a time of the monotonic clock at most."""
        began = time.monotonic()
        if self._rests_until <= began < deadline:
            try:
                stamp = self._stamp()
                if stamp != self._seen:
                    self._read_on(deadline)
                    self.error = ""
                if not self.is_behind:
                    self._seen = stamp
            except (UserError, OSError) as error:  # perhaps of its problem, which no stamp is of
                self.error, self.is_behind, self._seen = str(error), False, ()
                took = time.monotonic() - began
                self._rests_until = began + max(_LEAST_REST, (1 + _REST) * took)
        self.state = self._state()

    @property
    def hint(self) -> str:
        """The hint that its prompts show; empty for none."""
        hints = [] if self.growing is None else self.growing.history.hints
        return hints[-1].text if hints else ""

    def facts(self) -> Row:
        """Return the row of the table of all runs; shares are numbers from 0 to 1."""
        return {
            "name": self.name,
            "state": self.state,
            "error": shown(cut(self.error or self.flaw, _KEPT_OF_MESSAGE)),
            "reading": self.is_behind,
            **self._facts,
        }

    def program(self, row: Row) -> Row:
        """Return a row of `engine.report.tables.programs` with the program's text.

        Raises:
            UserError: the log can't be read.
        """
        text = self._text(row["id"])
        lacking = "No program was read from the answer."
        return {**row, "text": lacking if text is None else shown(cut(text, _LONGEST))}

    def _text(self, name: str) -> str | None:
        """Return a program's text from the store; None where there is none."""
        assert self.growing is not None  # or it had no row
        history = self.growing.history
        made = history.children.get(name) or history.fills.get(name) or history.migrants.get(name)
        if made is not None:
            whole = read_event(self.folder, type(made), made.subject)
            program = whole.program if isinstance(whole, _MADE) else None
            return None if program is None else program.text
        kinds = (Verdict, Seed)  # of what the run began with
        found = (read_event(self.folder, kind, name) for kind in kinds)
        texts = (each.program for each in found if isinstance(each, kinds))
        return next((each for each in texts if each is not None), None)

    def _read_on(self, deadline: float) -> None:
        try:
            self._read(deadline)
        except BaseException:
            self._file = None  # so that it is read anew: what was taken in may be in part
            raise

    def _read(self, deadline: float) -> None:
        file = identity(self.folder)
        if self.growing is None or file != self._file:  # or else a run that took its place
            self.growing, self._file = growing_run(self.folder), file
        growing, before = self.growing, self.growing.history.events
        fresh = map(_lightened, read_log(self.folder, after=before))
        first = next(fresh, None)
        self.is_behind = first is not None
        if first is not None:
            growing.take(self._until(chain([first], fresh), deadline))
            self.changes += 1
            (row,) = overview([growing.record()]).rows
            self._facts = {key: value for key, value in row.items() if key != "run"}

    def _until(self, events: Iterator[Recorded], deadline: float) -> Iterator[Recorded]:
        """Yield events until a time has come; at least as many as a run begins with."""
        while stride := list(islice(events, _STRIDE)):
            yield from stride
            if time.monotonic() >= deadline:
                return
        self.is_behind = False

    def _stamp(self) -> tuple[object, ...]:
        """Return what changes whenever the log does."""
        return stamp(self.folder)

    def _state(self) -> str:
        if self.error:
            return "unreadable"
        if is_held(self.folder):
            return "paused" if is_paused(self.folder) else "running"
        growing = self.growing
        if growing is None or self.is_behind:
            return "stopped"
        is_over = Account(growing.settings.budget, growing.history).is_closed
        return "over" if is_over or self._ended() else "stopped"

    def _ended(self) -> bool:
        """Whether its summary says that a limit was reached: the clock's is in no event."""
        try:
            summary = read_json((self.folder / "summary.json").read_bytes())
            return summary["ended_by"] is not None
        except (OSError, ValueError, KeyError, TypeError):
            return False


def _lightened(recorded: Recorded) -> Recorded:
    """Return an event without its long texts; its figures stay as they are."""
    event = recorded.event
    if isinstance(event, _MADE) and event.program is not None:
        event = replace(event, program=replace(event.program, text=""))
    if isinstance(event, Child):
        ids = _tokens(event.generated_tokens)
        event = replace(event, completion="", completion_ids=ids, logprobs=())
    elif isinstance(event, Guidance):
        event = replace(event, answer="", answer_ids=_tokens(len(event.answer_ids)))
    elif isinstance(event, Call):
        event = replace(event, prompt="", sampled_from=None)
    elif isinstance(event, Verdict):
        found = event.evaluation
        light = replace(found, message=found.message[:_KEPT_OF_MESSAGE], artifacts={})
        event = replace(event, evaluation=light)
    return replace(recorded, event=event)


@lru_cache(maxsize=4096)
def _tokens(count: int) -> tuple[int, ...]:
    """Return so many tokens, of which only the number is asked for."""
    return (0,) * count
