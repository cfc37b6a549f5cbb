"""From measurements to a model that can be trusted: fits with priors, intervals and a score on held-out data.

A parameter of a fit is a number of a configuration, named by its path (`mc.config.figures`, `parameters.py`). What a fit
predicts is what the engine predicts: the configuration is built with traced numbers by the same builders.

There are four fits, each with files of its own: what is read, what is free, the model, the fit, how well it does, and what is
written.

- **Curves** of collectives over sizes, a cluster's figures, by robust least squares: `curves`, `free`, `loss` and
  `least_squares`, `fit`, `held_out`, `write`; besides `bootstrap`, `nuts` and `two_networks`.
- **Single calls** of collectives, the noise of links, by their distributions: `calls`, `call_choice`, `call_model`, `call_fit`,
  `call_scores`, `write_calls`.
- **Step times** of an experiment, by the likelihood of the slowest rank: files that begin with `step_`, and `write_steps`. `steps`
  is apart from these: one rank's jitter alone, from step times and nothing else.
- **Mean steps** of transformers at several numbers of ranks: `training_rows`, `training_model`, `training_fit`, `write_training`.

All share `parameters` with `transforms`, `kinds` and `choose` (what may move, and where), `groups` (the ranks of a measurement),
`convergence` (how descents ended), `fitted` (what they end in) and `identify` (what the data tell apart).
"""

from mc.calibration.bootstrap import bootstrap as bootstrap
from mc.calibration.bootstrap import bootstrap_interval as bootstrap_interval
from mc.calibration.call_choice import noise_parameters as noise_parameters
from mc.calibration.call_fit import CallsFit as CallsFit
from mc.calibration.call_fit import fit_calls as fit_calls
from mc.calibration.calls import CallSeries as CallSeries
from mc.calibration.calls import calls_of as calls_of
from mc.calibration.choose import chosen as chosen
from mc.calibration.curves import Curve as Curve
from mc.calibration.curves import curves_of as curves_of
from mc.calibration.curves import split_curves as split_curves
from mc.calibration.errors import CalibrationError as CalibrationError
from mc.calibration.fit import Fit as Fit
from mc.calibration.fit import fit_curves as fit_curves
from mc.calibration.fit import score_held_out as score_held_out
from mc.calibration.free import free_parameters as free_parameters
from mc.calibration.free import uncorrected as uncorrected
from mc.calibration.held_out import line as line
from mc.calibration.identify import Identified as Identified
from mc.calibration.identify import identify as identify
from mc.calibration.loss import predict_curves as predict_curves
from mc.calibration.parameters import Parameter as Parameter
from mc.calibration.parameters import Parameters as Parameters
from mc.calibration.parameters import parameter_at as parameter_at
from mc.calibration.parameters import short_name as short_name
from mc.calibration.step_fit import StepsFit as StepsFit
from mc.calibration.step_fit import fit_runs as fit_runs
from mc.calibration.step_model import StepRun as StepRun
from mc.calibration.step_runs import runs_of as runs_of
from mc.calibration.step_runs import split_runs as split_runs
from mc.calibration.step_runs import step_parameters as step_parameters
from mc.calibration.steps import StepFit as StepFit
from mc.calibration.steps import StepSeries as StepSeries
from mc.calibration.steps import crps as crps
from mc.calibration.steps import fit_steps as fit_steps
from mc.calibration.write import calibrated_yaml as calibrated_yaml
from mc.calibration.write_calls import calibrated_noise_yaml as calibrated_noise_yaml
from mc.calibration.write_steps import calibrated_experiment_yaml as calibrated_experiment_yaml
