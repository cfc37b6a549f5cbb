"""Files that mean harm, or are none: one line that says why, exit code 2, in bounded time and memory.

What is allowed is tested too: paths may be absolute, lead out of a folder and through symbolic links.
"""

import os
import socket
import stat

import pytest

from mc.cli.app import main
from mc.config import load_any, load_experiment
from mc.config.hugging_face import MAXIMUM_BYTES as MAXIMUM_CONFIG
from mc.config.sample_files import MAXIMUM_BYTES as MAXIMUM_SAMPLES
from mc.document import ConfigError, UnusableFile, read_bytes, walk
from mc.document.reader import MAXIMUM_BYTES
from mc.errors import InputError


def bomb(levels: int = 30) -> str:
    """Aliases of aliases: nine to the power of `levels` items if anybody expanded them."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    for level in range(1, levels):
        lines.append(f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]")
    return "\n".join(lines)


TEXTS = {
    "aliases of aliases": (bomb(), "anchor"),
    "an alias of itself": ("a: &a [*a]", "anchor"),
    "merge keys": ("a: &a {b: 1}\nc: {<<: *a}", "anchor"),
    "nested lists": ("a: " + "[" * 100_000, "nested more than 32 levels deep"),
    "nested mappings": ("a: " + "{a: " * 100_000, "nested more than 32 levels deep"),
    "nested blocks": (
        "\n".join(" " * depth + "a:" for depth in range(1000)),
        "nested more than 32 levels deep",
    ),
    "a tag that constructs": ("a: !!python/object/apply:os.system [id]", "tag"),
    "one long line": ("name: " + "x" * (MAXIMUM_BYTES - 10), ""),
    "too large": ("#" * (MAXIMUM_BYTES + 1), "expected a configuration of at most 2 MB"),
    "many keys": ("".join(f"k{number}: 1\n" for number in range(2000)), "unknown key"),
    "one key many times": ("name: a\n" * 2000, "name"),
    "not a number": ("run: {seed: .nan}", "run.seed"),
    "infinite": ("run: {samples: .inf}", "run.samples"),
    "an exponent": ("run: {samples: 1e999999999}", "run.samples"),
    "digits": ("run: {samples: 1" + "0" * 100_000 + "}", "run.samples"),
    "digits of a length": (
        "plan: {global_batch: 1" + "0" * 320 + "}",
        "out of range for a number: expected less than 1e100",
    ),
    "digits of an axis": (
        "sweep: {grid: {plan.ranks: {linear: [1, 1" + "0" * 320 + "], points: 2}}}",
        "out of range for a number",
    ),
    "digits of a quantity": ("model: {compute: {time: " + "9" * 100_000 + " s}}", "model.compute.time"),
    "escapes": ('name: "\\u001b[31mred\\u0007"\nx: 1', "unknown key"),
    "NUL": ("name: a\0b", ""),
    "half a surrogate": ('name: "\\ud800"', ""),
    "two documents": ("name: a\n---\nname: b", "one document"),
    "a directive": ("%YAML 1.1\n---\nname: a", "YAML 1.2"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_hostile_text_is_refused_in_one_line_each(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text, message = TEXTS[name]
    (tmp_path / "e.yaml").write_text(
        "extends: quickstart\n" + text if "---" not in text else text, "utf-8", "surrogatepass"
    )
    with pytest.raises(InputError) as refused:
        load_any("e.yaml")
    lines = str(refused.value).splitlines()
    assert len(lines) <= 101
    assert len(lines) <= 100 or any("these are 100 mistakes" in line for line in lines)
    assert all(line.startswith("e.yaml") and line.isprintable() for line in lines), lines[:3]
    assert message in lines[0]
    assert len(lines[0]) < 1000


@pytest.fixture
def odd(tmp_path, monkeypatch):
    """A folder with files that are none, by name."""
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "dangling").symlink_to("nowhere")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("socket")
    with open("sparse", "wb") as sparse:  # a gigabyte that takes no room
        sparse.truncate(1 << 30)
    (tmp_path / "zero").symlink_to("/dev/zero")
    (tmp_path / "binary").write_bytes(bytes(range(256)))
    yield ("pipe", "folder", "loop", "dangling", "socket", "sparse", "zero", "binary")
    listener.close()


def test_what_is_no_file_is_never_waited_for_nor_read_to_its_end(odd):
    said = {}
    for name in odd:
        with pytest.raises((UnusableFile, FileNotFoundError)) as refused:
            read_bytes(name, 100)
        said[name] = str(refused.value)
    assert said["pipe"] == "expected a file; got a pipe"
    assert said["folder"] == "expected a file; got a directory"
    assert said["zero"] == "expected a file; got a device"
    assert said["sparse"] == "expected at most 100 bytes; got more"
    assert "symbolic links" in said["loop"]
    assert read_bytes("binary", 256) == bytes(range(256))


# Every key that names a file, on each of the odd ones, with the suffix that it wants.
REFERENCES = {
    "extends": "extends: {}",
    "cluster": "name: e\ncluster: {}\nmodel: barrier\nplan: everyone",
    "hugging_face": "name: m\nhugging_face: {}",
    "samples": "extends: quickstart\ncluster: {{extends: dgx-h100-superpod, noise: {{jitter: {{family: empirical, file: {}}}}}}}",
}


@pytest.mark.parametrize("key", ["extends", "cluster", "samples", "hugging_face"])
def test_every_key_that_names_a_file_refuses_them(key, odd, tmp_path):
    for name in odd:
        target = f"{name}.yaml"
        os.rename(name, target)
        text = REFERENCES[key].format(target)
        (tmp_path / "e.yaml").write_text(text)
        with pytest.raises(ConfigError) as refused:
            load_any("e.yaml")
        lines = str(refused.value).splitlines()
        assert len(lines) == 1, (name, lines)
        assert lines[0].isprintable()
        assert target in lines[0]
        os.rename(target, name)


def test_a_long_name_is_refused_where_it_stands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "e.yaml").write_text("name: m\nhugging_face: " + "a" * 300)
    with pytest.raises(ConfigError, match=r"^e\.yaml:2:15: hugging_face: a{300}: .*File name too long$"):
        load_any("e.yaml")


def test_no_more_values_than_a_file_may_have(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(walk, "MAXIMUM_VALUES", 1000)
    (tmp_path / "e.yaml").write_text("a: [" + "1, " * 2000 + "]")
    with pytest.raises(
        ConfigError, match=r"^e\.yaml:1:\d+: expected at most 1,000 keys and values; got more$"
    ):
        load_any("e.yaml")


def test_limits_are_what_the_pages_say():
    assert (MAXIMUM_BYTES, MAXIMUM_CONFIG, MAXIMUM_SAMPLES) == (2_000_000, 2_000_000, 20_000_000)


def test_paths_may_lead_anywhere_that_the_user_may_read(tmp_path, monkeypatch):
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "b.yaml").write_text("extends: quickstart\nrun: {seed: 5}\n")
    (tmp_path / "link.yaml").symlink_to(tmp_path / "base" / "b.yaml")
    (tmp_path / "inner").mkdir()
    for reference in ("../base/b.yaml", str(tmp_path / "base" / "b.yaml"), "../link.yaml"):
        (tmp_path / "inner" / "e.yaml").write_text(f"extends: {reference}\n")
        assert load_experiment(tmp_path / "inner" / "e.yaml").run.seed == 5


def test_a_file_that_may_not_be_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "e.yaml").write_text("name: a")
    (tmp_path / "e.yaml").chmod(0)
    if os.access("e.yaml", os.R_OK):
        pytest.skip("the superuser may read everything")
    with pytest.raises(ConfigError, match=r"e\.yaml: cannot be read: Permission denied"):
        load_any("e.yaml")
    assert stat.S_IMODE(os.stat("e.yaml").st_mode) == 0


def test_the_command_needs_little_for_a_bomb(validate, tmp_path):
    """In a process that may have 1 GiB of addresses: exit code 2 and a line each for the first hundred aliases."""
    (tmp_path / "bomb.yaml").write_text(bomb())
    code, said = validate("bomb.yaml")
    assert code == 2
    assert said.count("\n") <= 101
    assert "anchor" in said


@pytest.mark.parametrize("words", [["import"], ["diff", "x"], ["report"], ["merge", "--out", "y"]])
def test_a_name_that_no_system_takes(words, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["tailstep", *words[:1], "a" * 300, *words[1:]])
    with pytest.raises(SystemExit) as stopped:
        main()
    said = capsys.readouterr().err.splitlines()
    assert stopped.value.code == 2
    assert len(said) == 1
    assert said[0].startswith("a" * 300)
    assert "File name too long" in said[0]
