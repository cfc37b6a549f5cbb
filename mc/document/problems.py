"""What is wrong with a file, and where: collected, so that one look at the output mends all of it."""

from collections.abc import Iterable
from dataclasses import dataclass

from mc.document.nodes import Position
from mc.errors import InputError, printable

# A file with more mistakes than this is none of the kind; each costs a search for what may have been meant.
MAXIMUM_PROBLEMS = 100


@dataclass(frozen=True)
class Problem:
    """One thing to mend.

    Attributes:
        position: where it was written.
        key: dotted path of the key it concerns, empty for the file as a whole.
        message: what was found and what would do.
    """

    position: Position
    key: str
    message: str

    def __str__(self) -> str:
        line = ": ".join(part for part in (str(self.position), self.key, self.message) if part)
        return printable(line)


class ConfigError(InputError):
    """A configuration cannot be used; prints one line per problem, in the order of the files' lines."""

    def __init__(self, problems: Iterable[Problem]):
        """Args: problems, at least one; repeats are dropped."""
        self.problems: tuple[Problem, ...] = tuple(
            sorted(dict.fromkeys(problems), key=lambda p: (p.position, p.key))
        )
        super().__init__("\n".join(str(problem) for problem in self.problems))

    def __reduce__(self):
        return ConfigError, (self.problems,)
