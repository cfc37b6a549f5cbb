"""Numbers of a configuration by path: read, replaced, and what is refused."""

import re

import pytest

from mc.config import load_cluster
from mc.config.figures import PathError, figure_at, figures, item_names, parent_of, with_figures


@pytest.fixture(scope="module")
def config():
    return load_cluster("dgx-h100-superpod")


def test_items_go_by_name_or_place(config):
    assert figure_at(config, "tiers.node.link.bandwidth") == 900e9
    assert figure_at(config, "tiers.0.link.bandwidth") == 900e9
    assert figure_at(config, "tiers.node.link.protocols.LL128.hop_latency") == pytest.approx(1.9e-6)
    assert item_names(config, ["tiers"]) == ["node", "unit", "pod"]
    assert item_names(config, ["chip"]) is None


def test_a_family_reads_what_it_inherits_and_is_replaced_alone(config):
    path = "tiers.node.link.protocols.LL128.ring.hop_latency"
    assert figure_at(config, path) == pytest.approx(1.9e-6)
    found = with_figures(config, {path: 5e-6})
    assert figure_at(found, path) == 5e-6
    assert figure_at(found, "tiers.node.link.protocols.LL128.tree.hop_latency") == pytest.approx(1.25e-6)
    assert figure_at(config, path) == pytest.approx(1.9e-6)


def test_every_figure_that_is_listed_is_read_and_belongs_to_a_field(config):
    listed = list(figures(config))
    assert len({each.path for each in listed}) == len(listed) > 50
    for each in listed:
        assert figure_at(config, each.path) == each.value
        parent, key = parent_of(config, each.path)
        assert key in type(parent).model_fields


def test_a_family_that_states_nothing_has_all_fields_of_a_family():
    # `inner_hop_latency` is a family's alone.
    config = load_cluster("gb200-nvl72-scale-out")
    for tier in config.tiers:
        for protocol in tier.link.protocols or ():
            for family in ("ring", "tree", "in_network"):
                path = f"tiers.{tier.name}.link.protocols.{protocol.name}.{family}.inner_hop_latency"
                parent, key = parent_of(config, path)
                assert key in type(parent).model_fields


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("tiers.nod.link.bandwidth", "unknown item `nod`; did you mean `node`?"),
        ("tiers.node.link.bandwith", "unknown key `bandwith`; did you mean `bandwidth`?"),
        ("tiers.node.link", "expected the path of one number; got that of several"),
        ("tiers.node.link.bandwidth.x", "`x` is below one"),
        ("tiers.node.jitter.mean", "expected a number; got none at `tiers.node.jitter`"),
    ],
)
def test_wrong_paths(config, path, message):
    with pytest.raises(PathError, match=re.escape(message)):
        figure_at(config, path)
