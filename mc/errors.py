"""The one error that means "the input is wrong, not the program".

Every package raises a subclass of `InputError` for what a user can mend: a file, a flag, a name, a number.
The command line prints its text on stderr and exits with 2. What the operating system refuses is told in
its words; anything else is a bug and shows a traceback.
"""


class InputError(ValueError):
    """What the user gave cannot be used; the text says what was found and what would do."""


def printable(text: str) -> str:
    """A text on one line, whatever a file holds, with nothing that a terminal would obey."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)
