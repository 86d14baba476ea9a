"""A run's loop, joined from its parts: from the state that its log says it has to its end.

Does not cover the parts (``engine.parts``), or when a run starts and goes on (``engine.api.run``).
"""

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path

from engine.advisor import AdvisedRequests, advised_answers
from engine.beginning import Restored
from engine.budget import Account, Allowance
from engine.evaluation import Cascade
from engine.fill import Filler
from engine.guidance import GuidedRequests
from engine.inference import Decoding, Model, most_at_once
from engine.learning import (
    Learner,
    Learning,
    TrainerProcess,
    checkpoint,
    group_of,
    own_answer,
    rewards_of,
)
from engine.loop import Loop
from engine.parts import Parts
from engine.pipeline import BackPressure, Calls, LoadWatch, Reader, Requests, RunState
from engine.prompts import Operator
from engine.search.search import Search
from engine.settings import RunSettings
from engine.speculation import SpeculativeCalls
from engine.steering import Steering
from engine.store import Event, EventLog, RunHistory
from engine.tactics import TacticalRequests
from engine.timeline import Timeline


def loop_of(
    *,
    settings: RunSettings,
    restored: Restored,
    record: Callable[[Event], None],
    commit: Callable[[], None],
    operators: Mapping[str, Operator],
    model: Model,
    decoder: Decoding,
    syntax: Executor,
    evaluator: Cascade,
    stopped: Callable[[], bool],
    timeline: Timeline,
    bell: threading.Event,
    steering: Steering | None = None,
    filler: Filler | None = None,
    drains: bool = False,
    calls: Callable[..., Calls] | None = None,
    learner: Learning | None = None,
) -> Loop:
    """Return the loop of a run that goes on from where its log ends.

    Args:
        settings: the run's.
        restored: the run as far as it is recorded; ``record`` keeps its state up to date.
        record: appends an event to the log and folds it into the state.
        commit: brings what was recorded to disk.
        operators: by name.
        model: the language model.
        decoder: steps it.
        syntax: processes that parse what the model answers.
        evaluator: runs and scores candidates; has been told everything that is recorded.
        stopped: whether the user asked for an end.
        timeline: records what the model waits for.
        bell: rings when the evaluator has a verdict, or the model a child.
        steering: what others ask for meanwhile; None where nobody can.
        filler: keeps idle evaluators busy; None where they wait.
        drains: see `engine.Run.evolve`.
        calls: makes the calls, as `Calls` does; None for those of the settings.
        learner: learns from what is recorded; None where nothing does.
    """
    state, pipeline, novelty = restored.state, settings.pipeline, settings.search.novelty
    pressure = BackPressure(
        settings=pipeline,
        most_children=most_at_once(settings.model),
        workers=settings.evaluation.workers,
    )
    allowance = Allowance(settings.budget, state.history)
    requests = _kind_of_requests(settings, state.search)(
        settings=settings,
        history=state.history,
        operators=operators,
        block_size=model.block_size,
        decoder=decoder,
        syntax=syntax,
        timeline=timeline,
        notify=bell.set,
    )
    if learner is not None:
        learner.spare(lambda: requests.versions)
    reader = Reader(
        search=state.search,
        tokenizer=model,
        longest_parent=min(each.longest_parent for each in operators.values()),
        novelty=None if novelty is None else novelty.make(),
    )
    steering = steering or Steering()
    kind = calls or Calls
    if calls is None and pipeline.overlap and pipeline.speculate:
        kind = partial(
            SpeculativeCalls,
            settings=settings,
            reader=reader,
            allowance=allowance,
            steering=steering,
        )
    made = kind(
        state=state,
        record=record,
        requests=requests,
        pressure=pressure,
        overlap=pipeline.overlap,
    )
    made.begin_again(restored.unfinished)
    return Loop(
        state=state,
        record=record,
        commit=commit,
        calls=made,
        reader=reader,
        evaluator=evaluator,
        allowance=allowance,
        stopped=stopped,
        watch=LoadWatch(
            pressure=pressure, load=model.load, requests=requests, history=state.history
        ),
        timeline=timeline,
        bell=bell,
        steering=steering,
        filler=filler,
        drains=drains,
    )


def _kind_of_requests(settings: RunSettings, search: Search) -> Callable[..., Requests]:
    if settings.advisor.enabled:
        return AdvisedRequests
    if settings.tactics.when != "none":
        return partial(TacticalRequests, search=search)
    return GuidedRequests if settings.guidance.enabled else Requests


def training(
    settings: RunSettings,
    *,
    parts: Parts,
    history: RunHistory,
    folder: Path,
    notify: Callable[[], object],
) -> AbstractContextManager[TrainerProcess | None]:
    """Start what trains a run's model, to be held; None if nothing does, or nothing of its own."""
    if settings.learning.method == "none" or parts.learning is not None:
        return nullcontext()
    latest = checkpoint(folder, history.adapter) if history.adapter else None
    return parts.trainer(settings, checkpoint=latest, notify=notify)


def filler_of(
    settings: RunSettings, *, parts: Parts, state: RunState, operators: Mapping[str, Operator]
) -> Filler | None:
    """Return what keeps the idle evaluators of a run busy; None if nothing is to."""
    if parts.idle_evaluators is None:
        return None
    longest = min(each.longest_parent for each in operators.values())
    encode = parts.model.encode
    return Filler(
        settings=settings.fill,
        state=state,
        problem=parts.problem,
        evaluators=parts.idle_evaluators,
        fits=lambda program: len(encode(program.text)) <= longest,
        seed=settings.seed,
    )


def learner_of(
    settings: RunSettings,
    *,
    parts: Parts,
    history: RunHistory,
    log: EventLog,
    folder: Path,
    trainer: TrainerProcess | None,
) -> Learning | None:
    """Return what learns from a run whose model is loaded, told everything that is recorded.

    None if nothing learns.
    """
    if settings.learning.method == "none":
        return None
    rewards = rewards_of(
        settings.learning,
        direction=parts.problem.direction,
        target=parts.problem.target,
        history=history,
    )
    answers = advised_answers if settings.advisor.enabled else own_answer
    make_group = partial(group_of, rewards=rewards, answers_of=answers)
    account = Account(settings.budget, history)
    learner: Learning
    if trainer is None:
        assert parts.learning is not None  # or it had one of its own
        learner = parts.learning(history, make_group, lambda: account.share)
    else:
        trainer.load()
        learner = Learner(
            settings=settings.learning,
            history=history,
            folder=folder,
            make_group=make_group,
            trainer=trainer,
            progress=lambda: account.share,
        )
    for recorded in log.events():
        learner.fold(recorded.event)
    return learner
