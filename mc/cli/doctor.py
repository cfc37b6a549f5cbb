"""`tailstep doctor`: what tailstep runs on here, and whether it works."""

import json
import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from mc.experiment.checkup import Checkup

_GB = 1e9


def doctor(
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")] = False,
) -> None:
    """Show versions, devices, memory and cache, and check that draws are right and how fast they come.

    Exits with 1 if something does not work; slow is no failure.
    """
    # Here, so that `--help` loads neither NumPy nor Parquet.
    from mc.results.provenance import software

    found: dict[str, Any] = {"software": software(), "memory_bytes": _memory()}
    problems, warnings = [], []
    try:
        # The engine brings JAX, and here it may be what is broken.
        from mc.experiment.checkup import FAST, SLOW, check_up

        checked = check_up()
    except (ImportError, RuntimeError) as error:
        problems.append(f"JAX does not work: {error}")
    else:
        found |= asdict(checked) | {"expected_draws_per_s": [SLOW, FAST]}
        if not checked.is_right:
            problems.append(f"draws are wrong: {checked.errors:+.1f} standard errors from the median")
        if checked.is_slow:
            warnings.append(f"slow: expected at least {SLOW:.0e} draws/s; is the machine busy?")
        if not as_json:
            _print_checked(found, checked, SLOW)
    found |= {"problems": problems, "warnings": warnings}
    if as_json:
        print(json.dumps(found, indent=2, allow_nan=False))
    else:
        for text in (*problems, *warnings):
            print(text)
        print("not in order" if problems else "in order")
    if problems:
        raise typer.Exit(1)


def _memory() -> int | None:
    """Of the machine; None where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def _print_checked(found: dict[str, Any], checked: "Checkup", slow: float) -> None:
    versions = found["software"]
    packages = ", ".join(f"{name} {version}" for name, version in versions["packages"].items())
    print(f"tailstep {versions['tailstep']}, Python {versions['python']}, {versions['platform']}")
    print(packages)
    memory = found["memory_bytes"]
    cores = os.cpu_count()
    print(f"machine   {cores} cores" + ("" if memory is None else f", {memory / _GB:.1f} GB"))
    for each in checked.devices:
        size = "" if each.memory_bytes is None else f", {each.memory_bytes / _GB:.1f} GB"
        print(f"device    {each.platform}:{each.number} {each.kind}{size}")
    print(
        f"cache     {checked.cache or 'compiled programs are not kept (jax_compilation_cache_dir is not set)'}"
    )
    print(
        f"draws     {checked.draws_per_s:.3g}/s of the slowest of a million ranks, after {checked.compile_s:.1f} s of compiling; "
        f"expected at least {slow:.0e}/s"
    )
    print(f"law       {checked.errors:+.1f} standard errors from its median")
