"""What follows from the configuration of a run: sections of its report that its samples do not hold.

The numbers are computed elsewhere (`mc.experiment.outlook`, `mc.experiment.trace`, `mc.sensitivity`), and given as plain data.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mc.network_roofline import Load
from mc.report.html.page import Picture, Section, Table
from mc.report.pictures.axes import size_text
from mc.report.pictures.outlook import (
    choice_panel,
    efficiency_panel,
    plan_efficiency_panel,
    plan_saturation_panel,
    plan_speedup_panel,
    runs_of,
    saturation_panel,
    slowest_panel,
    speedup_panel,
)
from mc.report.pictures.ridge import MOST_INTENSITY, load_panel
from mc.report.pictures.sensitivity import tornado
from mc.report.pictures.trace import gantt_panel
from mc.report.times import duration
from mc.results import Trace

if TYPE_CHECKING:
    from mc.experiment.outlook import ChoiceMap, Saturation, Scaling, SlowestCurve
    from mc.experiment.scale import Mode
    from mc.experiment.training_outlook import PlanCurve, PlanSaturation
    from mc.sensitivity import Sensitivity

_MOST_BARS = 12


def ranks_section(curve: "SlowestCurve", scaling: "Scaling") -> Section:
    """On more ranks."""
    place = int((curve.ranks == curve.here).argmax())
    text = (
        f"One rank computes for {duration(curve.alone)} on average; the slowest of {curve.here:,} for "
        f"{duration(float(curve.median[place]))} in the median and {duration(float(curve.p99[place]))} at p99. In closed form "
        "from the laws of this configuration, over steps and realisations, with idle links: nothing was sampled."
    )
    rows = [
        (
            f"{int(count):,}",
            *(duration(float(scaling.steps[mode][row])) for mode in scaling.steps),
            *(f"{100 * scaling.efficiency(mode)[row]:.1f} %" for mode in scaling.steps),
        )
        for row, count in enumerate(scaling.ranks)
    ]
    heading = ("ranks", "mean step, weak", "mean step, strong", "efficiency, weak", "efficiency, strong")
    return Section(
        "On more ranks",
        text=[text],
        points=[
            "Weak: each rank keeps its work. Strong: all ranks together keep theirs. The message stays as it is, as gradients do.",
            "Efficiency is the part of a mean step in which a rank computes. Beyond the cluster it has more of its outermost units.",
        ],
        pictures=[
            Picture(
                slowest_panel(curve), "The compute time of the slowest of n ranks. This run's n is marked."
            ),
            Picture(speedup_panel(scaling), "Ranks times efficiency, on logarithmic axes."),
            Picture(efficiency_panel(scaling), "The part of a mean step that goes into computing."),
        ],
        tables=[Table(heading, rows)],
    )


def saturation_section(found: "Saturation") -> Section:
    """With faster chips."""
    noisy, quiet = found.limits
    rows = [
        (f"{factor:.3g}x", f"{one:.2f}x", f"{other:.2f}x")
        for factor, one, other in zip(found.factors, found.noisy, found.quiet, strict=True)
        if round(factor) == factor
    ]
    rows.append(("no time at all", f"{noisy:.2f}x", f"{quiet:.2f}x"))
    return Section(
        "With faster chips",
        text=[
            f"Chips that took no time would make the mean step {noisy:.3g} times as fast, and {quiet:.3g} times without noise: the "
            "exchange is left, and pauses and jitter, whose seconds do not shrink with computing. Scatter and slow chips do, being "
            "part of it."
        ],
        pictures=[Picture(saturation_panel(found), "Speed-up of the mean step against that of the chips.")],
        tables=[Table(("chips", "step, with noise", "without noise"), rows)],
    )


def plan_ranks_section(found: "dict[Mode, PlanCurve]", here: int) -> Section:
    """A plan on more ranks."""
    rows = [
        (mode, f"{int(count):,}", duration(float(step)), f"{100 * efficiency:.1f} %")
        for mode, each in found.items()
        for count, step, efficiency in zip(each.ranks, each.steps, each.efficiency, strict=True)
    ]
    return Section(
        "On more ranks",
        text=[
            "The step without noise on fewer and more replicas of the same plan, in closed form: nothing was sampled, and what "
            "stragglers and random links add to the run above is left out here. `tailstep scale` samples it."
        ],
        points=[
            "Weak: each replica keeps its micro-batches, so the global batch grows. Strong: the global batch stays.",
            "Efficiency is the throughput of a rank over that of a rank at the smallest size. Beyond the cluster it has more of its "
            "outermost units. Memory is not looked at.",
        ],
        pictures=[
            Picture(
                plan_speedup_panel(found, here), "Ranks times efficiency, on logarithmic axes; without noise."
            ),
            Picture(
                plan_efficiency_panel(found, here),
                "Throughput of a rank, of that at the smallest size; without noise.",
            ),
        ],
        tables=[Table(("scaling", "ranks", "step", "efficiency"), rows)],
    )


def plan_saturation_section(found: "PlanSaturation") -> Section:
    """A plan with faster chips."""
    rows = [
        (f"{factor:g}x", f"{each:.2f}x") for factor, each in zip(found.factors, found.speedups, strict=True)
    ]
    rows.append(("no time at all", f"{found.limit:.2f}x"))
    return Section(
        "With faster chips",
        text=[
            f"Chips that computed and moved their memory in no time would make the step {found.limit:.3g} times as fast: messages "
            "are left, those too that computing hides now, and what hosts and the starts of kernels take. In closed form and "
            "without noise; links stay as they are."
        ],
        pictures=[
            Picture(
                plan_saturation_panel(found), "Speed-up of the step without noise against that of the chips."
            )
        ],
        tables=[Table(("chips", "step, without noise"), rows)],
    )


def choice_section(found: "ChoiceMap") -> Section:
    """How the exchange would best be carried out."""
    rows = []
    for each in found.rows:
        parts = [
            f"{way[0]}{'' if way[1] == 'none' else ' ' + way[1]} from {size_text(found.sizes[start])}"
            for way, start, _ in runs_of(each.ways)
        ]
        rows.append((f"{each.ranks:,}", "; ".join(parts)))
    return Section(
        "Fastest algorithm",
        text=[
            f"Of {found.collective} with idle links, by the closed forms. The point is this run: {found.here[0]:,} ranks, "
            f"{size_text(found.here[1])}."
        ],
        pictures=[
            Picture(
                choice_panel(found),
                "Colours are algorithms; paler ones their quicker protocols (LL palest, then LL128).",
                height=4.2,
            )
        ],
        tables=[Table(("ranks", "fastest, by size"), rows, words=True)],
    )


def roofline_section(found: Load) -> Section:
    """A plan's traffic against its tiers."""
    rows = [
        (
            point.dimension,
            point.roof.name,
            f"{point.intensity:,.0f}",
            f"{point.roof.ridge:,.0f}",
            f"{point.attainable / 1e12:,.4g}",
        )
        for point in found.points
        if point.intensity < MOST_INTENSITY
    ]
    heading = ("dimension", "tier", "FLOP/byte", "ridge", "attainable TFLOP/s")
    return Section(
        "Network roofline",
        text=[
            "What a chip could compute if one dimension of the plan were all it sent: left of a tier's ridge that dimension "
            "alone would hold it up."
        ],
        pictures=[
            Picture(
                load_panel(found), "Roofs of the tiers, and what each dimension of the plan sends.", width=6.6
            )
        ],
        tables=[Table(heading, rows)],
    )


def step_section(found: Trace | None, bars: int, most: int) -> Section:
    """One step in time.

    Args:
        found: it; None where it has too many passes to be drawn.
        bars: how many passes it has.
        most: how many are drawn.
    """
    title = "A step in time"
    if found is None:
        return Section(
            title,
            text=[
                f"A step has {bars:,} passes, more than the {most:,} that can be told apart here; `tailstep trace` writes it for "
                "Perfetto."
            ],
        )
    waits = (
        f"The sampled step nearest to {found.quantile} ({duration(found.step_s)}: step {found.sample} of realisation "
        f"{found.realisation}) waited for {found.waited_for}. Of all pipelines the one is shown that its end hangs on. "
        "`tailstep trace` writes messages and waits, too."
    )
    return Section(
        title,
        text=[waits],
        pictures=[
            Picture(
                gantt_panel(found),
                "Passes of each stage, and the critical path: what the end of the step waited for, back to its start.",
                width=11.0,
                height=2.2 + 0.2 * min(len(found.tracks), 24),
            )
        ],
    )


def elasticities_section(found: "Sensitivity", by: str = "p99") -> Section:
    """What 1 % more of each figure does."""
    shown = found.elasticities[:_MOST_BARS]
    rows = [
        (each.path, f"{each.value:.4g}", *(f"{each.of(name).value:+.3f}" for name in found.numbers))
        for each in shown
    ]
    heading = ("1 % more of", "value in SI", *(f"{name}, %" for name in found.numbers))
    left = len(found.elasticities) - len(shown)
    return Section(
        "What matters",
        text=[
            f"What 1 % more of a figure does to {by} and to the mean, noise included, by the derivatives of {found.steps:,} steps; "
            f"{left} more figures matter less."
        ],
        pictures=[
            Picture(
                tornado(shown, by),
                f"Elasticities, the largest on {by} first; lines are {100 * found.confidence:g} % intervals.",
                width=9.0,
                height=1.2 + 0.32 * max(len(shown), 4),
            )
        ],
        tables=[Table(heading, rows)],
    )


def left_out(reasons: Sequence[str]) -> list[Section]:
    """What could not be computed, and why."""
    return [Section("Left out", points=reasons)] if reasons else []
