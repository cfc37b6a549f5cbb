"""`--set a.b=c`."""

import pytest

from mc.document import ConfigError, apply_overrides, read_text

TEXT = "run: {samples: 10, seed: 0}\ntiers:\n  - {name: node, fan_out: 8}\n  - {name: pod, fan_out: 4}\n"


def apply(*overrides):
    return apply_overrides(read_text(TEXT, "f.yaml"), overrides).root.plain()


APPLIED = [
    ("run.samples=99", ("run", "samples"), 99),
    ("run.samples = 99", ("run", "samples"), 99),
    ("run.samples=1e3", ("run", "samples"), 1000.0),
    ("tiers.1.fan_out=16", ("tiers", 1, "fan_out"), 16),
    ("tiers.0.link=900 GB/s", ("tiers", 0, "link"), "900 GB/s"),
    (
        "tiers.0.link={latency: 1 us, duplex: each}",
        ("tiers", 0, "link"),
        {"latency": "1 us", "duplex": "each"},
    ),
    ("tiers.0=[1, 2]", ("tiers", 0), [1, 2]),
    ("noise.jitter.mean=3 us", ("noise", "jitter", "mean"), "3 us"),
    ("name=a=b", ("name",), "a=b"),
]


@pytest.mark.parametrize(("text", "path", "value"), APPLIED)
def test_puts_the_value_in(text, path, value):
    found = apply(text)
    for step in path:
        found = found[step]
    assert found == value


def test_later_ones_win_and_the_document_stays_as_it_is():
    document = read_text(TEXT, "f.yaml")
    assert apply_overrides(document, ["run.seed=1", "run.seed=2"]).root.plain()["run"]["seed"] == 2
    assert document.root.plain()["run"]["seed"] == 0


def test_null_takes_a_key_away():
    assert apply("run.seed=null")["run"] == {"samples": 10}


def test_the_flag_is_the_position():
    root = apply_overrides(read_text(TEXT, "f.yaml"), ["noise.jitter={mean: [1]}"]).root
    for node in (
        root.child("noise").child("jitter"),
        root.child("noise").child("jitter").child("mean").child(0),
    ):
        assert str(node.position) == "--set noise.jitter={mean: [1]}"


REFUSED = [
    ("run.samples", "--set run.samples: expected KEY=VALUE, such as `run.samples=1000`"),
    ("run.samples=", "--set run.samples=: expected KEY=VALUE"),
    ("=3", "--set =3: expected KEY=VALUE"),
    ("run..seed=3", "--set run..seed=3: expected KEY=VALUE"),
    ("run.seed.x=3", "--set run.seed.x=3: run.seed.x: `run.seed` is the value 0, which has no keys"),
    ("tiers.2.fan_out=3", "tiers.2: `tiers` is a list; expected an index (0 to 1); got `2`"),
    ("tiers.-1.fan_out=3", "tiers.-1: `tiers` is a list; expected an index (0 to 1); got `-1`"),
    ("tiers.pod.fan_out=3", "expected an index (0 to 1); got `pod`; the item of that name has index 1"),
    ("run.seed=[1", "--set run.seed=[1: 1: not YAML: "),
    ("run.seed=&a 1", "anchors and aliases are not used here"),
    ("run.seed=.nan", "expected a finite number; got .nan"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_refused_by_the_name_of_the_flag(text, message):
    with pytest.raises(ConfigError) as error:
        apply(text)
    assert str(error.value).startswith(f"--set {text}")
    assert message in str(error.value)


def test_all_bad_flags_are_reported():
    with pytest.raises(ConfigError) as error:
        apply("a", "b", "run.seed=1")
    assert len(error.value.problems) == 2
