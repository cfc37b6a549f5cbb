"""Inheritance between files."""

import pytest

from mc.document import ConfigError, Document, read, resolve_extends


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def put(**files):
        for name, text in files.items():
            path = tmp_path / (name.replace("__", "/") + ".yaml")
            path.parent.mkdir(exist_ok=True, parents=True)
            path.write_text(text)

    return put


def plain(name):
    return resolve_extends(read(name)).root.plain()


def test_mappings_merge_lists_and_values_replace_nulls_remove(write):
    write(
        base="a: 1\nb: {x: 1, y: {z: 2}}\nc: [1, 2]\nd: {gone: 1}\ne: 5\n",
        heir="extends: base.yaml\nb: {y: {w: 3}}\nc: [9]\nd: null\ne: {now: a mapping}\nf: 6\n",
    )
    assert plain("heir.yaml") == {
        "a": 1,
        "b": {"x": 1, "y": {"z": 2, "w": 3}},
        "c": [9],
        "e": {"now": "a mapping"},
        "f": 6,
    }


def test_another_family_replaces_the_parameters_of_the_old(write):
    write(
        base="jitter: {family: lognormal, median: 1 us, sigma: 1}\n",
        other="extends: base.yaml\njitter: {family: gamma, mean: 1 us}\n",
        same="extends: base.yaml\njitter: {family: lognormal, sigma: 2}\n",
    )
    assert plain("other.yaml") == {"jitter": {"family": "gamma", "mean": "1 us"}}
    assert plain("same.yaml") == {"jitter": {"family": "lognormal", "median": "1 us", "sigma": 2}}


def test_what_was_taken_away_stays_away_in_a_base_still_to_come(write):
    write(
        a="inner: {extends: b.yaml, x: 1, y: 1}\n",
        b="x: 2\nz: 2\n",
        heir="extends: a.yaml\ninner: {x: null}\n",
    )
    document = resolve_extends(read("heir.yaml"))
    inner = document.root.child("inner")
    assert resolve_extends(Document(inner.position.file, inner)).root.plain() == {"y": 1, "z": 2}


def test_values_keep_the_place_they_were_written_at(write):
    write(base="a: 1\nb: {x: 1}\n", folder__heir="extends: ../base.yaml\nb:\n  y: 2\n")
    root = resolve_extends(read("folder/heir.yaml")).root
    assert str(root.child("a").position) == "base.yaml:1:4"
    assert str(root.child("b").child("x").position) == "base.yaml:2:8"
    assert str(root.child("b").child("y").position) == "folder/heir.yaml:3:6"


def test_chains_apply_from_the_oldest_to_the_youngest(write):
    write(a="x: 1\ny: 1\nz: 1\n", b="extends: a.yaml\ny: 2\nz: 2\n", c="extends: b.yaml\nz: 3\n")
    assert plain("c.yaml") == {"x": 1, "y": 2, "z": 3}


REFUSED = [
    (
        {"a": "extends: a.yaml\n"},
        "a.yaml:1:10: extends: the files extend each other in a circle: a.yaml -> a.yaml",
    ),
    (
        {"a": "extends: b.yaml\n", "b": "x: 1\nextends: c.yaml\n", "c": "extends: ./a.yaml\n"},
        "c.yaml:1:10: extends: the files extend each other in a circle: a.yaml -> b.yaml -> c.yaml -> a.yaml",
    ),
    ({"a": "x: 1\nextends: nope.yaml\n"}, "a.yaml:2:10: extends: no such file: `nope.yaml`"),
    (
        {"a": "extends: [b.yaml, c.yaml]\n"},
        "a.yaml:1:10: extends: expected the path of one file; got a list of 2",
    ),
    ({"a": "extends:\n"}, "a.yaml:1:1: extends: expected the path of one file; got nothing"),
    ({"a": "extends: b.yaml\n", "b": "x: 1\nx: 2\n"}, "b.yaml:2:1: x: duplicate key"),
    ({"a": "extends: b.yaml\n", "b": ""}, "b.yaml: the file is empty"),
]


@pytest.mark.parametrize(("files", "message"), REFUSED)
def test_refused_with_its_place(files, message, write):
    write(**files)
    with pytest.raises(ConfigError) as error:
        resolve_extends(read("a.yaml"))
    assert str(error.value).startswith(message)


def test_a_very_long_chain_is_refused(write):
    write(**{f"f{i}": f"extends: f{i + 1}.yaml\n" for i in range(50)}, f50="x: 1\n")
    with pytest.raises(ConfigError, match="expected at most 32 files in a row"):
        resolve_extends(read("f0.yaml"))
