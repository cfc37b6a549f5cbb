"""Puts what an experiment refers to in the place of the reference.

All of it happens on nodes, before anything is validated: a cluster file that is referred to is spliced in
with its own positions, so one validation of the whole reports every mistake in the file that has it.
"""

from typing import Any, Literal

from mc.config import from_catalog
from mc.config.names import Kind
from mc.config.shipped import finder
from mc.document import ConfigError, Document, Node, Problem, read, resolve_extends

REFERENCES: tuple[Kind, ...] = ("cluster", "model", "plan")


def splice_references(document: Document) -> tuple[Document, dict[str, list[Problem]]]:
    """Resolve `cluster`, `model` and `plan` of an experiment.

    Returns:
        The document with what could be resolved, and the problems of what could not, by key.
    """
    entries = dict(document.root.mapping or {})
    problems: dict[str, list[Problem]] = {}
    for kind in REFERENCES:
        node = entries.get(kind)
        if node is None:
            continue
        try:
            entries[kind] = _resolved(kind, node)
        except ConfigError as error:
            # A problem of the reference itself has no key yet; one inside the other file has its own.
            problems[kind] = [
                Problem(each.position, kind, each.message)
                if not each.key and each.position == node.position
                else each
                for each in error.problems
            ]
    return Document(
        document.file, Node(entries, document.root.position, document.root.key_position)
    ), problems


def _resolved(kind: Kind, node: Node) -> Node:
    if isinstance(node.value, str):
        other = read(finder(kind)(node.value, node.position))
        root = resolve_extends(other, finder(kind)).root
    elif node.mapping is not None:
        root = resolve_extends(Document(node.position.file, node), finder(kind)).root
    else:
        return node
    spliced = Node(root.value, root.position, node.key_position)
    return expand_catalog_ids(spliced) if kind == "cluster" else spliced


def expand_catalog_ids(cluster: Node) -> Node:
    """Replace the ids of catalog entries in a cluster by their figures, so that overrides can reach them.

    Ids that are not known stay, for the validation to object to.
    """
    entries = dict(cluster.mapping or {})
    if "chip" in entries:
        entries["chip"] = _expand("chip", entries["chip"])
    tiers = entries.get("tiers")
    if tiers is not None and isinstance(tiers.value, list):
        items = [_with_exceptions(_with_ids(tier, "link")) for tier in tiers.value]
        entries["tiers"] = Node(items, tiers.position, tiers.key_position)
    return Node(entries, cluster.position, cluster.key_position)


def _with_ids(node: Node, *kinds: Literal["chip", "link"]) -> Node:
    if node.mapping is None:
        return node
    expanded = {kind: _expand(kind, node.mapping[kind]) for kind in kinds if kind in node.mapping}
    return Node({**node.mapping, **expanded}, node.position, node.key_position)


def _with_exceptions(tier: Node) -> Node:
    exceptions = None if tier.mapping is None else tier.mapping.get("exceptions")
    if tier.mapping is None or exceptions is None or not isinstance(exceptions.value, list):
        return tier
    items = [_with_ids(each, "chip", "link") for each in exceptions.value]
    changed = Node(items, exceptions.position, exceptions.key_position)
    return Node({**tier.mapping, "exceptions": changed}, tier.position, tier.key_position)


def _expand(kind: Literal["chip", "link"], node: Node) -> Node:
    figures = from_catalog.figures(kind, node.value) if isinstance(node.value, str) else ""
    return node if isinstance(figures, str) else _nodes(figures, node)


def _nodes(value: Any, place: Node) -> Node:
    if isinstance(value, dict):
        value = {key: _nodes(child, place) for key, child in value.items()}
    elif isinstance(value, list):
        value = [_nodes(child, place) for child in value]
    return Node(value, place.position, place.key_position)
