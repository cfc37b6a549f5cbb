"""Where a result came from, at the end of every report: what ran, on what, and how to run it again."""

from collections.abc import Mapping
from typing import Any

from mc.report.html.honesty import at
from mc.report.html.page import Details, Section, Table


def provenance(manifest: Mapping[str, Any], *others: Details, title: str = "Provenance") -> Section:
    """The manifest as rows, its configuration and `others` folded away."""
    rows = [(name, text) for name, text in _rows(manifest) if text]
    details = list(others)
    config = manifest.get("config")
    if isinstance(config, str):
        details.insert(0, Details("The configuration, with every default", config))
    return Section(title, tables=[Table(("", ""), rows, words=True)], details=details)


def _rows(manifest: Mapping[str, Any]) -> list[tuple[str, str]]:
    packages = at(manifest, "software", "packages") or {}
    versions = ", ".join(f"{name} {version}" for name, version in packages.items() if version)
    commit = at(manifest, "checkout", "commit")
    dirty = ", with changes that were not committed" if at(manifest, "checkout", "dirty") else ""
    device = manifest.get("device") or {}
    bits = "64-bit" if device.get("x64") else "32-bit"
    machine = (
        f"{device.get('count')} x {device.get('kind')} ({device.get('backend')}), {bits}" if device else ""
    )
    random = manifest.get("random") or {}
    seed = f"seed {random['seed']}, " if "seed" in random else ""
    method = f", method {random['method']}" if "method" in random else ""
    time = manifest.get("time") or {}
    started, ended = (time.get(name) or manifest.get(name) for name in ("started", "ended"))
    return [
        ("run again", str(manifest.get("command") or "")),
        ("configuration", str(manifest.get("config_hash") or manifest.get("sweep_hash") or "")),
        ("random numbers", f"{seed}{random.get('key_implementation', '')}{method}" if random else ""),
        (
            "tailstep",
            f"{at(manifest, 'software', 'tailstep') or ''}" + (f", commit {commit}{dirty}" if commit else ""),
        ),
        ("packages", versions),
        (
            "Python",
            f"{at(manifest, 'software', 'python') or ''}, {at(manifest, 'software', 'platform') or ''}",
        ),
        ("device", machine),
        ("time", " to ".join(str(each) for each in (started, ended) if each)),
    ]
