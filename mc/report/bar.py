"""A bar whose length is a share; made of `#` where the terminal has no block characters."""

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.segment import Segment
from rich.style import Style

_EIGHTHS = " ▏▎▍▌▋▊▉"


class ShareBar:
    """A horizontal bar.

    Attributes:
        share: filled part of the width; outside [0, 1] it is cut.
        width: columns of a full bar.
        style: how it is coloured.
    """

    def __init__(self, share: float, width: int = 28, style: str = "cyan") -> None:
        self.share = min(max(share, 0.0), 1.0)
        self.width = width
        self.style = style

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = min(self.width, options.max_width)
        eighths = round(self.share * width * 8)
        whole, rest = divmod(eighths, 8)
        text = (
            "#" * round(self.share * width)
            if options.ascii_only
            else "█" * whole + (_EIGHTHS[rest] if rest else "")
        )
        yield Segment(text.ljust(width), Style.parse(self.style))

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        width = min(self.width, options.max_width)
        return Measurement(min(4, width), width)
