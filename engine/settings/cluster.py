"""Where a run's islands are: the group ``cluster``."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from engine.section import Count, Number, Section, Whole, require, section


@section
class ClusterSettings(Section):
    """Workers, each with a model, among which a run's islands are shared out.

    Attributes:
        kind: ``none`` for all islands in one loop; ``ray`` for a run of each, on workers of a Ray
            cluster.
        address: of the Ray cluster, ``HOST:PORT``; None to start one on this machine.
        workers: how many have a model, at most one for each island.
        gpus: of each worker, and of each prefiller.
        prefillers: processes with a model that only compute prompts, for the workers of their
            machines; they need ``cache=lmcache``.
        outposts: processes with evaluators and no model, spread over the cluster's machines.
        patience: seconds after which a worker that does not answer counts as dead.
    """

    kind: Literal["none", "ray"] = "none"
    address: str | None = None
    workers: Count = 1
    gpus: Annotated[Whole, Field(ge=0)] = 0
    prefillers: Annotated[Whole, Field(ge=0)] = 0
    outposts: Annotated[Whole, Field(ge=0)] = 0
    patience: Annotated[Number, Field(ge=1)] = 60.0

    @model_validator(mode="after")
    def _address_is_one(self) -> Self:
        host, _, port = (self.address or "a:1").rpartition(":")
        must_be = "HOST:PORT of a Ray cluster, or null to start one on this machine"
        require(bool(host) and port.isdecimal(), "address", self.address, must_be)
        return self
