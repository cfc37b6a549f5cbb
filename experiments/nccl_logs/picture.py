"""Predicted over measured against the size, for all systems: what lies on the line is predicted."""

from collections.abc import Sequence
from pathlib import Path

from experiments.nccl_logs.compare import Curve, predict

# Okabe and Ito's colours, distinct to colour-blind readers.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#666666")
KINDS = ("V100", "A100 PCIe", "A100", "GH200", "H100", "B200", "other")
TICKS = {8: "8 B", 2**10: "1 KiB", 2**17: "128 KiB", 2**24: "16 MiB", 2**31: "2 GiB"}


def draw(curves: Sequence[Curve], path: Path) -> None:
    """Writes the picture; needs matplotlib."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    with plt.rc_context({"svg.hashsalt": "nccl", "svg.fonttype": "path"}):
        figure, axes = plt.subplots(figsize=(9, 4.6), layout="constrained")
        axes.axhspan(0.65, 1.35, color="#DDDDDD", zorder=0, label="within 35 %")
        axes.axhline(1, color="#222222", linewidth=0.8)
        for kind, colour in zip(KINDS, COLOURS, strict=True):
            label: str | None = kind
            for curve in (each for each in curves if _kind(each) == kind):
                ratio = predict(curve.system, curve.sizes) / curve.measured
                # Where sizes lie densely, a thousand points would hide the others.
                step = max(1, len(ratio) // 40)
                style = {"color": colour, "linewidth": 0.9, "alpha": 0.7}
                axes.plot(curve.sizes[::step], ratio[::step], label=label, **style)
                label = None
        axes.set(xscale="log", yscale="log", ylim=(0.03, 4), xlabel="message", ylabel="predicted / measured")
        axes.set_xticks(list(TICKS), list(TICKS.values()))
        axes.set_yticks([0.05, 0.1, 0.25, 0.5, 1, 2, 4], ["0.05", "0.1", "0.25", "0.5", "1", "2", "4"])
        axes.minorticks_off()
        axes.legend(loc="lower left", ncols=4, frameon=False, fontsize=8.5)
        axes.spines[["top", "right"]].set_visible(False)
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
        plt.close(figure)


def _kind(curve: Curve) -> str:
    name = curve.system.name
    return next((kind for kind in KINDS if kind in name), "other")
