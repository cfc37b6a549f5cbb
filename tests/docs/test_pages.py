"""The pages of the documentation: linked, listed, and true in what a machine can check; the site itself is built by `.ci/run`."""

import itertools
import re
import shlex
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML
from typer.testing import CliRunner

from mc.cli.app import VERBS, app, command
from mc.config import json_schema, load_any
from mc.config.names import FILE_KINDS

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(str(path.relative_to(ROOT)) for path in DOCS.rglob("*.md"))
COMMANDS = {verb: command(verb) for verb in VERBS}


@pytest.fixture(scope="module")
def hooks():
    """The generators of pages, which lie beside the pages as MkDocs wants it."""
    sys.path.insert(0, str(DOCS / "hooks"))
    try:
        import catalog_reference
        import command_reference
        import configuration_reference
    finally:
        sys.path.remove(str(DOCS / "hooks"))
    return configuration_reference, command_reference, catalog_reference


def targets(text: str) -> list[str]:
    """Links of a page, less those in code and those to other servers."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return [each for each in re.findall(r"\]\(([^)\s]+)\)", prose) if "://" not in each]


def headings(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files_and_headings(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in targets(text):
        file, _, heading = target.partition("#")
        found = (ROOT / page).parent / file if file else ROOT / page
        assert found.exists() or generated(page, file), target
        if heading and found.exists():
            assert heading in headings(found.read_text(encoding="utf-8")), target


def generated(page: str, target: str) -> bool:
    """Whether a link leads to a page that only the site has."""
    return ((ROOT / page).parent / target).resolve().relative_to(DOCS).parts[0] == "reference"


def test_the_architecture_names_files_that_there_are():
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:mc|tests|configs|experiments|benchmarks)/[\w/.*-]*)`", text)
    assert len(named) > 40
    assert [each for each in named if not [*ROOT.glob(each)]] == []


def test_every_page_is_in_the_navigation_once():
    navigation = YAML().load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    listed = sorted(each for each in leaves(navigation) if not each.startswith(("reference/", "project/")))
    assert listed == sorted([*(page.removeprefix("docs/") for page in PAGES), "quickstart.md"])


def leaves(node) -> list[str]:
    if isinstance(node, str):
        return [node]
    return [leaf for child in (node.values() if isinstance(node, dict) else node) for leaf in leaves(child)]


def shown_commands() -> list[tuple[str, str]]:
    found = []
    for page in ["README.md", "experiments/README.md", *PAGES]:
        text = (ROOT / page).read_text(encoding="utf-8")
        for block in re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            lines = block.replace("\\\n", " ").splitlines()
            found += [(page, line) for line in lines if line.startswith("tailstep ")]
    return found


@pytest.mark.parametrize(("page", "line"), shown_commands())
def test_shown_commands_parse(page, line):
    # Up to a pipe or a redirection; one inside of quotes is a part of a word.
    words = list(itertools.takewhile(lambda word: word not in ("|", ">"), shlex.split(line, comments=True)))[
        1:
    ]
    if words[0].startswith("-"):
        return
    # Raises UsageError for an option or an argument that does not exist.
    COMMANDS[words[0]].make_context(words[0], words[1:])


def shown_modules() -> list[tuple[str, str]]:
    return sorted(
        {
            (page, name)
            for page in ["README.md", "experiments/README.md", "CONTRIBUTING.md", *PAGES]
            for name in re.findall(
                r"python -m ([a-z_]+(?:\.[a-z_]+)*)(?![.\w])", (ROOT / page).read_text(encoding="utf-8")
            )
        }
    )


@pytest.mark.parametrize(("page", "name"), shown_modules())
def test_shown_modules_exist(page, name):
    if name.split(".")[0] not in ("experiments", "benchmarks", "tests"):
        return
    path = ROOT / name.replace(".", "/")
    assert path.with_suffix(".py").exists() or (path / "__main__.py").exists(), name


def test_every_key_of_a_file_has_a_meaning(hooks):
    configuration, _, _ = hooks
    page = configuration.page()
    for kind in FILE_KINDS:
        schema = json_schema(kind)
        models = [(f"{kind.title()}Config", schema), *schema["$defs"].items()]
        for name, model in models:
            for key, type_text, _, meaning in configuration.keys(model) if "properties" in model else ():
                assert meaning, f"{name}.{key} has no line under `Attributes:`"
                assert "anything" not in type_text, f"{name}.{key}"
                assert f"| `{key}` |" in page


def test_every_reference_between_keys_leads_somewhere(hooks):
    page = hooks[0].page()
    assert set(re.findall(r"\]\(#([a-z-]+)\)", page)) <= headings(page)


def test_every_option_is_documented(hooks):
    page = hooks[1].page()
    for verb, listed in COMMANDS.items():
        section = page.split(f"\n## {verb}\n")[1].split("\n## ")[0]
        for parameter in listed.params:
            assert parameter.help, f"{verb}: {parameter.name} has no help"
            assert all(f"`{name}`" in section for name in parameter.opts if name.startswith("-"))


def test_every_figure_of_the_catalog_has_its_origin(hooks):
    from mc.catalog import chips, links

    page = hooks[2].page()
    rows = re.findall(r"^\| `[^`]+` \| (.+) \| (.+) \|$", page, re.MULTILINE)
    assert len(rows) == sum(len(entry.figures) for entry in [*chips().values(), *links().values()])
    assert all(origin.strip() for _, origin in rows)
    assert set(re.findall(r"^### (\S+)$", page, re.MULTILINE)) == {*chips(), *links()}


def test_every_formula_has_its_code_and_its_test():
    rows = re.findall(
        r"^\| .* \| `(mc/\S+)` \| `(tests/\S+)` \|", (DOCS / "formulas.md").read_text(), re.MULTILINE
    )
    assert len(rows) > 30
    for path in [each for row in rows for each in row]:
        assert (ROOT / path).is_file(), path


def test_files_shown_in_tutorials_are_valid(tmp_path, monkeypatch):
    """Blocks of YAML that extend something shipped, or the file that `init` writes."""
    monkeypatch.chdir(tmp_path)
    CliRunner().invoke(
        app, ["init", "first.yaml", "--chip", "H100", "--chips", "512", "--model", "llama3-8b"]
    )
    found = 0
    for page in [*(DOCS / "tutorials").glob("*.md"), *(DOCS / "how-to").glob("*.md")]:
        for block in re.findall(r"^```yaml\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S):
            (tmp_path / "shown.yaml").write_text(block, encoding="utf-8")
            load_any("shown.yaml")
            found += 1
    assert found >= 2
