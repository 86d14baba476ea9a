"""The loop: ask, compose, generate, parse, evaluate, tell, with all of it under way at once.

The model decodes in a thread of its own, the evaluators run in theirs; this one takes what they
have done and hands on what follows from it. Each child goes to an evaluator the moment it is done.
Each island is sequential in itself: its next call is asked for when all verdicts of its last one
are in, so nothing is chosen on less than is known. What overlaps is

- the decode of a call's last children with the evaluation of its first;
- the islands with each other, their calls in one batch;
- an island with itself, by speculation: once its call is decoded, the next one begins on a guess of
  its parent, with the children whose verdicts are not in as entries of the prompt. If the search
  then chooses that parent, the call is that far ahead; if not, it is given up at once. The children
  of a guess are not recorded or evaluated before it is known to be right.

With ``pipeline.overlap=false`` nothing overlaps: a call is decoded, its candidates are evaluated,
the next call is asked for.

Does not cover wiring or files: ``engine.run``.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Mapping
from typing import Protocol

from engine.budget import Account
from engine.core import Evaluation, Refusal
from engine.embedding import KeptEmbeddings
from engine.evaluation import SwitchedOff
from engine.inference import MOST_AT_ONCE, Decoder, Model
from engine.model import make_embedder
from engine.pipeline import Calls, Flight, Landing, Limits, Load, Reader
from engine.pipeline.memory import memory_usage
from engine.prompts import Operator
from engine.restore import Restored
from engine.search.features import cell_of
from engine.search.novelty import Novelty
from engine.settings import RunSettings
from engine.store import Child, Event, ScreenOff, Verdict
from engine.timeline import Timeline
from engine.timeline_file import Activity, Queue

_PATIENCE = 0.2  # seconds until the loop looks up though nothing was reported: at the clock
_BETWEEN_LOADS = 0.25  # seconds
_EMBEDDINGS_KEPT = 1 << 14  # 4 KiB each for n-grams, else four times the model's hidden size


class Evaluator(Protocol):
    """What the loop needs of ``engine.evaluation``: `engine.evaluation.Cascade`."""

    def submit(self, *, candidate_id: str, program: str, iteration: int) -> None:
        """Hand over a program that ``iteration`` generated; never blocks."""

    def completed(self, *, timeout: float | None) -> list[tuple[str, Evaluation]]:
        """Return the verdicts that are in, waiting up to ``timeout`` seconds for the first."""

    @property
    def in_flight(self) -> int:
        """Programs handed over whose verdicts were not returned yet."""

    @property
    def switched_off(self) -> Mapping[str, SwitchedOff]:
        """The cheap stages that were found to rank too badly, by name."""


class Loop:
    """One run's loop, from wherever its log ends to the end of its budget."""

    def __init__(
        self,
        *,
        settings: RunSettings,
        restored: Restored,
        record: Callable[[Event], None],
        operators: Mapping[str, Operator],
        model: Model,
        evaluator: Evaluator,
        stopped: Callable[[], bool],
        timeline: Timeline,
        bell: threading.Event,
    ) -> None:
        """Join the parts.

        Args:
            settings: the run's.
            restored: the run as far as it is recorded; ``record`` keeps its state up to date.
            record: writes an event to the log and folds it into the state.
            operators: by name.
            model: the language model; nobody else steps it while the loop runs.
            evaluator: runs and scores candidates; has been told everything that is recorded.
            stopped: whether the user asked for an end.
            timeline: records what the model does and waits for.
            bell: rings when the evaluator has a verdict; the loop lets the decoder ring it too.
        """
        self._settings = settings
        self._restored = restored
        self._history = restored.state.history
        self._search = restored.state.search
        self._record = record
        self._operators = operators
        self._model = model
        self._evaluator = evaluator
        self._stopped = stopped
        self._timeline = timeline
        self._bell = bell
        self._limits = Limits(
            settings=settings.pipeline,
            most_children=MOST_AT_ONCE,
            workers=settings.evaluation.workers,
        )
        self._account = Account(settings.budget, self._history)
        self._deadline = time.monotonic() + self._seconds_left()
        self._held_back: list[Child] = []  # candidates, while nothing may overlap
        self._observed = time.monotonic()
        self._verdicts = 0  # since then

    def run(self) -> None:
        """Go on until the budget is spent or the user asks for an end."""
        for child in self._history.pending():
            self._submit(child)
        with Decoder(model=self._model, timeline=self._timeline, notify=self._bell.set) as decoder:
            reader = self._new_reader(decoder)
            calls = Calls(
                settings=self._settings,
                state=self._restored.state,
                record=self._record,
                operators=self._operators,
                model=self._model,
                decoder=decoder,
                reader=reader,
                limits=self._limits,
                timeline=self._timeline,
            )
            calls.begin_again(self._restored.unfinished)
            while self._advance(calls, decoder, reader):
                if not decoder.in_flight:
                    self._timeline.model.begin(Activity.AWAIT_EVALUATIONS)
                self._bell.wait(_PATIENCE)
                self._bell.clear()
            self._timeline.model.end()

    def _new_reader(self, decoder: Decoder) -> Reader:
        settings = self._settings.search
        novelty = None
        if settings.novelty is not None:
            embedder = make_embedder(settings.novelty_by, self._model, decoder=decoder)
            kept = KeptEmbeddings(embedder, most=_EMBEDDINGS_KEPT)
            novelty = Novelty(embedder=kept, threshold=settings.novelty)
        return Reader(
            search=self._search,
            tokenizer=self._model,
            longest_parent=min(each.longest_parent for each in self._operators.values()),
            novelty=novelty,
        )

    def _advance(self, calls: Calls, decoder: Decoder, reader: Reader) -> bool:
        """Do what can be done now; return whether there is something to wait for."""
        for ticket, generation in decoder.completed():
            landed = calls.land(ticket, generation)
            if landed is not None:
                self._take(*landed, reader)
        news = self._take_verdicts()
        if stopped := self._stopped():
            calls.abandon()  # a resumed run generates and evaluates what is not recorded
        elif self._is_spent():
            calls.wind_up()
        else:
            while not self._is_spent() and (confirmed := calls.judge_guesses(news)):
                news = set()
                for flight in confirmed:
                    for landing in flight.held:
                        self._take(flight, landing, reader)
            if not self._is_spent():
                calls.ask(candidates=self._evaluator.in_flight, left=self._account.candidates_left)
        self._timeline.count(Queue.CHILDREN, decoder.in_flight)
        self._observe(calls, decoder)
        awaited = 0 if stopped or self._is_late() else self._evaluator.in_flight
        return bool(calls.in_flight or awaited)

    def _take(self, flight: Flight, landing: Landing, reader: Reader) -> None:
        """Record a completion's children, and have those evaluated that are worth it."""
        for child in reader.children(flight, landing):
            if child.refusal is None and self._is_spent():
                child = dataclasses.replace(child, refusal=Refusal.BUDGET)
            self._record(child)
            if child.refusal is None:
                self._held_back.append(child)
        if self._settings.pipeline.overlap or not flight.left:
            for each in self._held_back:
                self._submit(each)
            self._held_back.clear()

    def _submit(self, child: Child) -> None:
        assert child.program is not None  # a refused child is not submitted
        self._evaluator.submit(
            candidate_id=child.id, program=child.program, iteration=child.iteration
        )
        self._timeline.count(Queue.CANDIDATES, self._evaluator.in_flight)
        self._record_switched_off()

    def _record_switched_off(self) -> None:
        """Record the stages that were switched off since the last time.

        Before the verdicts that follow: a run that is killed between the two does not look again.
        """
        for name, off in self._evaluator.switched_off.items():
            if name not in self._history.screens_off:
                self._record(ScreenOff(**dataclasses.asdict(off)))

    def _take_verdicts(self) -> set[int]:
        """Record the verdicts that are in; return the islands whose candidates they are of."""
        islands = set()
        completed = self._evaluator.completed(timeout=0)
        self._record_switched_off()
        for candidate_id, evaluation in completed:
            child = self._history.children[candidate_id]
            assert child.program is not None  # or it had not been submitted
            cell = cell_of(child.program, evaluation, features=self._search.features)
            self._record(Verdict.of(candidate_id, evaluation, cell=cell))
            self._verdicts += 1
            islands.add(self._history.calls[child.iteration].island)
        self._timeline.count(Queue.CANDIDATES, self._evaluator.in_flight)
        return islands

    def _observe(self, calls: Calls, decoder: Decoder) -> None:
        """Let the limits follow the load, a few times a second."""
        now = time.monotonic()
        if now - self._observed < _BETWEEN_LOADS:
            return
        engine = self._model.load()
        self._limits.observe(
            Load(
                seconds=now - self._observed,
                children=decoder.in_flight,
                waiting=engine.waiting,
                kv_usage=engine.kv_usage,
                candidates=self._evaluator.in_flight,
                verdicts=self._verdicts,
                call_seconds=calls.seconds,
                memory_usage=memory_usage(),
            )
        )
        self._observed, self._verdicts = now, 0

    def _seconds_left(self) -> float:
        limit = self._settings.budget.seconds
        return float("inf") if limit is None else limit - self._history.wall_seconds

    def _is_spent(self) -> bool:
        """Whether the budget allows no further candidate."""
        return self._account.reached is not None or self._is_late()

    def _is_late(self) -> bool:
        """Whether time is up. No verdict is waited for then: each may take a minute."""
        return time.monotonic() >= self._deadline
