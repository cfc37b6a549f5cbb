"""Configurations that are right, at random, as trees of mappings and lists.

Trees are drawn by hypothesis, so that what fails is shrunk. They are small, so that they can be run.
"""

import math
from typing import Any

from hypothesis import strategies as st

Tree = dict[str, Any]


def _one_of(draw: st.DrawFn, *values: Any) -> Any:
    return draw(st.sampled_from(values))


def _number(draw: st.DrawFn, low: float, high: float) -> float:
    """Evenly among orders of magnitude, with few digits."""
    drawn = draw(st.floats(math.log(low), math.log(high)))
    return float(f"{math.exp(drawn):.3g}")


@st.composite
def laws(draw: st.DrawFn, middle: float, unit: str, depth: int = 1) -> Tree:
    """A `<delay>` around `middle`, in a unit (empty for ratios)."""

    def quantity(value: float) -> Any:
        return f"{value:.6g} {unit}" if unit else float(f"{value:.6g}")

    families = ["constant", "exponential", "lognormal", "gamma", "weibull", "pareto", "empirical"]
    family = _one_of(draw, *families, *(["mixture"] if depth else []))
    law: Tree = {"family": family}
    if family == "constant":
        law["value"] = quantity(middle)
    elif family == "exponential":
        law["mean"] = quantity(middle)
    elif family == "lognormal":
        pairs = {"median": quantity(middle), "sigma": 0.2}, {"mean": quantity(middle), "cv": "30 %"}
        law |= _one_of(draw, *pairs)
    elif family == "gamma":
        pairs = {"mean": quantity(middle), "cv": 0.5}, {"shape": 3, "scale": quantity(middle / 3)}
        law |= _one_of(draw, *pairs)
    elif family == "weibull":
        law |= {"scale": quantity(middle), "shape": _one_of(draw, 0.7, 1, 3)}
    elif family == "pareto":
        law |= {"scale": quantity(middle / 4), "shape": _one_of(draw, -0.2, 0, 0.25)}
    elif family == "empirical":
        law["samples"] = [quantity(middle * (0.8 + 0.01 * place)) for place in range(60)]
        law["tail_fraction"] = _one_of(draw, 0.4, "50 %")
    else:
        share = _one_of(draw, 0.25, 0.5)
        law["components"] = [
            {"probability": share, "delay": draw(laws(middle, unit, depth - 1))},
            {"probability": 1 - share, "delay": draw(laws(2 * middle, unit, depth - 1))},
        ]
    if draw(st.booleans()):
        law["shift"] = quantity(middle / 10)
    return law


@st.composite
def congestions(draw: st.DrawFn, sharers: list[str]) -> Tree:
    """A `congestion` block, with or without memory."""
    busy: Tree = {"name": "busy", "slowdown": _number(draw, 1.1, 8)}
    if draw(st.booleans()):
        busy = {"name": "busy", "load": 0.3, "delay": f"{_number(draw, 0.1, 50):g} us"}
    found: Tree = {"shared_by": _one_of(draw, *sharers), "states": [{"name": "idle"}, busy]}
    memory = _one_of(draw, "none", "persistence", "holding", "transition")
    if memory == "transition":
        found["transition"] = [[0.95, 0.05], [0.5, 0.5]]
        return found
    share = _one_of(draw, 0.01, 0.1, 0.3)
    found["states"][0]["probability"], busy["probability"] = 1 - share, share
    if memory == "persistence":
        found["persistence"] = _one_of(draw, 0.5, "90 %")
    if memory == "holding":
        busy["holding"] = _one_of(draw, 2, 20)
    if draw(st.booleans()):
        found["growth"] = {"per_doubling": 0.1, "at_ranks": 8}
    return found


@st.composite
def clusters(draw: st.DrawFn) -> Tree:
    """One to three tiers of at most 64 ranks, and noise."""
    names = ["node", "rack", "pod"][: draw(st.integers(1, 3))]
    tiers = []
    for place, name in enumerate(names):
        tier: Tree = {"name": name, "fan_out": _one_of(draw, 2, 4) if place else _one_of(draw, 2, 4, 8)}
        link = {"duplex": _one_of(draw, "each", "sum"), "latency": f"{_number(draw, 0.1, 20):g} us"}
        link["bandwidth"] = f"{_number(draw, 1, 1000):g} GB/s"
        tier["link"] = _one_of(draw, link, "NVLink-4", "InfiniBand-NDR")
        if draw(st.booleans()):
            tier["oversubscription"] = _one_of(draw, 1, 1.5, 2)
        if draw(st.booleans()):
            tier["jitter"] = draw(laws(2, "us"))
        if draw(st.booleans()):
            tier["congestion"] = draw(congestions(["rank", *names[: place + 1], "all"]))
        if draw(st.booleans()):
            tier["incast"] = {"buffer": "1 MB", "window": "100 kB", "penalty": 0.5}
        tiers.append(tier)
    found: Tree = {"name": "drawn", "chip": _one_of(draw, "H100", "A100", "TPU-v5p"), "tiers": tiers}
    noise: Tree = {}
    if draw(st.booleans()):
        noise["spread"] = draw(laws(1, ""))
    if draw(st.booleans()):
        noise["jitter"] = draw(laws(30, "us"))
    if draw(st.booleans()):
        noise["pauses"] = {"probability": "0.1 %", "delay": draw(laws(2, "ms"))}
    if draw(st.booleans()):
        noise["slow_chips"] = {"fraction": "5 %", "slowdown": 1.3}
    if draw(st.booleans()):
        noise["transient"] = [{"scope": _one_of(draw, *names, "all"), "jitter": draw(laws(10, "us"))}]
    if noise:
        found["noise"] = noise
    return found


def size_of(cluster: Tree) -> int:
    """How many ranks it has."""
    return math.prod(tier["fan_out"] for tier in cluster["tiers"])


@st.composite
def barriers(draw: st.DrawFn) -> Tree:
    """An experiment that computes and then exchanges."""
    cluster = draw(clusters())
    collective = _one_of(draw, "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast")
    exchange: Tree = {"collective": collective, "size": f"{_number(draw, 1, 1e5):g} kB"}
    compute: Tree = {"time": f"{_number(draw, 0.1, 20):g} ms"}
    if draw(st.booleans()):
        compute = {"flop": "2e12 FLOP", "format": "bf16", "efficiency": "40 %"}
    if draw(st.integers(0, 9)) == 0:
        exchange = {"collective": "barrier"}
    found: Tree = {
        "name": "drawn",
        "cluster": cluster,
        "model": {"name": "drawn", "compute": compute, "exchange": exchange},
        "plan": {"ranks": _one_of(draw, "all", size_of(cluster))},
        "run": _runs(draw),
    }
    if draw(st.integers(0, 3)) == 0:
        found["mitigations"] = _one_of(draw, {"drop_slowest": 1}, {"local_steps": 4})
    return found


@st.composite
def transformers(draw: st.DrawFn) -> Tree:
    """An experiment that trains a small transformer."""
    cluster = draw(clusters())
    ranks = size_of(cluster)
    tp = _one_of(draw, 1, 2)
    pp = _one_of(draw, *(each for each in (1, 2) if ranks % (tp * each) == 0 and tp * each <= ranks))
    dp = ranks // (tp * pp)
    shape: Tree = {"layers": 2 * pp, "hidden": 256, "heads": 4, "ffn": 512, "vocab": 1024}
    if draw(st.booleans()):
        shape["kv_heads"] = 2
    if draw(st.booleans()):
        shape["experts"] = {"count": 4, "top_k": 2, "ffn": 128}
    plan: Tree = {
        "tp": tp,
        "pp": pp,
        "dp": dp,
        "micro_batch": 1,
        "global_batch": dp * _one_of(draw, 1, 2, 4),
        "sequence_length": 128,
        "zero": _one_of(draw, 0, 1, 2) if pp == 1 else _one_of(draw, 0, 1),
        "recompute": _one_of(draw, "none", "selective", "full"),
    }
    return {
        "name": "drawn",
        "cluster": cluster,
        "model": {"name": "drawn", "transformer": shape},
        "plan": plan,
        "run": _runs(draw) | {"method": "exact"},
    }


@st.composite
def servers(draw: st.DrawFn) -> Tree:
    """An experiment that serves a small transformer."""
    cluster = draw(clusters())
    ranks = size_of(cluster)
    shape: Tree = {"layers": 4, "hidden": 256, "heads": 8, "kv_heads": 4, "ffn": 512, "vocab": 1024}
    tp, pp, dp = _one_of(draw, 1, 2), 1, 1
    if draw(st.booleans()):
        shape["experts"] = {"count": 4, "top_k": 2, "ffn": 128}
        dp = 2 if ranks >= 2 * tp else 1
    elif ranks >= 2 * tp:
        pp = _one_of(draw, 1, 2)
    serving: Tree = {"tp": tp, "pp": pp, "dp": dp, "batch": dp * pp * _one_of(draw, 1, 3, 16)}
    if draw(st.booleans()):
        serving |= {"prompt": _one_of(draw, 1, 100, 3000), "output": _one_of(draw, 2, 50)}
    elif draw(st.booleans()):
        law: Tree = {"median": 200, "sigma": _one_of(draw, 0, 0.5, 1.5), "most": 5000}
        serving["requests"] = {"prompt": law, "output": {"median": 20, "sigma": 0.7}}
    else:
        kinds = [{"prompt": 10, "output": 2}, {"prompt": 2000, "output": 40, "weight": 0.1}]
        serving["requests"] = kinds[: _one_of(draw, 1, 2)]
    if draw(st.booleans()) and ranks >= 2 * tp * pp * dp:
        serving["prefill"] = {
            "tp": tp,
            "batch": _one_of(draw, 1, 2),
            "packing": _one_of(draw, "even", "longest"),
        }
    if draw(st.booleans()):
        serving["speculation"] = {"width": 2, "acceptance": _one_of(draw, 0, 0.7, 1), "draft": 0.1}
    if dp > 1 and draw(st.booleans()):
        serving["routing"] = {"skew": 0.3}
    return {
        "name": "drawn",
        "cluster": cluster,
        "model": {"name": "drawn", "transformer": shape},
        "serving": serving,
        "run": _runs(draw),
    }


def _runs(draw: st.DrawFn) -> Tree:
    return {"samples": 40, "seed": draw(st.integers(0, 2**31)), "method": "exact", "realisations": 4}


def paths(tree: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Of all mappings' keys and lists' items in a tree."""
    entries = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    return [each for key, value in entries for each in ((*path, key), *paths(value, (*path, key)))]


def value_at(tree: Any, path: tuple[str | int, ...]) -> Any:
    """What stands at a path."""
    for key in path:
        tree = tree[key]
    return tree
