"""Reading a report as a browser would, for the tests: its elements, its tables, and all that it would load or run."""

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "br", "hr", "img", "input", "link", "area", "base", "col", "embed", "source", "track", "wbr"}
# Attributes that make a browser load or run something.
LOADING = {"src", "srcset", "href", "data", "action", "formaction", "poster", "background", "ping", "cite"}


@dataclass
class Seen(HTMLParser):
    """What a page holds; `problems` are tags that do not match, repeated names, and names that lead nowhere."""

    tags: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    handlers: list[str] = field(default_factory=list)
    tables: list[list[list[str]]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    svg_texts: list[list[str]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def __post_init__(self):
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []

    def handle_starttag(self, tag, attrs):
        self._element(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("th", "td"):
            self.tables[-1][-1].append("")
        elif tag == "svg":
            self.svg_texts.append([])

    def handle_startendtag(self, tag, attrs):
        self._element(tag, attrs)
        if tag not in VOID and "svg" not in self.open:
            self.problems.append(f"<{tag}/> is not closed in HTML")

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.problems.append(f"</{tag}> closes another element, line {self.getpos()[0]}")

    def handle_data(self, data):
        self.texts.append(data)
        if self.open and self.open[-1] in ("th", "td"):
            self.tables[-1][-1][-1] += data
        if self.open and self.open[-1] == "text":
            self.svg_texts[-1].append(data)

    def _element(self, tag, attrs):
        self.tags.append(tag)
        keys = [key for key, _ in attrs]
        if len(set(keys)) != len(keys):
            self.problems.append(f"<{tag}> repeats an attribute")
        for key, value in attrs:
            if key == "id":
                self.names.append(value)
            if key in LOADING:
                self.links.append(value)
            if key.startswith("on"):
                self.handlers.append(key)
            self.links += re.findall(r"url\(([^)]*)\)", value or "")


def read(text: str) -> Seen:
    """A page, checked."""
    seen = Seen()
    seen.feed(text)
    seen.close()
    if seen.open:
        seen.problems.append(f"not closed: {seen.open}")
    if len(set(seen.names)) != len(seen.names):
        seen.problems.append("two elements have one name")
    for link in seen.links:
        if link.startswith("#") and link[1:] not in seen.names:
            seen.problems.append(f"{link} leads nowhere")
    return seen


def assert_sound(text: str) -> Seen:
    """A page that is whole, runs nothing and loads nothing; and has both colour schemes and a width for phones."""
    seen = read(text)
    assert seen.problems == []
    assert not {"script", "iframe", "object", "embed", "link", "img", "base", "form", "foreignobject"} & set(
        seen.tags
    )
    assert seen.handlers == []
    assert all(link.startswith("#") for link in seen.links), seen.links
    assert "http" not in text
    assert "@import" not in text
    assert text.startswith("<!DOCTYPE html>")
    assert "@media (prefers-color-scheme: dark)" in text
    assert 'name="viewport"' in text
    return seen
