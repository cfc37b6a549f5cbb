"""What makes a file of measurements unusable as a whole; single lines are skipped and counted instead."""

from mc.errors import InputError


class LogError(InputError):
    """A file cannot be imported; the text begins with `file:` or `file:line:` and says what would do."""
