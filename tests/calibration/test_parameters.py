"""Parameters of a fit: what cannot be one."""

import pytest

from mc.calibration import CalibrationError, Parameters, parameter_at
from mc.config import load_cluster
from mc.config.figures import with_figures


def test_what_cannot_be_fitted():
    config = load_cluster("dgx-h100-superpod")
    with pytest.raises(CalibrationError, match="expected a figure that can be fitted"):
        parameter_at(config, "tiers.node.fan_out")
    with pytest.raises(CalibrationError, match="expected a prior above 0; got 0, so give it one"):
        parameter_at(with_figures(config, {"tiers.node.link.latency": 0.0}), "tiers.node.link.latency")
    one = parameter_at(config, "tiers.node.link.bandwidth")
    with pytest.raises(CalibrationError, match="expected each free parameter once; got it twice"):
        Parameters((one, one))
    with pytest.raises(CalibrationError, match="expected at least one free parameter; got none"):
        Parameters(())
