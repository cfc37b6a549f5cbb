"""What a forecast depends on: derivatives in every figure of an experiment, and intervals from figures that are not known exactly.

Steps are drawn again under other figures with the same random numbers (`steps.py`), so what differs between two draws is what the
figures do. Derivatives are those of the draws themselves (`derivatives.py`), intervals quantiles over draws of a
calibration's posterior (`forecast.py`).
"""

from mc.sensitivity.derivatives import Elasticity as Elasticity
from mc.sensitivity.forecast import collective_intervals as collective_intervals
from mc.sensitivity.forecast import with_model as with_model
from mc.sensitivity.sensitivity import Sensitivity as Sensitivity
from mc.sensitivity.sensitivity import SensitivityError as SensitivityError
from mc.sensitivity.sensitivity import sensitivity as sensitivity
