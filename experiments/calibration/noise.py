"""The slowest rank of 8 nodes in a cloud, from runs on 4.

Two collectives over MPI between virtual machines, one rank each, 10,000 times: a dissemination of 16 bytes, and a
pipelined ring of 16 MiB. The law F of one rank is found from the slowest of four, F₄ = F⁴, and the slowest of eight has
F⁸. Once as it was measured, F = F₄^(1/4), once by a family of `fit_steps`, the best of three by Akaike's criterion. Rounds are
counted: a dissemination has ⌈log₂ n⌉, so its times are scaled by 3/2; a ring in pieces sends as much from every node
however many there are.

An interval is that of a bootstrap of parts, 500 iterations each: noise comes in episodes, and iterations of one are not
independent.

Measured in July 2022 on Google Cloud (HPC instances): github.com/DanieleDeSensi/cloud_noise_data at 8ecb821, to D. De Sensi
et al., Noise in the Clouds, Proc. ACM Meas. Anal. Comput. Syst. 6(3), 2022. The study carries quantiles of the slowest
rank in each part.
"""

import csv
import gzip
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mc.calibration import StepSeries, fit_steps
from mc.calibration.more_ranks import interval_of_more, quantile_of_more
from mc.calibration.steps import FAMILIES

DATA = Path(__file__).parent.parent / "data" / "cloud_noise.csv.gz"
_NOTE = (
    "# Quantiles of the slowest rank, us, in parts of 500 iterations, at levels (i + 1/2)/200; for 8 nodes its median and p99: "
    "github.com/DanieleDeSensi/cloud_noise_data at 8ecb821, Google Cloud HPC, 2022-07-09\n"
)
# Name -> the source's, and how much longer it takes on 8 than on 4 without noise.
COLLECTIVES = {
    "dissemination, 16 B": ("nwaydissemination_nocompute", 3 / 2),
    "pipelined ring, 16 MiB": ("pipelinedring", 1.0),
}
FEW, MANY = 4, 8
RAW = "coll_*_gcphpc_4nodes.csv.gz"
LEVELS = (0.5, 0.99)
_PARTS, _POINTS = 20, 200


@dataclass(frozen=True)
class NoiseForecast:
    """One quantile of the slowest of 8.

    Attributes:
        collective: which.
        level: of the quantile.
        measured: seconds.
        forecast: by the law as measured on 4.
        low: end of its 90 % interval.
        high: likewise.
        error: forecast/measured − 1.
        family: of the fitted law.
        fitted_error: of the forecast by that.
        unscaled_error: of the quantile on 4 nodes itself, scaled by rounds, as if waiting for more cost nothing.
    """

    collective: str
    level: float
    measured: float
    forecast: float
    low: float
    high: float
    error: float
    family: str
    fitted_error: float
    unscaled_error: float


def forecasts(
    advance: Callable[[int], None] = lambda done: None, *, quick: bool = False
) -> list[NoiseForecast]:
    """Of both collectives and quantiles."""
    rows = []
    for name, (source, longer) in COLLECTIVES.items():
        few, many = slowest(source, FEW), slowest(source, MANY)[0]
        times = few.ravel()[:: 10 if quick else 1]
        fits = [fit_steps([StepSeries(FEW, times)], family, starts=2) for family in FAMILIES]
        best = min(fits, key=lambda fit: fit.criterion)
        for level, measured in zip(LEVELS, many.tolist(), strict=True):
            found, low, high = (longer * each for each in as_measured(few, level))
            fitted = longer * float(best.quantile(MANY, level))
            same = longer * float(np.quantile(few, level))
            errors = (each / measured - 1 for each in (fitted, same))
            row = (name, level, measured, found, low, high, found / measured - 1, best.family)
            rows.append(NoiseForecast(*row, *errors))
        advance(1)
    return rows


def as_measured(parts: NDArray[np.float64], level: float) -> tuple[float, float, float]:
    """The quantile of the slowest of `MANY` by the law as measured, and the ends of its 90 % interval."""
    return quantile_of_more(parts.ravel(), FEW, MANY, level), *interval_of_more(parts, FEW, MANY, level)


@cache
def slowest(source: str, nodes: int) -> NDArray[np.float64]:
    """Times of the slowest rank, seconds: of `FEW` nodes [parts, points], of `MANY` its quantiles at `LEVELS`, [1, levels]."""
    lines = gzip.decompress(DATA.read_bytes()).decode().splitlines()
    rows = csv.DictReader(line for line in lines if not line.startswith("#"))
    found = [
        float(row["time_us"]) for row in rows if (row["collective"], row["nodes"]) == (source, str(nodes))
    ]
    return 1e-6 * np.reshape(found, (_PARTS if nodes == FEW else 1, -1))


def extract(folder: Path) -> None:
    """Writes the figures that the study carries, from the source's samples."""
    lines = [_NOTE, "collective,nodes,time_us\n"]
    levels = (np.arange(_POINTS) + 0.5) / _POINTS
    for source, _ in COLLECTIVES.values():
        for nodes in (FEW, MANY):
            path = next(folder.rglob(f"coll_{source}_gcphpc_{nodes}nodes.csv.gz"))
            with gzip.open(path, "rt", encoding="utf-8") as stream:
                times = np.loadtxt(stream, delimiter=",", skiprows=2).max(axis=1)
            kept = np.quantile(np.split(times, _PARTS), levels, axis=1).T.ravel()
            kept = kept if nodes == FEW else np.quantile(times, LEVELS)
            lines += [f"{source},{nodes},{time:.6g}\n" for time in kept]
    DATA.write_bytes(gzip.compress("".join(lines).encode(), mtime=0))
