"""From a run's parts to its loop: makes the decoder, the requests, the calls and the loop.

Does not cover where the parts come from: ``engine.parts``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Executor

from engine.budget import Allowance
from engine.inference import Decoder, Model, most_at_once
from engine.loop import Evaluator, Generator, Loop
from engine.pipeline import BackPressure, Calls, LoadWatch, Reader, Requests
from engine.prompts import Operator
from engine.restore import Restored
from engine.settings import RunSettings
from engine.speculation import SpeculativeCalls
from engine.store import Event
from engine.timeline import Timeline


def evolve(
    *,
    settings: RunSettings,
    restored: Restored,
    record: Callable[[Event], None],
    commit: Callable[[], None],
    operators: Mapping[str, Operator],
    model: Model,
    syntax: Executor,
    evaluator: Evaluator,
    stopped: Callable[[], bool],
    timeline: Timeline,
    bell: threading.Event,
) -> None:
    """Run the loop until the budget is spent or the user asks for an end.

    Args:
        settings: the run's.
        restored: the run as far as it is recorded; ``record`` keeps its state up to date.
        record: appends an event to the log and folds it into the state.
        commit: brings what was recorded to disk.
        operators: by name.
        model: the language model; nobody else steps it while the loop runs.
        syntax: processes that parse what the model answers.
        evaluator: runs and scores candidates; has been told everything that is recorded.
        stopped: whether the user asked for an end.
        timeline: records what the model does and waits for.
        bell: rings when the evaluator has a verdict; the decoder rings it too.
    """
    state, pipeline, novelty = restored.state, settings.pipeline, settings.search.novelty
    pressure = BackPressure(
        settings=pipeline,
        most_children=most_at_once(settings.model),
        workers=settings.evaluation.workers,
    )
    allowance = Allowance(settings.budget, state.history)
    with Decoder(model=model, timeline=timeline, notify=bell.set) as decoder:
        requests = Requests(
            settings=settings,
            history=state.history,
            operators=operators,
            block_size=model.block_size,
            decoder=decoder,
            syntax=syntax,
            timeline=timeline,
            notify=bell.set,
        )
        reader = Reader(
            search=state.search,
            tokenizer=model,
            longest_parent=min(each.longest_parent for each in operators.values()),
            novelty=None if novelty is None else novelty.make(),
        )
        calls = Calls(
            state=state,
            record=record,
            requests=requests,
            pressure=pressure,
            overlap=pipeline.overlap,
        )
        calls.begin_again(restored.unfinished)
        generator: Generator = calls
        if pipeline.overlap and pipeline.speculate != "false":
            generator = SpeculativeCalls(
                calls,
                settings=settings,
                reader=reader,
                allowance=allowance,
            )
        Loop(
            state=state,
            record=record,
            commit=commit,
            generator=generator,
            reader=reader,
            evaluator=evaluator,
            overlap=pipeline.overlap,
            allowance=allowance,
            stopped=stopped,
            watch=LoadWatch(
                pressure=pressure, load=model.load, requests=requests, history=state.history
            ),
            timeline=timeline,
            bell=bell,
        ).run()
