"""What makes a file of measurements unusable as a whole; single lines are skipped and counted instead."""

from mc.errors import InputError, printable


class LogError(InputError):
    """Files cannot be imported; a line for each begins with `file:` or `file:line:` and says what would do."""

    def __init__(self, *texts: str):
        """Args: texts, one for each file, of which is shown what can be."""
        super().__init__("\n".join(map(printable, texts)))
