"""The experiment file, and the checks that need more than one of its parts."""

from typing import Annotated

from pydantic import Field, model_validator

from mc.config.cluster import ClusterConfig
from mc.config.names import Method, SchemaVersion
from mc.config.quantities import Probability
from mc.config.workload import ModelConfig, PlanConfig
from mc.document import StrictModel, located


class RunConfig(StrictModel):
    """How to run.

    Attributes:
        samples: steps to draw; all are kept in memory, hence the limit.
        seed: of all randomness.
        method: `exact` draws slowest ranks directly, `direct` draws every rank, `grid` computes the law
            without sampling.
        confidence: of the intervals that are reported.
        realisations: how many clusters to draw where chips are persistently slow.
    """

    samples: Annotated[int, Field(ge=1, le=50_000_000)] = 20_000
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    method: Method = "exact"
    confidence: Annotated[Probability, Field(gt=0, lt=1)] = 0.95
    realisations: Annotated[int, Field(ge=1, le=10**9)] = 50


class ExperimentConfig(StrictModel):
    """All that determines a result."""

    schema_version: SchemaVersion = 1
    name: Annotated[str, Field(min_length=1)]
    description: str | None = None
    cluster: ClusterConfig
    model: ModelConfig
    plan: PlanConfig
    run: RunConfig = RunConfig()

    @property
    def ranks(self) -> int:
        """How many ranks take part."""
        return self.cluster.size if self.plan.ranks == "all" else self.plan.ranks

    @model_validator(mode="after")
    def _fits(self) -> "ExperimentConfig":
        found: list[tuple[tuple[str | int, ...], str]] = []
        if self.ranks > self.cluster.size:
            asked = f"{self.ranks} ranks asked for, the cluster has {self.cluster.size_text}"
            message = f"{asked}; expected `all` or at most {self.cluster.size}"
            found.append((("plan", "ranks"), message))
        number_format, offered = self.model.compute.format, self.cluster.chip.peak.offered
        if number_format is not None and number_format not in offered:
            chip = self.cluster.chip.name or "the chip"
            message = f"{chip} does not offer {number_format}; expected one of {', '.join(offered) or 'none'}"
            found.append((("model", "compute", "format"), message))
        if found:
            raise located("ExperimentConfig", found)
        return self
