"""The decoder: a thread that steps the model; calls go in and children come out.

It is to the model what ``engine.evaluation.EvaluatorPool`` is to the evaluators. `Decoder.submit`
and `Decoder.abort` never wait for the engine. The thread makes one step after the other as long as
there is anything to decode. `Decoder.completed` returns the children that are done, of any call.
All calls share one batch.

The engine has no locks, so commands are queued and done between two steps.

Does not cover what is asked, or what becomes of a child: ``engine.loop``.
"""

import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Self

from engine.core import Generation, UserError
from engine.inference.decoding import IsOver
from engine.inference.model import Children, Model, Sampling
from engine.inference.watchdog import LONGEST_LOOK
from engine.timeline import Activity, Timeline

_SWITCH_SECONDS = 1e-4
"""How long a thread may keep the GIL while another one waits. A step of the engine lets go of the
GIL about a hundred times and has to get it back each time; Python's own 5 ms is too long for
that."""


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
        self._commands: SimpleQueue[Callable[[], None] | None] = SimpleQueue()  # None: the end
        self._finished: SimpleQueue[list[tuple[int, Generation]]] = SimpleQueue()  # by step
        self._adopted: SimpleQueue[tuple[int, float]] = SimpleQueue()
        self._error: BaseException | None = None
        self._in_flight = 0
        self._calls: dict[int, _Call] = {}  # the thread's own
        sys.setswitchinterval(_SWITCH_SECONDS)
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
        adapter: int = 0,
    ) -> None:
        """Begin to decode the children of a prompt.

        Args:
            call: names the call; a name with children in flight may not be used again.
            iteration: that it is for; the timeline shows it.
            token_ids: the prompt.
            sampling: of each child.
            is_over: called at each new line with the text that a child has so far; if it returns
                True, the child is aborted.
            adapter: version of the adapter, adopted before; 0 for the model itself.
        """

        def begin() -> None:
            fan = self._model.fanout(token_ids=token_ids, sampling=sampling, adapter=adapter)
            self._calls[call] = _Call(fan=fan, iteration=iteration, is_over=is_over)

        self._in_flight += len(sampling)
        self._commands.put(begin)

    def adopt(self, version: int, folder: Path) -> None:
        """Let the model load a version of the adapter, for the calls submitted after this.

        If it can't be loaded, that ends the thread with a `UserError`.
        """

        def load() -> None:
            began = time.perf_counter()
            try:
                self._model.adopt(version, folder)
            except ValueError as error:  # its files are damaged
                raise UserError(f"{error}; restore it from a copy, or begin another run") from error
            self._adopted.put((version, 1e3 * (time.perf_counter() - began)))
            self._notify()

        self._commands.put(load)

    def adopted(self) -> list[tuple[int, float]]:
        """Return the versions loaded since the last time, each with the milliseconds it took."""
        return [self._adopted.get() for _ in range(self._adopted.qsize())]

    def abort(self, call: int) -> None:
        """End all children of a call; they come from `completed` with what they have."""

        def end() -> None:
            each = self._calls.get(call)
            if each is not None:  # else all of them are done
                for index in each.fan.indices:
                    each.fan.abort(index)

        self._commands.put(end)

    def completed(self) -> list[tuple[int, Generation]]:
        """Return the children that are done since the last time, each with its call.

        Raises:
            BaseException: what ended the thread.
        """
        if self._error is not None:
            raise self._error
        finished = [each for _ in range(self._finished.qsize()) for each in self._finished.get()]
        self._in_flight -= len(finished)
        return finished

    def close(self) -> None:
        """End the thread after the step it is in, abort what is left; idempotent.

        Raises:
            ModelLost: the step does not end; the thread is left to the end of the process.
        """
        self._commands.put(None)
        # A step that hangs is noticed in time by who looks at it this often.
        self._thread.join(LONGEST_LOOK)
        while self._thread.is_alive():
            self._model.load()  # raises where a step hangs
            self._thread.join(LONGEST_LOOK)
        for call in self._calls.values():
            call.fan.close()
        self._calls.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _work(self) -> None:
        try:
            while self._do_commands():
                self._step()
        except BaseException as error:  # raised again by `completed`, in the thread that waits
            self._error = error
            self._notify()

    def _do_commands(self) -> bool:
        """Do what was asked for since the last step; return whether there is a next one.

        Waits while there is neither a command nor anything to decode.
        """
        while not self._calls or not self._commands.empty():
            command = self._commands.get()
            if command is None:
                return False
            command()
        return True

    def _step(self) -> None:
        if any(call.fan.indices for call in self._calls.values()):
            # The timeline shows a step under the first of the iterations that it serves.
            first = min(call.iteration for call in self._calls.values())
            with self._timeline.model.begin(Activity.STEP, iteration=first):
                self._model.step()
            for call in self._calls.values():
                _end_early(call)
        finished = [
            (number, generation)
            for number, call in self._calls.items()
            for generation in call.fan.take()
        ]
        if finished:
            self._finished.put(finished)
            self._calls = {n: call for n, call in self._calls.items() if call.fan.indices}
            self._notify()


def _end_early(call: _Call) -> None:
    for index, text in call.fan.texts().items():
        lines = text.count("\n")
        if lines > call.lines.get(index, 0):
            call.lines[index] = lines
            if call.is_over(text):
                call.fan.abort(index)
