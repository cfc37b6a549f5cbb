"""How well a fit of single calls has their distributions: quantiles measured and forecast, each with an interval."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from scipy import stats

from mc.calibration.call_model import FACTOR_SPREAD, CallModel
from mc.calibration.calls import CallSeries
from mc.calibration.fitted import LEVEL

SHOWN = (0.5, 0.99)
_DRAWS, _LEVELS = 60, 256


@dataclass(frozen=True)
class CallScore:
    """How one series came out.

    Attributes:
        series: its calls.
        measured: quantiles at `SHOWN`, seconds: each (low, itself, high), by order statistics of independent calls.
        forecast: those of the fit likewise, by draws of the posterior.
        distance: the largest between measured and fitted distribution (Kolmogorov's).
        factor: what the cluster's idle time is multiplied by.
        held_out: whether the fit has not seen it.
    """

    series: CallSeries
    measured: NDArray[np.float64]
    forecast: NDArray[np.float64]
    distance: float
    factor: float
    held_out: bool

    @property
    def far(self) -> bool:
        """Whether so large a distance has a chance below 1 % under the fitted law, for independent calls."""
        return bool(self.distance > 1.63 / np.sqrt(len(self.series.times)))


def scored(
    model: CallModel,
    z: NDArray[np.float64],
    joint: NDArray[np.float64],
    series: tuple[CallSeries, ...],
    held_out: tuple[CallSeries, ...],
) -> tuple[CallScore, ...]:
    """How well the fit has the distributions of times, with series that it has not seen."""
    count = len(model.parameters)
    everything = (*series, *held_out)
    wide = CallModel(model.config, model.parameters, everything)
    # A series that was not seen has the factor of one that is alike, or else of all.
    known = {each.alike: place for place, each in enumerate(series)}
    fitted = np.asarray(jnp.log(model.factors(jnp.asarray(z))))

    def placed(at: NDArray[np.float64]) -> NDArray[np.float64]:
        logs = fitted + FACTOR_SPREAD * (at[count:] - z[count:])
        own = [
            logs[place]
            if place < len(series)
            else logs[known[each.alike]]
            if each.alike in known
            else logs.mean()
            for place, each in enumerate(everything)
        ]
        return np.concatenate([at[:count], (np.array(own) - wide.centers) / FACTOR_SPREAD])

    levels = np.concatenate([SHOWN, (np.arange(_LEVELS) + 0.5) / _LEVELS])
    quantiles = jax.jit(wide.quantiles)
    at_best = np.asarray(quantiles(jnp.asarray(placed(z)), jnp.asarray(levels)))
    drawn = np.random.default_rng(0).multivariate_normal(z, joint, size=_DRAWS, method="eigh")
    # One program for all.
    several = np.stack(
        [
            np.asarray(quantiles(jnp.asarray(placed(each)), jnp.asarray(levels)))[:, : len(SHOWN)]
            for each in drawn
        ]
    )
    low, high = np.nanquantile(several, [0.5 - LEVEL / 2, 0.5 + LEVEL / 2], axis=0)
    factors = np.exp(wide.centers + FACTOR_SPREAD * placed(z)[count:])
    found = []
    for place, each in enumerate(everything):
        middle = at_best[place, : len(SHOWN)]
        ends = np.stack([np.minimum(low[place], middle), middle, np.maximum(high[place], middle)], axis=-1)
        curve = at_best[place, len(SHOWN) :]
        found.append(
            CallScore(
                each,
                _measured(each.times),
                ends,
                _distance(each.times, curve, levels[len(SHOWN) :]),
                float(factors[place]),
                place >= len(series),
            )
        )
    return tuple(found)


def _measured(times: NDArray[np.float64]) -> NDArray[np.float64]:
    """Quantiles at `SHOWN` with their intervals: order statistics between which a binomial count falls."""
    ordered, found = np.sort(times), []
    for level in SHOWN:
        ends = stats.binom.ppf([0.5 - LEVEL / 2, 0.5 + LEVEL / 2], len(times), level).astype(int)
        low, high = ordered[np.clip([ends[0] - 1, ends[1]], 0, len(times) - 1)]
        found.append((low, float(np.quantile(times, level)), high))
    return np.array(found)


def _distance(times: NDArray[np.float64], curve: NDArray[np.float64], levels: NDArray[np.float64]) -> float:
    """Kolmogorov's, from a curve of fitted quantiles."""
    count, width = len(times), max(float(np.ptp(curve)), 1e-15)
    rising = np.maximum.accumulate(curve)
    share = np.interp(np.sort(times), (rising[0] - width, *rising, rising[-1] + width), (0.0, *levels, 1.0))
    ahead = np.arange(count) / count
    return float(max(np.max(share - ahead), np.max(ahead + 1 / count - share)))
