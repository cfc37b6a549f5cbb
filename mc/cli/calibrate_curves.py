"""`tailstep calibrate --cluster`: from curves of collectives to a cluster that every verb takes."""

from dataclasses import replace
from typing import TYPE_CHECKING

from mc.cli.calibrated import TAKERS, Output, ending, fitted_figures
from mc.config import load_cluster
from mc.config.calibration import FitConfig
from mc.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mc.calibration import Fit
    from mc.calibration.nuts import Sampled
    from mc.report.calibration import CalibrationReport, SampledPosterior

# Two passes with and without held-out sizes, at three temperatures each.
_PASSES = 12


def calibrate_cluster(
    name: str,
    ask: FitConfig,
    overrides: list[str],
    output: Output,
) -> None:
    """Fits a cluster to collectives, writes and prints what was asked for.

    Args:
        name: a file, or a shipped cluster.
        ask: what to fit to what.
        overrides: of the cluster.
        output: what to write and how to print.

    Raises:
        InputError: it cannot be done.
    """
    from mc.logs import Hints, read_logs
    from mc.results.calibration import write_calibration

    if ask.posterior == "nuts":
        _check_nuts()
    fitted = load_cluster(name, overrides)
    found = read_logs(ask.data, Hints(collective=ask.collective, ranks=ask.ranks, nodes=ask.nodes))

    from mc.calibration import (
        bootstrap,
        bootstrap_interval,
        calibrated_yaml,
        chosen,
        curves_of,
        fit_curves,
        free_parameters,
        split_curves,
        uncorrected,
    )
    from mc.calibration.call_model import is_noise
    from mc.calibration.calls import has_calls
    from mc.calibration.curves import has_curves
    from mc.calibration.two_networks import choose_networks
    from mc.config.hold_out import parse_hold_out
    from mc.report.calibration import SecondNetwork
    from mc.report.fitting import fitting

    noise = [is_noise(path) for each in ask.free or () for path in each.paths]
    if any(noise) or (not noise and has_calls(found.table) and not has_curves(found.table)):
        from mc.cli.calibrate_calls import calibrate_calls

        calibrate_calls(fitted, found.table, ask, output)
        return
    unseen = []
    if ask.hold_out is None:
        curves = curves_of(found.table, fitted, ask.algorithms)
    else:
        rule = parse_hold_out(ask.hold_out)
        curves, unseen = split_curves(found.table, fitted, rule, ask.algorithms)
    networks = None
    if ask.free:
        if ask.second_network is not None:
            raise InputError("second_network: expected all figures to be free; got some that were chosen")
        parameters = chosen(fitted, ask.free)
    else:
        fitted = uncorrected(fitted)
        if ask.second_network is not None:
            networks = choose_networks(fitted, curves, ask.second_network, steps=ask.steps)
            fitted = networks.config
        parameters = free_parameters(fitted, curves)
    with fitting(_PASSES) as report:
        fit = fit_curves(
            fitted,
            curves,
            parameters,
            starts=ask.starts,
            steps=ask.steps,
            seed=ask.seed,
            held_out=ask.hold_out is None,
            unseen=unseen,
            report=report,
        )
    intervals, refitted = fit.interval(), None
    if ask.bootstrap:
        refitted = bootstrap(fit, ask.bootstrap, seed=ask.seed)
        intervals = bootstrap_interval(fit, refitted)
    sampled = None
    if ask.posterior == "nuts":
        from mc.calibration.nuts import sample_fit, sampled_interval

        fit, sampled = sample_fit(fit, seed=ask.seed)
        intervals = sampled_interval(fit, sampled)
    summary = summarised(fit, intervals, ask.hold_out or "")
    if networks is not None:
        found_better = SecondNetwork(networks.first, networks.kept, networks.one, networks.two, networks.by)
        summary = replace(summary, second_network=found_better)
    if sampled is not None:
        summary = replace(summary, sampled=_told(sampled))
    how = None if sampled is None else f"{len(sampled.together)} draws by NUTS"
    text = calibrated_yaml(fit, intervals, output.command, refitted, how)
    output.keep(text)

    from mc.report.calibration import calibration_json, calibration_text

    if output.results is not None:
        write_calibration(output.results, calibration_json(summary), output.command, text, ask.data)
    if output.plot is not None:
        from mc.report.pictures.calibration import plot_calibration

        plot_calibration(output.plot, summary)
    output.show(lambda: calibration_json(summary), lambda: calibration_text(summary), TAKERS)


def _check_nuts() -> None:
    """Refuses before the fit what could not be done after it."""
    try:
        import mc.calibration.nuts  # noqa: F401 (only whether it is there)
    except ImportError as error:
        raise InputError(
            f"--posterior nuts: expected blackjax, which is not installed ({error.name}): pip install 'tailstep[bayes]'"
        ) from None


def _told(sampled: "Sampled") -> "SampledPosterior":
    from mc.report.calibration import SampledPosterior

    chains, draws, _ = sampled.draws.shape
    return SampledPosterior(
        chains, draws, float(sampled.rhat.max()), float(sampled.effective.min()), sampled.divergences
    )


def summarised(fit: "Fit", intervals: "NDArray[np.float64]", rule: str = "") -> "CalibrationReport":
    """A fit as plain figures, with the intervals that were asked for, and the rule that held rows out."""
    from mc.calibration import predict_curves, short_name
    from mc.config.axes import count as count_of
    from mc.config.bus_bandwidth import bus_factor
    from mc.report.calibration import CalibrationReport, FittedCurve, held_out_score

    known = fit.known
    score = fit.held_out
    shown = (*fit.curves, *fit.unseen)
    curves = [
        FittedCurve(
            curve.label,
            curve.sizes.tolist(),
            curve.times.tolist(),
            before.tolist(),
            after.tolist(),
            bus_factor(
                curve.collective, curve.ranks if isinstance(curve.ranks, int) else count_of(curve.ranks)
            ),
            place >= len(fit.curves),
        )
        for place, (curve, before, after) in enumerate(
            zip(shown, predict_curves(fit.config, shown), (*fit.predicted, *fit.forecast), strict=True)
        )
    ]
    return CalibrationReport(
        fit.config.name,
        0.9,
        fitted_figures(fit.parameters.items, intervals.tolist(), known),
        curves,
        fit.sigma,
        None if score is None else held_out_score(score.errors, score.sizes, score.line, rule),
        known.sentences([short_name(each) for each in fit.parameters.items]),
        **ending(fit.convergence),
    )
