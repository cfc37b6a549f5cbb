"""How often to write a checkpoint.

With failures of the whole job a mean time M apart, an interval τ of computing and a write δ take on average
M·e^{R/M}·(e^{(τ+δ)/M} − 1) (see `mc.goodput.goodput`), so the best τ maximises x/(e^{x+d} − 1) in x = τ/M, d = δ/M. Where
the derivative vanishes,

    x + log(1 − x) = −d,

exactly, whatever the restart R takes. For rare failures x = s − s²/3 + s³/36 + … with s = √(2d); the first term is
Young's √(2δM), and Daly's estimate has the next ones too.

References:
    J. W. Young, "A first order approximation to the optimum checkpoint interval", Communications of the ACM 17 (1974).
    J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps", Future Generation
    Computer Systems 22 (2006).
    N. M. Temme, "The asymptotic expansion of the incomplete gamma functions", SIAM J. Math. Anal. 10 (1979): the series.
"""

import math

# Below, x + log(1 − x) cancels, and the series is exact to rounding.
_SERIES = 1e-2


def best_interval(write: float, mean_between: float) -> float:
    """Seconds of computing between two checkpoints that waste the least time; 0 if writing takes none.

    Args:
        write: δ, seconds.
        mean_between: M, seconds between interruptions of the job.
    """
    d = write / mean_between
    s = math.sqrt(2 * d)
    if s < _SERIES:
        return mean_between * s * (1 - s / 3 + s**2 / 36 + s**3 / 270 + s**4 / 4320)
    # u = −log(1 − x) solves u − (1 − e^{−u}) = d: increasing and convex, so Newton from the right never overshoots.
    u = d + 1.0 if d > 1 else s + s**2
    for _ in range(60):
        step = (u + math.expm1(-u) - d) / -math.expm1(-u)
        u -= step
        if abs(step) <= 1e-15 * u:
            break
    return mean_between * -math.expm1(-u)


def best_steps(write: float, mean_between: float, step_time: float) -> int:
    """How many steps to compute between two checkpoints, at least one."""
    ideal = best_interval(write, mean_between) / step_time
    fewer = max(math.floor(ideal), 1)
    return max(fewer, fewer + 1, key=lambda steps: _progress(steps * step_time, write, mean_between))


def _progress(interval: float, write: float, mean_between: float) -> float:
    x, d = interval / mean_between, write / mean_between
    return x * math.exp(-x - d) / -math.expm1(-x - d)
