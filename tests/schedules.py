"""Randomised schedules of the loop: a drawn run, lived through over as many sessions as it has.

The log, the search, the prompts, the cascade, the decoder and its thread are the real ones. The
model writes at a pace that chance chooses and may die; verdicts come after delays, some very late
and some as crashes; the process may be asked to stop, or die before or after any event is written,
whether it is committed or not.
"""

from __future__ import annotations

import contextlib
import hashlib
import heapq
import itertools
import json
import random
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from inline import Inline
from looping import evolve
from table_fan import TableFan

from engine.beginning import archive_features, restore, told_cascade
from engine.core import (
    INITIAL,
    Candidate,
    ChatFrame,
    Evaluation,
    Failure,
    Feature,
    Generation,
    Problem,
    Prompt,
)
from engine.inference import EngineLoad, Sampling
from engine.problem import load_problem
from engine.prompts.chat import Crossover, Repair, Rewrite
from engine.prompts.verbalized import Verbalized
from engine.search.features import cell_of
from engine.search.mixes import MIXES
from engine.search.novelty import NOVELTY
from engine.search.widths import WIDTHS, WidthSettings
from engine.settings import RunSettings
from engine.store import (
    Event,
    EventLog,
    Recorded,
    RunHistory,
    Session,
    Verdict,
    create_run,
    read_log,
)
from engine.syntax import read
from engine.timeline import TIMELINE, Timeline

NEAR_COPIES = NOVELTY.read({"policy": "cosine", "threshold": 0.999})
AMPLE = 1 << 20
"""Room in the context for whatever a prompt is to show."""
_MOST_EVENTS = 60  # of a session that dies or is stopped
_LATE = 20  # times as long as other verdicts
_LIST = re.compile(r"Number of versions: (\d+)\.")
_HANGS = 120.0  # seconds that no session has taken, however busy the machine


class Death(Exception):
    """The process dies here."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Schedule:
    """What chance has decided about a run beforehand.

    Attributes:
        settings: of the run.
        stages: of the problem.
        context: tokens of the model's context.
        step: the most seconds that a step of the model takes.
        verdict: the same of an evaluation that is not late.
        crashes: share of the evaluations that lose their evaluator.
        ended: share of the answers' beginnings that are called complete.
        aborts: share of the children's steps in which the engine gives the child up.
        sessions: what ends each session but the last one: ``record`` or ``recorded`` for a death
            before or after an event is written, ``model`` for one in a step, or ``stop``.
    """

    settings: RunSettings
    stages: int
    context: int
    step: float
    verdict: float
    crashes: float
    ended: float
    aborts: float
    sessions: tuple[str, ...]

    @property
    def is_clean(self) -> bool:
        """Whether nothing cuts it short."""
        return not self.sessions


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """A call as the model was given it.

    Attributes:
        session: in which.
        beside: children that it was writing already.
    """

    session: int
    prompt: str
    seeds: tuple[int, ...]
    beside: int
    fan: Fan


@dataclass(frozen=True, kw_only=True, slots=True)
class Life:
    """A run from its beginning to its end.

    Attributes:
        events: all that is in its log.
        history: as the last session left it.
        asked: all calls that the model was given, by the number that their answers begin with.
        steps: of the model in which it had children to write.
    """

    events: list[Recorded]
    history: RunHistory
    asked: list[Asked]
    steps: int


def small_problem(defaults: RunSettings) -> Problem:
    """Return the default problem with a task that any schedule's context has room for."""
    whole = load_problem(Path(defaults.problem))
    quick = replace(whole.stages[0], name="quick")
    return replace(
        whole,
        statement="Do.",
        entry_point="f",
        stages=(quick, *whole.stages),
        features=(Feature(name="score", low=0, high=1, bins=8),),
    )


def drawn(seed: int, defaults: RunSettings) -> Schedule:
    """Return a schedule."""
    rng, others = random.Random(seed), random.Random(f"archive of {seed}")
    operators = _operators(seed)
    settings = replace(
        defaults,
        search=replace(
            defaults.search,
            k=rng.randint(1, 6),
            novelty=rng.choice([None, None, None, NEAR_COPIES]),
            failures=rng.randint(0, 2),
            archive=others.choice(["none", "none", "problem"]),
            **operators,
        ),
        width=_width(rng, operators),
        islands=replace(
            defaults.islands,
            count=rng.randint(1, 4),
            migrate_every=rng.randint(0, 3),
            migrants=rng.randint(1, 2),
        ),
        pipeline=replace(
            defaults.pipeline,
            overlap=rng.random() < 0.85,
            speculate=rng.choice([True, False, True, True]),
            ahead=rng.randint(1, 3),
            children=rng.choice([None, rng.randint(1, 12)]),
            candidates=rng.choice([None, rng.randint(1, 8)]),
            adaptive=rng.random() < 0.5,
        ),
        prompts=replace(
            defaults.prompts,
            layout=rng.choice(["classic", "stable", "transcript"]),
            history_tokens=rng.choice([0, 300, 2000]),
            growth_tokens=rng.choice([0, 200]),
            align=rng.random() < 0.5,
        ),
        budget=replace(
            defaults.budget,
            candidates=rng.randint(5, 40),
            seconds=0.03 if rng.random() < 0.08 else None,
        ),
        evaluation=replace(defaults.evaluation, workers=rng.randint(1, 3)),
        seed=seed,
    )
    ends = ["record", "recorded", "model", "stop"]
    drawn = Schedule(
        settings=settings,
        stages=rng.randint(1, 2),
        context=rng.choice([AMPLE, AMPLE, AMPLE, 2500]),
        step=rng.choice([0.0, 0.0002, 0.001]),
        verdict=rng.choice([0.0, 0.001, 0.004, 0.02]),
        crashes=rng.choice([0.0, 0.1]),
        ended=rng.choice([0.0, 0.05]),
        aborts=rng.choice([0.0, 0.02]),
        sessions=tuple(rng.choice(ends) for _ in range(rng.choice([0, 0, 1, 2, 4]))),
    )
    return _guessing(drawn) if seed % 5 == 0 else drawn


def _guessing(schedule: Schedule) -> Schedule:
    """Return the schedule with verdicts so slow that guesses go ahead of guesses."""
    settings = schedule.settings
    pipeline = replace(settings.pipeline, overlap=True, speculate=True, ahead=3, candidates=None)
    settings = replace(
        settings,
        pipeline=pipeline,
        islands=replace(settings.islands, count=1),
        prompts=replace(settings.prompts, history_tokens=2000),
    )
    return replace(schedule, settings=settings, context=AMPLE, step=0.0, verdict=0.02)


def _width(rng: random.Random, operators: Mapping[str, Any]) -> WidthSettings:
    policy = rng.choice(["fixed", "turboevolve", "cost_aware"])
    if policy == "cost_aware" and "verbalized" not in operators["operators"]:
        return WIDTHS.read({"policy": policy, "k_max": 6})
    return WIDTHS.read({"policy": policy.replace("cost_aware", "fixed")})


def _operators(seed: int) -> dict[str, Any]:
    """Return a mix: of all that the model can follow, of some, or of one."""
    rng, lists = random.Random(f"operators of {seed}"), random.Random(f"lists of {seed}")
    others = {"crossover": 0.5, "repair": 0.5} if rng.random() < 0.5 else {}
    if lists.random() < 0.4:
        others["verbalized"] = lists.choice([0.5, 4.0])
    return {
        "operators": {"rewrite": 1.0, **others},
        "mix": MIXES.read({"policy": rng.choice(["fixed", "kl_ucb"])}),
    }


def live(schedule: Schedule, problem: Problem, folder: Path) -> Life:
    """Go through a run from its beginning to its end."""
    rng = random.Random(f"chance of {schedule.settings.seed}")
    problem = replace(problem, stages=problem.stages[-schedule.stages :])
    metrics = {"score": 0.5, "quick.score": 0.5}
    first = Evaluation(score=0.5, failure=None, metrics=metrics)
    create_run(
        folder,
        write_config=lambda path: path.touch(),
        events=[
            Session(number=0, engine="0", fingerprint="f"),
            first_verdict(schedule.settings, problem, first),
        ],
    )
    asked: list[Asked] = []
    steps = 0
    for number, end in enumerate((*schedule.sessions, None)):
        with EventLog(folder, session=number) as log:
            events, model = list(log.events()), Model(schedule, rng, number=number, asked=asked)
            model.dies = end == "model"
            restored = restore(schedule.settings, problem, events, model)
            recorder = Recorder(log, restored.state.fold, rng, end)
            if number:
                recorder.record(Session(number=number, engine="0", fingerprint="f"))
            with _unless_it_dies(end):
                _loop(schedule, problem, log, folder, restored, recorder, model, rng)
            steps += model.steps
    return Life(
        events=list(read_log(folder)), history=restored.state.history, asked=asked, steps=steps
    )


def first_verdict(settings: RunSettings, problem: Problem, evaluation: Evaluation) -> Verdict:
    """Return the verdict on a small initial program, in its cell."""
    program = "def f(x):\n    return x\n"
    cell = cell_of(read(program), evaluation, features=archive_features(settings, problem))
    return Verdict(candidate=INITIAL, evaluation=evaluation, program=program, cell=cell)


def _loop(
    schedule: Schedule,
    problem: Problem,
    log: EventLog,
    folder: Path,
    restored: Any,
    recorder: Recorder,
    model: Model,
    rng: random.Random,
) -> None:
    settings, bell = schedule.settings, threading.Event()
    parts: dict[str, Any] = {"model": model}
    operators = {
        name: kind(problem=problem, tokenizer=model, max_tokens=500, prompts=settings.prompts)
        for name, kind in OPERATORS.items()
        if name in settings.search.operators
    }
    for operator in operators.values():
        if isinstance(operator, Doubtful):
            operator.share = schedule.ended
    with Timeline(folder / TIMELINE) as timeline, LatePool(schedule, rng, ring=bell.set) as pool:
        evolve(
            syntax=Inline(),
            settings=settings,
            restored=restored,
            record=recorder.record,
            commit=log.commit,
            operators=operators,
            evaluator=told_cascade(settings, problem, restored.state.history, pool),
            stopped=recorder.is_stopped,
            timeline=timeline,
            bell=bell,
            **parts,
        )


@contextlib.contextmanager
def _unless_it_dies(end: str | None) -> Iterator[None]:
    try:
        yield
    except Death:
        assert end in ("record", "recorded", "model")


class Recorder:
    """Writes events, and ends the session in the way and at the event that chance has chosen."""

    def __init__(
        self,
        log: EventLog,
        fold: Callable[[Recorded], None],
        rng: random.Random,
        end: str | None,
    ) -> None:
        self._log = log
        self._fold = fold
        self._end = end
        self._left = rng.randrange(1, _MOST_EVENTS)
        self._deadline = time.monotonic() + _HANGS

    def record(self, event: Event) -> None:
        # The first event of a later session stands in no loop.
        dies = self._left <= 0 and not isinstance(event, Session)
        self._left -= 1
        if dies and self._end == "record":
            raise Death
        recorded = self._log.append(event)
        if dies and self._end == "recorded":
            raise Death
        self._fold(recorded)

    def is_stopped(self) -> bool:
        assert time.monotonic() < self._deadline, "the loop waits for nothing"
        return self._end == "stop" and self._left <= 0


def digest(*parts: object) -> bytes:
    """Return 32 bytes that follow from ``parts`` alone."""
    return hashlib.sha256(repr(parts).encode()).digest()


def answer(number: int, prompt: str, seed: int) -> str:
    """Return what the model writes for the call of this number: mostly a program of its own."""
    lists = _LIST.search(prompt.rpartition("<turn>")[2])
    if lists is not None:
        return _listed(number, prompt, seed, asked=int(lists[1]))
    return f"call {number}\n```python\n{_program(prompt, seed)}\n```"


def _listed(number: int, prompt: str, seed: int, *, asked: int) -> str:
    """Return a list of programs: as many as are asked for, or fewer, or one more."""
    chance = digest("list", prompt, seed)[0]
    count = asked if chance < 96 else chance % (2 if chance < 160 else asked + 2)
    if not count:
        return f'{{"responses": [], "call": {number}}}'
    entries = [
        json.dumps({"code": _program(prompt, seed, place), "probability": 1 / count})
        for place in range(count)
    ]
    # Nobody asked for the number; it stands in the first line, which no cut leaves out.
    return f'{{"responses": [{{"call": {number},\n' + ",\n".join(entries)[1:] + "]}"


def _program(prompt: str, *chances: int) -> str:
    chance = digest(prompt, *chances)
    value = int.from_bytes(chance[1:5], "big")
    body = f"    y = x\n    return y * {value}"
    if chance[0] < 15:
        body = "    return x *"
    elif chance[0] < 35:
        body = "    return x * 7"
    elif chance[0] < 45:
        body = "    return z"
    return f"def f(x):\n{body}"


class Fan(TableFan):
    """Keeps what it has handed out."""

    def __init__(self, **parts: Any) -> None:
        super().__init__(**parts)
        self.taken: list[Generation] = []

    def take(self) -> list[Generation]:
        finished = super().take()
        self.taken += finished
        return finished


class Model:
    """A language model, one character a token, that writes at random speed."""

    block_size = 16

    def __init__(
        self, schedule: Schedule, rng: random.Random, *, number: int, asked: list[Asked]
    ) -> None:
        """``asked``: the calls of all sessions, to which it adds; ``number``: of the session."""
        self._schedule = schedule
        self._rng = random.Random(rng.random())  # the decoder's thread uses it
        self._loads = random.Random(rng.random())
        self._number = number
        self._asked = asked
        self._fans: list[Fan] = []
        self.max_model_len = schedule.context
        self.dies = False
        self.steps = 0

    def encode(self, text: str) -> list[int]:
        return [*map(ord, text)]

    def chat_frame(self, *, system: str) -> ChatFrame:
        return ChatFrame(opening=f"{system}\n", closing="<answer>", turn="<turn>")

    def load(self) -> EngineLoad:
        chance = self._loads
        return EngineLoad(waiting=chance.choice([0, 0, 0, 2]), kv_usage=chance.random())

    def adopt(self, version: int, folder: Path) -> None:
        raise ValueError("a stand-in takes no adapter")

    def fanout(
        self, *, token_ids: Sequence[int], sampling: Sequence[Sampling], adapter: int = 0
    ) -> Fan:
        prompt, seeds = "".join(map(chr, token_ids)), tuple(each.seed for each in sampling)
        fan = Fan(
            prompt_tokens=len(token_ids),
            answers=[answer(len(self._asked), prompt, seed) for seed in seeds],
            encode=self.encode,
        )
        beside = sum(len(each.indices) for each in self._fans)
        self._asked.append(
            Asked(session=self._number, prompt=prompt, seeds=seeds, beside=beside, fan=fan)
        )
        self._fans.append(fan)
        return fan

    def step(self) -> None:
        """Let each child write some lines or none; the step takes a second of the engine's."""
        if self._schedule.step:
            time.sleep(self._rng.random() * self._schedule.step)
        self._fans = [fan for fan in self._fans if fan.indices]
        running = sum(len(fan.indices) for fan in self._fans)
        self.steps += running > 0
        for fan in self._fans:
            fan.note_seconds(1 / running)
            for index in fan.indices:
                if self._rng.random() < self._schedule.aborts:
                    fan.abort(index)
                elif self._rng.random() < 0.7:
                    fan.write(index, lines=self._rng.randint(1, 3))
        if self.dies and self._rng.random() < 0.05:
            raise Death


class Doubtful(Rewrite):
    """Calls some beginnings of answers complete, whatever they are."""

    share = 0.0

    def is_complete(self, *, parent: Candidate, prompt: Prompt, text: str) -> bool:
        is_complete = super().is_complete(parent=parent, prompt=prompt, text=text)
        return is_complete or digest(text)[0] < 256 * self.share


class DoubtfulCrossover(Doubtful):
    """Asks for what a crossover does."""

    words_for_two = Crossover.words_for_two


class DoubtfulRepair(Doubtful):
    """Asks for what a repair does."""

    words_for_two = Repair.words_for_two


OPERATORS = {
    "rewrite": Doubtful,
    "crossover": DoubtfulCrossover,
    "repair": DoubtfulRepair,
    "verbalized": Verbalized,
}


class LatePool:
    """Evaluators whose verdicts come after random delays, from a thread; a context manager."""

    def __init__(self, schedule: Schedule, rng: random.Random, *, ring: Callable[[], None]) -> None:
        self._schedule = schedule
        self._rng = random.Random(rng.random())
        self._ring = ring
        self._change = threading.Condition()
        self._numbers = itertools.count()
        self._waiting: list[tuple[float, int, str, Evaluation]] = []
        self._finished: list[tuple[str, Evaluation]] = []
        self._closing = False
        self._thread = threading.Thread(target=self._work, daemon=True)

    def submit(self, *, candidate_id: str, program: str, stage: int, order: int) -> None:
        delay = self._rng.random() * self._schedule.verdict
        if self._rng.random() < 0.03:
            delay *= _LATE
        entry = time.monotonic() + delay, next(self._numbers), candidate_id, self._verdict(program)
        with self._change:
            heapq.heappush(self._waiting, entry)
            self._change.notify()

    def completed(self, *, timeout: float | None) -> list[tuple[str, Evaluation]]:
        assert timeout == 0  # the loop waits for its bell, never for the evaluators
        with self._change:
            finished, self._finished = self._finished, []
            return finished

    def __enter__(self) -> LatePool:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        with self._change:
            self._closing = True
            self._change.notify()
        self._thread.join()

    def _work(self) -> None:
        with self._change:
            while not self._closing:
                now = time.monotonic()
                if self._waiting and self._waiting[0][0] <= now:
                    self._finished.append(heapq.heappop(self._waiting)[2:])
                    self._ring()
                else:
                    self._change.wait(self._waiting[0][0] - now if self._waiting else None)

    def _verdict(self, program: str) -> Evaluation:
        if self._rng.random() < self._schedule.crashes:
            return Evaluation(score=None, failure=Failure.CRASH, message="it was lost")
        chance = digest(program)
        if chance[0] < 40:
            return Evaluation(score=None, failure=Failure.ERROR, message="line 2: no")
        score = int.from_bytes(chance[1:5], "big") / 2**32
        return Evaluation(score=score, failure=None, metrics={"score": score}, seconds=score)
