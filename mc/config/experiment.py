"""The experiment file, and the checks that need more than one of its parts."""

from typing import Annotated

from pydantic import Field, model_validator

from mc.config.cluster import ClusterConfig
from mc.config.names import Method, SchemaVersion
from mc.config.plan import PlanConfig
from mc.config.protocol import AUTO, NONE
from mc.config.quantities import Probability
from mc.config.workload import ModelConfig
from mc.document import StrictModel, did_you_mean, located


class RunConfig(StrictModel):
    """How to run.

    Attributes:
        samples: steps to draw; all are kept in memory, hence the limit.
        seed: of all randomness.
        method: `exact` draws slowest ranks directly, `direct` draws every rank, `grid` computes the law
            without sampling.
        confidence: of the intervals that are reported.
        realisations: how many clusters to draw where chips are persistently slow, or sequences of steps where
            links remember their state.
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
        lasting = [
            tier.name
            for tier in self.cluster.tiers
            if tier.congestion is not None and tier.congestion.remembers
        ]
        if lasting and self.run.realisations == 1 and self.run.samples > 1:
            reason = f"since steps are alike where the links of `{lasting[0]}` remember their state"
            found.append((("run", "realisations"), f"expected 2 or more, {reason}; got 1"))
        number_format, offered = self.model.compute.format, self.cluster.chip.peak.offered
        if number_format is not None and number_format not in offered:
            chip = self.cluster.chip.name or "the chip"
            message = f"{chip} does not offer {number_format}; expected one of {', '.join(offered) or 'none'}"
            found.append((("model", "compute", "format"), message))
        found += self._exceptional_chips()
        found += self._unknown_protocol()
        if found:
            raise located("ExperimentConfig", found)
        return self

    def _unknown_protocol(self) -> list[tuple[tuple[str | int, ...], str]]:
        """A protocol that no link of the cluster has."""
        name = self.plan.protocol
        links = [tier.link for tier in self.cluster.tiers]
        known = dict.fromkeys(each.name for link in links for each in link.protocols or ())
        if name in (AUTO, NONE, *known):
            return []
        if not known:
            text = f"expected `{AUTO}` or `{NONE}`, since no link of the cluster has protocols; got `{name}`"
        else:
            text = f"unknown protocol `{name}`; {did_you_mean(name, (*known, AUTO, NONE))}"
        return [(("plan", "protocol"), text)]

    def _exceptional_chips(self) -> list[tuple[tuple[str | int, ...], str]]:
        """Chips of some units that cannot compute what the model asks for."""
        compute, ranks = self.model.compute, min(self.ranks, self.cluster.size)
        others = [chip for _, chip, _ in self.cluster.chips(ranks) if chip != self.cluster.chip]
        if others and compute.format is None:
            text = (
                "expected `flop`, `format` and `efficiency`, since the cluster has several chips; got `time`"
            )
            return [(("model", "compute", "time"), text)]
        number_format = str(compute.format)
        return [
            (
                ("model", "compute", "format"),
                f"{chip.name or 'a chip of the exceptions'} does not offer {number_format}; "
                f"expected one of {', '.join(chip.peak.offered) or 'none'}",
            )
            for chip in others
            if number_format not in chip.peak.offered
        ]
