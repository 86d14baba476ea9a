"""The decoder: calls in, children out, in a thread of its own.

The counterpart of ``engine.evaluation.EvaluatorPool``: `Decoder.submit` and `Decoder.abort` never
wait for the engine, whose steps follow each other in the thread as long as there is anything to
decode; `Decoder.completed` returns the children that are done, whichever call they belong to. All
calls share one batch. What else needs the engine is run there by `Decoder.run`, which does wait.

The engine has no locks, so what is asked of it is queued and done between two steps. The one lock
here guards two lists and is held for microseconds.

Does not cover what is asked, or what becomes of a child: ``engine.loop``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self, TypeVar

from engine.core import Generation
from engine.inference.fanout import Sampling
from engine.inference.model import Children, Model
from engine.timeline import Timeline, Track
from engine.timeline_file import Activity

IsOver = Callable[[str], bool]
"""Whether an answer that begins with this text need not go on."""

T = TypeVar("T")


@dataclass(kw_only=True, slots=True)
class _Call:
    """A call in the engine, and how much of each child's text was looked at."""

    fan: Children
    iteration: int
    is_over: IsOver
    lines: dict[int, int] = field(default_factory=dict)


class Decoder:
    """Runs a model in a thread; a context manager. One thread submits and takes."""

    def __init__(
        self, *, model: Model, timeline: Timeline, notify: Callable[[], object] = lambda: None
    ) -> None:
        """Start the thread; nobody else may step the model until `close`.

        Args:
            model: that decodes.
            timeline: records each step.
            notify: called in the thread whenever `completed` has something new.
        """
        self._model = model
        self._timeline = timeline
        self._notify = notify
        self._change = threading.Condition()
        self._commands: list[Callable[[], None]] = []
        self._finished: list[tuple[int, Generation]] = []
        self._awaited: list[Future[Any]] = []  # of `run`
        self._error: BaseException | None = None
        self._closing = False
        self._ended = False
        self._in_flight = 0
        self._calls: dict[int, _Call] = {}  # the thread's own
        self._thread = threading.Thread(target=self._work, name="decoder", daemon=True)
        self._thread.start()

    @property
    def in_flight(self) -> int:
        """Children submitted that `completed` has not returned yet."""
        return self._in_flight

    def submit(
        self,
        call: int,
        *,
        iteration: int,
        token_ids: Sequence[int],
        sampling: Sequence[Sampling],
        is_over: IsOver,
    ) -> None:
        """Begin to decode the children of a prompt.

        Args:
            call: names the call; one that has children in flight may not be submitted again.
            iteration: that it is for, as the timeline shows it.
            token_ids: the prompt.
            sampling: of each child.
            is_over: asked with what a child has so far, at each new line; where it says so, the
                child is aborted.
        """

        def begin() -> None:
            fan = self._model.fanout(token_ids=token_ids, sampling=sampling)
            self._calls[call] = _Call(fan=fan, iteration=iteration, is_over=is_over)

        self._in_flight += len(sampling)
        self._do(begin)

    def abort(self, call: int) -> None:
        """End all children of a call; they come from `completed` with what they have."""

        def end() -> None:
            each = self._calls.get(call)
            if each is not None:  # else all of them are done
                for index in each.fan.indices:
                    each.fan.abort(index)

        self._do(end)

    def run(self, work: Callable[[], T]) -> T:
        """Run ``work`` in the thread, between two steps, and return what it returns.

        It may step the model: the calls go on meanwhile. What it raises ends nothing but itself.

        Raises:
            BaseException: what ``work`` raised, or what ended the thread.
            RuntimeError: the decoder was closed before ``work`` began.
        """
        result: Future[T] = Future()

        def perform() -> None:
            try:
                with self._stepping():
                    value = work()
            except BaseException as error:  # raised again where the result is awaited
                result.set_exception(error)
            else:
                result.set_result(value)

        with self._change:
            if self._ended:
                raise self._end()
            self._awaited.append(result)
            self._commands.append(perform)
            self._change.notify()
        return result.result()

    def completed(self) -> list[tuple[int, Generation]]:
        """Return the children that are done since the last time, each with its call.

        Raises:
            BaseException: what ended the thread.
        """
        with self._change:
            if self._error is not None:
                raise self._error
            finished, self._finished = self._finished, []
        self._in_flight -= len(finished)
        return finished

    def close(self) -> None:
        """End the thread after the step it is in, abort what is left; idempotent."""
        with self._change:
            self._closing = True
            self._change.notify()
        self._thread.join()
        for call in self._calls.values():
            call.fan.close()
        self._calls.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _do(self, command: Callable[[], None]) -> None:
        with self._change:
            self._commands.append(command)
            self._change.notify()

    def _work(self) -> None:
        try:
            while (commands := self._next_commands()) is not None:
                for command in commands:
                    command()
                if self._calls:
                    self._step()
        except BaseException as error:  # raised again by `completed`, in the thread that waits
            with self._change:
                self._error = error
            self._notify()
        finally:
            self._let_go()

    def _let_go(self) -> None:
        """Tell those that wait for `run` that nothing is run any more."""
        with self._change:
            self._ended = True
            awaited, self._awaited = self._awaited, []
        for each in awaited:
            if not each.done():
                each.set_exception(self._end())

    def _end(self) -> BaseException:
        return RuntimeError("the decoder is closed") if self._error is None else self._error

    def _next_commands(self) -> list[Callable[[], None]] | None:
        """Return what is to be done before the next step, waiting if there is none; None: end."""
        with self._change:
            while not (self._commands or self._calls or self._closing):
                self._change.wait()
            commands, self._commands = self._commands, []
            self._awaited = [each for each in self._awaited if not each.done()]
            return None if self._closing else commands

    def _step(self) -> None:
        if any(call.fan.request_ids for call in self._calls.values()):
            with self._stepping():
                self._model.step()
            for call in self._calls.values():
                _end_early(call)
        finished = [
            (number, generation)
            for number, call in self._calls.items()
            for generation in call.fan.take()
        ]
        if finished:
            self._calls = {n: call for n, call in self._calls.items() if call.fan.is_running}
            with self._change:
                self._finished += finished
            self._notify()

    def _stepping(self) -> Track:
        """Record, as a context manager, that the model steps, for the first of the iterations."""
        first = min((call.iteration for call in self._calls.values()), default=-1)
        return self._timeline.model.begin(Activity.STEP, iteration=first)


def _end_early(call: _Call) -> None:
    for index, text in call.fan.texts().items():
        lines = text.count("\n")
        if lines > call.lines.get(index, 0):
            call.lines[index] = lines
            if call.is_over(text):
                call.fan.abort(index)
