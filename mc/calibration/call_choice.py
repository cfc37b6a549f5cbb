"""Which figures of links' noise are free where nobody chose them: those of the tiers that calls are booked on."""

from collections.abc import Sequence

from mc.calibration.call_model import is_noise
from mc.calibration.calls import CallSeries
from mc.calibration.choose import chosen
from mc.calibration.errors import CalibrationError
from mc.calibration.kinds import can_move
from mc.calibration.parameters import Parameters
from mc.config import ClusterConfig
from mc.config.calibration import FreeConfig
from mc.config.figures import figures
from mc.fabric import build_cluster, span


def noise_parameters(
    config: ClusterConfig, series: Sequence[CallSeries], free: Sequence[FreeConfig] = ()
) -> Parameters:
    """What is free: what was asked for, or all that is stated of the noise of tiers that the calls span.

    Raises:
        PathError: a path leads nowhere.
        CalibrationError: there is nothing.
    """
    if free:
        return chosen(config, free)
    cluster = build_cluster(config)
    names = {extent.tier.name for each in series for extent in span(cluster, each.ranks)}
    paths = [each.path for each in figures(config) if _is_free(config, each.path, names)]
    if not paths:
        raise CalibrationError(
            f"expected `jitter` or `congestion` on a tier of {', '.join(sorted(names))}, to be fitted to single calls; the "
            "cluster has none: `--set` gives it some"
        )
    # States' probabilities move together, whichever is named.
    wanted = [path for path in paths if not path.endswith(".probability") or ".states." not in path]
    states = dict.fromkeys(".".join(path.split(".")[:-2]) for path in paths if path not in wanted)
    shares = [f"{path}.probability" for path in states if _count(config, path) > 1]
    return chosen(config, [FreeConfig(path=path) for path in (*shares, *wanted)])


def _count(config: ClusterConfig, path: str) -> int:
    tier = next(each for each in config.tiers if each.name == path.split(".")[1])
    return 0 if tier.congestion is None else len(tier.congestion.states)


def _is_free(config: ClusterConfig, path: str, names: set[str]) -> bool:
    keys = path.split(".")
    if not is_noise(path) or keys[1] not in names or keys[3] in ("growth", "spread"):
        return False
    return can_move(config, path)
