"""Mitigations that cannot be are refused at their place, and those that can are written out as they are read."""

import pytest

from mc.config import load_experiment, resolved_yaml
from mc.config.mitigations import MitigationsConfig, part_of
from mc.document import ConfigError

FAILURES = "failures={mtbf_per_chip: 50000 h, restart: 1 min, checkpoint_write: 1 s, spares: 2}"


@pytest.mark.parametrize(
    ("keys", "where", "text"),
    [
        (
            ["drop_slowest=1024"],
            "drop_slowest",
            "expected fewer than the 1024 ranks that there are; got 1024",
        ),
        (["drop_slowest=0"], "drop_slowest", "got 0: leave it out for none"),
        (
            ["drop_slowest=0.01 %"],
            "drop_slowest",
            "expected one of 1024 ranks or more; got 0.01 %, which is none",
        ),
        (["drop_slowest=100 %"], "drop_slowest", "expected more than 0 % and less than 100 %"),
        (
            ["drop_slowest=[1]"],
            "drop_slowest",
            "expected a whole number, or a part such as 0.5 %; got a collection",
        ),
        (["drop_slowest=1", "backup_workers=1"], "backup_workers", "expected none with `drop_slowest`"),
        (["drop_slowest=1", "delayed_sync=1"], "delayed_sync", "expected none with `drop_slowest`"),
        (["local_steps=1"], "local_steps", "expected at least 2; got 1"),
        (["backup_workers=1"], "backup_workers", "got 1024 ranks + 1 `backup_workers` = 1025"),
        (["hot_spares=1"], "hot_spares", "expected `failures` in the experiment"),
        (["remove_slowest=0.5 %"], "remove_slowest", "`plan.ranks: all` takes what is left"),
        (["local_step=4"], "local_step", "did you mean `local_steps`?"),
    ],
)
def test_what_cannot_be_is_refused_at_its_place(keys, where, text):
    with pytest.raises(ConfigError) as error:
        load_experiment("configs/quickstart.yaml", [f"mitigations.{key}" for key in keys])
    lines = [line for line in str(error.value).splitlines() if f"mitigations.{where}: " in line]
    assert any(text in line for line in lines), str(error.value)


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        (
            ["plan.ranks=all", FAILURES, "mitigations.hot_spares=1"],
            "expected none with `failures.spares`; got 1 beside 2",
        ),
        (
            ["cluster.noise.slow_chips=null", "plan.ranks=512", "mitigations.remove_slowest=1"],
            "no chip is slower",
        ),
        (["plan.ranks=all", "mitigations.remove_slowest=0.001 %"], "expected one of 1024 chips or more"),
        (["plan.ranks=1", "mitigations.local_steps=2"], "expected two workers or more"),
        (["mitigations.delayed_sync=1", "run.realisations=1"], "run.realisations: expected 2 or more"),
    ],
)
def test_what_does_not_go_together_is_refused(keys, text):
    with pytest.raises(ConfigError, match=r"\w") as error:
        load_experiment("configs/quickstart.yaml", keys)
    assert text in str(error.value)


@pytest.mark.parametrize(
    ("name", "file", "keys", "text"),
    [
        ("local_steps=4", "llama3-405b-16k", [], "expected `plan.zero: 0`, since replicas that shard"),
        (
            "delayed_sync=1",
            "llama3-405b-16k",
            ["plan.zero=0", "plan.cp=2", "plan.dp=64"],
            "expected `plan.cp: 1`, since ranks",
        ),
        ("local_steps=4", "deepseek-v3", ["plan.zero=0"], "expected experts that each replica has once"),
    ],
)
def test_replicas_that_meet_in_every_step_have_no_local_ones(name, file, keys, text):
    with pytest.raises(ConfigError) as error:
        load_experiment(f"configs/{file}.yaml", [*keys, f"mitigations.{name}"])
    assert f"mitigations.{name.partition('=')[0]}: {text}" in str(error.value)


def test_replicas_that_share_experts_are_not_dropped():
    with pytest.raises(ConfigError, match="expected all experts of a layer within a replica"):
        load_experiment("configs/deepseek-v3.yaml", ["mitigations.drop_slowest=1"])


def test_chips_are_set_aside():
    keys = ["plan.ranks=all", "mitigations.remove_slowest=0.5 %", "mitigations.backup_workers=3"]
    found = load_experiment("configs/quickstart.yaml", keys)
    assert (found.removed, found.backup_ranks, found.ranks, found.chips) == (5, 3, 1016, 1019)
    told = MitigationsConfig(remove_slowest=0.005)
    # As many as are left when the part is gone: 1,019 less 5 is 1,014.
    assert told.removed_for(1014) == 5
    assert all(part_of(0.005, n + told.removed_for(n)) == told.removed_for(n) for n in range(1, 3000))
    assert part_of(0.005, 200) == 1


def test_it_is_written_out_as_it_is_read(tmp_path):
    path = tmp_path / "again.yaml"
    found = load_experiment(
        "configs/quickstart.yaml", ["mitigations.drop_slowest=0.5 %", "mitigations.local_steps=8"]
    )
    path.write_text(resolved_yaml(found))
    assert load_experiment(path) == found
    assert "mitigations" not in resolved_yaml(load_experiment("configs/quickstart.yaml"))
