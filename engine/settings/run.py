"""Everything that one run is configured with, and what of it goes together."""

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError, model_validator

from engine.core import UserError
from engine.prompts import OPERATORS
from engine.search.widths import WIDTHS, WidthSettings
from engine.section import Section, Text, Whole, in_a_line, require, section
from engine.settings.advisor import ADVISED, AdvisorSettings
from engine.settings.budget import BudgetSettings
from engine.settings.cache import CacheSettings
from engine.settings.cluster import ClusterSettings
from engine.settings.evaluation import EvaluationSettings
from engine.settings.fill import FillSettings
from engine.settings.guidance import GUIDED, GuidanceSettings
from engine.settings.islands import IslandSettings
from engine.settings.learning import LearningSettings
from engine.settings.model import ModelSettings
from engine.settings.pipeline import PipelineSettings
from engine.settings.pool import PoolSettings
from engine.settings.prompts import PromptSettings
from engine.settings.search import SearchSettings
from engine.settings.tactics import TacticsSettings

_HOTTEST = 2.0  # temperature that vLLM takes
_MOST_MUTATIONS = 1000.0  # of a child, on average; each takes milliseconds
_COLDEST = 0.01  # temperature that vLLM samples with where it is given a lower one

Port = Annotated[Whole, Field(ge=0, lt=2**16)]
_NAME_BYTES = 200  # a file system takes 255, and the folder has a longer name while it is made


@section
class RunSettings(Section):
    """Everything that one run is configured with.

    Attributes:
        problem: folder of the problem.
        data: file or folder with the user's own data, for a problem that reads any; None for the
            data that come with the problem.
        metric: the metric that is the score, for a problem of another system's; None for
            ``combined_score``.
        runs: folder under which each run has its own.
        name: the name of the run's folder, one part of a path; None for a name made of problem,
            model, seed and time.
        store: the server that has the run's events, as in ``postgresql://user@host/database``; None
            for a file in the run's folder.
        seed: from which all random choices of the run derive.
        log: ``text``, or ``json`` for a line of JSON on standard error for each event and message.
        prometheus: port of 127.0.0.1 under which a Prometheus on this machine finds the run's
            figures; 0 for a free one, which the run says; None for none.
        opentelemetry: where the run's spans go: a file, or a collector on this machine, as in
            ``http://127.0.0.1:4318``; None for nowhere.
    """

    problem: str
    data: Text | None
    metric: Text | None
    model: ModelSettings
    search: SearchSettings
    width: Annotated[WidthSettings, BeforeValidator(WIDTHS.read)]
    islands: IslandSettings
    pool: PoolSettings
    pipeline: PipelineSettings
    prompts: PromptSettings
    budget: BudgetSettings
    evaluation: EvaluationSettings
    fill: FillSettings = FillSettings()
    cache: CacheSettings
    learning: LearningSettings
    advisor: AdvisorSettings
    tactics: TacticsSettings = TacticsSettings()
    guidance: GuidanceSettings = GuidanceSettings()
    cluster: ClusterSettings = ClusterSettings()
    runs: Text
    name: str | None
    store: Text | None = None
    seed: Whole = Field(ge=0, lt=2**63)
    # With values of their own, as settings of runs from before them have none.
    log: Literal["text", "json"] = "text"
    prometheus: Port | None = None
    opentelemetry: Text | None = None

    @property
    def asking_operators(self) -> frozenset[str]:
        """Names of the operators that ask the model in words, of those in the mix."""
        from engine.prompts.chat import ChatOperator  # which imports this package

        return frozenset(
            name
            for name, weight in self.search.operators.items()
            if weight and issubclass(OPERATORS.find(name, given=f"operator {name}"), ChatOperator)
        )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        must_be = f"one folder's name (printable, without /, at most {_NAME_BYTES} bytes) or null"
        require(self.name is None or _is_folder_name(self.name), "name", self.name, must_be)
        if self.model.kind == "mutation":
            self._fits_no_model()
        scheduled = self.islands.schedule is not None
        must_be = "false with islands.schedule, which has to know what came of a call"
        speculates = self.pipeline.speculate
        require(not (scheduled and speculates), "pipeline.speculate", speculates, must_be)
        self._fits_its_operators()
        if self.learning.method != "none":
            self._fits_learning()
        if self.advisor.enabled:
            self._fits_its_advisor()
        if self.guidance.enabled:
            self._fits_guidance()
        must_be = "false with prompts.layout=ancestors, whose prompts follow from who was drawn how"
        guesses = self.prompts.layout == "ancestors" and self.pipeline.speculate
        require(not guesses, "pipeline.speculate", self.pipeline.speculate, must_be)
        if self.tactics.when != "none":
            self._fits_tactics()
        if self.cluster.kind != "none":
            self._fits_cluster()
        return self

    def _fits_cluster(self) -> None:
        """Check that a worker has GPUs for its model, and that nothing watches one of many."""
        gpus, ranks = self.cluster.gpus, self.model.engine.get("tensor_parallel_size", 1)
        must_be = f"{ranks} with model.engine.tensor_parallel_size={ranks}, or 0 without GPUs"
        require(gpus in (0, ranks), "cluster.gpus", gpus, must_be)
        for key, value, allowed, must_be in (
            ("log", self.log, "text", "text"),
            ("prometheus", self.prometheus, None, "null"),
            ("opentelemetry", self.opentelemetry, None, "null"),
        ):
            require(value == allowed, key, value, f"{must_be} with a cluster")

    def _fits_tactics(self) -> None:
        """Check that there is a model to ask in words, and one at a time that asks it."""
        when = self.tactics.when
        must_be = "none without an operator that asks in words, as rewrite does"
        require(bool(self.asking_operators), "tactics.when", when, must_be)
        must_be = "false with tactics, since a guess does not know which idea its turn is"
        speculates = self.pipeline.speculate
        require(not speculates, "pipeline.speculate", speculates, must_be)
        must_be = "none with an advisor, which says what to try"
        require(not self.advisor.enabled, "tactics.when", when, must_be)
        must_be = "none with guidance.enabled, which says how to go about it"
        require(not self.guidance.enabled, "tactics.when", when, must_be)

    def _fits_no_model(self) -> None:
        """Check that nothing is asked for that only a language model has."""
        for key, value, allowed, must_be in (
            ("cache.kind", self.cache.kind, "none", "none"),
            ("learning.method", self.learning.method, "none", "none"),
            ("model.engine", self.model.engine, {}, "empty"),
        ):
            require(value == allowed, key, value, f"{must_be} with model=mutation")

    def _fits_its_operators(self) -> None:
        """Check that the operators in the mix suit the model and the width's policy."""
        is_mutation, operators = self.model.kind == "mutation", self.search.operators
        for name, weight in operators.items():
            must_be = (
                "0 with model=mutation, which only knows operator mutation"
                if is_mutation
                else "0 with a language model; give model=mutation"
            )
            fits = not weight or (name == "mutation") is is_mutation
            require(fits, f"search.operators.{name}", weight, must_be)
        drafts = [key for key in self.model.engine if key.startswith("spec")]
        must_be = f"0 with model.engine.{''.join(drafts[:1])}: vLLM can't ban tokens in drafts"
        infill = operators.get("infill")
        require(not (drafts and infill), "search.operators.infill", infill, must_be)
        must_be = f"0 with model.engine.{''.join(drafts[:1])}: vLLM has no min_p with drafts"
        require(not (drafts and self.model.min_p), "model.min_p", self.model.min_p, must_be)
        hottest = self.search.temperature_max
        must_be = (
            f"at most {_MOST_MUTATIONS:g} with model=mutation, of which it is the mean number"
            if is_mutation
            else f"at most {_HOTTEST:g} with a language model: vLLM takes no higher one"
        )
        fits = hottest <= (_MOST_MUTATIONS if is_mutation else _HOTTEST)
        require(fits, "search.temperature_max", hottest, must_be)
        policy = self.width.policy
        must_be = (
            "fixed or turboevolve with operator verbalized: what a call costs is learned from "
            "children that have an answer each"
        )
        fits = policy != "cost_aware" or not operators.get("verbalized")
        require(fits, "width.policy", policy, must_be)

    def _fits_learning(self) -> None:
        """Check what a model that learns can't be combined with."""
        lists = self.search.operators.get("verbalized")
        must_be = "0 while the model learns: children of one answer are no group"
        require(not lists, "search.operators.verbalized", lists, must_be)
        for name, everything in (("top_p", 1.0), ("top_k", 0), ("min_p", 0.0)):
            given = getattr(self.model, name)
            must_be = f"{everything:g} while the model learns, from the whole distribution"
            require(given in (None, everything), f"model.{name}", given, must_be)
        coldest = self.search.temperature_min
        must_be = f"at least {_COLDEST:g} while the model learns: vLLM samples with no lower one"
        require(coldest >= _COLDEST, "search.temperature_min", coldest, must_be)
        key = "tensor_parallel_size"
        ranks = self.model.engine.get(key, 1)
        must_be = "1 while the model learns: an adapter is read from the only process of a model"
        require(ranks == 1, f"model.engine.{key}", ranks, must_be)

    def _fits_its_advisor(self) -> None:
        """Check what an advisor can't be combined with."""
        kind = self.model.kind
        require(kind != "mutation", "model.kind", kind, "vllm where advisor.enabled is true")
        for name, weight in self.search.operators.items():
            must_be = f"0 with an advisor, whose experiments {' and '.join(ADVISED)} carry out"
            require(not weight or name in ADVISED, f"search.operators.{name}", weight, must_be)
        for key, value, barred, must_be in (
            ("pipeline.speculate", self.pipeline.speculate, True, "false"),
            ("prompts.layout", self.prompts.layout, "transcript", "stable or classic"),
            ("prompts.layout", self.prompts.layout, "ancestors", "stable or classic"),
            ("width.policy", self.width.policy, "cost_aware", "fixed or turboevolve"),
        ):
            require(value != barred, key, value, f"{must_be} where advisor.enabled is true")

    def _fits_guidance(self) -> None:
        """Check that a prompt shows guidance, and what that can't be combined with."""
        shows = any(self.search.operators.get(name) for name in GUIDED)
        must_be = f"false where no operator shows guidance; give {' or '.join(GUIDED)}"
        require(shows, "guidance.enabled", self.guidance.enabled, must_be)
        learns = self.learning.method
        must_be = "none where guidance.enabled is true: a child's answers have several prompts"
        require(learns == "none", "learning.method", learns, must_be)
        for key, value, barred, must_be in (
            ("advisor.enabled", self.advisor.enabled, True, "false"),
            ("pipeline.speculate", self.pipeline.speculate, True, "false"),
            ("width.policy", self.width.policy, "cost_aware", "fixed or turboevolve"),
        ):
            require(value != barred, key, value, f"{must_be} where guidance.enabled is true")


_ADAPTER = TypeAdapter(RunSettings)


def settings_of(values: object) -> RunSettings:
    """Return the settings that a nested mapping is, with every key of them.

    Raises:
        UserError: in a line, the key that is wrong, its value and what it must be.
    """
    try:
        return _ADAPTER.validate_python(values)
    except ValidationError as error:
        raise UserError(in_a_line(error, kind=RunSettings)) from error


def _is_folder_name(name: str) -> bool:
    is_a_name = name not in ("", ".", "..") and "/" not in name and name.isprintable()
    return is_a_name and len(name.encode()) <= _NAME_BYTES
