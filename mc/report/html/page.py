"""A report as one page of HTML: no scripts, nothing from elsewhere, light and dark, for a screen of any width.

What a page says is plain data (`Page`); the template (`page.html.j2`) escapes every string in it, so that names from files stay
names. The only markup that is let through is a picture's SVG, which `mc.report.html.svg` makes of an element tree, escaped likewise.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mc.report.html.svg import inline_svg, usable
from mc.report.pictures.base import Panel, picture

_TEMPLATE = Path(__file__).with_name("page.html.j2")


@dataclass(frozen=True)
class Table:
    """Figures in rows.

    Attributes:
        heading: of the columns.
        rows: texts; the first of a row is what it is about, the others stand to the right.
        caption: what they are; may be empty.
        words: whether the columns after the first are words, which stand to the left.
    """

    heading: tuple[str, ...]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    words: bool = False


@dataclass(frozen=True)
class Picture:
    """A panel with what is to be said about it.

    Attributes:
        panel: that draws it.
        caption: what it shows, in a sentence.
        width: of the drawing, inches; a wide one takes the whole width of the page.
        height: likewise.
    """

    panel: Panel
    caption: str
    width: float = 4.7
    height: float = 3.5


@dataclass(frozen=True)
class Details:
    """A text that is folded away.

    Attributes:
        summary: what is seen of it.
        text: as it is.
    """

    summary: str
    text: str


@dataclass(frozen=True)
class Section:
    """A part of a page.

    Attributes:
        title: of it.
        text: paragraphs.
        pictures: side by side where there is room.
        tables: below them.
        details: below these.
        points: a list of sentences, after the paragraphs.
    """

    title: str
    text: Sequence[str] = ()
    pictures: Sequence[Picture] = ()
    tables: Sequence[Table] = ()
    details: Sequence[Details] = ()
    points: Sequence[str] = ()

    @property
    def anchor(self) -> str:
        """That a link leads to."""
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")


@dataclass(frozen=True)
class Page:
    """A report.

    Attributes:
        kind: what it is a report of, such as `run`.
        title: of the page.
        description: in the words of whoever made the file; may be empty.
        facts: what matters most, each a number with what it is.
        sections: the rest.
        origin: how to make it again.
    """

    kind: str
    title: str
    description: str
    facts: Sequence[tuple[str, str]]
    sections: Sequence[Section]
    origin: str = ""


def render(page: Page) -> str:
    """The page as HTML; the same page gives the same text."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    numbers = iter(range(1, 1000))

    def svg(shown: Picture) -> Markup:
        figure = picture([shown.panel], width=shown.width, height=shown.height)
        return Markup(inline_svg(figure, f"picture{next(numbers)}", usable(shown.caption)))

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=_usable
    )
    environment.globals["svg"] = svg
    return environment.from_string(_TEMPLATE.read_text(encoding="utf-8")).render(page=page)


def _usable(value: object) -> object:
    # Markup is a `str` too, and would lose what it is.
    return usable(value) if type(value) is str else value
