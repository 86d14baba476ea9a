"""Processes that parse completions, so that neither the loop nor the decoder's thread has to.

Parsing a program holds the GIL for milliseconds, and a step of the model would wait as long. So a
completion is sent to another process, pickled together with the function that parses it, and the
loop goes on. The function may be an operator's from outside this package, so the process finds
modules wherever this one does. If CPython's parser dies on a text, that process dies and not the
run: the text counts as no program, and a new process takes the place of the dead one.

Making fills is syntax work too. It has processes of its own, which run only where nothing else
wants their cores: a child's completion never waits behind a fill.

``python -m engine.syntax.workers PATH...`` is such a process. Standard input brings sequences of
functions without arguments, each function as a pickle, and the sequence too; standard output takes,
for each of them, the list of what they returned or raised, likewise. So one that can't be pickled,
there or here, is one piece of work that fails, and no message that can't be read.

Covers: sending work and taking results back. Does not cover what is parsed, or how: the operators
say that (``engine.prompts``).
"""

import contextlib
import ctypes
import gc
import itertools
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import Executor, Future
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from engine.core import ProcessUnfitError, UserError

T = TypeVar("T")

CORES_EACH = 8
"""Cores of the machine for each process that parses beside a model."""
_MOST_AT_ONCE = 16  # pieces of work that a process is given together
_PR_SET_PDEATHSIG = 1  # of linux/prctl.h
_COLLECT_AFTER = 100_000  # objects: trees are large, and hold no cycles
_Work = tuple[Callable[[], Any], Future[Any]]
_Done = tuple[Any, BaseException | None]  # what it returned, or raised


class WorkerDied(Exception):
    """A process died of the text that it was given."""


class SyntaxWorkers(Executor):
    """Processes that are started when there is work; a context manager. Any thread may submit."""

    def __init__(self, *, count: int, cores: Collection[int], idle: bool = False) -> None:
        """Set them up.

        Args:
            count: of the processes, 1 or more.
            cores: that they may use.
            idle: whether they run only where nothing else wants the cores. Such work may take any
                time, so at their end it is given up.
        """
        self._count = count
        self._cores = cores
        self._idle = idle
        self._processes: set[_Process] = set()
        self._change = threading.Condition()
        self._waiting: deque[_Work] = deque()
        self._threads: list[threading.Thread] = []
        self._closing = False
        self._given_up = False  # what was not done at the end
        self._failure: UserError | None = None  # why no process could be started

    def submit(self, work: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Have ``work(*args, **kwargs)`` done in one of the processes.

        Args:
            work: a function of a module, or a `functools.partial` of one. It can be pickled, and so
                can its arguments, and what it returns or raises.

        Returns:
            What becomes of it; `WorkerDied` where it ends the process that does it, `TypeError`
            where something can't be pickled, `UserError` where no process can be started.
        """
        result: Future[T] = Future()
        with self._change:
            if self._failure is not None:
                result.set_exception(self._failure)
                return result
            self._waiting.append((partial(work, *args, **kwargs), result))
            if not self._threads:
                self._threads = [
                    threading.Thread(target=self._serve, name=f"syntax {i}", daemon=True)
                    for i in range(self._count)
                ]
                for thread in self._threads:
                    thread.start()
            self._change.notify()
        return result

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes once they have done what they were given; idempotent.

        Args:
            wait: whether to return when they have ended.
            cancel_futures: whether what is not done is given up. Idle ones' always is.
        """
        with self._change:
            self._closing = True
            if cancel_futures or self._idle:
                self._given_up = True
                _cancel(self._waiting)
                self._waiting.clear()
                for process in self._processes:
                    process.kill()
            self._change.notify_all()
        for thread in self._threads if wait else ():
            thread.join()

    def _serve(self) -> None:
        """Give one process work until there is an end, or no process for it."""
        todo: list[list[_Work]] = []
        try:
            self._do_all(todo)
        except OSError as error:
            self._fail(error, [*itertools.chain(*todo)])

    def _do_all(self, todo: list[list[_Work]]) -> None:
        """Do what there is until there is an end; ``todo`` is what was taken and is not done."""
        process = self._started()
        while batch := self._next():
            todo.append(batch)
            while todo:
                works = todo[-1]
                try:
                    done = process.do([_packed(work) for work, _ in works])
                except WorkerDied as error:
                    self._ended(process)
                    if self._given_up:
                        _cancel(itertools.chain(*todo))
                        return
                    process = self._started()
                    if works is batch:  # find out which of them it was, if it was one of them
                        todo[:] = [[each] for each in batch]
                        continue
                    done = [(None, error)]
                todo.pop()
                for (_, result), (value, failure) in zip(works, done, strict=True):
                    if failure is None:
                        result.set_result(value)
                    else:
                        result.set_exception(failure)
        self._ended(process)

    def _fail(self, error: OSError, works: Collection[_Work]) -> None:
        """Refuse what was taken, all that waits and all that comes: nobody is left to do it."""
        with self._change:
            self._failure = ProcessUnfitError(
                f"no process that parses programs can be started: {error}; make room for it "
                "(`brood doctor` says what is short here)"
            )
            refused = [*works, *self._waiting]
            self._waiting.clear()
        for _, result in refused:
            result.set_exception(self._failure)

    def _started(self) -> "_Process":
        with self._change:  # or it would not be killed with the others
            process = _Process(self._cores, idle=self._idle)
            self._processes.add(process)
            if self._given_up:
                process.kill()
        return process

    def _ended(self, process: "_Process") -> None:
        with self._change:
            self._processes.remove(process)
        process.close()

    def _next(self) -> list[_Work]:
        """Wait for work and return a share of it; nothing at the end."""
        with self._change:
            self._change.wait_for(lambda: self._waiting or self._closing)
            share = min(_MOST_AT_ONCE, -(-len(self._waiting) // self._count))
            return [self._waiting.popleft() for _ in range(share)]


class _Process:
    """One process, and the pipes to it."""

    def __init__(self, cores: Collection[int], *, idle: bool) -> None:
        # Ctrl-C is for the run, which ends this process. For that it has a group of its own, and
        # the mask for the moment before it has one.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-s", "-m", "engine.syntax.workers", *_paths()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                process_group=0,
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.sched_setaffinity(self._process.pid, cores)
        if idle:
            os.sched_setscheduler(self._process.pid, os.SCHED_IDLE, os.sched_param(0))

    def do(self, works: Sequence[bytes]) -> list[_Done]:
        """Return what each piece of work, as `_packed`, returns or raises.

        Raises:
            WorkerDied: the process is dead.
        """
        assert self._process.stdin is not None and self._process.stdout is not None
        message = pickle.dumps(works, pickle.HIGHEST_PROTOCOL)
        try:
            self._process.stdin.write(message)
            self._process.stdin.flush()
            done: list[bytes] = pickle.load(self._process.stdout)
        except (BrokenPipeError, EOFError, pickle.UnpicklingError) as error:
            raise WorkerDied("a process for syntax work died") from error
        return [_unpacked(each) for each in done]

    def kill(self) -> None:
        """Have it end at once."""
        self._process.kill()

    def close(self) -> None:
        """End it, and wait until it has ended."""
        self.kill()
        self._process.communicate()  # by its death it had not read everything


def _cancel(works: Iterable[_Work]) -> None:
    for _, result in works:
        result.cancel()


def main() -> None:
    """Work until standard input ends."""
    # A run that is killed leaves nothing behind: a long piece of work does not look at its input.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    gc.set_threshold(_COLLECT_AFTER)
    sys.path += [each for each in sys.argv[1:] if each not in sys.path]  # nothing of ours is hidden
    target = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what is printed by mistake is no message
    with contextlib.suppress(EOFError):
        while True:
            works = pickle.load(sys.stdin.buffer)
            target.write(pickle.dumps([_done(work) for work in works], pickle.HIGHEST_PROTOCOL))
            target.flush()


def _paths() -> list[str]:
    """Return where this process finds modules."""
    return [str(Path(each).absolute()) for each in sys.path]


def _packed(work: Callable[[], Any]) -> bytes:
    """Return work as a pickle; where it can't be one, work that says so."""
    try:
        return pickle.dumps(work, pickle.HIGHEST_PROTOCOL)
    except Exception as error:  # whatever the pickling of an operator's own things raises
        function = getattr(getattr(work, "func", work), "__qualname__", "work")
        said = f"{function} can't be handed to another process: {str(error)[:300]}"
        return pickle.dumps(partial(_refuse, said), pickle.HIGHEST_PROTOCOL)


def _refuse(said: str) -> NoReturn:
    raise TypeError(said)


def _done(work: bytes) -> bytes:
    """Do a piece of work; return what comes of it as a pickle that can be read."""
    failure: Exception
    try:
        return pickle.dumps((pickle.loads(work)(), None), pickle.HIGHEST_PROTOCOL)
    except Exception as error:  # raised again where the result is awaited
        failure = error
    try:
        packed = pickle.dumps((None, failure), pickle.HIGHEST_PROTOCOL)
        pickle.loads(packed)  # an error with arguments of its own may not be made again
    except Exception:
        said = f"{type(failure).__name__}: {failure}"
        packed = pickle.dumps((None, TypeError(said)), pickle.HIGHEST_PROTOCOL)
    return packed


def _unpacked(done: bytes) -> _Done:
    try:
        found: _Done = pickle.loads(done)
    except Exception as error:  # whatever the making of an operator's own things raises
        return None, TypeError(f"what parsing returned can't be read: {error}")
    return found


if __name__ == "__main__":
    main()
