"""Which figures are free where somebody chose them by their paths.

Shares that add up to 1 move together: naming one of them, `tiers.pod.congestion.states.busy.probability`, or all,
`tiers.pod.congestion.states.probability`, frees them all, and the first item has what the others leave. Slowdowns
of several states of a link stay in the order that the file has them in; `states.slowdown` means those of all but the first.
"""

from collections.abc import Sequence
from dataclasses import replace

from mc.calibration.kinds import kind_at
from mc.calibration.parameters import Parameter, Parameters, parameter_at
from mc.config.calibration import FreeConfig
from mc.config.figures import item_names
from mc.document import StrictModel
from mc.units import parse


def chosen(config: StrictModel, free: Sequence[FreeConfig]) -> Parameters:
    """The parameters that a list of paths asks for.

    Raises:
        PathError: a path leads nowhere.
        CalibrationError: or to what cannot be fitted.
    """
    found: dict[tuple[str, ...], Parameter] = {}
    for each in free:
        for parameter in _meant(config, each):
            shares = parameter.group and parameter.paths in found
            if not (shares and each.prior is None and each.spread is None):
                _add(found, parameter, again=not shares)
    return Parameters(tuple(_in_order(list(found.values()))))


def _add(found: dict[tuple[str, ...], Parameter], parameter: Parameter, *, again: bool) -> None:
    if again and parameter.paths in found:
        # The refusal has its text there.
        Parameters((parameter, parameter))
    found[parameter.paths] = parameter


def _meant(config: StrictModel, free: FreeConfig) -> list[Parameter]:
    path = free.paths[0]
    *way, key = path.split(".")
    items = item_names(config, way)
    if len(free.paths) > 1 or key not in ("probability", "slowdown"):
        return [_one(config, free)]
    if items is not None:
        named = items[1:]
    else:
        items, way = item_names(config, way[:-1]), way[:-1]
        named = [path.split(".")[-2]]
        if items is None or key == "slowdown":
            return [_one(config, free)]
    above = ".".join(way)
    if key == "slowdown":
        return [_one(config, free.model_copy(update={"path": f"{above}.{name}.slowdown"})) for name in named]
    parts = []
    for name in items[1:]:
        own = f"{above}.{name}.{key}"
        alone = free.model_copy(
            update={"path": own} | ({} if name in named else {"prior": None, "spread": None})
        )
        part = replace(_one(config, alone), space="simplex", group=above, rest=f"{above}.{items[0]}.{key}")
        parts.append(part)
    return parts


def _one(config: StrictModel, free: FreeConfig) -> Parameter:
    center = None
    if free.prior is not None:
        center = parse(free.prior, kind_at(config, free.paths[0]).dimension)
    return parameter_at(config, free.paths, center=center, spread=free.spread)


def _in_order(parameters: list[Parameter]) -> list[Parameter]:
    """Makes chains of the slowdowns of one link's states, the least first."""
    chains: dict[str, list[Parameter]] = {}
    for each in parameters:
        keys = each.paths[0].split(".")
        if len(each.paths) == 1 and keys[-1] == "slowdown" and keys[-3:-2] == ["states"]:
            chains.setdefault(".".join(keys[:-2]), []).append(each)
    for name, chain in chains.items():
        if len(chain) > 1:
            rest = [each for each in parameters if each not in chain]
            climbing = sorted(chain, key=lambda each: each.center)
            parameters = rest + [
                replace(each, space="ordered", group=f"{name} slowdown") for each in climbing
            ]
    return parameters
