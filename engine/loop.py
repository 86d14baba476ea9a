"""The loop: ask, compose, generate, parse, evaluate, tell, with all of it under way at once.

The model decodes in a thread of its own, the evaluators run in theirs; this one takes what they
have done, records what follows from it in one transaction, and hands it on. Each child goes to an
evaluator the moment it is done.
Each island is sequential in itself: its next call is asked for when all verdicts of its last one
are in, so no choice is made before its facts are known. Two things overlap: the decode of a call's
last children with the evaluation of its first, and the islands with each other, whose calls share
one batch. With ``pipeline.overlap=false`` nothing overlaps: a call is decoded, its candidates are
evaluated, the next call is asked for.

Does not cover wiring: ``engine.assembly``.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from engine.budget import Allowance
from engine.core import Evaluation, Refusal
from engine.evaluation import Cascade, EvaluatorsLost
from engine.fill import Filler
from engine.pipeline import Calls, LoadWatch, Reader, Request, Response, RunState
from engine.search.features import cell_of
from engine.steering import Steering
from engine.store import Child, Event, Hint, Verdict
from engine.timeline import Activity, Timeline

_log = logging.getLogger("brood")
_PATIENCE = 0.2  # seconds after which the loop looks at the clock though nothing was reported
_MOMENT = 2e-3  # seconds that fills have in a turn where something of a child has come in


@dataclass(kw_only=True)
class Loop:
    """One run's loop, from wherever its log ends to the end of its budget.

    Attributes:
        state: the run as far as it is recorded; ``record`` keeps it up to date.
        record: appends an event to the log and folds it into the state.
        commit: brings what was recorded to disk. Nothing is sent to the model or an evaluator
            before the event that says so is there.
        calls: asks the search, and has the model generate children.
        reader: reads them.
        evaluator: runs and scores candidates; has been told everything that is recorded.
        allowance: what the budget still allows.
        stopped: whether the user asked for an end.
        watch: lets the limits on what is under way follow the load.
        timeline: records what the model does and waits for.
        bell: rings when the evaluator has a verdict, or the model a child.
        steering: what somebody who watches the run asks for meanwhile.
        filler: keeps idle evaluators busy; None where they wait.
        drains: whether the verdicts that are out at the end are always waited for.
        admitted: candidates that are recorded and not evaluated.
    """

    state: RunState
    record: Callable[[Event], None]
    commit: Callable[[], None]
    calls: Calls
    reader: Reader
    evaluator: Cascade
    allowance: Allowance
    stopped: Callable[[], bool]
    watch: LoadWatch
    timeline: Timeline
    bell: threading.Event
    steering: Steering
    filler: Filler | None
    drains: bool
    admitted: list[Child] = field(default_factory=list)

    def run(self) -> None:
        """Go on until the budget is spent or the user asks for an end."""
        self.begin()
        while self.turn():
            if self.stands:
                self._wait_off_the_clock()
                continue
            if not self.calls.children:
                self.timeline.model.begin(Activity.AWAIT_EVALUATIONS)
            self.bell.wait(_PATIENCE)
            self.bell.clear()
        self.timeline.model.end()

    def begin(self) -> None:
        """Take up the candidates that are recorded and have no verdict."""
        self.admitted = [*self.state.history.pending.values()]

    @property
    def stands(self) -> bool:
        """Whether the run is paused, and all that was under way has ended."""
        is_idle = not self.calls.in_flight and not self.evaluator.in_flight
        return self.steering.is_paused and is_idle and not self.allowance.is_spent

    def turn(self) -> bool:
        """Do what can be done now; return whether there is something to wait for."""
        for text in self.steering.hints():
            self.record(Hint(number=len(self.state.history.hints), text=text))
        verdicts = self.evaluator.completed(timeout=0)
        self._record_switched_off()
        for candidate_id, evaluation in verdicts:
            self._tell(candidate_id, evaluation)
        for request, response in self.calls.received():
            self._parse(request, response)
        for event in self.calls.requests.news():
            self.record(event)
        goes_on = False
        if stopped := self.stopped():
            self.calls.abandon()
        elif self.allowance.is_spent:
            self.calls.wind_up()
        elif not self.steering.is_paused:
            goes_on = True
            self.calls.requests.ask()
            self.calls.ask(candidates=self.evaluator.in_flight + len(self.admitted))
        self.commit()
        self._evaluate()
        self.calls.send()
        if goes_on and self.filler is not None:
            self._fill(self.filler)
        self.watch.look(candidates=self.evaluator.in_flight)
        is_cut_short = not self.drains and (stopped or self.allowance.is_late)
        is_open = (
            self.calls.in_flight
            or self.calls.waits
            # What belongs to no call, such as a question of tactics, may have left a call no room.
            or (goes_on and self.calls.children)
            or (self.evaluator.in_flight and not is_cut_short)
        )
        return bool(is_open) or (self.stands and not stopped)

    def _wait_off_the_clock(self) -> None:
        began = time.monotonic()
        self.timeline.model.end()
        self.bell.wait(_PATIENCE)
        self.bell.clear()
        self.leave_out(time.monotonic() - began)

    def leave_out(self, seconds: float) -> None:
        """Have no clock count seconds in which the run stood."""
        self.allowance.leave_out(seconds)
        self.steering.leave_out(seconds)

    def _fill(self, filler: Filler) -> None:
        """Record what became of the last fills, and have more evaluated.

        There may be hundreds of them, so what there is no time for is left for the next turn. Where
        the evaluators of fills are lost, the run goes on without fills.
        """
        until = time.monotonic() + _MOMENT
        try:
            for name, evaluation in filler.completed():
                self._tell(name, evaluation)
                if self.bell.is_set() and time.monotonic() > until:
                    break
        except EvaluatorsLost as error:
            _log.warning("idle evaluators are no longer filled: %s", error)
            self.filler = None
            return
        for fill in filler.made():
            self.record(fill)
            if self.bell.is_set() and time.monotonic() > until:
                break
        self.commit()
        filler.send()

    def _parse(self, request: Request, response: Response) -> None:
        """Record a response's children, and keep those that are worth an evaluation.

        Of a child that the end of the budget cuts off nobody knows what it would have become, so
        that is why it is refused, whatever its first lines are.
        """
        for event in request.news(response):
            self.record(event)
        for child in self.reader.children(request, response):
            is_spent = self.allowance.is_spent
            if is_spent and (child.refusal is None or request.is_cut_off(response)):
                child = replace(child, refusal=Refusal.BUDGET)
            self.record(child)
            if child.refusal is None:
                self.admitted.append(child)

    def _evaluate(self) -> None:
        """Have the candidates evaluated; without overlap, once all children of a call are back."""
        if self.calls.in_flight and not self.calls.overlap:
            return
        for child in self.admitted:
            assert child.program is not None  # a refused child is not admitted
            self.evaluator.submit(
                candidate_id=child.id, program=child.program.text, iteration=child.iteration
            )
        self.admitted.clear()

    def _tell(self, candidate_id: str, evaluation: Evaluation) -> None:
        """Record a verdict, which tells it to the search."""
        history = self.state.history
        made = history.fills.get(candidate_id) or history.children[candidate_id]
        cell = cell_of(made.program, evaluation, features=self.state.search.features)
        self.record(Verdict(candidate=candidate_id, evaluation=evaluation, cell=cell))

    def _record_switched_off(self) -> None:
        """Record the stages that were switched off since the last time.

        Before the verdicts that follow: a run that is killed between the two does not look again.
        """
        for name, off in self.evaluator.switched_off.items():
            if name not in self.state.history.switched_off:
                self.record(off)
