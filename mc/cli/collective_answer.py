"""What `tailstep collective` asks of the floors that compute: rows, samples, curves over sizes, and who is the fastest."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mc.config import ClusterConfig
from mc.config.names import Objective
from mc.units import Dimension, format_quantity

if TYPE_CHECKING:
    from mc.collectives import Row
    from mc.exchange import Curve, FastestRange, Way
    from mc.report.collective import CollectiveLine


@dataclass(frozen=True)
class Question:
    """What to price: a collective that exists, and a size in bytes that suits it."""

    collective: str
    size: float
    algorithm: str
    protocol: str

    @property
    def title(self) -> str:
        """In words."""
        size = f" of {format_quantity(self.size, Dimension.SIZE)}" if self.size else ""
        return f"{self.collective}{size}"


@dataclass(frozen=True)
class Trials:
    """How to sample."""

    samples: int
    seed: int
    objective: Objective


class Answer:
    """A question put to a cluster."""

    def __init__(self, question: Question, config: ClusterConfig, ranks: int | None):
        import jax

        from mc.fabric import build_cluster, span

        self.question, self.config = question, config
        # Double precision keeps numbers at the border free of rounding; nothing here is large.
        with jax.enable_x64(True):
            self.exact = build_cluster(config)
        self.ranks = self.exact.size if ranks is None else ranks
        # Says at once if the group does not fit.
        span(self.exact, self.ranks)

    def lines(self, trials: Trials | None) -> "list[CollectiveLine]":
        """All ways that were asked for, the best first."""
        import jax

        from mc.collectives import evaluate
        from mc.report.collective import CollectiveLine

        ask = self.question
        with jax.enable_x64(True):
            rows = evaluate(
                self.exact, ask.collective, self.ranks, ask.size, ask.algorithm, protocol=ask.protocol
            )
        if trials is not None:
            return [_sampled_line(way, trials.samples) for way in self._ways(trials)]
        return [
            CollectiveLine(
                row.algorithm,
                row.protocol,
                row.time,
                row.algorithm_bandwidth,
                row.bus_bandwidth,
                row.rounds,
                row.bytes_per_rank,
                model=ends,
            )
            for row, ends in zip(rows, self._model(rows), strict=True)
        ]

    def _model(self, rows: "list[Row]") -> "list[tuple[float, float] | None]":
        """Intervals of the rows' times from figures that a calibration left uncertain."""
        if self.config.posterior is None:
            return [None] * len(rows)
        from mc.sensitivity import collective_intervals

        ask = self.question
        return collective_intervals(self.config, rows, ask.collective, self.ranks, ask.size)

    def _ways(self, trials: Trials) -> "list[Way]":
        import jax

        from mc.collectives import plans
        from mc.exchange import compare
        from mc.fabric import build_cluster, build_link_noise
        from mc.report import progress

        ask = self.question
        cluster = build_cluster(self.config)
        noise = build_link_noise(self.config, self.ranks).prepared()
        asked = "all" if ask.algorithm == "auto" else ask.algorithm
        count = len(plans(cluster, ask.collective, self.ranks, ask.size, asked, protocol=ask.protocol))
        with progress("sampling", total=count) as advance:
            return compare(
                cluster,
                ask.collective,
                self.ranks,
                ask.size,
                noise,
                jax.random.key(trials.seed, impl="threefry2x32"),
                algorithm=ask.algorithm,
                protocol=ask.protocol,
                objective=trials.objective,
                samples=trials.samples,
                advance=advance,
            )

    def curves(self, trials: Trials | None) -> "list[Curve]":
        """Every algorithm over message sizes."""
        import jax

        from mc.exchange import curves, sizes_between
        from mc.fabric import build_cluster, build_link_noise
        from mc.report import progress

        ask, random = self.question, trials is not None
        sizes = sizes_between(per_octave=0.5 if random else 4)
        key = jax.random.key(trials.seed, impl="threefry2x32") if trials is not None else None
        with progress("drawing", total=sizes.size) as advance:
            return curves(
                build_cluster(self.config),
                ask.collective,
                self.ranks,
                sizes,
                algorithm=ask.algorithm,
                protocol=ask.protocol,
                noise=build_link_noise(self.config, self.ranks).prepared() if random else None,
                key=key,
                advance=advance,
            )

    def fastest_ranges(self) -> "list[FastestRange]":
        """Which way is the fastest at which sizes."""
        import jax

        from mc.exchange import fastest_ranges

        if self.question.collective == "barrier" or self.ranks == 1:
            return []
        with jax.enable_x64(True):
            return fastest_ranges(
                self.exact, self.question.collective, self.ranks, protocol=self.question.protocol
            )

    def span_text(self) -> str:
        """How far the ranks reach, in words."""
        from mc.fabric import is_even, span

        name, extents = self.exact.name, span(self.exact, self.ranks)
        if not extents:
            return f"1 rank of {name} spans no tier"
        parts = " x ".join(f"{extent.tier.name} ({extent.units})" for extent in extents)
        uneven = "" if is_even(extents) else ", unevenly"
        return f"{self.ranks} ranks of {name} span {parts}{uneven}"


def _sampled_line(way: "Way", wanted: int) -> "CollectiveLine":
    from mc.estimate import estimate
    from mc.report.collective import CollectiveLine

    row, sampled = way.row, way.sampled
    return CollectiveLine(
        row.algorithm,
        row.protocol,
        sampled.floor,
        row.algorithm_bandwidth,
        row.bus_bandwidth,
        row.rounds,
        row.bytes_per_rank,
        estimate(sampled.times),
        sampled.method,
        sampled.relative_error,
        wanted,
    )
