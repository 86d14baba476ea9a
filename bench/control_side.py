"""One run of ``bench.control``, in this version or another one: runs inside that checkout.

Usage: python -P control_side.py REQUEST   (in the checkout, with it on PYTHONPATH)

REQUEST is JSON: {"arguments", "model", "evaluator", "tokens", "out"}. The run is what ``python -m
engine.run ARGUMENTS`` makes, but for two parts that are put in their class's place, wherever the
engine has imported it to: the evaluators (``trivial``: `TrivialPool`, or the ``real`` ones) and the
model (``mutation``: the engine's own, or ``stand-in``: `StandIn`). All else is as it is in that
version: the loop, the decoder's thread, the search, the operators, and the store on the disk. The
figures go to the file "out".
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import statistics
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from engine import evaluation, run
from engine.core import ChatFrame, Evaluation, Generation
from engine.inference import EngineLoad, Sampling
from engine.store import read_log

IN_FLIGHT = 256
TOKENS_PER_SECOND = 10_000
STEP_SECONDS = IN_FLIGHT / TOKENS_PER_SECOND
RELEASES = 120  # of the GIL, in a step of vLLM's
RELEASE_SECONDS = 10e-6  # that a call of ATen's takes, and does not hold the GIL
SCALE = "    scale = "  # begins the line that the stand-in's answers change


class Meter:
    """What the threads have used, looked up ten times a second while candidates come."""

    def __init__(self) -> None:
        self.samples: list[tuple[float, int, dict[str, float]]] = []
        self._candidates = 0
        self._next = 0.0

    def look(self) -> None:
        """Note that a candidate came, when, and the CPU seconds of the threads."""
        self._candidates += 1
        now = time.perf_counter()
        if now >= self._next:
            self._next = now + 0.1
            self.samples.append((now, self._candidates, thread_seconds()))

    def figures(self) -> dict[str, float]:
        """Return candidates a second, and the threads' CPU ms for each, without the first tenth."""
        began, ended = self.samples[0][0], self.samples[-1][0]
        first = next(each for each in self.samples if each[0] >= began + (ended - began) / 10)
        assert first is not self.samples[-1], "too few candidates to tell a rate; let it run longer"
        seconds, count = ended - first[0], self.samples[-1][1] - first[1]
        used = {name: now - first[2].get(name, 0.0) for name, now in self.samples[-1][2].items()}
        loop, decoder = used.pop("MainThread"), used.pop("decoder", 0.0)
        return {
            "candidates_per_second": count / seconds,
            "loop_ms": 1e3 * loop / count,
            "decoder_ms": 1e3 * decoder / count,
            "other_ms": 1e3 * sum(used.values()) / count,
            "loop_busy": loop / seconds,
        }


def thread_seconds() -> dict[str, float]:
    """Return the CPU seconds of each Python thread, by name."""
    used: dict[str, float] = {}
    for thread in threading.enumerate():
        assert thread.ident is not None  # it runs
        seconds = time.clock_gettime(time.pthread_getcpuclockid(thread.ident))
        used[thread.name] = used.get(thread.name, 0.0) + seconds
    return used


class TrivialPool:
    """`engine.evaluation.EvaluatorPool` that runs nothing: a program's score is its checksum."""

    meter = Meter()
    cores = os.sched_getaffinity(0)  # before the engine keeps some for the evaluators

    def __init__(self, **_: Any) -> None:
        os.sched_setaffinity(0, self.cores)  # these evaluators need none
        self._finished: list[tuple[str, Evaluation]] = []
        self._notify: Callable[[], object] = lambda: None

    def evaluate(self, program: str) -> Evaluation:
        """Return the verdict on a program: its checksum."""
        score = zlib.crc32(program.encode()) / 2**32
        return Evaluation(score=score, failure=None, metrics={"score": score})

    def submit(self, *, candidate_id: str, program: str, **_: Any) -> None:
        """See `EvaluatorPool.submit`; the verdict is in at once."""
        self.meter.look()
        self._finished.append((candidate_id, self.evaluate(program)))
        self._notify()

    def completed(self, *, timeout: float | None) -> list[tuple[str, Evaluation]]:
        """See `EvaluatorPool.completed`."""
        finished, self._finished = self._finished, []
        return finished

    @property
    def in_flight(self) -> int:
        """See `EvaluatorPool.in_flight`."""
        return len(self._finished)

    def announce_to(self, notify: Callable[[], object]) -> None:
        """See `EvaluatorPool.announce_to`."""
        self._notify = notify

    def watch(self, timeline: Any) -> None:
        """There is no worker to watch."""

    def check_walls(self, *, strict: bool) -> None:
        """There is no wall."""

    def __enter__(self) -> TrivialPool:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class MeteredPool(evaluation.EvaluatorPool):
    """The real evaluators, with `TrivialPool`'s meter."""

    def submit(self, **candidate: Any) -> None:
        """See `EvaluatorPool.submit`."""
        TrivialPool.meter.look()
        super().submit(**candidate)


class Step:
    """A decoding step: calls that let go of the GIL, as many as vLLM's, and a wait for the GPU."""

    def __init__(self) -> None:
        self.work: list[float] = []  # seconds of the calls, by step
        self.whole: list[float] = []  # and with the wait
        self.cycle: list[float] = []  # from a step's begin to the next one's, while requests run
        self._began: float | None = None  # the last step, if requests run on after it
        self._piece = bytes(4096)
        self._wait = 0.0

    def calibrate(self) -> None:
        """Let a step that is alone take `STEP_SECONDS`, and a call in it `RELEASE_SECONDS`."""
        for _ in range(100):
            self.take()
        size = len(self._piece) * RELEASES * RELEASE_SECONDS / min(self.work)
        self._piece = bytes(max(4096, round(size)))
        self.forget()
        for _ in range(100):
            self.take()
        self._wait = max(0.0, STEP_SECONDS - statistics.median(self.work))
        self.forget()

    def forget(self) -> None:
        """Forget the steps so far."""
        self.work, self.whole, self.cycle, self._began = [], [], [], None

    def pause(self) -> None:
        """Note that no request runs until the next step."""
        self._began = None

    def take(self) -> None:
        """Take a step."""
        began = time.perf_counter()
        if self._began is not None:
            self.cycle.append(began - self._began)
        self._began = began
        for _ in range(RELEASES):
            hashlib.sha256(self._piece)
        self.work.append(time.perf_counter() - began)
        time.sleep(self._wait)
        self.whole.append(time.perf_counter() - began)

    def figures(self) -> dict[str, float]:
        """Return median and 90th percentile of the steps so far, in ms."""
        result = {}
        for name, seconds in (("work", self.work), ("whole", self.whole), ("cycle", self.cycle)):
            deciles = statistics.quantiles(seconds, n=10)
            result[f"{name}_median"] = 1e3 * statistics.median(seconds)
            result[f"{name}_p90"] = 1e3 * deciles[-1]
        return result


class StandInFanOut:
    """The children of one prompt, in the place of `engine.inference.FanOut`."""

    def __init__(
        self, *, call: int, prompt: str, prompt_tokens: int, tokens: int, sampling: Sequence[Any]
    ) -> None:
        place = prompt.rfind(SCALE)
        old = prompt[place : prompt.index("\n", place)]
        self._prompt_tokens = prompt_tokens
        # Calls do not end all at once: some answers have fewer tokens, some have more.
        self._tokens = max(1, round(tokens * (0.75 + (call * 7919 % 101) / 200)))
        self._token = 0
        self._answers = {
            index: f"<<<<<<< SEARCH\n{old}\n=======\n{SCALE}{each.seed / 2**32:.9f}\n"
            ">>>>>>> REPLACE\n"
            for index, each in enumerate(sampling)
        }
        self._finished: list[Generation] = []

    @property
    def indices(self) -> tuple[int, ...]:
        """See `Children.indices`."""
        return tuple(self._answers)

    @property
    def request_ids(self) -> tuple[str, ...]:
        """Asked for by versions before this one, which are measured too."""
        return tuple(map(str, self._answers))

    @property
    def is_running(self) -> bool:
        """Asked for by versions before this one."""
        return bool(self._answers or self._finished)

    def advance(self) -> bool:
        """Write a token of each child; return whether there are more."""
        self._token += 1
        if self._token >= self._tokens:
            for index in self.indices:
                self._finish(index, "stop")
        return bool(self._answers)

    def take(self) -> list[Generation]:
        """See `Children.take`."""
        finished, self._finished = self._finished, []
        return finished

    def texts(self) -> Mapping[int, str]:
        """See `Children.texts`."""
        return {index: self._written(text) for index, text in self._answers.items()}

    def abort(self, index: int) -> None:
        """See `Children.abort`."""
        if index in self._answers:
            self._finish(index, "abort")

    def close(self) -> None:
        """See `Children.close`."""
        self._answers.clear()
        self._finished.clear()

    def _written(self, text: str) -> str:
        return text[: len(text) * self._token // self._tokens]

    def _finish(self, index: int, reason: str) -> None:
        text = self._written(self._answers.pop(index))
        self._finished.append(
            Generation(
                index=index,
                text=text,
                token_ids=tuple(range(self._token)),
                finish_reason=reason,
                prompt_tokens=self._prompt_tokens,
                cached_prompt_tokens=0,
                llm_seconds=0.0,
            )
        )


class StandIn:
    """A model that answers each request with a diff, and takes as long for it as a real one.

    The answers are one search/replace block that changes one number of the parent, so that each
    child is a program of its own and none grows; they are written ``tokens`` tokens long, a token a
    step. A prompt token is four characters.
    """

    max_model_len = 16384
    block_size = 16

    def __init__(self, *, tokens: int, step: Step) -> None:
        self._tokens = tokens
        self._step = step
        self._pieces: dict[str, int] = {}
        self._texts: list[str] = []
        self._calls = 0
        self._running: list[StandInFanOut] = []

    def encode(self, text: str, *, plain: bool = False) -> list[int]:
        """See `Model.encode`."""
        return [self._id(text[at : at + 4]) for at in range(0, len(text), 4)]

    def _id(self, piece: str) -> int:
        if piece not in self._pieces:
            self._pieces[piece] = len(self._texts)
            self._texts.append(piece)
        return self._pieces[piece]

    def chat_frame(self, *, system: str) -> ChatFrame:
        """See `Model.chat_frame`."""
        return ChatFrame(
            opening=f"<|system|>{system}<|user|>", closing="<|assistant|>", turn="<|user|>"
        )

    def adopt(self, version: int, folder: Path) -> None:
        """See `Model.adopt`."""
        raise ValueError("a stand-in takes no adapter")

    def fanout(
        self, *, token_ids: Sequence[int], sampling: Sequence[Sampling], adapter: int = 0
    ) -> StandInFanOut:
        """See `Model.fanout`."""
        self._calls += 1
        fan = StandInFanOut(
            call=self._calls,
            prompt="".join(map(self._texts.__getitem__, token_ids)),
            prompt_tokens=len(token_ids),
            tokens=self._tokens,
            sampling=sampling,
        )
        self._running.append(fan)
        return fan

    def step(self) -> None:
        """See `Model.step`."""
        self._step.take()
        self._running = [each for each in self._running if each.advance()]
        if not self._running:
            self._step.pause()

    def cached_tokens(self, token_ids: Sequence[int]) -> int:
        """See `Model.cached_tokens`."""
        return 0

    def load(self) -> EngineLoad:
        """See `Model.load`."""
        return EngineLoad(waiting=0, kv_usage=0.0)

    def close(self) -> None:
        """Free nothing."""


def imported(name: str) -> object:
    """Return what the engine has under a name, in whichever module a version keeps it."""
    modules = [m for path, m in sys.modules.items() if path.partition(".")[0] == "engine"]
    return next(vars(module)[name] for module in modules if name in vars(module))


def put(new: object, *, in_place_of: object) -> None:
    """Replace what the engine has imported, wherever that is."""
    for module in [m for name, m in sys.modules.items() if name.partition(".")[0] == "engine"]:
        for name, value in list(vars(module).items()):
            if value is in_place_of:
                setattr(module, name, new)


def measure(request: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of one run."""
    pool = TrivialPool if request["evaluator"] == "trivial" else MeteredPool
    put(pool, in_place_of=evaluation.EvaluatorPool)
    step, alone = Step(), {}
    if request["model"] == "stand-in":
        step.calibrate()
        alone = steps_alone(step)

        @contextmanager
        def loader(settings: Any, **_: Any) -> Iterator[Callable[[], StandIn]]:
            yield lambda: StandIn(tokens=request["tokens"], step=step)

        put(loader, in_place_of=imported("model_loader"))
    code = run.main(request["arguments"])
    assert code == 0, code
    figures: dict[str, Any] = TrivialPool.meter.figures()
    if alone:
        figures["step"] = step.figures()
        step.forget()
        after = steps_alone(step)
        figures["alone"] = {name: (alone[name] + after[name]) / 2 for name in alone}
    figures |= counted(Path(request["folder"]))
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)  # worker processes, which have ended
    figures["processes_ms"] = 1e3 * (ended.ru_utime + ended.ru_stime) / figures["children"]
    return figures


def steps_alone(step: Step) -> dict[str, float]:
    """Return the figures of steps beside which no other thread runs."""
    for _ in range(60):
        step.take()
    figures = step.figures()
    step.forget()
    return figures


def counted(folder: Path) -> dict[str, Any]:
    """Return the children and candidates of a run, and a digest of what they are.

    Children that the end of the budget cut short are none.
    """
    events: list[Any] = [each.event for each in read_log(folder)]
    children = [each for each in events if each.KIND == "child" and each.refusal != "budget"]
    # A version may keep more of a program than its text.
    programs = [getattr(each.program, "text", each.program) for each in children]
    said = sorted(f"{each.id} {text}" for each, text in zip(children, programs, strict=True))
    return {
        "children": len(children),
        "candidates": sum(each.refusal is None for each in children),
        "digest": hashlib.sha256("\n".join(said).encode()).hexdigest()[:16],
    }


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    Path(asked["out"]).write_text(json.dumps(measure(asked)), encoding="utf-8")
