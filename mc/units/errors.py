"""What the unit parser says when it refuses a text."""

from mc.errors import InputError


class UnitError(InputError):
    """A text is not a quantity of the dimension asked for; the message says which spellings would do."""
