"""The experiment file, and the checks that need more than one of its parts."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
    model_validator,
)
from pydantic_core import InitErrorDetails

from mc.config.cluster import ClusterConfig
from mc.config.failures import FailuresConfig
from mc.config.mitigation_checks import Asked, mitigation_problems
from mc.config.mitigations import MitigationsConfig
from mc.config.names import Method, SchemaVersion
from mc.config.plan import FOR_EVERY_MODEL, PlanConfig
from mc.config.plan_checks import plan_problems
from mc.config.plan_sizes import resolved_dp
from mc.config.posterior import CLUSTER, PosteriorConfig, joined, posterior_problems
from mc.config.protocol import AUTO, NONE
from mc.config.quantities import Probability
from mc.config.serving import ServingConfig
from mc.config.serving_checks import serving_problems
from mc.config.workload import ModelConfig
from mc.document import StrictModel, did_you_mean, located

# A path below the experiment, and what is wrong there.
_Problem = tuple[tuple[str | int, ...], str]


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
    """All that determines a result.

    Attributes:
        name: for people.
        description: likewise.
        cluster: the chips and what joins them.
        model: what a step has to do.
        plan: who does which part of a training step.
        serving: how requests are served instead.
        run: how to find out.
        failures: of chips, for the time that a job takes over days.
        mitigations: what is done about stragglers.
        posterior: how well figures of all this are known, after a calibration to step times.
    """

    schema_version: SchemaVersion = 1
    name: Annotated[str, Field(min_length=1)]
    description: str | None = None
    cluster: ClusterConfig
    model: ModelConfig
    plan: PlanConfig = PlanConfig()
    serving: ServingConfig | None = None
    run: RunConfig = RunConfig()
    failures: FailuresConfig | None = None
    mitigations: MitigationsConfig = MitigationsConfig()
    posterior: PosteriorConfig | None = None

    @property
    def uncertain(self) -> PosteriorConfig | None:
        """What calibrations left unknown of its figures and its cluster's; None if all is known."""
        return joined(self.cluster.posterior, self.posterior)

    @property
    def ranks(self) -> int:
        """How many ranks a step is spread over; of serving, those of the replica that decodes.

        Where `all` are asked for, those that mitigations do not set aside.
        """
        if self.serving is not None:
            return self.serving.ranks
        if self.plan.ranks != "all":
            return self.plan.ranks
        return self.cluster.size - self.removed - self.mitigations.spares - self.backup_ranks

    @property
    def chips(self) -> int:
        """How many chips the job holds: ranks, those of workers beyond them, and those that stand by."""
        return self.ranks + self.backup_ranks + self.mitigations.spares

    @property
    def removed(self) -> int:
        """How many chips are taken out before the run, since they are the slowest."""
        if self.plan.ranks == "all":
            return self.mitigations.removed_from(self.cluster.size)
        return self.mitigations.removed_for(self.chips)

    @property
    def backup_ranks(self) -> int:
        """How many ranks workers have that are beyond those that are needed."""
        plan = self.plan
        of_one = 1 if self.model.transformer is None else plan.tp * plan.cp * plan.pp
        return self.mitigations.backups * of_one

    @property
    def workers(self) -> int:
        """How many wait for each other where they exchange: ranks, or replicas of a transformer; without backups."""
        return self.ranks if self.model.transformer is None else self.dp

    @property
    def dropped(self) -> int:
        """How many of the workers and their backups nobody waits for."""
        return self.mitigations.dropped(self.workers) + self.mitigations.backups

    @property
    def useful(self) -> float:
        """Part of a step's samples that count."""
        return 1 - self.mitigations.dropped(self.workers) / self.workers

    @property
    def dp(self) -> int:
        """How many replicas of a transformer there are."""
        return resolved_dp(self.plan, self.ranks)

    @model_serializer(mode="wrap")
    def _without_idle_keys(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # How a transformer is cut says nothing about another model.
        found = handler(self)
        if not any(found["mitigations"].values()):
            del found["mitigations"]
        if self.serving is not None:
            del found["plan"]
        elif self.model.transformer is None:
            found["plan"] = {key: each for key, each in found["plan"].items() if key in FOR_EVERY_MODEL}
        return found

    @model_validator(mode="after")
    def _fits(self) -> "ExperimentConfig":
        if self.serving is not None:
            found = self._serving(self.serving) or self._unknown_figures()
            if found:
                raise located("ExperimentConfig", found)
            return self
        if "plan" not in self.model_fields_set:
            missing = InitErrorDetails(type="missing", loc=("plan",), input=None)
            raise ValidationError.from_exception_data("ExperimentConfig", [missing])
        found = []
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
        if self.mitigations.delayed_sync and self.run.realisations == 1 and self.run.samples > 1:
            text = "expected 2 or more, since steps are alike where an exchange may be late; got 1"
            found.append((("run", "realisations"), text))
        found += self._formats()
        found += self._dimensions()
        found += self._unknown_protocol()
        if not found:
            found += mitigation_problems(self._asked())
        if self.cluster.noise.kernels is not None and self.model.transformer is None:
            text = "expected none, since only ranks of a `transformer` wait for each other while they compute"
            found.append((("cluster", "noise", "kernels"), text))
        if not found:
            found += self._unknown_figures()
        if found:
            raise located("ExperimentConfig", found)
        return self

    def _unknown_figures(self) -> list[_Problem]:
        """What is wrong with the figures that are said to be uncertain."""
        if self.posterior is None:
            return []
        of_cluster = self.cluster.posterior
        rows = () if of_cluster is None else of_cluster.parameters
        elsewhere = {f"{CLUSTER}{path}" for each in rows for path in each.paths}
        problems = posterior_problems(self, self.posterior, elsewhere)
        return [(("posterior", *path), text) for path, text in problems]

    def _asked(self) -> Asked:
        return Asked(
            mitigations=self.mitigations,
            plan=self.plan,
            trains_transformer=self.model.transformer is not None,
            has_experts=self.model.transformer is not None and self.model.transformer.experts is not None,
            noise=self.cluster.noise,
            failures=self.failures,
            cluster_size=self.cluster.size,
            kinds=len(self.cluster.chips(max(min(self.ranks, self.cluster.size), 1))),
            ranks=self.ranks,
            workers=self.workers,
            removed=self.removed,
            backup_ranks=self.backup_ranks,
        )

    def _serving(self, serving: ServingConfig) -> list[_Problem]:
        """Requests that cannot be served so."""
        found: list[_Problem] = []
        if "plan" in self.model_fields_set:
            found.append((("plan",), "expected none, since `serving` says who does what"))
        if self.failures is not None:
            found.append((("failures",), "expected none with `serving`, which is not a job over days"))
        if self.mitigations.model_fields_set:
            found.append((("mitigations",), "expected none with `serving`, whose replicas do not meet"))
        shape = self.model.transformer
        if shape is None:
            found.append(
                (("serving",), "expected a model with a `transformer`; got `compute` and `exchange`")
            )
            return found
        if self.run.method == "grid":
            found.append((("run", "method"), "expected `exact` or `direct` with `serving`; got `grid`"))
        tiers = tuple(tier.name for tier in self.cluster.tiers)
        given = serving.model_fields_set
        for path, text in serving_problems(serving, shape, self.cluster.size, tiers):
            # What is left out has no place of its own.
            is_given = not path or path[0] in given
            found.append((("serving", *path), text if is_given else f"`{path[0]}`: {text}"))
        formats = {"math": serving.formats.math, "attention": serving.formats.attention}
        return found + self._offered({("serving", "formats", name): each for name, each in formats.items()})

    def _dimensions(self) -> list[_Problem]:
        """A plan that the model cannot be cut by, or that is about another kind of model."""
        shape = self.model.transformer
        if shape is not None:
            whole = "the cluster" if self.plan.ranks == "all" else "the plan"
            given = self.plan.model_fields_set
            return [
                # What is left out has no place of its own, so the text says what it is about.
                (("plan", *path), text if path[0] in given else f"`{path[0]}`: {text}")
                for path, text in plan_problems(self.plan, shape, self.ranks, whole)
            ]
        if self.model.compute is None:
            return []
        text = (
            "expected none, since only a `transformer` can be cut so; the model has `compute` and `exchange`"
        )
        return [(("plan", name), text) for name in self.plan.for_transformers]

    def _formats(self) -> list[_Problem]:
        """Number formats that chips of the cluster cannot compute in."""
        asked: dict[tuple[str | int, ...], str] = {}
        if self.model.transformer is not None:
            formats = self.plan.formats
            asked = {
                ("plan", "formats", "math"): formats.math,
                ("plan", "formats", "attention"): formats.attention,
            }
        elif self.model.compute is not None and self.model.compute.format is not None:
            asked = {("model", "compute", "format"): self.model.compute.format}
        ranks = min(self.ranks, self.cluster.size)
        others = [chip for _, chip, _ in self.cluster.chips(ranks) if chip != self.cluster.chip]
        if others and not asked and self.model.compute is not None:
            text = (
                "expected `flop`, `format` and `efficiency`, since the cluster has several chips; got `time`"
            )
            return [(("model", "compute", "time"), text)]
        return self._offered(asked)

    def _offered(self, asked: Mapping[tuple[str | int, ...], str]) -> list[_Problem]:
        """Formats, by where they are asked for, that some chip does not compute in."""
        ranks = min(self.ranks, self.cluster.size)
        others = [chip for _, chip, _ in self.cluster.chips(ranks) if chip != self.cluster.chip]
        chips = [(self.cluster.chip, "the chip"), *((chip, "a chip of the exceptions") for chip in others)]
        return [
            (
                path,
                f"{chip.name or unnamed} does not offer {number_format}; "
                f"expected one of {', '.join(chip.peak.offered) or 'none'}",
            )
            for path, number_format in asked.items()
            for chip, unnamed in chips
            if number_format not in chip.peak.offered
        ]

    def _unknown_protocol(self) -> list[_Problem]:
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
