"""Reading YAML: values, positions, and every way in which a file can be no configuration."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mc.document import ConfigError, Position, read, read_text
from mc.document.reader import MAXIMUM_BYTES


def test_values_are_those_of_yaml_1_2():
    text = """
float: 1e6
word: on
clock: 12:30
decimal: 010
date: 2001-01-01
quoted: '1'
nothing:
truth: true
list: [1, 2.5, x]
deep: {a: {b: c}}
1: key
"""
    assert read_text(text, "f.yaml").root.plain() == {
        "float": 1e6,
        "word": "on",
        "clock": "12:30",
        "decimal": 10,
        "date": "2001-01-01",
        "quoted": "1",
        "nothing": None,
        "truth": True,
        "list": [1, 2.5, "x"],
        "deep": {"a": {"b": "c"}},
        "1": "key",
    }


def test_every_value_and_key_has_its_place():
    root = read_text("a: 1\nb:\n  - x\n  - {c: 2}\n", "f.yaml").root
    assert root.child("a").position == Position("f.yaml", 1, 4)
    assert root.child("a").key_position == Position("f.yaml", 1, 1)
    assert root.child("b").child(0).position == Position("f.yaml", 3, 5)
    assert root.child("b").child(1).child("c").position == Position("f.yaml", 4, 9)
    assert root.child("b").child(1).child("c").key_position == Position("f.yaml", 4, 6)


REFUSED = [
    ("", "f.yaml: the file is empty; expected a mapping of keys to values"),
    ("# only a comment\n", "f.yaml: the file is empty; expected a mapping"),
    ("- 1\n", "f.yaml:1:1: expected a mapping of keys to values; got a list"),
    ("hello\n", "f.yaml:1:1: expected a mapping of keys to values; got the value 'hello'"),
    ("a: 1\nb: 2\na: 3\n", "f.yaml:3:1: a: duplicate key; it was given in line 1 already"),
    ("t:\n- {x: 1, x: 2}\n", "f.yaml:2:10: t.0.x: duplicate key; it was given in line 2 already"),
    ("a: [1, 2\n", "f.yaml:2:1: a.2: not YAML: "),
    ("a: b: c\n", "f.yaml:1:5: not YAML: mapping values are not allowed here"),
    ("\ta: 1\n", "f.yaml:1:1: not YAML: found character '\\t' that cannot start any token"),
    ("a: &x 1\nb: *x\n", "f.yaml:1:4: a: anchors and aliases are not used here; got `&x`"),
    ("a: &x 1\nb: *x\n", "f.yaml:2:4: b: anchors and aliases are not used here; got `*x`"),
    ("a: !!python/name:os.system x\n", "f.yaml:1:4: a: tags are not used here"),
    ("a: .nan\n", "f.yaml:1:4: a: expected a finite number; got .nan"),
    ("a: [1, -.inf]\n", "f.yaml:1:8: a.1: expected a finite number; got -.inf"),
    (f"a: {'9' * 5000}\n", "f.yaml:1:4: a: expected a finite number; got 9999"),
    ("a: 1\n---\nb: 2\n", "f.yaml:2:1: expected one document per file"),
    ("%YAML 1.1\n---\na: on\n", "expected YAML 1.2; leave the %YAML line out"),
    ("? [a, b]\n: 1\n", "f.yaml:1:3: expected a word as key"),
    ("[" * 10_000, "f.yaml:1:33: nested more than 32 levels deep"),
    ("a: \x00\n", "f.yaml:1:4: not YAML: "),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_refused_with_its_place(text, message):
    with pytest.raises(ConfigError) as error:
        read_text(text, "f.yaml")
    assert any(line.startswith(message) or message in line for line in str(error.value).splitlines()), str(
        error.value
    )


def test_all_problems_come_at_once_in_the_order_of_lines():
    with pytest.raises(ConfigError) as error:
        read_text("b: .inf\na: 1\na: 2\nc: *x\nd: !tag 3\n", "f.yaml")
    assert [problem.position.line for problem in error.value.problems] == [1, 3, 4, 5]


def test_billion_laughs_stop_at_the_first_laugh():
    lines = ["l0: &l0 [ha, ha]"] + [f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 10)}]" for i in range(1, 20)]
    with pytest.raises(ConfigError, match="anchors and aliases are not used here"):
        read_text("\n".join(lines), "f.yaml")


def test_files_that_cannot_be_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "binary.yaml").write_bytes(b"a: 1\nb: \xff\xfe\x00\x01")
    (tmp_path / "latin.yaml").write_bytes("name: café\n".encode("latin-1"))
    (tmp_path / "huge.yaml").write_bytes(b"#" * (MAXIMUM_BYTES + 1))
    (tmp_path / "bom.yaml").write_bytes(b"\xef\xbb\xbfa: 1\n")
    for name, message in [
        ("folder", "folder: expected a YAML file; got a directory"),
        ("binary.yaml", "binary.yaml:2:4: expected UTF-8 text; got the byte 0xff"),
        ("latin.yaml", "latin.yaml:1:10: expected UTF-8 text; got the byte 0xe9"),
        ("huge.yaml", "huge.yaml: expected a configuration of at most 2 MB"),
        ("absent.yaml", "absent.yaml: no such file"),
        ("latn.yaml", "latn.yaml: no such file; did you mean `latin.yaml`?"),
        ("nul\0.yaml", "cannot be read"),
    ]:
        with pytest.raises(ConfigError) as error:
            read(name)
        assert message in str(error.value)
    assert read("bom.yaml").root.plain() == {"a": 1}


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text):
    with contextlib.suppress(ConfigError):
        assert isinstance(read_text(text, "f.yaml").root.value, dict)


# What JSON may write raw and YAML may read: no controls, no surrogates, no line separators.
_TEXT = st.text(
    st.characters(exclude_categories=("Cc", "Cs", "Cn", "Zl", "Zp"), exclude_characters="\ufeff"), max_size=20
)
_SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _TEXT
)
_TREES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(_TEXT, _TREES, min_size=1, max_size=4))
def test_json_reads_as_itself(data):
    """JSON is YAML; the standard library is the oracle."""
    assert read_text(json.dumps(data, ensure_ascii=False), "f.yaml").root.plain() == data


def test_half_a_character_is_refused():
    with pytest.raises(ConfigError, match=r"f\.yaml:1:4: a: not YAML: half of a surrogate pair"):
        read_text('a: "\\ud800"', "f.yaml")
    with pytest.raises(ConfigError, match=r"f\.yaml: a: not YAML: an escape names no character"):
        read_text('a: "\\UFFFFFFFF"', "f.yaml")
