"""Calibration: a thousand refits in one call, against scipy's least squares one at a time; from a log to a fit, cold."""

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from scipy import optimize

from benchmarks.measure import Finding, at_least, at_most, seconds
from mc.calibration import Curve, Fit, Parameters, bootstrap, fit_curves, parameter_at, predict_curves
from mc.calibration.fit import TEMPERATURES
from mc.calibration.loss import CurveData, curve_residuals, predictor
from mc.config import load_cluster

_CLUSTER = "dgx-h100-superpod"


def run(*, quick: bool) -> Iterator[Finding]:
    """Seconds of a thousand refits, their ratio to fits one by one, and seconds of a fit from the prompt."""
    fit = _fitted()
    together = seconds(lambda: bootstrap(fit, 1000))
    note = f"{len(fit.parameters)} figures, {sum(len(each.sizes) for each in fit.curves)} sizes; compilation included"
    yield at_most("1,000 refits of a link model", together, "s", 10, note)
    alone = statistics.median(_one_by_one(fit, 3 if quick else 10))
    yield at_least(
        "the same over scipy's least squares, one by one",
        1000 * alone / together,
        "x",
        1,
        f"{alone * 1e3:,.0f} ms each, with compiled residuals and differences for gradients",
    )
    cold = _from_the_prompt(fit.curves[0])
    yield at_most(
        "tailstep calibrate, cold start to result",
        cold,
        "s",
        20,
        "a table of one collective, held-out score and all",
    )


def _fitted() -> Fit:
    """Three curves of a cluster, 5 % off."""
    config = load_cluster(_CLUSTER)
    sizes = np.asarray(2.0 ** np.arange(10, 31), np.float64)
    plain = [
        Curve("all-reduce", ranks, ("ring", "tree"), "auto", sizes, sizes, f"{ranks} ranks")
        for ranks in (8, 16, 64)
    ]
    generator = np.random.default_rng(11)
    curves = [
        replace(curve, times=times * np.exp(0.05 * generator.normal(size=len(times))))
        for curve, times in zip(plain, predict_curves(config, plain), strict=True)
    ]
    free = [
        parameter_at(config, f"tiers.{tier}.link.{name}")
        for tier in (0, 1)
        for name in ("latency", "bandwidth")
    ]
    return fit_curves(config, curves, Parameters(tuple(free)), starts=2, held_out=False)


def _one_by_one(fit: Fit, count: int) -> Iterator[float]:
    """Seconds of single refits to reweighted data, warm, as one would do them with scipy."""
    generator = np.random.default_rng(12)
    with jax.enable_x64(True):
        residuals = jax.jit(curve_residuals(predictor(fit.config, fit.parameters, fit.curves), fit.curves))
        for place in range(count + 1):
            data = CurveData(
                jnp.asarray(fit.weights * generator.exponential(size=len(fit.weights))),
                jnp.asarray(generator.normal(size=len(fit.parameters))),
                jnp.asarray(fit.sigma),
                jnp.asarray(TEMPERATURES[-1]),
            )
            begun = time.perf_counter()
            optimize.least_squares(lambda z, data=data: np.asarray(residuals(z, data)), fit.z, max_nfev=30)
            if place:  # the first compiles
                yield time.perf_counter() - begun


def _from_the_prompt(curve: Curve) -> float:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "log.csv")
        rows = [
            f"all-reduce,8,1,{size:.0f},{1e6 * took:.6g}"
            for size, took in zip(curve.sizes, curve.times, strict=True)
        ]
        path.write_text("\n".join(["collective,ranks,nodes,bytes,time_us", *rows]) + "\n")
        words = ["calibrate", "--cluster", _CLUSTER, "--data", str(path), "--json"]
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-m", "mc", *words], check=True, capture_output=True)
        return time.perf_counter() - begun
