"""Shards of a sweep in one folder: parts are copied, each once, and what is missing is named."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mc.errors import InputError
from mc.sweep.store import Batch, Store, check_part, parts_in, read_manifest


@dataclass(frozen=True)
class Merged:
    """What a merge has found.

    Attributes:
        cells: how many are there now.
        failed: how many of them failed.
        missing: ranges of cells that no folder has, from and up to.
    """

    cells: int
    failed: int
    missing: tuple[tuple[int, int], ...]


def merge(folders: Sequence[str | os.PathLike[str]], out: str | os.PathLike[str]) -> Merged:
    """Puts the parts of folders of one sweep into one.

    Args:
        folders: of shards, in any order.
        out: missing, empty, or a folder of the same sweep.

    Raises:
        InputError: a folder has no sweep, or another one.
    """
    manifests = []
    for folder in folders:
        manifest = read_manifest(Path(folder))
        if manifest is None:
            raise InputError(f"{folder}: expected a folder of a sweep; got no readable manifest.json in it")
        manifests.append(manifest)
    first = manifests[0]
    for folder, manifest in zip(folders, manifests, strict=True):
        if manifest["sweep_hash"] != first["sweep_hash"]:
            raise InputError(
                f"{folder}: expected a shard of the sweep {first['sweep_hash']}, as in {folders[0]}; "
                f"got one of {manifest['sweep_hash']}"
            )
    store = Store(out, first)
    store.open(resume=True)
    with store.locked("merge"):
        done = store.done(retry=False)
        for folder in folders:
            for batch, path in parts_in(Path(folder)).items():
                # A part without failures beats one that has some.
                if batch in done and not done[batch]:
                    continue
                failed = check_part(path, batch, store.hash)
                if failed is None or (batch in done and failed >= done[batch]):
                    continue
                store.copy(path, batch)
                done[batch] = failed
        missing = _missing(sorted(done, key=lambda batch: batch.start), int(first["cells"]))
        store.finish(merged_from=len(folders), complete=not missing)
    return Merged(sum(each.stop - each.start for each in done), sum(done.values()), tuple(missing))


def _missing(done: Sequence[Batch], cells: int) -> list[tuple[int, int]]:
    found, reached = [], 0
    for batch in done:
        if batch.start > reached:
            found.append((reached, batch.start))
        reached = max(reached, batch.stop)
    return [*found, (reached, cells)] if reached < cells else found
