"""A figure as SVG that is part of a page: its text is text, its colours are those of the page's scheme, its names are its own.

matplotlib writes a file of its own: with metadata, with names that repeat from figure to figure, in fixed colours. Here the tree of
elements is taken, names that something refers to get the figure's prefix and all others go, and colours become custom properties of
the page with the colour itself to fall back on, so `prefers-color-scheme` reaches them.
"""

import io
import re
import xml.etree.ElementTree as ElementTree
from typing import Any

from mc.report.pictures.base import COLOURS, GRID, INK, QUIET, style

# As the style sheet of the page defines them.
_PROPERTIES = {
    INK: "ink",
    QUIET: "quiet",
    GRID: "grid",
    **{colour: f"colour-{place}" for place, colour in enumerate(COLOURS) if colour != INK},
    "#000000": "ink",
    "#ffffff": "page",
}
_COLOUR = re.compile(r"#[0-9a-fA-F]{6}\b")
# A typeface, alone or in the short form that other versions of matplotlib write.
_TYPEFACE = re.compile(r"font-family: [^;]*;? ?")
_FONT = re.compile(r"font: (?:(\d+|bold) )?([\d.]+)px [^;]*")
_DECIMALS = re.compile(r"(\d\.\d\d)\d+")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
# What neither HTML nor XML has a place for: control characters and lone surrogates.
_UNUSABLE = re.compile("[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f\\ud800-\\udfff\\ufffe\\uffff]")
_LINK = "{http://www.w3.org/1999/xlink}href"


def inline_svg(figure: Any, name: str, alternative: str) -> str:
    """A figure as an `svg` element.

    Args:
        figure: of matplotlib.
        name: of letters and digits, which no other figure of the page has.
        alternative: what it shows, for those who do not see it.
    """
    figure.patch.set_alpha(0.0)
    with style({"svg.fonttype": "none"}):
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    root = ElementTree.fromstring(usable(buffer.getvalue()))
    used = set(_references(root))
    for element in list(root.iter()):
        element.tag = element.tag.rpartition("}")[2]
        # A style sheet inside would be that of the whole page.
        for child in [child for child in element if child.tag.rpartition("}")[2] in ("metadata", "style")]:
            element.remove(child)
        _rename(element, used, name)
        for key in ("style", "fill", "stroke"):
            if key in element.attrib:
                element.attrib[key] = _styled(element.attrib[key])
        for key in ("d", "x", "y"):
            if key in element.attrib:
                element.attrib[key] = _DECIMALS.sub(r"\1", " ".join(element.attrib[key].split()))
    for key in ("width", "height", "version"):
        root.attrib.pop(key, None)
    root.attrib |= {"role": "img", "aria-label": alternative}
    return ElementTree.tostring(root, encoding="unicode")


def usable(text: str) -> str:
    """A text without what a page has no place for."""
    return _UNUSABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def _references(root: ElementTree.Element) -> Any:
    for element in root.iter():
        if _LINK in element.attrib:
            yield element.attrib[_LINK].removeprefix("#")
        for value in element.attrib.values():
            yield from _REFERENCE.findall(value)


def _rename(element: ElementTree.Element, used: set[str], name: str) -> None:
    own = element.attrib.pop("id", None)
    if own in used:
        element.attrib["id"] = f"{name}-{own}"
    link = element.attrib.pop(_LINK, None)
    if link is not None:
        element.attrib["href"] = f"#{name}-{link.removeprefix('#')}"
    for key, value in element.attrib.items():
        element.attrib[key] = _REFERENCE.sub(rf"url(#{name}-\1)", value)


def _styled(text: str) -> str:
    """A style whose colours are the page's, and whose letters are in the page's typeface."""
    text = _TYPEFACE.sub("", text)
    text = _FONT.sub(
        lambda found: f"font-size: {found[2]}px" + (f"; font-weight: {found[1]}" if found[1] else ""), text
    )
    return _COLOUR.sub(lambda found: _property(found[0]), text)


def _property(colour: str) -> str:
    name = next((each for known, each in _PROPERTIES.items() if known.lower() == colour.lower()), None)
    return colour if name is None else f"var(--{name}, {colour})"
