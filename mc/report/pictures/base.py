"""Pictures: panels side by side in a file, for `--plot`, or one by one in a report.

A *panel* is a function that draws on one pair of axes and knows nothing of where these go, so a verb's picture and that of a report
are the same one. Texts are never read as mathematics, since names come from users' files: a `$` is a `$`. matplotlib is optional:
it is imported when a picture is asked for.
"""

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mc.errors import InputError

FORMATS = (".svg", ".png", ".pdf")
INK, QUIET, GRID = "#222222", "#666666", "#E5E5E5"
# Okabe and Ito, distinct to colour-blind readers; then dashes tell colours apart that come back.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", INK)
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 1, 1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
# A pair of axes of matplotlib.
Panel = Callable[[Any], None]
_STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "svg.hashsalt": "tailstep",
    "svg.fonttype": "path",
    "text.parse_math": False,
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK),
}
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_LONGEST = 48


def check_plot(file: Path) -> None:
    """Raises InputError if a picture cannot be written there."""
    if file.suffix not in FORMATS:
        raise InputError(f"--plot: expected a file that ends in {', '.join(FORMATS)}; got {file}")
    if not file.parent.is_dir():
        raise InputError(f"--plot: there is no folder {file.parent}")
    if find_spec("matplotlib") is None:
        raise InputError(
            "--plot: needs matplotlib, which is not installed; `pip install 'tailstep[plot]'` gets it"
        )


def style(changes: Mapping[str, Any] | None = None) -> AbstractContextManager[Any]:
    """How pictures look, for drawing and for saving, but for `changes` to matplotlib's parameters."""
    import matplotlib as mpl

    parameters: Any = {**_STYLE, **(changes or {})}
    return mpl.rc_context(parameters)


def picture(
    panels: Sequence[Panel],
    title: str = "",
    *,
    width: float = 5.2,
    height: float = 4.6,
    stacked: bool = False,
) -> Any:
    """Panels as a figure of matplotlib.

    Args:
        panels: what to draw.
        title: of the whole.
        width: of a panel, inches.
        height: of a panel.
        stacked: whether they stand below each other.
    """
    from matplotlib.figure import Figure

    rows, columns = (len(panels), 1) if stacked else (1, len(panels))
    with style():
        figure = Figure(
            figsize=(width * columns, height * rows + (0.3 if title else 0.0)),
            facecolor="white",
            layout="constrained",
        )
        for axes, panel in zip(figure.subplots(rows, columns, squeeze=False).ravel(), panels, strict=True):
            axes.set_facecolor("none")
            axes.grid(color=GRID, lw=0.7)
            axes.set_axisbelow(True)
            axes.spines[["top", "right"]].set_visible(False)
            panel(axes)
            for axis in (axes.xaxis, axes.yaxis):
                _plain_powers(axis)
        if title:
            figure.suptitle(label(title, 120), x=0.01, ha="left", fontsize=11)
    return figure


def save(file: Path, figure: Any) -> None:
    """Writes a figure in the format that the suffix names; the same figure gives the same bytes."""
    with style():
        figure.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else None, dpi=150)


def panel_title(axes: Any, text: str) -> None:
    """Says above a panel what it shows."""
    axes.set_title(text, loc="left", fontsize=11, fontweight="bold")


def label(text: str, longest: int = _LONGEST) -> str:
    """A text of a user's file as a picture can show it: on one line, not too long, of characters that can be drawn."""
    shown = "".join(
        each if _is_drawable(each) else "\N{REPLACEMENT CHARACTER}" for each in " ".join(text.split())
    )
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def number_text(value: float) -> str:
    """A number at an axis: `20,000`, `0.05`, `10⁶`."""
    if value and not 1e-3 <= abs(value) < 1e6:
        mantissa, _, power = f"{value:.0e}".partition("e")
        leading = "" if mantissa == "1" else f"{mantissa}·"
        return f"{leading}10{str(int(power)).translate(_SUPERSCRIPTS)}"
    return f"{value:,g}"


def _is_drawable(character: str) -> bool:
    """Whether the font of pictures is sure to have it; it has most of Latin, Greek and Cyrillic, and mathematics."""
    if character < "\x7f":
        return character >= " "
    known = unicodedata.category(character)[0] not in "CM" and character < "\u0500"
    return known or character in "–—…·×→≥≤⁻�"


def _plain_powers(axis: Any) -> None:
    """Ticks of a logarithmic axis as plain numbers, where nothing else was asked for."""
    from matplotlib.ticker import LogFormatterSciNotation, LogLocator, NullFormatter

    if axis.get_scale() != "log" or not isinstance(axis.get_major_formatter(), LogFormatterSciNotation):
        return
    low, high = axis.get_view_interval()
    if low > 0 and high / low < 300:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(lambda value, _: number_text(value))
    axis.set_minor_formatter(NullFormatter())
