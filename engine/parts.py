"""What a run works with: problem, evaluators, syntax workers and model, from its settings.

Covers: which cores they have, the order in which they start, and ending them. Only this module
knows that there are several kinds of models: ``engine.inference`` (vLLM) and ``engine.mutation``
(none at all). Runs of one problem and one model may share the parts, one after the other. Does not
cover what a run does with them: ``engine.assembly``.
"""

import logging
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

from engine.advisor import advised
from engine.core import Problem
from engine.evaluation import Evaluators, evaluator_cores, model_cores, open_pool, rehearsed
from engine.fill import IdleEvaluators, open_idle
from engine.guidance import guided
from engine.inference import (
    Decoder,
    Decoding,
    KVServer,
    LanguageModel,
    Model,
    SteadyModel,
    check_installed,
    check_trainer_fits,
    chunk_tokens,
    find_weights,
    gpu_node,
    in_its_format,
    is_cpu_build,
    kv_server,
    kv_transfer,
    plan_of,
    prepare,
    why_no_instructions,
)
from engine.learning import Learning, MakeGroup, Setup, TrainerProcess
from engine.mutation import MutationModel
from engine.problem import load_problem
from engine.prompts import OPERATORS, Operator, make_operators
from engine.search.features import dimensions
from engine.settings import RunSettings
from engine.store import RunHistory
from engine.syntax.workers import CORES_EACH, SyntaxWorkers
from engine.timeline import Timeline

_log = logging.getLogger("brood")
OpenDecoder = Callable[[], AbstractContextManager[Decoding]]
"""Opens a decoder, which is somebody else's, for a run."""
OpenLearning = Callable[[RunHistory, MakeGroup, Callable[[], float]], Learning]
"""Returns what learns from a run with a trainer that is somebody else's. It is given the run's
history, what makes groups, and the share of the budget that is spent."""


@dataclass(kw_only=True)
class Parts:
    """The parts of a run, which belong to who makes this value.

    Attributes:
        problem: that the evaluators evaluate.
        evaluators: run and score programs.
        syntax: processes that parse what the model answers.
        load: returns the model; called once, when it is asked for, since that takes minutes.
        cores: the evaluators'.
        idle_evaluators: run and score fills where nothing else wants their cores; None where
            nothing fills.
        decoding: opens the decoder of a run; None for one that is the run's alone.
        learning: returns what learns from a run; None for a trainer that is the run's alone.
    """

    problem: Problem
    evaluators: Evaluators
    syntax: Executor
    load: Callable[[], Model]
    cores: tuple[int, ...]
    idle_evaluators: IdleEvaluators | None = None
    decoding: OpenDecoder | None = None
    learning: OpenLearning | None = None

    @cached_property
    def model(self) -> Model:
        """The language model."""
        return self.load()

    def decoder(
        self, *, timeline: Timeline, notify: Callable[[], object]
    ) -> AbstractContextManager[Decoding]:
        """Return what decodes for a run while it is held.

        Args:
            timeline: records the model's steps.
            notify: called, in another thread, when a child is there.
        """
        if self.decoding is not None:
            return self.decoding()
        return Decoder(model=self.model, timeline=timeline, notify=notify)

    def watch(self, timeline: Timeline) -> None:
        """Have a timeline record when the evaluators are busy."""
        self.evaluators.watch(timeline)
        if self.idle_evaluators is not None:
            self.idle_evaluators.pool.watch(timeline)

    def operators(self, settings: RunSettings) -> Mapping[str, Operator]:
        """Return the operators of a run's mix, by name."""
        weights = settings.search.operators
        operators = make_operators(
            [name for name, weight in weights.items() if weight > 0],
            problem=self.problem,
            tokenizer=self.model,
            max_tokens=settings.model.max_tokens,
            prompts=settings.prompts,
            dimensions=self._dimensions(settings),
        )
        if settings.guidance.enabled:
            return guided(operators, settings.guidance)
        return advised(operators, settings.advisor) if settings.advisor.enabled else operators

    def _dimensions(self, settings: RunSettings) -> tuple[str, ...]:
        found = dimensions(
            settings.search.archive,
            initial_program=self.problem.initial_program,
            declared=self.problem.features,
        )
        return tuple(feature.name for feature in found or ())

    def trainer(
        self, settings: RunSettings, *, checkpoint: Path | None, notify: Callable[[], object]
    ) -> TrainerProcess:
        """Start the process that trains the run's model.

        On a CPU it has what the evaluators leave of their cores. Beside a GPU it has the cores of
        this thread, which are the model's.

        Args:
            settings: the run's.
            checkpoint: folder of the adapter to go on from; None to begin.
            notify: called, in another thread, when a step is over.
        """
        on_cpu = is_cpu_build()
        setup = Setup(
            weights=find_weights(settings.model),
            settings=settings.learning,
            seed=settings.seed,
            device="cpu" if on_cpu else "cuda",
            dtype=settled(settings).model.dtype if on_cpu else "bfloat16",
        )
        cores = self.cores if on_cpu else os.sched_getaffinity(0)
        return TrainerProcess(setup, cores=cores, checkpoint=checkpoint, notify=notify)


def read_problem(settings: RunSettings) -> Problem:
    """Return the problem of a run, with the judge that it has on this machine, if it has one."""
    data = None if settings.data is None else Path(settings.data)
    problem = load_problem(Path(settings.problem), data=data, metric=settings.metric)
    return rehearsed(problem, strict=settings.evaluation.strict)


def settled(settings: RunSettings) -> RunSettings:
    """Return the settings with what this machine decides: the format of the model's numbers.

    Call it within `open_parts`, which sets the threads that the format is measured with.

    Raises:
        UserError: the model's weights are not on this machine, or its vLLM can't be used.
    """
    model = settings.model
    if model.kind == "mutation" or model.dtype != "auto":
        return settings
    return replace(settings, model=in_its_format(model, folder=find_weights(model)))


@contextmanager
def open_parts(
    settings: RunSettings, problem: Problem, *, load: Callable[[], Model] | None = None
) -> Iterator[Parts]:
    """Start what a run of a problem works with, and hold it.

    The evaluators get cores of their own. Meanwhile this thread, and every thread that it starts,
    keeps to the other cores, if there are any.

    Args:
        settings: the run's.
        problem: the run's.
        load: returns the model, which stays open; None to load the settings' and close it.

    Raises:
        UserError: the model's weights are not on this machine, or a wall is missing that
            ``evaluation.strict`` asks for.
    """
    node = None if is_cpu_build() else gpu_node()
    cores = evaluator_cores(settings.evaluation.workers, gpu_node=node)
    of_model = model_cores(cores, gpu_node=node)
    is_mutation = settings.model.kind == "mutation"  # of which nothing else takes a core's time
    fill_cores = [*cores]
    if settings.fill.model_cores and (is_mutation or is_cpu_build()):
        fill_cores += [each for each in of_model if each not in cores]
    with (
        _process_of_model(settings, of_model) as every,
        SyntaxWorkers(
            count=len(every) if is_mutation else -(-len(every) // CORES_EACH), cores=every
        ) as syntax,
        # What it starts does so while the rest does.
        _own_or_given(settings, load, syntax=syntax) as own_or_given,
        open_pool(problem=problem, workers=len(cores), cores=cores) as evaluators,
        open_idle(settings.fill, problem, cores=fill_cores, making=cores) as idle_evaluators,
        ExitStack() as stack,
    ):

        def checked_load() -> Model:
            # Before the minutes that a model may take.
            evaluators.check_walls(strict=settings.evaluation.strict)
            # Where it is not strict, it has just been told what this machine lacks.
            if idle_evaluators is not None and settings.evaluation.strict:
                idle_evaluators.pool.check_walls(strict=True)
            shared = ", which the model uses too" if set(cores) & os.sched_getaffinity(0) else ""
            _log.info("evaluators on cores %s%s", ", ".join(map(str, sorted(set(cores)))), shared)
            model = own_or_given()
            if load is None:
                stack.enter_context(closing(model))
            return SteadyModel(model) if isinstance(model, LanguageModel) else model

        yield Parts(
            problem=problem,
            evaluators=evaluators,
            idle_evaluators=idle_evaluators,
            syntax=syntax,
            load=checked_load,
            cores=tuple(cores),
        )


@contextmanager
def _process_of_model(settings: RunSettings, cores: Collection[int]) -> Iterator[set[int]]:
    """Set this process up for a model on some cores; yield the cores that it had."""
    every = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        prepare(threads=settings.model.threads, kv_cache_gb=settings.model.kv_cache_gb)
        yield every
    finally:
        os.sched_setaffinity(0, every)


def _own_or_given(
    settings: RunSettings, load: Callable[[], Model] | None, *, syntax: Executor
) -> AbstractContextManager[Callable[[], Model]]:
    return model_loader(settings, syntax=syntax) if load is None else nullcontext(load)


@contextmanager
def model_loader(settings: RunSettings, *, syntax: Executor) -> Iterator[Callable[[], Model]]:
    """Hold what the run's model needs, and yield what loads it; who loads it closes it.

    Args:
        settings: the run's.
        syntax: processes in which ``model=mutation`` mutates programs.

    Raises:
        UserError: its weights are not on this machine, or vLLM is not; or the GPU's share for the
            trainer does not hold them.
    """
    if settings.model.kind == "mutation":
        yield partial(MutationModel, settings.model, syntax=syntax)
        return
    check_installed(settings.model.name)
    weights = find_weights(settings.model)
    learns = settings.learning.method != "none"
    if learns and settings.cluster.kind == "none" and not is_cpu_build():  # it trains beside it
        check_trainer_fits(settings.learning, weights)
    server: AbstractContextManager[KVServer | None] = nullcontext()
    if settings.cache.kind == "lmcache":
        tokens = chunk_tokens(settings=settings.model, folder=weights)
        server = kv_server(settings.cache, chunk_tokens=tokens, on_gpu=not is_cpu_build())
    with server as started:

        def load() -> LanguageModel:
            first = "" if is_cpu_build() else "; the first time, kernels are compiled for minutes"
            _log.info("loading %s%s", settings.model.name, first)
            _say_plan(settings, weights)
            _say_what_it_follows(settings, weights)
            transfer = kv_transfer(started, weights=weights)
            return LanguageModel(
                settings=settings.model,
                folder=weights,
                seed=settings.seed,
                kv_transfer=transfer,
                learning=settings.learning,
            )

        yield load


def _say_what_it_follows(settings: RunSettings, weights: Path) -> None:
    """Say which operators ask in words, where that asks too much of the model."""
    names = [name for name, weight in settings.search.operators.items() if weight]
    asking = [n for n in names if OPERATORS.find(n, given=f"operator {n}").instructs]
    why = why_no_instructions(weights) if asking else None
    if why is not None:
        _log.warning(
            "%s %s, and asked in words (search.operators %s): few answers will hold a program; "
            "take a larger instruction-following model, or search.operators.infill alone",
            settings.model.name,
            why,
            ", ".join(asking),
        )


def _say_plan(settings: RunSettings, weights: Path) -> None:
    """Say where a GPU's memory goes, and whether that may not do."""
    plan = plan_of(settings.model, weights, learning=settings.learning)
    if plan is None:
        return
    _log.info("%s", plan)
    if not plan.fits(tokens=settings.model.max_model_len):
        _log.warning(
            "that may be too little for one prompt: lower model.max_num_seqs or "
            "model.max_model_len, or raise model.gpu_memory_utilization"
        )
