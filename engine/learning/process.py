"""The trainer's process: steps of training go in, adapters on disk come out.

The trainer has a process of its own, because a thread that runs Python holds the GIL, and each step
of the model would wait for it. On a CPU the process runs on the evaluators' cores at a low
priority: it uses what they leave idle, and a tenth of a core that is never idle, so that learning
goes on whatever else the machine does. On a GPU it has a context of its own, within
``learning.memory_gb``, and on the CPU it is one thread that has to keep the GPU busy: it has the
model's cores, and its priority is the run's.

``python -m engine.learning`` is that process. Standard input brings a `Setup` with the checkpoint
to go on from, and then one `Job` after the other, each as a pickle; standard output takes a `Step`
for each, or the exception that ends the process: `StepFailed` of a job, or another one of the
trainer itself.
"""

import contextlib
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Iterator
from functools import partial
from pathlib import Path

from engine.learning.job import Job, Setup
from engine.learning.steady import Ask, SteadyTrainer, StepFailed
from engine.learning.step import Step

PRIORITY = 10  # a niceness; beside a process of niceness 0, Linux gives it a tenth of a core


class TrainerProcess(SteadyTrainer):
    """See the module."""

    def __init__(
        self,
        setup: Setup,
        *,
        cores: Collection[int],
        checkpoint: Path | None,
        notify: Callable[[], object],
    ) -> None:
        """Begin to start it, which takes seconds; `load` lets it go on to load the model.

        Args:
            setup: what the trainer is made with.
            cores: that the process may use.
            checkpoint: see `SteadyTrainer`.
            notify: likewise.
        """
        self._setup = setup
        self._cores = cores
        self._process: subprocess.Popen[bytes] | None = None
        self._may_load = threading.Event()
        super().__init__(checkpoint=checkpoint, notify=notify)

    def load(self) -> None:
        """Have the model loaded.

        Call it when the sampler's model is loaded: vLLM reckons with a GPU's memory as it finds it.
        """
        self._may_load.set()

    def _kill(self) -> None:
        self._may_load.set()
        if self._process is not None:
            self._process.kill()

    @contextlib.contextmanager
    def _started(self, checkpoint: Path | None) -> Iterator[Ask]:
        is_on_cpu = self._setup.device == "cpu"
        threads = str(len(set(self._cores)) if is_on_cpu else 1)  # others would spin
        self._process = process = subprocess.Popen(
            [sys.executable, "-P", "-s", "-m", "engine.learning"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            process_group=0,  # Ctrl-C is for the run, which ends this process
            env={**os.environ, "OMP_NUM_THREADS": threads},
        )
        try:
            os.sched_setaffinity(process.pid, self._cores)
            if is_on_cpu:
                lower_priority(process.pid)
            self._may_load.wait()
            _send(process, (self._setup, checkpoint))
            if self._closing.is_set():  # between the start of the process and its being known
                process.kill()
            yield partial(_ask, process)
        finally:
            process.kill()
            process.communicate()


def lower_priority(process: int) -> None:
    """Give a process, 0 for the one that calls, a trainer's niceness.

    It keeps a higher one, which a run that was started with ``nice`` has: root alone may lower it.
    """
    own = os.getpriority(os.PRIO_PROCESS, process)
    os.setpriority(os.PRIO_PROCESS, process, max(PRIORITY, own))


def _send(process: "subprocess.Popen[bytes]", message: object) -> None:
    assert process.stdin is not None
    process.stdin.write(pickle.dumps(message, pickle.HIGHEST_PROTOCOL))
    process.stdin.flush()


def _ask(process: "subprocess.Popen[bytes]", job: Job) -> Step:
    assert process.stdout is not None
    with contextlib.suppress(BrokenPipeError):  # it may have ended before, and have said why
        _send(process, job)
    answer = pickle.load(process.stdout)
    if isinstance(answer, StepFailed):
        raise answer
    if isinstance(answer, Exception):
        raise EOFError(str(answer)) from answer
    assert isinstance(answer, Step)
    return answer
