"""What MkDocs cannot know by itself: pages that are generated, and links that lead out of `docs/`.

Pages link to files of the repository as GitHub shows them (`../configs/quickstart.yaml`). Here README, CONTRIBUTING, CHANGELOG and
the studies' README become pages, every other file that is linked is copied beside them, and a folder becomes a list of its files. So
the built site holds all that it links to, and works without a network.
"""

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import api_reference
import catalog_reference
import command_reference
import configuration_reference
import notebook
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
# Generated pages, and the pages of the repository that are not in docs/: their place on the site, and where links in them start from.
GENERATED = {
    "reference/keys.md": configuration_reference.page,
    "reference/commands.md": command_reference.page,
    "reference/figures.md": catalog_reference.page,
    "reference/python.md": api_reference.page,
    "quickstart.md": notebook.page,
}
PROJECT = {
    "README.md": "project/readme.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
    "experiments/README.md": "project/experiments.md",
}
_LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?(\))")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what is generated, what is linked, and the pages of the repository."""
    for place, page in GENERATED.items():
        files.append(File.generated(config, place, content=page()))
    for source, place in PROJECT.items():
        files.append(File.generated(config, place, content=(ROOT / source).read_text(encoding="utf-8")))
    for file in [each for each in files if each.is_documentation_page()]:
        for target in outside(file.content_string, base(file.src_uri)):
            place = site_path(target)
            if files.get_file_from_path(place) is not None:
                continue
            if (ROOT / target).is_dir():
                files.append(File.generated(config, place, content=listing(target)))
            else:
                files.append(File.generated(config, place, abs_src_path=str(ROOT / target)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lead links that start from the repository to their place on the site."""
    place = page.file.src_uri
    if place in GENERATED:
        return markdown
    return _LINK.sub(lambda link: _relinked(link, place), markdown)


def base(place: str) -> str:
    """The folder of the repository that relative links of a page start from."""
    sources = {site: source for source, site in PROJECT.items()}
    return posixpath.dirname(sources.get(place, f"docs/{place}"))


def outside(markdown: str, folder: str) -> Iterator[str]:
    """Files and folders of the repository that a page links to and that are no pages yet."""
    for link in _LINK.finditer(markdown):
        target = posixpath.normpath(posixpath.join(folder, link[2]))
        elsewhere = "://" in link[2] or target.startswith(("docs/", "..")) or target in PROJECT
        if not elsewhere and (ROOT / target).exists():
            yield target


def site_path(target: str) -> str:
    """Where a file of the repository is on the site."""
    if target in PROJECT:
        return PROJECT[target]
    if target.startswith("docs/"):
        place = target.removeprefix("docs/")
        return "quickstart.md" if place == "quickstart.ipynb" else place
    return f"files/{target}/index.md" if (ROOT / target).is_dir() else f"files/{target}"


def listing(folder: str) -> str:
    """A folder as a page; its YAML files are shown, so that nothing else has to be copied."""
    parts = [f"# {folder}"]
    for path in sorted((ROOT / folder).rglob("*.yaml")):
        parts.append(
            f"## {path.relative_to(ROOT / folder)}\n\n```yaml\n{path.read_text(encoding='utf-8')}```"
        )
    return "\n\n".join(parts) + "\n"


def _relinked(link: re.Match[str], place: str) -> str:
    target = posixpath.normpath(posixpath.join(base(place), link[2]))
    if "://" in link[2] or link[2].startswith("mailto:") or not (ROOT / target).exists():
        return link[0]  # what is wrong stays, for the strict build to find
    to = posixpath.relpath(site_path(target), posixpath.dirname(place) or ".")
    return f"{link[1]}{to}{link[3] or ''}{link[4]}"
