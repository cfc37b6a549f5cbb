"""Dispatch and combine of experts against DeepEP's published figures.

    python -m experiments.deepep [--quick] [--json] [--plot FILE]

A dispatch is priced as the all-to-all among nodes that it is on the network, and the one inside of each node that it is on
NVLink: both at once, so the slower one counts, and a kernel's start on top. What each carries follows from how tokens
choose experts (`mc.training.routing`). Normal kernels send a token to each node once, which passes it on to each of
its ranks that has a chosen expert; low-latency ones send it to each expert.

One set of three parameters for all kernels: which part of a link's bandwidth is reached, on the network and on NVLink, and the
start. Fitted to V1 with 8 and 32 ranks (normal) and with 32 and 256 (low latency); all else is predicted. Rows of EFA are
not scored: it has no sends from the GPU, and the model does not know.

What serving takes tokens to (`mc.inference.tokens`, `ServingKernelsConfig`) is these three parameters, rounded; the last
line says what low-latency kernels take with them.

The second table says what skewed popularity does to 64 ranks: whoever receives most decides.
"""

import argparse
import csv
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import optimize

from mc.config import ClusterConfig, ServingKernelsConfig
from mc.fabric import build_cluster
from mc.inference import TokenLinks, token_bytes, token_links
from mc.inference.tokens import METADATA_BYTES
from mc.parallel import Group
from mc.parallel.routing_choice import Choice, destinations
from mc.report.pictures.base import COLOURS, MARKERS, panel_title, picture, save
from mc.training import ClusterPrices
from mc.training.routing import Routing, load_law, node_load

DATA = Path(__file__).parent / "data" / "deepep.csv"
HIDDEN, TOP_K, EXPERTS, PER_NODE = 7_168, 8, 256, 8
# Bytes of a token: FP8 with its scales, and BF16. Low-latency dispatch adds metadata.
DISPATCH, COMBINE = token_bytes(HIDDEN, "fp8"), token_bytes(HIDDEN, "bf16")
# Each way. NVLink: 400 GB/s in both directions on the H800, 1.8 TB/s on Blackwell.
NVLINK = {"H800": "200 GB/s", "Hopper": "450 GB/s", "Blackwell": "900 GB/s", "B300": "900 GB/s"}
NETWORK = {"CX7": "400 Gb/s", "EFA": "800 Gb/s"}
FITTED = {("V1", "normal", 8), ("V1", "normal", 32), ("V1", "low-latency", 32), ("V1", "low-latency", 256)}
SCORED = "CX7"
SKEWS = (0.0, 0.2, 0.5, 1.0)
# What latencies of links do not tell apart from a kernel's start is in the start.
LATENCY = "0 us"


@dataclass(frozen=True)
class Row:
    """A published figure and what comes out here.

    Attributes:
        version: of DeepEP.
        kernel: which.
        gpu: on which.
        ranks: how many.
        network: between nodes.
        what: `dispatch` or `combine`.
        unit: of the figures: `us`, or `GB/s` by DeepEP's own count.
        measured: published.
        predicted: here.
        fitted: whether the parameters have seen it.
    """

    version: str
    kernel: str
    gpu: str
    ranks: int
    network: str
    what: str
    unit: str
    measured: float
    predicted: float
    fitted: bool

    @property
    def error(self) -> float:
        """By how much the predicted time is too long, relative."""
        ratio = self.predicted / self.measured
        return ratio - 1 if self.unit == "us" else 1 / ratio - 1

    @property
    def scored(self) -> bool:
        """Whether it says something about the model: not fitted, and its network."""
        return not self.fitted and self.network == SCORED


@dataclass(frozen=True)
class Parameters:
    """What is fitted.

    Attributes:
        network: part of the network's bandwidth that is reached.
        nvlink: part of NVLink's.
        start: of a kernel, seconds.
    """

    network: float
    nvlink: float
    start: float


@dataclass(frozen=True)
class Case:
    """A kernel at full bandwidth, and what was published.

    Attributes:
        row: without a prediction.
        across: seconds on the network.
        inside: seconds on NVLink.
        counted: bytes that the kernel's bandwidth counts.
    """

    row: Row
    across: float
    inside: float
    counted: float

    def time(self, parameters: Parameters) -> float:
        """Seconds."""
        return parameters.start + max(self.across / parameters.network, self.inside / parameters.nvlink)

    def predicted(self, parameters: Parameters) -> float:
        """In the unit of the row."""
        time = self.time(parameters)
        return time * 1e6 if self.row.unit == "us" else self.counted / time / 1e9


@dataclass(frozen=True)
class Skewed:
    """Normal kernels on 64 ranks with experts of different popularity.

    Attributes:
        skew: standard deviation of the logarithm of popularity.
        choices: choices of the busiest rank over the mean: without sending copies once, and for the experts' work.
        choices_p99: 99 % of the layers have less.
        nodes: tokens that the busiest node receives over the mean.
        ranks: tokens that the busiest rank receives over the mean.
        dispatch_us: of 4,096 tokens per rank.
    """

    skew: float
    choices: float
    choices_p99: float
    nodes: float
    ranks: float
    dispatch_us: float


@lru_cache(maxsize=64)
def links(gpu: str, network: str, nodes: int) -> TokenLinks:
    """Seconds per byte of the buffer at full bandwidth: among the ranks of a node, and among nodes."""
    tiers = [
        {
            "name": "node",
            "link": {"bandwidth": NVLINK[gpu], "duplex": "each", "latency": LATENCY},
            "fan_out": PER_NODE,
        },
        {
            "name": "cluster",
            "link": {"bandwidth": NETWORK[network], "duplex": "each", "latency": LATENCY},
            "fan_out": 32,
        },
    ]
    chip = {"peak": {"bf16": "1 PFLOP/s"}}
    cluster = build_cluster(ClusterConfig.model_validate({"name": gpu, "chip": chip, "tiers": tiers}))
    prices = ClusterPrices(cluster, {"all-to-all": ("direct",)})
    return token_links(prices, Group("experts", ((nodes * PER_NODE, 1),)), PER_NODE)


def choice_on(nodes: int, *, limited: bool) -> Choice:
    """How tokens choose in DeepEP's tests: a group on each node, of which the best four by their best expert."""
    if limited and nodes > 4:
        return Choice(EXPERTS, TOP_K, nodes, 4, 1)
    return Choice(EXPERTS, TOP_K)


def case(row: Row, tokens: int) -> Case:
    """What a kernel sends where."""
    nodes = row.ranks // PER_NODE
    size = DISPATCH if row.what == "dispatch" else COMBINE
    if row.kernel == "low-latency":
        sent = tokens * TOP_K * (size + (METADATA_BYTES if row.what == "dispatch" else 0.0))
        to_nodes, to_ranks, counted = sent, sent / nodes, sent
    else:
        choice = choice_on(nodes, limited=row.version == "V1")
        to_nodes, to_ranks = (tokens * size * destinations(choice, parts) for parts in (nodes, row.ranks))
        counted = to_nodes if nodes > 1 else to_ranks
    way = links(row.gpu, row.network, nodes)
    return Case(row, to_nodes * way.between, to_ranks * way.inside, counted)


def load() -> list[Case]:
    """The published figures: microseconds where there are any, else bandwidths."""
    lines = [line for line in DATA.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    found = []
    for line in csv.DictReader(lines):
        for what in ("dispatch", "combine"):
            unit = "us" if line[f"{what}_us"] else "GB/s"
            measured = float(line[f"{what}_us"] or line[f"{what}_gbps"])
            ranks = int(line["ranks"])
            fitted = (line["version"], line["kernel"], ranks) in FITTED
            key = (line["version"], line["kernel"], line["gpu"], ranks, line["network"])
            found.append(case(Row(*key, what, unit, measured, np.nan, fitted), int(line["tokens"])))
    return found


def fit(cases: Sequence[Case]) -> Parameters:
    """Least squares of the logarithms of times."""
    seen = [each for each in cases if each.row.fitted]

    def residuals(x: np.ndarray) -> list[float]:
        parameters = Parameters(*np.exp(x))
        return [float(np.log(each.predicted(parameters) / each.row.measured)) for each in seen]

    found = optimize.least_squares(residuals, np.log([0.8, 0.8, 20e-6]))
    return Parameters(*(float(each) for each in np.exp(found.x)))


def study() -> tuple[Parameters, list[Row]]:
    """Fits and predicts."""
    cases = load()
    parameters = fit(cases)
    rows = [Row(**{**asdict(each.row), "predicted": each.predicted(parameters)}) for each in cases]
    return parameters, rows


def as_served(cases: Sequence[Case]) -> dict[str, float]:
    """Low-latency kernels with 8 to 256 ranks, by the parameters that serving has: errors of the times."""
    kernels = ServingKernelsConfig()
    parameters = Parameters(kernels.between, kernels.inside, kernels.start)
    chosen = [each for each in cases if each.row.kernel == "low-latency" and each.row.network == SCORED]
    errors = np.abs([each.time(parameters) * 1e6 / each.row.measured - 1 for each in chosen])
    return {
        "served_rows": len(errors),
        "served_median": float(np.median(errors)),
        "served_largest": float(errors.max()),
    }


def skewed(
    parameters: Parameters, layers: int = 200, draws: int = 64, skews: Sequence[float] = SKEWS
) -> list[Skewed]:
    """Normal kernels on 64 ranks: the busiest node on the network, the busiest rank on NVLink."""
    ranks = 64
    choice = choice_on(ranks // PER_NODE, limited=True)
    plain = case(Row("V1", "normal", "H800", ranks, "CX7", "dispatch", "us", np.nan, np.nan, False), 4_096)
    rows = []
    for skew in skews:
        law = load_law(Routing(choice, ranks, 4_096 * ranks, skew))
        nodes, each = (node_load(choice, parts, skew, layers, draws) for parts in (ranks // PER_NODE, ranks))
        busy = Case(plain.row, plain.across * nodes, plain.inside * each, plain.counted)
        p99 = float(law.persistent.quantile(np.log(np.float32(0.01))))
        rows.append(Skewed(skew, law.mean, p99, nodes, each, busy.time(parameters) * 1e6))
    return rows


def summary(rows: Sequence[Row]) -> dict[str, float]:
    """Mean absolute and mean signed error of the times: of what was fitted, of what was not."""
    groups = {
        "fitted": [each for each in rows if each.fitted],
        "predicted": [each for each in rows if each.scored],
    }
    found: dict[str, float] = {}
    for name, group in groups.items():
        errors = np.array([each.error for each in group])
        found[f"{name}_rows"] = len(group)
        found[f"{name}_absolute"] = float(np.abs(errors).mean())
        found[f"{name}_signed"] = float(errors.mean())
        found[f"{name}_largest"] = float(np.abs(errors).max())
    return found


def table(rows: Sequence[Row]) -> Table:
    """Measured against predicted."""
    shown = Table(title="DeepEP: measured and predicted", title_justify="left", box=None, pad_edge=False)
    for place, heading in enumerate(
        ("kernel", "GPU", "ranks", "what", "measured", "predicted", "unit", "time", "")
    ):
        shown.add_column(heading, justify="right" if place in (2, 4, 5, 7) else "left")
    for row in rows:
        note = "fitted" if row.fitted else "" if row.scored else row.network
        figures = f"{row.measured:.0f}", f"{row.predicted:.0f}", row.unit, f"{row.error:+.1%}"
        shown.add_row(f"{row.version} {row.kernel}", row.gpu, str(row.ranks), row.what, *figures, note)
    return shown


def skew_table(rows: Sequence[Skewed]) -> Table:
    """What skew does."""
    shown = Table(title="Skew, 64 ranks, normal kernels", title_justify="left", box=None, pad_edge=False)
    for heading in (
        "skew",
        "choices of busiest rank",
        "p99",
        "tokens of busiest node",
        "of busiest rank",
        "dispatch, us",
    ):
        shown.add_column(heading, justify="right")
    for row in rows:
        factors = (row.choices, row.choices_p99, row.nodes, row.ranks)
        shown.add_row(f"{row.skew:g}", *(f"{each:.2f}" for each in factors), f"{row.dispatch_us:.0f}")
    return shown


def plot(file: Path, rows: Sequence[Row]) -> None:
    """Draws latencies of low-latency kernels, and bandwidths of the others, by ranks: measured as marks, predicted as lines."""

    def of(kernel: str, unit: str) -> Any:
        def drawn(axes: Any) -> None:
            ranks: list[int] = []
            for place, what in enumerate(("dispatch", "combine")):
                chosen = [
                    row
                    for row in rows
                    if (row.version, row.kernel, row.network, row.what) == ("V1", kernel, SCORED, what)
                ]
                ranks = [row.ranks for row in chosen]
                style = {"color": COLOURS[place]}
                axes.plot(ranks, [row.measured for row in chosen], MARKERS[place], **style, label=what)
                axes.plot(ranks, [row.predicted for row in chosen], "-", **style, label=f"{what}, predicted")
            axes.set_xscale("log", base=2)
            axes.set_xticks(ranks, [str(each) for each in ranks])
            axes.set_ylim(bottom=0)
            axes.set_xlabel("ranks")
            axes.set_ylabel(unit)
            axes.legend(frameon=False)
            panel_title(axes, f"{kernel} kernels on H800s")

        return drawn

    save(file, picture([of("low-latency", "us"), of("normal", "GB/s")]))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the study and prints it; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.deepep", description="Dispatch and combine against DeepEP's figures."
    )
    parser.add_argument("--quick", action="store_true", help="fewer layers and skews")
    parser.add_argument("--json", action="store_true", help="print rows as JSON")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw measured and predicted by ranks")
    options = parser.parse_args(arguments)
    parameters, rows = study()
    if options.plot is not None:
        plot(options.plot, rows)
    skews = skewed(parameters, 5, 4, (0.5,)) if options.quick else skewed(parameters)
    if options.json:
        found = {
            "parameters": asdict(parameters),
            "summary": summary(rows) | as_served(load()),
            "rows": [{**asdict(row), "error": row.error} for row in rows],
            "skew": [asdict(row) for row in skews],
        }
        print(json.dumps(found, indent=2))
        return 0
    console = Console(width=130)
    console.print(table(rows), "", skew_table(skews), "")
    reached = f"{parameters.network:.0%} of the network, {parameters.nvlink:.0%} of NVLink"
    console.print(f"Parameters: {reached}, {parameters.start * 1e6:.0f} us to start")
    for name, value in (summary(rows) | as_served(load())).items():
        console.print(f"{name}: {value:.0f}" if name.endswith("rows") else f"{name}: {value:+.1%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
