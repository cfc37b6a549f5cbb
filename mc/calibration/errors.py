"""What a calibration refuses."""

from mc.errors import InputError


class CalibrationError(InputError):
    """What is asked of a calibration, or what the data say, cannot be."""
