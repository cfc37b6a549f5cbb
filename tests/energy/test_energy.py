"""The energy of a step by hand, its identities, and published powers."""

import pytest

from mc.config import load_cluster, load_experiment
from mc.config.cluster import ClusterConfig
from mc.energy import EnergyError, Facility, chips_within, design, step_energy
from mc.experiment.energy import experiment_energy, largest
from mc.parallel import Traffic

CHIP = {"peak": {"bf16": "1 PFLOP/s"}, "power": "700 W", "idle_power": "100 W", "host_power": "300 W"}
INNER = {"bandwidth": "100 GB/s", "duplex": "each", "latency": "1 us", "energy": "5 pJ/bit"}
OUTER = {
    **INNER,
    "bandwidth": "10 GB/s",
    "energy": "40 pJ/bit",
    "adapter_power": "25 W",
    "port_power": "10 W",
}


def cluster(chip=CHIP, outer=OUTER):
    tiers = [
        {"name": "node", "link": INNER, "fan_out": 8},
        {"name": "leaf", "link": outer, "fan_out": 4},
        {"name": "spine", "link": outer, "fan_out": 4, "oversubscription": 2},
    ]
    return ClusterConfig.model_validate({"name": "c", "chip": chip, "tiers": tiers})


SENT = [
    Traffic("tp", 0, 9e9, 8e9),
    Traffic("dp", 1, 3e9, 3e9),
    Traffic("dp", 2, 1e9, 1e9),
]


def energy(sent=SENT, seconds=2.0, computing=1.5, **changes):
    return step_energy(
        cluster(**changes), sent, ranks=128, seconds=seconds, computing=computing, flop=1e15, tokens=1e6
    )


def test_by_hand():
    found = energy()
    assert found.idle == pytest.approx(100 * 2)
    assert found.busy == pytest.approx(600 * 1.5)
    assert found.host == pytest.approx(300 * 2)
    node, leaf, spine = found.tiers
    # 8 GB of 5 pJ/bit, which chips and hosts have already.
    assert node.moved == pytest.approx(8e9 * 8 * 5e-12)
    assert node.total == 0
    # What crosses the spine passes the leaf's links as well; 10 GB/s of 40 pJ/bit are 3.2 W.
    assert leaf.bytes == 4e9
    assert leaf.moved == pytest.approx(4e9 * 8 * 40e-12)
    assert leaf.moved + leaf.waiting == pytest.approx(3.2 * 2)
    assert (leaf.ports, leaf.adapter) == pytest.approx((10 * 2, 25 * 2))
    # Half a link for each rank, two ports for each, no card.
    assert spine.moved + spine.waiting == pytest.approx(1.6 * 2)
    assert (spine.ports, spine.adapter) == pytest.approx((0.5 * 2 * 10 * 2, 0))
    network = 3.2 * 2 + 20 + 50 + 1.6 * 2 + 20
    assert found.network == pytest.approx(network)
    assert found.per_rank == pytest.approx(200 + 900 + 600 + network)
    assert found.total == pytest.approx(128 * found.per_rank)
    assert found.tokens_per_joule == pytest.approx(1e6 / found.total)
    assert found.joules_per_flop == pytest.approx(900 / 1e15)


def test_links_draw_the_same_whether_bits_move_or_not():
    assert energy(sent=[]).network == pytest.approx(energy().network)


def test_a_chip_that_computes_all_the_time_draws_its_power():
    found = energy(seconds=2.0, computing=2.0)
    assert (found.idle + found.busy) / 2.0 == pytest.approx(700)


def test_a_facility():
    facility = Facility(1e6, 1.25)
    assert facility.share(energy()) == pytest.approx(128 * energy().watts_per_rank * 1.25 / 1e6)
    # 1 MW / 1.25 / 1 kW is 800 chips, in replicas of 96.
    assert chips_within(facility, 1000.0, 96) == 768
    assert chips_within(facility, 1000.0, 801) == 0


@pytest.mark.parametrize(
    ("name", "kilowatts"),
    # DGX A100, H100 and B200 at most; NVL72 as reported, for its rack.
    [("A100", 6.5), ("H100", 10.2), ("B200", 14.3), ("GB200", 120 / 9)],
)
def test_eight_chips_with_their_hosts_are_as_published(name, kilowatts):
    chip = ClusterConfig.model_validate(
        {"name": "c", "chip": name, "tiers": [{"name": "t", "link": "NVLink-4", "fan_out": 8}]}
    ).chip
    eight = 8 * (chip.power + chip.host_power + 25) / 1e3
    # A host draws less than at most.
    assert 0.8 * kilowatts < eight <= 1.001 * kilowatts


def test_a_switch_of_the_data_sheet():
    # QM9700: 64 ports, 747 W with passive cables.
    assert load_cluster("dgx-h100-superpod").tiers[1].link.port_power * 64 == pytest.approx(747, rel=0.01)


@pytest.fixture(scope="module")
def llama():
    config = load_experiment("configs/llama3-405b-16k.yaml")
    return config, experiment_energy(config)


def test_llama(llama):
    _, found = llama
    assert found.ranks == 16384
    assert found.tokens == 2048 * 8192
    assert 0 < found.computing < found.seconds
    # Between idling and computing all the time, hosts and networks included.
    assert 80 + 385 < found.watts_per_rank < 700 + 385 + 100


def test_design_power_is_the_sum_of_the_parts():
    # 700 W of the chip, 300 of its host; a link and a card, one port; half a link of the spine with two ports.
    watts = 700 + 300 + 3.2 + 25 + 10 + 1.6 + 10
    found = design(cluster(), 5)
    assert found.watts_per_rank == pytest.approx(watts)
    assert found.total == pytest.approx(5 * watts)
    # No step draws more.
    assert energy().watts_per_rank < watts
    assert energy(sent=[], seconds=2.0, computing=2.0).watts_per_rank == pytest.approx(watts)


def test_the_largest_cluster_fits_and_one_more_unit_does_not(llama):
    config, _ = llama
    watts = design(config.cluster).watts_per_rank
    # Little more than there is, so that the tables of prices are short; of which 128 chips are a unit.
    facility = Facility((16384 + 300) * watts * 1.2, 1.2)
    most = largest(config, facility)
    assert most.chips == 16384 + 256
    assert most.energy.ranks == most.chips
    assert facility.share(design(config.cluster, most.chips)) <= 1
    assert facility.share(design(config.cluster, most.chips + 128)) > 1
    assert facility.share(most.energy) < 1


def test_less_than_a_replica(llama):
    config, _ = llama
    assert "not even 128 chips" in largest(config, Facility(1e4, 1.2)).problem


def test_a_gigawatt_site_is_as_the_file_says():
    # By hand: 1.2 MW for 576 GPUs in NVIDIA's reference architecture, 2,083 W each, provisions for servers and switches at most; the
    # catalog's sum is less, and by it a fifth more chips are fed.
    site = load_cluster("gigawatt-site")
    each = design(site).watts_per_rank
    # 1.2 kW, 440 W; NDR: 17 W of modules, a card, a port; two ports for half a link, then for a sixteenth.
    by_hand = 1200 + 440 + 17 + 25 + 11.7 + (17 + 2 * 11.7) / 2
    campus = site.tiers[3]
    by_hand += (8 * campus.link.energy * 50e9 + 2 * campus.link.port_power) / 16
    assert each == pytest.approx(by_hand, rel=1e-3)
    assert 0.8 * 1.2e6 / 576 < each < 1.2e6 / 576
    chips = chips_within(Facility(1e9, 1.2), each, 72)
    assert 396_288 < chips < 1.25 * 396_288


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"chip": {"peak": {"bf16": "1 PFLOP/s"}, "power": "700 W"}},
            "cluster.chip.idle_power: expected a power",
        ),
        ({"chip": {**CHIP, "idle_power": "800 W"}}, "expected at most the power, 700 W; got 800 W"),
        (
            {"outer": {key: value for key, value in OUTER.items() if key != "energy"}},
            "cluster.tiers.1.link.energy: expected an energy",
        ),
    ],
)
def test_what_is_not_known(changes, message):
    with pytest.raises(EnergyError, match=message):
        energy(**changes)


def test_no_facility():
    with pytest.raises(EnergyError, match="budget: expected a power > 0"):
        Facility(0.0, 1.2)
    with pytest.raises(EnergyError, match="pue: expected a number >= 1; got"):
        Facility(1e9, 0.9)
