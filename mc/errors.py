"""The one error that means "the input is wrong, not the program".

Every package raises a subclass of `InputError` for what a user can mend: a file, a flag, a name, a number.
The command line prints its text on stderr and exits with 2; anything else is a bug and shows a traceback.
"""


class InputError(ValueError):
    """What the user gave cannot be used; the text says what was found and what would do."""
